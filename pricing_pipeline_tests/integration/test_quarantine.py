"""What is not believed: kept with its answer, counted, shown, forgotten in time; and never a price."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from pricing_pipeline.domain.answers import Adjust, RejectedValue
from pricing_pipeline.domain.observations import Adjustment, Observation
from pricing_pipeline.quarantine import quarantined_values
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, FX, QUOTE, Core, midnight, observation
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.quarantining import BODY, bring, one_call, quarantined, release
from pricing_pipeline_tests.support.refreshing import refreshing, work_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox
from pricing_pipeline_tests.tools.audit import audit

MARCH = (date(2010, 3, 1), date(2010, 3, 31))


def quote(core: Core, price: str, symbol: str = "AAPL", **more: Any) -> Observation:
    return observation(symbol, price, core.clock() - timedelta(seconds=1), **more)


def test_f6_b18_a_value_in_another_unit_is_kept_and_its_neighbours_are_stored(core: Core) -> None:
    bring(core, one_call(core, QUOTE, "AAPL", "IBM"), quote(core, "72.50"), quote(core, "120", "IBM"))
    call = one_call(core, QUOTE, "AAPL", "IBM")
    wrong = quote(core, "7250")
    tally = bring(core, call, wrong, quote(core, "121", "IBM"))
    assert (tally.quarantined, tally.failed, tally.added) == (1, 1, 1)
    assert str(core.latest("AAPL").price) == "72.50"  # type: ignore[union-attr]
    assert core.tasks("IBM")[-1].status == "completed"
    (row,) = quarantined(core)
    assert (row.data_type, row.symbol, row.provider, row.kind) == (QUOTE, "AAPL", "twelvedata", "unit")
    assert (row.value, row.observed_at, row.call_id) == ("7250", wrong.observed_at, call.id)
    assert (row.status, row.times, row.resolved_at) == ("quarantined", 1, None)
    assert row.bar == {"close": "7250", "currency": "USD", "adjustment": "raw"}
    with core.engine.connect() as connection:
        assert quarantined_values.body(connection, row.value_id) == BODY
    audit(core)


def test_f6_a_symbol_of_which_nothing_is_believed_is_asked_for_again_after_its_ttl(core: Core, clock: Clock) -> None:
    bring(core, one_call(core, QUOTE, "AAPL"), quote(core, "72.50"))
    for minutes in (1, 2, 4):
        if minutes == 1:
            core.enqueue(QUOTE, "AAPL")
        bring(core, core.claim_one(), quote(core, "7250"))
        task = core.tasks("AAPL")[-1]
        assert (task.status, task.errors[-1]["kind"]) == ("scheduled", "implausible")
        assert "factor of 100" in task.errors[-1]["message"]
        waits = (task.run_after - core.clock()).total_seconds() / 60
        assert minutes * 0.95 <= waits <= minutes * 1.2, "and never at once"
        clock.advance(minutes * 75)
        core.promote()
    bring(core, core.claim_one(), quote(core, "7250"))
    assert core.tasks("AAPL")[-1].failure_kind == "implausible"


def test_f6_after_a_release_nothing_waits_for_the_decision_any_more(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (FX, "EUR/USD"))
    bring(core, one_call(core, FX, "EUR/USD"), quote(core, "1.1", "EUR/USD"))
    clock.advance(7200)
    bring(core, one_call(core, FX, "EUR/USD"), quote(core, "110", "EUR/USD"))
    why = f"SELECT state, sentence FROM pricing.why_old('{FX}', 'EUR/USD')"
    assert core.tasks("EUR/USD")[-1].status == "scheduled"
    assert core.rows(why)[0].state == "quarantined"
    value_id = core.one("SELECT value_id FROM pricing.quarantined_values")
    assert release(core, value_id, "ann").outcome == "released"
    assert core.tasks("EUR/USD")[-1].status == "pending"
    clock.advance(7200)
    assert core.rows(why)[0].state == "no_worker", "it is old for another reason"


def test_f6_the_same_value_again_counts_and_adds_nothing(core: Core, clock: Clock) -> None:
    bring(core, one_call(core, QUOTE, "AAPL"), quote(core, "72.50"))
    wrong = quote(core, "7250")
    calls = []
    for _ in range(3):
        core.rows("DELETE FROM pricing.api_call_queue_live")
        calls.append(one_call(core, QUOTE, "AAPL"))
        bring(core, calls[-1], wrong)
        clock.advance(60)
    (row,) = quarantined(core)
    assert (row.times, row.call_id, row.last_call_id) == (3, calls[0].id, calls[2].id)
    assert row.last_seen_at - row.recorded_at >= timedelta(seconds=119)
    assert core.one("SELECT count(*) FROM pricing.quarantined_bodies") == 1


def test_f6_what_a_parser_refuses_is_kept_as_it_was_spelled(core: Core) -> None:
    day = midnight(date(2010, 3, 2))
    rejected = (
        RejectedValue("AAPL", day, "close 'NaN' is not a finite decimal number", "NaN"),
        RejectedValue("AAPL", None, "2010-02-31 is not a day of the calendar", "30.1"),
    )
    good = observation("AAPL", "30.00", midnight(date(2010, 3, 1)))
    tally = bring(core, one_call(core, DAILY, "AAPL", days=MARCH), good, rejected=rejected)
    assert (tally.quarantined, tally.failed, tally.added) == (2, 0, 1)
    assert [(row.kind, row.value, row.observed_at, row.bar) for row in quarantined(core)] == [
        ("refused", "NaN", day, None),
        ("refused", "30.1", None, None),
    ]
    assert core.task("AAPL").status == "completed"


def test_f6_a_lost_claim_keeps_nothing(core: Core) -> None:
    """The quarantine is behind the fence like prices."""
    bring(core, one_call(core, QUOTE, "AAPL"), quote(core, "72.50"))
    call = one_call(core, QUOTE, "AAPL")
    core.return_tasks(call)
    tally = bring(core, call, quote(core, "7250"))
    assert (tally.quarantined, quarantined(core)) == (0, [])


def test_f6_a_newest_day_that_is_quarantined_does_not_make_the_days_before_it_stale(core: Core) -> None:
    """The stored newest day comes again a hundred times as high: that is no source that fell behind."""
    today = midnight(core.clock().date())
    days = [today - timedelta(days=n) for n in (4, 3, 2, 1, 0)]
    good = [observation("AAPL", f"3{n}", day) for n, day in enumerate(days)]
    bring(core, one_call(core, DAILY, "AAPL"), *good)
    bring(core, one_call(core, DAILY, "AAPL"), *good[:4], observation("AAPL", "3400", days[4]))
    task = core.tasks("AAPL")[-1]
    assert task.errors[-1]["kind"] == "implausible"
    assert str(core.latest("AAPL", DAILY).price) == "34.00"  # type: ignore[union-attr]
    assert [row.kind for row in quarantined(core)] == ["unit"]


def test_b18_the_currency_of_the_first_answer_is_the_instruments(core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "NEW"))
    bring(core, core.claim_one(), quote(core, "10", "NEW", currency="EUR"))
    assert core.one("SELECT currency FROM pricing.instruments WHERE symbol = 'NEW'") == "EUR"
    bring(core, one_call(core, QUOTE, "NEW"), quote(core, "10", "NEW", currency="USD"))
    assert [row.kind for row in quarantined(core)] == ["currency"]
    assert core.latest("NEW").currency == "EUR"  # type: ignore[union-attr]


def test_b18_bounds_are_of_a_symbol_or_of_a_type(core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.plausibility_bounds (data_type, symbol, lowest, highest) VALUES"
        " ('equity_quote', NULL, 1, 1000), ('equity_quote', 'BRK.A', NULL, 2000000)"
    )
    call = one_call(core, QUOTE, "AAPL", "BRK.A", "IBM")
    bring(core, call, quote(core, "1001"), quote(core, "700000", "BRK.A"), quote(core, "0.5", "IBM"))
    assert [(row.symbol, row.kind) for row in quarantined(core)] == [("AAPL", "bounds"), ("IBM", "bounds")]
    assert core.latest("BRK.A") is not None


def test_b18_the_first_price_of_a_pair_is_compared_with_other_data_types(core: Core) -> None:
    day = midnight(core.clock().date())
    bring(core, one_call(core, DAILY, "AAPL"), observation("AAPL", "72.50", day))
    bring(core, one_call(core, QUOTE, "AAPL"), quote(core, "7250"))
    assert [row.kind for row in quarantined(core)] == ["unit"]


def test_b18_a_level_that_quotes_keep_for_an_hour_is_believed(core: Core, clock: Clock) -> None:
    """After a split of ten to one nobody has to do anything; after a change of unit somebody has."""
    bring(core, one_call(core, QUOTE, "AAPL", "IBM"), quote(core, "1000"), quote(core, "1000", "IBM"))
    for minute in range(0, 75, 15):
        core.rows("DELETE FROM pricing.api_call_queue_live")
        bring(core, one_call(core, QUOTE, "AAPL", "IBM"), quote(core, f"100.{minute}"), quote(core, "10", "IBM"))
        clock.advance(900)
    assert str(core.latest("AAPL").price) == "100.60"  # type: ignore[union-attr]
    assert str(core.latest("IBM").price) == "1000.00"  # type: ignore[union-attr]


def test_b18_a_history_has_one_adjustment_and_tells_it(core: Core) -> None:
    days = [midnight(date(2010, 3, day)) for day in (1, 2, 3)]
    raw = [observation("AAPL", "30", day) for day in days]
    bring(core, one_call(core, DAILY, "AAPL", days=MARCH), *raw)
    later = (date(2010, 4, 1), date(2010, 4, 30))
    other = replace(observation("AAPL", "15", midnight(date(2010, 4, 1))), adjustment=Adjustment.SPLITS)
    bring(core, one_call(core, DAILY, "AAPL", days=later), other)
    task = core.tasks("AAPL")[-1]
    assert (task.status, task.failure_kind) == ("failed", "misconfigured")
    assert "adjusts the history" in task.errors[-1]["message"]
    bars = core.history("AAPL", DAILY, date(2010, 1, 1), date(2011, 1, 1))
    assert [(bar.close, bar.adjustment) for bar in bars] == [(Decimal("30.00"), Adjust.RAW)] * 3
    bring(core, one_call(core, DAILY, "IBM", days=MARCH), replace(other, symbol="IBM", observed_at=days[0]))
    (bar,) = core.history("IBM", DAILY, date(2010, 1, 1), date(2011, 1, 1))
    assert bar.adjustment == Adjust.SPLITS.value


def test_f6_a_price_that_stands_still_under_fresh_times_is_flagged(core: Core, clock: Clock) -> None:
    for hours in (0, 10, 15):
        clock.advance(hours * 3600)
        core.rows("DELETE FROM pricing.api_call_queue_live")
        bring(
            core,
            one_call(core, QUOTE, "AAPL", "IBM"),
            quote(core, "72.50"),
            quote(core, f"100.{hours}", "IBM"),
        )
        still = core.latest("AAPL")
        assert still is not None
        assert (still.frozen_since is None) == (hours < 15)
    assert core.latest("IBM").frozen_since is None  # type: ignore[union-attr]
    assert core.call("SELECT pricing.warn_frozen()") == 1
    assert "AAPL" in core.one("SELECT message FROM pricing.warnings WHERE source = 'warn_frozen'")
    assert quarantined(core) == []


def test_f6_the_quarantine_forgets_in_time(core: Core, clock: Clock) -> None:
    bring(core, one_call(core, QUOTE, "AAPL"), quote(core, "72.50"))
    bring(core, one_call(core, QUOTE, "AAPL"), quote(core, "7250"))
    core.rows("DELETE FROM pricing.api_call_queue_live")
    bring(core, one_call(core, QUOTE, "AAPL"), quote(core, "7251"))
    core.rows(
        "UPDATE pricing.quarantined_values SET status = 'rejected', resolved_at = pricing.clock() WHERE value = '7251'"
    )
    clock.advance(91 * 86_400)
    assert core.call("SELECT pricing.prune_quarantine()") == 1
    assert [row.value for row in quarantined(core)] == ["7250"]
    assert core.one("SELECT count(*) FROM pricing.quarantined_bodies") == 0
    clock.advance(310 * 86_400)
    assert core.call("SELECT pricing.prune_quarantine()") == 1


def test_f6_of_a_providers_answers_the_newest_hundred_megabytes_are_kept(core: Core) -> None:
    """Each call can bring a new wrong value, and a megabyte of junk beside it."""
    core.rows(
        "INSERT INTO pricing.quarantined_values"
        " (data_type, symbol, provider, kind, value, reason, call_id, recorded_at, last_seen_at, last_call_id)"
        " SELECT :kind, 'AAPL', p, 'refused', n::text || part, 'none', n, pricing.clock(), pricing.clock(), n"
        " FROM (SELECT n, CASE WHEN n > 1000 THEN 'yahoo' ELSE 'twelvedata' END AS p"
        "       FROM (SELECT generate_series(1, 103) UNION ALL SELECT 1001) AS m (n)) AS made,"
        " unnest(ARRAY['a', 'b']) AS part",
        kind=QUOTE,
    )
    core.rows(
        "INSERT INTO pricing.quarantined_bodies (call_id, body, size, recorded_at)"
        " SELECT call_id, convert_to(repeat('x', 1000000), 'UTF8'), 1, max(max(recorded_at)) OVER ()"
        " FROM pricing.quarantined_values GROUP BY call_id"
    )
    core.call("SELECT pricing.prune_quarantine()")
    kept = [row.call_id for row in core.rows("SELECT call_id FROM pricing.quarantined_bodies ORDER BY 1")]
    assert kept == [*range(4, 104), 1001]
    assert core.one("SELECT count(*) FROM pricing.quarantined_values") == 208


def test_f6_a_body_is_cut_at_a_million_bytes(core: Core) -> None:
    bring(core, one_call(core, QUOTE, "AAPL"), quote(core, "72.50"))
    bring(core, one_call(core, QUOTE, "AAPL"), quote(core, "7250"), body=b"x" * 3_000_000)
    (row,) = quarantined(core)
    with core.engine.connect() as connection:
        assert quarantined_values.body(connection, row.value_id) == b"x" * 1_000_000
    assert core.one("SELECT size FROM pricing.quarantined_bodies") == 3_000_000


def test_f6_what_is_quarantined_is_shown_with_its_answer(cli: CommandLine, core: Core) -> None:
    bring(core, one_call(core, FX, "EUR/USD"), quote(core, "1.1", "EUR/USD"))
    bring(core, one_call(core, FX, "EUR/USD"), quote(core, "110", "EUR/USD"))
    shown = cli("quarantine", "list", "--json").json["values"]
    assert [(one["symbol"], one["value"], one["kind"], one["times"]) for one in shown] == [
        ("EUR/USD", "110", "unit", 1)
    ]
    value_id = str(shown[0]["value_id"])
    whole = cli("quarantine", "show", value_id, "--json").json
    assert (whole["body"], whole["status"], whole["bar"]["close"]) == (BODY.decode(), "quarantined", "110")
    (near,) = whole["around"]
    assert (near["place"], near["price"], near["provider"]) == ("before", "1.10000", "twelvedata")
    assert cli("quarantine", "show", value_id, "--body").stdout == BODY.decode()
    text = cli("quarantine", "show", value_id)
    assert all(part in text.stdout for part in ("unit: ", "factor of 100", "before it", BODY.decode()))
    assert f"quarantine release {value_id}" in text.stderr
    assert "there is no quarantined value 999999" in cli("quarantine", "show", "999999").error
    assert "there is no quarantined value 999999" in cli("quarantine", "show", "999999", "--body").error
    core.rows("DELETE FROM pricing.quarantined_bodies")
    assert "is no longer kept" in cli("quarantine", "show", value_id, "--body").error
    assert "110" in cli("quarantine", "list", "EUR/USD").stdout
    assert "no value is quarantined" in cli("quarantine", "list", "AAPL").stdout
    (count,) = cli("status", "--json").json["quarantine"]
    assert (count["data_type"], count["kind"], count["quarantined"], count["symbols"]) == (FX, "unit", 1, 1)
    assert "not believed" in cli("status").stdout


def test_b18_f6_another_unit_from_a_real_server_is_quarantined_with_its_real_body(
    core: Core, clock: Clock, sandbox: RunningSandbox
) -> None:
    """Client, parser, judge and store together."""
    with refreshing(core.engine, sandbox.url) as refresher:
        core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "IBM"))
        work_until(refresher, lambda: set(core.statuses().values()) == {"completed"})
        before = core.latest("AAPL")
        sandbox.behave("times", factor=100, symbols="AAPL")
        clock.advance(61)
        work_until(refresher, lambda: core.tasks("AAPL")[-1].status == "scheduled")
    after = core.latest("AAPL")
    assert before is not None
    assert after is not None
    assert after.price == before.price
    (row,) = quarantined(core)
    with core.engine.connect() as connection:
        body = quarantined_values.body(connection, row.value_id)
    assert body is not None
    assert json.loads(body)["AAPL"]["close"] == row.value
    assert b"sandbox-key" not in body
    audit(core)


def test_b18_no_release_is_recommended_that_would_be_refused(core: Core, cli: CommandLine) -> None:
    rejected = (RejectedValue("AAPL", None, "2010-02-31 is not a day of the calendar", "30.1"),)
    bring(core, one_call(core, DAILY, "AAPL", days=MARCH), rejected=rejected)
    bring(core, one_call(core, QUOTE, "AAPL"), quote(core, "72.50"))
    bring(core, one_call(core, QUOTE, "AAPL"), quote(core, "7250"))
    unreadable, unit = (str(row.value_id) for row in quarantined(core))
    said = cli("quarantine", "show", unreadable).stderr
    assert "cannot be released" in said
    assert f"quarantine reject {unreadable}" in said
    assert f"quarantine release {unit}` stores it" in cli("quarantine", "show", unit).stderr
    core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = 'equity_quote'")
    assert "equity_quote is retired, so it cannot be released" in cli("quarantine", "show", unit).stderr
