"""B14, G6: nothing of a universe is skipped silently. Who is left out is counted by reason."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.db.errors import reason
from pricing_pipeline.demand import backfills
from pricing_pipeline.demand.backfills import Backfill
from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, MFAPI, NAV, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox

pytestmark = pytest.mark.usefixtures("still")

YEAR = Window(date(2012, 1, 2), date(2012, 12, 28))


def add(core: Core, *symbols: str, asset_class: str = "equity") -> None:
    """Instruments that nobody has verified."""
    core.rows(
        "INSERT INTO pricing.instruments (asset_class, symbol) SELECT :class, unnest(CAST(:symbols AS text[]))",
        **{"class": asset_class, "symbols": list(symbols)},
    )


def only(core: Core, *symbols: str, asset_class: str = "equity") -> None:
    """These are the universe."""
    core.rows("DELETE FROM pricing.instruments WHERE asset_class = :class", **{"class": asset_class})
    add(core, *symbols, asset_class=asset_class)


def plan(core: Core, *symbols: str) -> Backfill:
    return Refresher(core.engine, {}, worker="planner").plan_backfill(DAILY, YEAR, list(symbols) or None)


def live(core: Core) -> set[str]:
    return {row.symbol for row in core.rows("SELECT symbol FROM pricing.api_call_queue_live")}


def refuse(core: Core, provider: str) -> None:
    """The provider knows none of what is asked."""
    while calls := core.claim(provider):
        for call in calls:
            core.fail(call, FailureKind.UNKNOWN_SYMBOL, "no such symbol")
            core.settle(call, 100, "failed", kind=FailureKind.UNKNOWN_SYMBOL)


def test_b14_instruments_that_nobody_has_verified_are_walked_over(core: Core) -> None:
    only(core, "100001", "100002", asset_class="fund")
    assert core.enqueue_scheduled(NAV) == 2
    assert live(core) == {"100001", "100002"}


def test_g6_a_backfill_of_a_whole_type_asks_for_what_nobody_has_verified(core: Core) -> None:
    only(core, "AAPL", "IBM")
    planned = plan(core)
    assert (planned.tasks, planned.left_out) == (2, {})


def test_b14_an_unknown_symbol_fails_once_and_says_so(core: Core, clock: Clock) -> None:
    """Until a person retries it or changes a route: then it is asked for once more."""
    only(core, "100001", asset_class="fund")
    assert core.enqueue_scheduled(NAV) == 1
    refuse(core, MFAPI)
    (failed,) = core.tasks("100001")
    assert (failed.status, failed.failure_kind) == ("failed", "unknown_symbol")
    clock.advance(86_400)
    assert core.enqueue_scheduled(NAV) == 0
    assert core.one("SELECT pricing.left_out('mf_nav')") == {"unknown_symbol": 1}
    assert core.one("SELECT state FROM pricing.why_old('mf_nav', '100001')") == "unknown_symbol"
    core.rows(
        "INSERT INTO pricing.provider_routing (data_type, symbol, provider, rank)"
        " VALUES ('mf_nav', '100001', 'mfapi', 1)"
    )
    assert core.one("SELECT pricing.left_out('mf_nav')") == {}
    clock.advance(86_400)
    assert core.enqueue_scheduled(NAV) == 1


def test_b14_an_instrument_that_was_answered_before_is_asked_for_again(core: Core, clock: Clock) -> None:
    """A provider that forgets a symbol for a night must not end its prices for good."""
    only(core, "100001", asset_class="fund")
    core.rows("UPDATE pricing.instruments SET verified_at = pricing.clock() WHERE symbol = '100001'")
    assert core.enqueue_scheduled(NAV) == 1
    refuse(core, MFAPI)
    clock.advance(86_400)
    assert core.enqueue_scheduled(NAV) == 1


def test_g6_who_names_a_symbol_has_it_asked_for_once_more(core: Core) -> None:
    only(core, "AAPL", "TYPO")
    plan(core, "TYPO")
    refuse(core, TWELVEDATA)
    whole = plan(core)
    assert (live(core), whole.left_out) == ({"AAPL"}, {"unknown_symbol": 1})
    named = plan(core, "TYPO")
    assert (live(core), named.left_out) == ({"AAPL", "TYPO"}, {})


@pytest.mark.parametrize(
    "call",
    [
        "plan_backfill('equity_daily', '2010-01-01', '2010-01-31', {})",
        "cost_backfill('equity_daily', '2010-01-01', '2010-01-31', {})",
        "fetch_now('equity_daily', {})",
    ],
)
def test_g6_who_names_what_is_no_instrument_is_refused_before_anything_is_queued(core: Core, call: str) -> None:
    only(core, "AAPL")
    called = f"SELECT * FROM pricing.{call.format('CAST(:names AS text[])')}"
    for names in (["AAPL", "NONE"], ["none"]):
        with pytest.raises(DBAPIError, match=f"no equity instrument is called {names[-1]}") as refused:
            core.rows(called, names=names)
        assert reason(refused.value).endswith("pricing-pipeline subscription watch NONE --type equity_daily")
    assert (live(core), core.one("SELECT count(*) FROM pricing.backfills")) == (set(), 0)
    core.heartbeat("ann", (DAILY, "AAPL"))
    core.rows("TRUNCATE pricing.api_call_queue")
    core.rows(called, names=["aapl"])
    assert live(core) == (set() if "cost" in call else {"AAPL"})


def test_g6_of_many_unknown_symbols_some_are_named(core: Core) -> None:
    only(core, "AAPL")
    known = "SELECT * FROM pricing.symbols_by_type(ARRAY['fx_rate', 'equity_daily'], ARRAY['aapl', {}])"
    assert core.rows(known.format("'AAPL'")) == [("equity_daily", "AAPL")]
    with pytest.raises(DBAPIError, match="no equity or fx instrument is called A, B, C, D, E and 2 more") as refused:
        core.rows(known.format("'G', 'F', 'E', 'D', 'C', 'B', 'A'"))
    assert "subscription watch A --type equity_daily" in str(refused.value)
    with pytest.raises(DBAPIError, match="Did you mean EUR/USD of the data type fx_rate"):
        core.rows("SELECT * FROM pricing.symbols_by_type(ARRAY['equity_daily'], ARRAY['EURUSD'])")


@given(
    kinds=st.lists(
        st.sampled_from(["plain", "verified", "paused", "manual", "unknown", "forgotten"]),
        min_size=1,
        max_size=12,
    )
)
@settings(max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_b14_what_is_asked_for_and_what_is_left_out_are_the_whole_universe(core: Core, kinds: list[str]) -> None:
    """Invariant: each instrument of a type is asked for, by schedule and by backfill, or counted with a reason."""
    core.rows("TRUNCATE pricing.api_call_queue; DELETE FROM pricing.instruments WHERE asset_class = 'fund'")
    core.rows("UPDATE pricing.schedule_walks SET served_slot = '2000-01-01', walk_slot = NULL, walk_after = ''")
    symbols = {f"{100_001 + number}": kind for number, kind in enumerate(kinds)}
    add(core, *symbols, asset_class="fund")
    for symbol, kind in symbols.items():
        core.rows(
            "UPDATE pricing.instruments SET is_active = :kind <> 'paused',"
            " update_mode = CASE :kind WHEN 'manual' THEN 'manual' ELSE 'api' END,"
            " verified_at = CASE WHEN :kind IN ('verified', 'forgotten') THEN pricing.clock() END"
            " WHERE symbol = :symbol",
            symbol=symbol,
            kind=kind,
        )
        if kind in ("unknown", "forgotten"):
            core.rows(
                "INSERT INTO pricing.api_call_queue_dead (data_type, symbol, status, finished_at, failure_kind)"
                " VALUES ('mf_nav', :symbol, 'failed', pricing.clock(), 'unknown_symbol')",
                symbol=symbol,
            )
    asked = {symbol for symbol, kind in symbols.items() if kind in ("plain", "verified", "forgotten")}
    counts = Counter(kinds)
    reasons = {"paused": counts["paused"] + counts["manual"], "unknown_symbol": counts["unknown"]}
    assert core.enqueue_scheduled(NAV) == len(asked)
    assert live(core) == asked
    core.rows("DELETE FROM pricing.api_call_queue_live")
    planned = Refresher(core.engine, {}, worker="planner").plan_backfill(NAV, YEAR)
    assert live(core) == asked
    assert planned.left_out == {reason: count for reason, count in reasons.items() if count}
    assert len(asked) + sum(planned.left_out.values()) == len(symbols)


def test_g6_a_backfill_over_no_instrument_is_refused(core: Core, cli: CommandLine) -> None:
    """It said that everything was stored already."""
    core.rows("DELETE FROM pricing.instruments WHERE asset_class = 'equity'")
    said = cli("backfill", "start", "--type", DAILY, "--from", "2012-01-02", "--to", "2012-12-28", "--dry-run")
    assert "there is no instrument of the asset class equity" in said.error


def test_g6_what_is_left_out_is_said_with_the_way_out(core: Core) -> None:
    assert backfills.left_out_words({}) is None
    assert backfills.left_out_words({"paused": 2, "unknown_symbol": 1}) == (
        "3 instruments are left out: 2 paused, 1 unknown to the provider (`pricing-pipeline instrument resume SYMBOL`"
        " ends that; `pricing-pipeline task list --status failed` names what it does not know; a retry or a new"
        " route asks again)"
    )


def test_g6_a_dry_run_says_what_would_be_left_out(core: Core, cli: CommandLine) -> None:
    only(core, "AAPL", "IBM")
    core.pause("AAPL")
    said = cli("backfill", "start", "--type", DAILY, "--from", "2012-01-02", "--to", "2012-12-28", "--dry-run")
    assert "1 instrument is left out: 1 paused" in said.stderr


YEAR_2012 = ("backfill", "start", "--type", DAILY, "--from", "2012-01-02", "--to", "2012-12-28")


@pytest.mark.parametrize("more", [(), ("AAPL", "--dry-run")])
def test_g6_a_backfill_that_leaves_out_all_says_so_and_fails(
    core: Core, cli: CommandLine, sandbox: RunningSandbox, more: tuple[str, ...]
) -> None:
    """Everything else was stored already, over an empty table."""
    only(core, "AAPL")
    core.pause("AAPL")
    said = cli(*YEAR_2012, *more, sandbox_url=sandbox.url)
    assert said.exit_code == 1
    assert "nothing from 2012-01-02 to 2012-12-28 is asked for" in said.stdout
    assert "1 instrument is left out: 1 paused" in said.stderr


def test_g6_a_backfill_counts_why_it_asks_for_nothing(core: Core, cli: CommandLine, sandbox: RunningSandbox) -> None:
    only(core, "AAPL", "GOOG", "IBM", "MSFT", "TSLA")
    core.pause("TSLA")
    core.rows("UPDATE pricing.instruments SET listed_on = '2020-01-01' WHERE symbol = 'AAPL'")
    core.rows("SELECT pricing.cover('equity_daily', ARRAY['GOOG', 'IBM'], '2012-01-01', '2012-12-31')")
    core.rows(
        "INSERT INTO pricing.price_history"
        " (data_type, symbol, observed_at, amount, scale, provider, call_id, fetched_at)"
        " VALUES ('equity_daily', 'IBM', '2012-12-28', 100, 2, 'twelvedata', 1, pricing.clock())"
    )
    core.rows("SELECT tasks FROM pricing.plan_backfill('equity_daily', '2012-01-02', '2012-12-28')")
    said = cli(*YEAR_2012, "--dry-run")
    assert said.exit_code == 0
    assert (
        "nothing else from 2012-01-02 to 2012-12-28 is to be asked for: 1 stored already, 1 queued already, "
        "1 not listed yet on those days, 1 known to have no values." in said.stdout
    )
    assert cli(*YEAR_2012, "--dry-run", "--json").json["states"] == {
        "stored": 1,
        "queued": 1,
        "not_listed": 1,
        "empty": 1,
    }
    said = cli(*YEAR_2012, "AAPL", sandbox_url=sandbox.url)
    assert (said.exit_code, "1 not listed yet on those days; no call was made" in said.stdout) == (0, True)
    said = cli(*YEAR_2012, "IBM", sandbox_url=sandbox.url)
    assert "everything from 2012-01-02 to 2012-12-28 is stored already; no call was made" in said.stdout


def test_g6_a_backfill_of_a_day_that_is_not_over_says_so(
    core: Core, cli: CommandLine, sandbox: RunningSandbox, clock: Clock
) -> None:
    clock.set(datetime(2026, 3, 7, 15, tzinfo=UTC))
    only(core, "AAPL")
    core.rows("UPDATE pricing.calendars SET sessions_from = '2026-01-01', sessions_to = '2026-12-31'")
    said = cli(
        "backfill",
        "start",
        "--type",
        DAILY,
        "--from",
        "2026-03-07",
        "--to",
        "2026-03-08",
        sandbox_url=sandbox.url,
    )
    assert "1 without a trading day that is over; no call was made" in said.stdout
