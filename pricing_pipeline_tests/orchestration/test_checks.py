"""The asset check of latest prices: are viewers served on time?"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.asset_health.asset_check_health import AssetCheckHealthState
from dagster._core.definitions.asset_health.asset_health import AssetHealthStatus
from dagster._core.loader import LoadingContextForTest

from pricing_pipeline.defs import checks
from pricing_pipeline.defs.checks import CHECKS
from pricing_pipeline.defs.snapshot import EMPTY
from pricing_pipeline.prices import quality
from pricing_pipeline.registry import data_type_registry
from pricing_pipeline_tests.fixtures.core import DAILY, FX, NAV, QUOTE, Core, rows_read
from pricing_pipeline_tests.fixtures.dagster import Stage, plain, said
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.pages import ROOT

NAMES = ("on_time", "gaps", "outliers", "agreement", "revisions", "alerts")


def evaluated(stage: Stage, name: str = "on_time") -> dict[str, dg.AssetCheckEvaluation]:
    """What a run of the job reports of a check."""
    run = stage.definitions.resolve_job_def("check_prices").execute_in_process(instance=stage.instance)
    assert run.success
    return {check.asset_key.path[1]: check for check in run.get_asset_check_evaluations() if check.check_name == name}


def judged(core: Core, name: str) -> dict[str, dg.AssetCheckEvaluation]:
    """What a check says of each data type, as the job reports it."""
    (check,) = [check for check in CHECKS if check.name == name]
    with core.engine.connect() as connection:
        types = [kind.data_type for kind in data_type_registry.active_data_types(connection) if check.applies(kind)]
        found = checks._evaluations(connection, check, EMPTY, types, lambda key: False)
        return {evaluation.asset_key.path[1]: evaluation for evaluation in found}


def facts(check: dg.AssetCheckEvaluation) -> dict[str, Any]:
    return {name: plain(value) for name, value in check.metadata.items()}


@pytest.mark.usefixtures("still")
def test_g2_a_check_for_each_type_fails_where_viewers_wait_too_long(stage: Stage, core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "IBM"))
    core.rows("DELETE FROM pricing.api_call_queue_live WHERE symbol = 'IBM'")
    clock.advance(5)
    core.heartbeat("ann", (FX, "EUR/USD"))
    put(core, FX, "GBP/USD", 1)
    put(core, NAV, "118632", 1)
    clock.advance(26)
    found = evaluated(stage)
    assert {name: check.passed for name, check in found.items()} == {QUOTE: False, FX: True, NAV: True}
    assert {name for name, check in found.items() if check.severity is dg.AssetCheckSeverity.ERROR} == {QUOTE}
    assert str(found[QUOTE].description).startswith("2 watched prices: 2 late. 2 were never fetched. ")
    assert found[FX].description == "1 watched price: 1 due. 1 was never fetched."
    assert found[NAV].description == "Nobody watches this type."
    told = facts(found[QUOTE])
    assert {name: told[name] for name in ("watched", "fresh", "late")} == {
        "watched": 2,
        "fresh": 0,
        "late": 2,
    }
    (why,) = [row["why"] for row in told["why_late"] if row["symbol"] == "AAPL"]
    assert why.startswith("nothing was ever fetched: it has waited since"), "F4"
    assert "why_late" not in facts(found[FX])


def test_g2_what_was_never_fetched_is_not_green(stage: Stage, core: Core, clock: Clock) -> None:
    """Nothing is said of it while nothing is wrong; what was said before is said anew, and does not pass."""

    def health() -> AssetHealthStatus:
        keys = {dg.AssetCheckKey(dg.AssetKey(["latest_price", QUOTE]), name) for name in ("on_time", "outliers")}
        context = LoadingContextForTest(stage.instance)
        return asyncio.run(AssetCheckHealthState.compute_for_asset_checks(keys, context)).health_status

    core.heartbeat("ann", (QUOTE, "AAPL"))
    assert QUOTE not in evaluated(stage)
    assert health() is AssetHealthStatus.UNKNOWN
    reasons = [said(event)["reason"] for event in stage.observations("freshness", NAV)]
    assert reasons == ["Nobody watches this type. Nothing of this type was ever fetched."]
    assert stage.observations("freshness", QUOTE) == []
    clock.advance(31)
    late = evaluated(stage)[QUOTE]
    assert str(late.description).endswith("Nothing of this type was ever fetched.")
    core.unsubscribe("ann", (QUOTE, "AAPL"))
    left = evaluated(stage)[QUOTE]
    assert (left.passed, left.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert left.description == "Nobody watches this type. Nothing of this type was ever fetched."
    assert health() is AssetHealthStatus.WARNING
    put(core, QUOTE, "AAPL", 1)
    assert evaluated(stage)[QUOTE].passed
    assert health() is AssetHealthStatus.HEALTHY


def test_g2_the_page_of_an_asset_says_each_hour_that_all_that_is_watched_is_paused(stage: Stage, core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    put(core, QUOTE, "AAPL", 1)
    core.pause("AAPL")
    assert str(evaluated(stage)[QUOTE].description).startswith("1 watched price: 1 paused. None can be fetched")
    (event,) = stage.observations("freshness", QUOTE)
    assert said(event)["reason"].startswith("1 watched price: 1 paused. None can be fetched")


def test_g2_checks_belong_to_latest_prices_and_providers(stage: Stage) -> None:
    graph = stage.definitions.resolve_asset_graph()
    assert {key.asset_key.path[0] for key in graph.asset_check_keys} == {"latest_price", "provider"}
    found = {name: {key.asset_key.path[1] for key in graph.asset_check_keys if key.name == name} for name in NAMES}
    assert found == {
        "on_time": {DAILY, QUOTE, FX, NAV},
        "gaps": {DAILY, NAV},
        "outliers": {DAILY, QUOTE, FX, NAV},
        "agreement": {DAILY, QUOTE, FX, NAV},
        "revisions": {DAILY, NAV},
        "alerts": {DAILY, QUOTE, FX, NAV},
    }


def test_g2_what_a_check_found_stays_in_sight_when_its_prices_are_materialized_again(stage: Stage, core: Core) -> None:
    """Dagster calls a check not evaluated when that is so by this function of its own."""
    put(core, QUOTE, "AAPL", 1)
    found = evaluated(stage)[QUOTE]
    stage.instance.report_runless_asset_event(dg.AssetMaterialization(["latest_price", QUOTE]))
    key = dg.AssetCheckKey(dg.AssetKey(["latest_price", QUOTE]), "on_time")
    last = stage.instance.event_log_storage.get_latest_asset_check_execution_by_key([key])[key]
    assert asyncio.run(last.targets_latest_materialization(LoadingContextForTest(stage.instance)))
    assert last.evaluation is not None
    assert (last.evaluation.description, last.evaluation.passed) == (found.description, found.passed)
    assert last.evaluation.metadata.keys() == found.metadata.keys()


def test_checks_run_on_their_own_schedule_and_in_no_drain(stage: Stage) -> None:
    assert stage.repository.get_schedule_def("check_prices").job_name == "check_prices"
    assert [node.name for node in stage.repository.get_job("refresh").nodes] == ["drain_queue"]


def test_every_check_names_what_to_do_on_a_page_that_has_it(stage: Stage) -> None:
    page = (ROOT / "docs/operations.md").read_text()
    anchors = {line[3:].lower().replace(" ", "-") for line in page.splitlines() if line.startswith("## ")}
    assert {check.anchor for check in CHECKS} <= anchors
    assert {check.name for check in CHECKS} == {*NAMES, "vanished_slots", "game_version"}


def put(core: Core, data_type: str, symbol: str, *days: int, amount: int = 3000, provider: str = "twelvedata") -> None:
    """Daily values so many days ago, as they are stored."""
    core.rows(
        "INSERT INTO pricing.price_history (data_type, symbol, observed_at, amount, scale, currency, provider,"
        " call_id, fetched_at) SELECT :type, :symbol, date_trunc('day', pricing.clock(), 'UTC') - d * interval '1 day',"
        " :amount, 2, 'USD', :provider, 1, pricing.clock() FROM unnest(CAST(:days AS integer[])) AS d",
        type=data_type,
        symbol=symbol,
        days=list(days),
        amount=amount,
        provider=provider,
    )


def latest(core: Core, data_type: str, symbol: str, amount: int, provider: str) -> None:
    core.rows(
        "INSERT INTO pricing.latest_prices (data_type, symbol, amount, scale, currency, observed_at, fetched_at,"
        " provider, call_id, source_text)"
        " VALUES (:type, :symbol, :amount, 2, 'USD', pricing.clock(), pricing.clock(), :provider, 1, '')",
        type=data_type,
        symbol=symbol,
        amount=amount,
        provider=provider,
    )


def known(core: Core, *symbols: str) -> None:
    core.rows(
        "INSERT INTO pricing.instruments (asset_class, symbol) SELECT 'equity', s"
        " FROM unnest(CAST(:all AS text[])) AS s ON CONFLICT DO NOTHING",
        all=list(symbols),
    )


def trading_days(core: Core, calendar: str, holidays: Sequence[int] = ()) -> None:
    """A calendar that trades every day of the last 400 and of the next 10, but for holidays so many days ago."""
    core.rows(
        "SELECT pricing.store_sessions(:calendar, min(day), max(day), array_agg(day) FILTER (WHERE is_open),"
        " array_agg(day::timestamp AT TIME ZONE 'UTC') FILTER (WHERE is_open),"
        " array_agg((day + 1)::timestamp AT TIME ZONE 'UTC') FILTER (WHERE is_open))"
        " FROM (SELECT (pricing.clock() AT TIME ZONE 'UTC')::date - n AS day, NOT n = ANY (:holidays) AS is_open"
        "       FROM generate_series(-10, 400) AS n) d",
        calendar=calendar,
        holidays=list(holidays),
    )


def test_f8_the_check_knows_what_pricing_gaps_knows(environment: None, core: Core) -> None:
    """Each symbol goes by its own calendar, however many others have a day; only what can be fetched is a fault."""
    trading_days(core, "XNYS")
    trading_days(core, "XLON", holidays=(7, 8))
    known(core, "AAPL", "IBM", "BARC.L", "ODD.XY")
    for symbol in ("AAPL", "IBM"):
        put(core, DAILY, symbol, *range(1, 101))
    put(core, DAILY, "BARC.L", *(day for day in range(1, 51) if day not in (7, 8)))
    put(core, DAILY, "ODD.XY", 1, 50)
    check = judged(core, "gaps")[DAILY]
    assert check.passed, "two days on which London is closed"
    told = facts(check)
    assert told["expected"] == 248, "before its first value nothing is missing"
    assert (told["symbols"], told["without_calendar"]) == (3, 1)
    assert told["what_to_do"].startswith("**A history has gaps** (docs/operations.md#a-history-has-gaps)")
    assert "pricing-pipeline backfill start" in told["what_to_do"], "what to type, where it failed"
    assert "](" not in told["what_to_do"], "links of the page lead nowhere in the UI"

    core.rows(
        "DELETE FROM pricing.price_history WHERE symbol = 'IBM'"
        " AND observed_at BETWEEN pricing.clock() - interval '32 days' AND pricing.clock() - interval '30 days'"
    )
    check = judged(core, "gaps")[DAILY]
    assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.WARN)
    told = facts(check)
    assert {name: told[name] for name in ("missing", "not_asked", "symbols_with_gaps", "provider_has_none")} == {
        "missing": 2,
        "not_asked": 2,
        "symbols_with_gaps": 1,
        "provider_has_none": 0,
    }
    assert [(gap["symbol"], gap["trading days"], gap["kind"]) for gap in told["gaps"]] == [("IBM", 2, "not_asked")]

    core.rows(
        "INSERT INTO pricing.history_coverage (data_type, symbol, covered)"
        " SELECT 'equity_daily', 'IBM', datemultirange(daterange(d - 40, d)) FROM CAST(pricing.clock() AS date) AS d"
    )
    check = judged(core, "gaps")[DAILY]
    assert check.passed, "the provider was asked for two days in 248 and has none"
    assert (facts(check)["missing"], facts(check)["provider_has_none"]) == (0, 2)
    assert NAV not in judged(core, "gaps"), "nothing was ever fetched"


def test_f8_a_wrong_calendar_and_many_gaps_are_told(environment: None, core: Core) -> None:
    trading_days(core, "XNYS")
    known(core, "AAPL")
    put(core, DAILY, "AAPL", *(day for day in range(1, 101) if day % 25))
    core.rows(
        "INSERT INTO pricing.history_coverage (data_type, symbol, covered)"
        " SELECT 'equity_daily', 'AAPL', datemultirange(daterange(d - 110, d)) FROM CAST(pricing.clock() AS date) AS d"
    )
    check = judged(core, "gaps")[DAILY]
    assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.WARN), "3 of 98, which is no accident"
    assert "has a wrong calendar" in str(check.description)
    core.rows("DELETE FROM pricing.history_coverage")
    core.rows("DELETE FROM pricing.price_history WHERE observed_at < pricing.clock() - interval '90 days'")
    assert facts(judged(core, "gaps")[DAILY])["missing"] == 3
    core.rows(
        "DELETE FROM pricing.price_history"
        " WHERE observed_at BETWEEN pricing.clock() - interval '20 days' AND pricing.clock() - interval '10 days'"
    )
    check = judged(core, "gaps")[DAILY]
    assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.ERROR), "more than a twentieth"


def test_f8_the_check_reads_each_value_once(core: Core) -> None:
    """Guards its plan: a symbol costs its own days once, not a look at all others' or a probe for each day."""
    trading_days(core, "XNYS")
    symbols = [f"S{n}" for n in range(15)]
    known(core, *symbols)
    for symbol in symbols:
        put(core, DAILY, symbol, *range(1, 301))
    with core.engine.connect() as connection:
        before = rows_read(connection)
        (found,) = quality.gaps(connection, [DAILY])
        assert rows_read(connection) - before < 2.2 * 300 * len(symbols)
    assert (found.expected, found.missing, found.symbols) == (300 * 15, 0, 15)


def test_f6_values_that_wait_for_a_person_fail_a_check(environment: None, core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.quarantined_values (data_type, symbol, provider, kind, value, reason, call_id,"
        " recorded_at, last_seen_at, last_call_id) VALUES"
        " ('equity_quote', 'AAPL', 'twelvedata', 'unit', '7250', 'x', 1, pricing.clock(), pricing.clock(), 1)"
    )
    put(core, FX, "EUR/USD", 1)
    found = judged(core, "outliers")
    assert {name: check.passed for name, check in found.items()} == {QUOTE: False, FX: True}
    assert "1 value(s) of 1 symbol(s) are not believed (unit)" in str(found[QUOTE].description)
    core.rows(
        "UPDATE pricing.quarantined_values SET status = 'rejected', resolved_at = pricing.clock(), resolved_by = 'ann'"
    )
    assert judged(core, "outliers")[QUOTE].passed


def test_f6_two_providers_that_disagree_fail_a_check(environment: None, core: Core) -> None:
    for symbol, ours, theirs in (("AAPL", 7250, 7300), ("IBM", 12000, 12100)):
        latest(core, QUOTE, symbol, ours, "twelvedata")
        latest(core, DAILY, symbol, theirs, "yahoo")
    check = judged(core, "agreement")[QUOTE]
    assert (check.passed, facts(check)["compared"]) == (True, 2)
    core.rows("UPDATE pricing.latest_prices SET amount = 725000 WHERE data_type = 'equity_daily' AND symbol = 'AAPL'")
    check = judged(core, "agreement")[QUOTE]
    assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert facts(check)["examples"] == "AAPL: 72.50 twelvedata, 7250.00 yahoo"
    assert facts(check)["worst_factor"] == 100.0


def test_f6_what_a_second_provider_says_of_a_quarantined_value_fails_the_check_until_a_person_decides(
    environment: None, core: Core
) -> None:
    core.rows(
        "WITH value AS (INSERT INTO pricing.quarantined_values (data_type, symbol, provider, observed_at, kind, value,"
        " reason, bar, call_id, recorded_at, last_seen_at, last_call_id) SELECT :type, 'AAPL', 'twelvedata', n, 'unit',"
        " '7250', 'far', jsonb_build_object('close', '7250'), 1, n, n, 1 FROM pricing.clock() AS n RETURNING value_id)"
        " INSERT INTO pricing.second_opinions (value_id, provider, call_id, asked_at, answered_at, observed_at, value,"
        " ratio) SELECT value_id, 'yahoo', 2, n, n, n, 72.5, 100 FROM value CROSS JOIN pricing.clock() AS n",
        type=QUOTE,
    )
    check = judged(core, "agreement")[QUOTE]
    assert (check.passed, facts(check)["compared"], facts(check)["worst_factor"]) == (False, 1, 100.0)
    assert facts(check)["examples"] == "AAPL: 7250 twelvedata, 72.5 yahoo"
    core.rows("SELECT pricing.decide_quarantined(ARRAY[value_id], 'rejected', 'ann') FROM pricing.quarantined_values")
    assert judged(core, "agreement")[QUOTE].passed


def test_f5_yfinance_a_split_that_nobody_told_fails_a_check_and_a_crash_does_not(environment: None, core: Core) -> None:
    known(core, "AAPL")
    known(core, "IBM")
    for symbol, volume in (("AAPL", 900), ("IBM", 9000)):
        put(core, DAILY, symbol, *range(31, 60), amount=20000)
        put(core, DAILY, symbol, *range(20, 31), amount=10100)
        core.rows("UPDATE pricing.price_history SET volume = 1000 WHERE symbol = :symbol", symbol=symbol)
        core.rows(
            "UPDATE pricing.price_history SET volume = :volume WHERE symbol = :symbol AND observed_at ="
            " date_trunc('day', pricing.clock(), 'UTC') - interval '30 days'",
            symbol=symbol,
            volume=volume,
        )
    check = judged(core, "outliers")[DAILY]
    told = facts(check)
    assert (check.passed, check.severity, told["quarantined"], told["unreported_splits"]) == (
        False,
        dg.AssetCheckSeverity.WARN,
        0,
        1,
    )
    on = core.clock().date() - timedelta(days=30)
    assert told["examples"] == f"AAPL {on} 2:1"
    core.rows(
        "SELECT pricing.enter_action('equity', 'AAPL', CAST(:on AS date), 'split', 2, 1, NULL, NULL, 'ann')",
        on=on,
    )
    assert judged(core, "outliers")[DAILY].passed


def test_f5_payments_that_no_total_return_can_count_fail_a_check(environment: None, core: Core) -> None:
    known(core, "AAPL", "MSFT")
    for symbol in ("AAPL", "MSFT"):
        put(core, DAILY, symbol, *range(20, 60), amount=10100)
    core.rows("UPDATE pricing.price_history SET currency = 'USD'")
    on = core.clock().date() - timedelta(days=30)
    for symbol, currency in (("AAPL", "EUR"), ("MSFT", "USD")):
        core.rows(
            "SELECT pricing.enter_action('equity', :symbol, CAST(:on AS date), 'dividend', NULL, NULL, 1, :currency,"
            " 'ann')",
            symbol=symbol,
            on=on,
            currency=currency,
        )
    check = judged(core, "outliers")[DAILY]
    assert (check.passed, facts(check)["payments_without_rate"]) == (False, 1)
    assert facts(check)["examples"] == f"AAPL {on} EUR/USD"
    core.rows(
        "INSERT INTO pricing.price_history (data_type, symbol, observed_at, amount, scale, currency, provider, call_id,"
        " fetched_at) VALUES ('fx_rate', 'EUR/USD', CAST(:on AS date), 11, 1, 'USD', 'fmp', 1, pricing.clock())",
        on=on,
    )
    assert judged(core, "outliers")[DAILY].passed


def test_f5_many_revisions_fail_a_check(environment: None, core: Core) -> None:
    known(core, "AAPL")
    put(core, DAILY, "AAPL", *range(1, 101))
    revise = (
        "INSERT INTO pricing.price_revisions (data_type, symbol, observed_at, amount, scale, provider, call_id,"
        " recorded_at, revised_at, revised_by)"
        " SELECT data_type, symbol, observed_at, 1, 2, provider, 1, fetched_at, pricing.clock(), 2"
        " FROM pricing.price_history ORDER BY observed_at DESC LIMIT :count ON CONFLICT DO NOTHING"
    )
    core.rows(revise, count=1)
    assert judged(core, "revisions")[DAILY].passed, "one in a hundred is usual"
    core.rows(revise, count=5)
    check = judged(core, "revisions")[DAILY]
    assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert facts(check)["revised"] >= 5


def test_g5_plots_are_shown_where_people_look(stage: Stage, core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    for price in ("72.50", "73.10"):
        core.rows("DELETE FROM pricing.api_call_queue_live")
        core.enqueue(QUOTE, "AAPL")
        core.refresh(price=price)
        core.call("SELECT pricing.sample_freshness()")
        clock.advance(30)
    told = facts(judged(core, "on_time")[QUOTE])
    assert told["freshness_plot"].startswith("fresh 1 of 1 at ")
    plots = {}
    (fresh,) = [
        e
        for e in stage.tick("report_prices").asset_events
        if e.asset_key.path[-1] == QUOTE and isinstance(e, dg.AssetMaterialization)
    ]
    (news,) = stage.materializations("latest_price", QUOTE)
    for event, plot in ((fresh, "freshness_plot"), (news, "price_plot")):
        plots[plot] = str(event.metadata[plot].value)
        assert "(data:image/svg+xml,%3Csvg" in plots[plot]
        assert len(plots[plot]) < 1000
    assert plots["price_plot"].startswith("AAPL 73.10 USD, ")


def test_g6_rows_of_months_are_counted_as_far_as_that_is_cheap(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    """What drains tell Dagster of a partition: all that it holds, or nothing rather than a guess."""
    known(core, "AAPL", "IBM")
    core.rows(
        "INSERT INTO pricing.price_history (data_type, symbol, observed_at, amount, scale, currency, provider,"
        " call_id, fetched_at) SELECT 'equity_daily', s, d AT TIME ZONE 'UTC', 1, 2, 'USD', 'twelvedata', 1,"
        " pricing.clock() FROM unnest(ARRAY['AAPL', 'IBM']) AS s,"
        " generate_series(timestamp '2010-01-30', '2010-03-02', '1 day') AS d"
    )
    january, february, march = (date(2010, month, 1) for month in (1, 2, 3))
    with core.engine.connect() as connection:
        assert quality.month_rows(connection, DAILY, [january, march]) == {january: 4, march: 4}
        assert quality.month_rows(connection, DAILY, [february]) == {february: 56}
        assert quality.month_rows(connection, QUOTE, [february]) == {}
        monkeypatch.setattr(quality, "_MOST_COUNTED", 55)
        assert quality.month_rows(connection, DAILY, [february]) == {}
        assert quality.month_rows(connection, DAILY, [march]) == {march: 4}
