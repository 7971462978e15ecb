"""Which prices count as stale, when they are looked at again, and what a broken judge may not stop.

Who wants them is in test_demand.py, many checks at once in faults/test_contention.py.
"""

from __future__ import annotations

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.demand import staleness
from pricing_pipeline_tests.fixtures.core import DAILY, FX, QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock

pytestmark = pytest.mark.usefixtures("still")

AAPL, IBM = (QUOTE, "AAPL"), (QUOTE, "IBM")
MINUTE, DAY = 60, 86_400


def own_type(core: Core, judge: str = "is_data_stale") -> None:
    """A data type whose rows others write, to a table of their own."""
    core.rows("CREATE TABLE pricing.mine (sym text PRIMARY KEY, at timestamptz, cache_ttl_minutes integer)")
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes, table_name, symbol_column,"
        " timestamp_column, staleness_function, asset_class)"
        " VALUES ('own', 'quote', 15, 'mine', 'sym', 'at', :judge, 'thing')",
        judge=judge,
    )


def test_b3_a_row_may_have_a_ttl_of_its_own_which_no_refresh_touches(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (DAILY, "AAPL"), (DAILY, "IBM"))
    core.refresh()
    core.rows("UPDATE pricing.latest_prices SET cache_ttl_minutes = 5 WHERE symbol = 'AAPL'")
    for price in ("101.00", "102.00"):
        clock.advance(5 * MINUTE + 1)
        assert core.enqueue_due() == 1, "only the one with the shorter TTL"
        assert core.refresh(price=price) == 1
    ttls = dict(map(tuple, core.rows("SELECT symbol, cache_ttl_minutes FROM pricing.latest_price_equity_daily")))
    assert ttls == {"AAPL": 5, "IBM": None}
    with pytest.raises(DBAPIError, match="cache_ttl_is_positive"):
        core.rows("UPDATE pricing.latest_prices SET cache_ttl_minutes = 0")


def test_b6_what_a_calendar_calls_fresh_is_not_judged_every_second(core: Core, clock: Clock) -> None:
    """A staleness function may say fresh past the TTL; 80,000 such pairs must not cost every tick."""
    core.judge_by("SELECT stamp IS NULL", QUOTE, DAILY)
    core.heartbeat("ann", AAPL, (DAILY, "AAPL"))
    assert core.refresh() == 2
    clock.advance(2 * DAY)
    assert core.enqueue_due() == 0
    assert core.due_in(*AAPL) == pytest.approx(15)
    assert core.due_in(DAILY, "AAPL") == pytest.approx(60)


def test_b7_a_failed_check_counts_as_stale_at_most_once_per_ttl(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (FX, "EUR/USD"))
    core.refresh()
    core.break_judge(FX)
    core.rows("UPDATE pricing.demand SET due_at = pricing.clock()")
    assert core.enqueue_due() == 1
    core.refresh()
    for _ in range(3):
        clock.advance(4 * MINUTE)
        assert core.enqueue_due() == 0
    clock.advance(4 * MINUTE)
    assert core.enqueue_due() == 1


def test_b7_reads_of_what_a_judge_never_calls_fresh_ask_once_per_ttl(core: Core, clock: Clock) -> None:
    """A function that gives no verdict, and a table of one's own that nobody fills."""
    core.judge_by("SELECT CAST(NULL AS boolean)", FX)
    own_type(core)
    pairs = ("own", "AAPL"), (FX, "EUR/USD")
    core.heartbeat("ann", *pairs)
    core.refresh()
    ask = "SELECT pricing.request_prices('{own,fx_rate}', '{AAPL,EUR/USD}')"
    assert core.one(ask) == 0
    clock.advance(15 * MINUTE)
    assert core.one(ask) == 2


@pytest.mark.parametrize("judge", ["is_data_stale", "is_market_stale"])
def test_b4_a_ttl_that_is_none_is_the_fault_of_its_row(core: Core, clock: Clock, judge: str) -> None:
    """In a table of one's own. That pair has the type's TTL, the others keep theirs, and the row is named."""
    own_type(core, judge)
    core.rows(
        "INSERT INTO pricing.mine VALUES ('AAPL', pricing.clock(), 0), ('IBM', pricing.clock(), 4),"
        " ('MSFT', pricing.clock(), -3), ('GOOG', pricing.clock(), NULL)"
    )
    symbols = ("AAPL", "IBM", "MSFT", "GOOG")
    core.heartbeat("ann", *(("own", symbol) for symbol in symbols))
    assert core.tasks() == [], "all are fresh"
    core.call("SELECT pricing.reconcile_demand()")
    core.call("SELECT pricing.reconcile_demand()")
    (warned,) = core.rows("SELECT subject, message FROM pricing.warnings")
    assert warned.subject == "own"
    assert "cache_ttl_minutes of pricing.mine is not positive for 2 symbol(s), such as AAPL" in warned.message
    clock.advance(5 * MINUTE)
    core.heartbeat("ann", *(("own", symbol) for symbol in symbols))
    core.enqueue_due()
    assert set(core.statuses()) == {"IBM"}
    stale = "SELECT string_agg(s, ',') FROM unnest(CAST(:symbols AS text[])) AS s WHERE pricing.is_pair_stale('own', s)"
    assert core.one(stale, symbols=list(symbols)) == "IBM"
    clock.advance(10 * MINUTE)
    core.enqueue_due()
    assert set(core.statuses()) == set(symbols)


@pytest.mark.parametrize("judge", ["is_data_stale", "is_market_stale"])
def test_b4_a_stamp_of_a_far_future_is_the_fault_of_its_row(core: Core, clock: Clock, judge: str) -> None:
    """No TTL could be added to it (timestamp out of range), so the whole type counted as stale at each check."""
    own_type(core, judge)
    core.rows(
        "INSERT INTO pricing.mine VALUES ('AAPL', '294270-01-01', 2147483647), ('IBM', pricing.clock(), 4),"
        " ('MSFT', pricing.clock(), 2147483647), ('GOOG', 'infinity', 5)"
    )
    core.heartbeat("ann", *(("own", symbol) for symbol in ("AAPL", "IBM", "MSFT", "GOOG")))
    core.enqueue_due()
    assert set(core.statuses()) == {"AAPL", "GOOG"}
    assert core.rows("SELECT FROM pricing.warnings") == []


def test_b7_a_broken_type_does_not_stop_a_heartbeat(core: Core) -> None:
    core.break_judge(FX)
    assert core.heartbeat("ann", AAPL, (FX, "EUR/USD")) == 2
    assert set(core.statuses()) == {"AAPL", "EUR/USD"}


def test_b8_a_type_that_cannot_be_queued_does_not_stop_the_others(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", AAPL, (DAILY, "IBM"), (FX, "EUR/USD"))
    core.refresh()
    core.rows(
        "CREATE FUNCTION pricing.refuse() RETURNS trigger LANGUAGE plpgsql"
        " AS 'BEGIN RAISE EXCEPTION ''no room for %'', NEW.symbol; END'"
    )
    core.rows(
        "CREATE TRIGGER refuse BEFORE INSERT ON pricing.api_call_queue_live"
        " FOR EACH ROW WHEN (NEW.data_type = 'fx_rate') EXECUTE FUNCTION pricing.refuse()"
    )
    clock.advance(5 * DAY)
    assert core.enqueue_due() == 2
    (warning,) = core.rows("SELECT subject, message FROM pricing.warnings")
    assert (warning.subject, "no room for EUR/USD" in warning.message) == (FX, True)
    assert core.due_in(FX, "EUR/USD") < 0, "the next check tries it again"
    assert core.heartbeat("bob", (FX, "USD/JPY"), IBM) == 2, "nor does it stop a first look"


@pytest.mark.own_database  # whether a page has room depends on what was there before
def test_b6_queueing_what_is_due_writes_to_no_index_of_the_demand(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", *((QUOTE, f"S{number}") for number in range(20)))
    core.refresh()
    clock.advance(DAY)
    in_place = text("SELECT pg_stat_get_xact_tuples_hot_updated('pricing.demand'::regclass)")
    with core.engine.begin() as connection:
        before = connection.execute(in_place).scalar_one()
        assert staleness.enqueue_due(connection) == 20
        assert connection.execute(in_place).scalar_one() - before == 20


def test_b6_two_checks_at_once_share_the_types(core: Core, clock: Clock) -> None:
    """What another check is about is left to it, and what it has not begun is not."""
    core.heartbeat("ann", AAPL, (FX, "EUR/USD"))
    core.refresh()
    clock.advance(5 * DAY)
    with core.engine.connect() as other:
        other.execute(text("SELECT pricing.take_turn('check fx_rate')"))
        assert core.enqueue_due() == 1
        assert core.statuses()["AAPL"] == "pending"
    assert core.enqueue_due() == 1
    assert core.statuses()["EUR/USD"] == "pending"


def test_b8_a_type_whose_table_is_gone_does_not_stop_the_others(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", AAPL, (FX, "EUR/USD"))
    core.refresh()
    core.rows("DROP VIEW pricing.latest_price_fx_rate")
    clock.advance(DAY)
    assert core.enqueue_due() == 2


def test_b8_a_check_is_not_waited_for_until_it_is_on_disk_but_what_people_say_is(core: Core) -> None:
    """What a crash takes back of a check is done again by the next one. A first look is somebody's word."""
    for statement, expected in (
        ("SELECT pricing.enqueue_due()", "off"),
        ("SELECT pricing.heartbeat('ann', '{equity_quote}', '{AAPL}')", "on"),
    ):
        with core.engine.begin() as connection:
            connection.execute(text("SET LOCAL synchronous_commit = on"))
            connection.execute(text(statement))
            assert connection.execute(text("SHOW synchronous_commit")).scalar_one() == expected


def test_b7_a_renewal_does_not_wait_for_the_disk_but_new_demand_does(core: Core) -> None:
    """The next heartbeat restores a renewal that a crash takes back. What else the transaction writes is kept."""
    core.heartbeat("ann", AAPL)
    renew, begin = (f"SELECT pricing.heartbeat('ann', '{{equity_quote}}', '{{{name}}}')" for name in ("AAPL", "IBM"))
    other = "SELECT pricing.warn('test', '', 'x', '01000')"
    for statements, expected in (((renew,), "off"), ((renew, begin), "on"), ((other, renew), "on")):
        with core.engine.begin() as connection:
            connection.execute(text("SET LOCAL synchronous_commit = on"))
            for statement in statements:
                connection.execute(text(statement))
            assert connection.execute(text("SHOW synchronous_commit")).scalar_one() == expected
            connection.rollback()


@pytest.mark.parametrize(
    "work",
    [
        "SELECT FROM pricing.demand WHERE symbol = 'IBM' FOR UPDATE",
        "UPDATE pricing.demand SET due_at = pricing.clock() - interval '1 second' WHERE symbol = 'IBM'",
    ],
    ids=["held", "made due"],
)
def test_b8_a_pair_that_a_check_passes_by_is_queued_seconds_later(core: Core, clock: Clock, work: str) -> None:
    """Somebody else's transaction is at it, so the check cannot take it, or cannot see that it is due."""
    core.heartbeat("ann", AAPL, IBM)
    core.refresh()
    clock.advance(DAY)
    core.heartbeat("ann", AAPL, IBM)
    with core.engine.begin() as other:
        other.execute(text(work))
        assert core.enqueue_due() == 1
    assert core.enqueue_due() == 0, "checks begin where the last one was through"
    clock.advance(10)
    assert "lift_marks" in core.one("SELECT pricing.run_duties()")
    assert core.enqueue_due() == 1
    assert core.one("SELECT pricing.lift_marks()") == 0
    assert core.statuses() == {"AAPL": "pending", "IBM": "pending"}


def test_b8_what_one_check_leaves_the_next_one_takes(core: Core, clock: Clock) -> None:
    pairs = [(QUOTE, f"S{number}") for number in range(7)]
    core.heartbeat("ann", *pairs)
    core.refresh()
    clock.advance(DAY)
    assert [core.one("SELECT pricing.enqueue_due(3)") for _ in range(4)] == [3, 3, 1, 0]


def test_b8_a_pair_that_waits_for_a_vanished_task_is_found(core: Core) -> None:
    core.heartbeat("ann", AAPL, IBM)
    core.rows("DELETE FROM pricing.api_call_queue_live WHERE symbol = 'IBM'")
    assert core.enqueue_due() == 0
    assert core.one("SELECT pricing.repair_demand()") == 1
    assert core.enqueue_due() == 1
    assert set(core.statuses()) == {"AAPL", "IBM"}


def test_b4_a_function_of_ones_own_is_asked_only_about_what_somebody_wants(core: Core) -> None:
    """It may fail on a pair without a price, and may be slow: a paused pair made its whole type count as stale."""
    core.heartbeat("ann", AAPL, (QUOTE, "MSFT"))
    core.refresh()
    core.rows("DELETE FROM pricing.latest_prices WHERE symbol = 'MSFT'")
    core.rows("UPDATE pricing.instruments SET update_mode = 'manual' WHERE symbol = 'MSFT'")
    body = "BEGIN IF stamp IS NULL THEN RAISE EXCEPTION ''no stamp''; END IF; RETURN false; END"
    core.judge_by(body, QUOTE, language="plpgsql")
    core.rows("UPDATE pricing.demand SET due_at = pricing.clock(), became_due_at = NULL")
    assert core.enqueue_due() == 0
    assert core.rows("SELECT message FROM pricing.warnings") == []
