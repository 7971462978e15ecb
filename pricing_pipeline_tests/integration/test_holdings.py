"""Holdings: who holds what is kept fresh by the slow TTL, unwatched, as long as somebody looks now and then (A7)."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.demand import viewers
from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline.errors import PairsRefused
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, FX, QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.sessions import joined, meanwhile, wait_for_locks

AAPL, IBM = (QUOTE, "AAPL"), (QUOTE, "IBM")
MINUTE, HOUR, DAY = 60, 3600, 86_400


def pending(core: Core) -> dict[str, int]:
    return {task.symbol: task.priority for task in core.tasks() if task.status == "pending"}


def tick(core: Core, clock: Clock, seconds: float = 0) -> int:
    """Let time pass and do what a minute's tick does."""
    clock.advance(seconds)
    core.clean()
    return core.enqueue_due()


def test_a7_a_held_pair_without_a_price_is_fetched_though_nobody_ever_looked(core: Core) -> None:
    assert core.hold("ann", AAPL, (DAILY, "NVDA")) == 2
    assert pending(core) == {"AAPL": 0, "NVDA": 0}
    assert core.one("SELECT verified_at IS NULL FROM pricing.instruments WHERE symbol = 'NVDA'")
    core.heartbeat("bob", IBM)
    assert core.claim_one().symbols[0] == "IBM", "a viewer goes first"


def test_a7_a_held_pair_nobody_looks_at_is_not_fetched_again(core: Core, clock: Clock) -> None:
    core.hold("ann", AAPL)
    core.refresh()
    for _ in range(5):
        assert tick(core, clock, DAY) == 0
    assert core.demand_of(*AAPL) is not None, "what is held stays wanted"
    assert core.due_in(*AAPL) <= HOUR


def test_a7_a_held_pair_is_refreshed_by_the_background_ttl_while_somebody_looks(core: Core, clock: Clock) -> None:
    core.hold("ann", AAPL)
    core.heartbeat("bob", AAPL)
    core.refresh()
    core.unsubscribe("bob", AAPL)
    assert tick(core, clock, 10 * MINUTE) == 0, "the short TTL is for viewers"
    assert core.due_in(*AAPL) == pytest.approx(DAY - 10 * MINUTE, abs=30)
    assert tick(core, clock, DAY) == 1
    assert pending(core) == {"AAPL": 0}
    core.refresh()
    assert tick(core, clock, DAY - HOUR) == 0
    # Looked at more than 48 h ago by now.
    assert tick(core, clock, 2 * HOUR) == 0
    assert pending(core) == {}


def test_a7_the_silent_viewers_look_counts_too(core: Core, clock: Clock) -> None:
    core.hold("ann", AAPL)
    core.heartbeat("bob", AAPL)
    core.refresh()
    tick(core, clock, 6 * MINUTE)
    assert core.one("SELECT count(*) FROM pricing.active_subscriptions") == 0
    assert tick(core, clock, DAY) == 1


def test_a7_a_look_before_it_was_held_counts(core: Core, clock: Clock) -> None:
    core.heartbeat("bob", AAPL)
    core.refresh()
    core.unsubscribe("bob", AAPL)
    tick(core, clock, 2 * MINUTE)
    assert core.demand_of(*AAPL) is None
    assert core.hold("ann", AAPL) == 1
    assert pending(core) == {}, "its price is young enough"
    assert tick(core, clock, DAY) == 1


def test_b6_a_viewer_of_a_held_pair_gets_the_short_ttl(core: Core, clock: Clock) -> None:
    core.hold("ann", AAPL)
    core.refresh()
    clock.advance(2 * MINUTE)
    assert core.enqueue_due() == 0
    core.heartbeat("bob", AAPL)
    assert pending(core) == {"AAPL": 1}
    core.refresh()
    clock.advance(MINUTE + 1)
    assert core.enqueue_due() == 1


def test_a7_the_background_ttl_is_the_types_and_a_change_counts_at_once(core: Core, clock: Clock) -> None:
    core.hold("ann", AAPL)
    core.heartbeat("bob", AAPL)
    core.refresh()
    core.unsubscribe("bob", AAPL)
    assert tick(core, clock, 2 * HOUR) == 0
    core.rows("UPDATE pricing.data_type_registry SET background_ttl_minutes = 60")
    assert core.enqueue_due() == 1
    with pytest.raises(DBAPIError, match="background_ttl_is_positive"):
        core.rows("UPDATE pricing.data_type_registry SET background_ttl_minutes = 0")


def test_a7_what_is_released_is_forgotten(core: Core, clock: Clock) -> None:
    core.hold("ann", AAPL, IBM)
    core.hold("bob", IBM)
    assert core.end_holding("ann", AAPL, IBM, (QUOTE, "META")) == 2
    assert core.end_holding("ann", AAPL) == 0
    tick(core, clock, 61)
    assert core.demand_of(*AAPL) is None
    assert core.demand_of(*IBM) is not None
    (task,) = core.tasks("AAPL")
    assert (task.status, task.failure_kind) == ("cancelled", "unwatched")
    assert pending(core) == {"IBM": 0}
    kept = core.rows("SELECT status, closed_at IS NULL AS open FROM pricing.holdings ORDER BY user_id, symbol")
    assert [tuple(row) for row in kept] == [("closed", False), ("closed", False), ("active", True)]


def test_a7_a_closed_holding_opens_again(core: Core, clock: Clock) -> None:
    core.hold("ann", AAPL)
    core.refresh()
    core.end_holding("ann", AAPL)
    tick(core, clock, 2 * DAY)
    began = core.clock()
    assert core.hold("ann", AAPL) == 1
    assert core.hold("ann", AAPL) == 0
    (row,) = core.rows("SELECT status, since, closed_at FROM pricing.holdings")
    assert (row.status, row.closed_at, row.since >= began) == ("active", None, True)


def test_a8_a_held_pair_whose_task_died_backs_off(core: Core, clock: Clock) -> None:
    core.hold("ann", AAPL)
    core.fail(core.claim_one(), FailureKind.UNKNOWN_SYMBOL)
    assert tick(core, clock, 30 * MINUTE) == 0
    assert tick(core, clock, 31 * MINUTE) == 1


def test_a7_what_cannot_be_judged_is_refreshed_by_the_background_ttl_at_most(core: Core, clock: Clock) -> None:
    core.hold("ann", AAPL)
    core.heartbeat("bob", AAPL)
    core.refresh()
    core.unsubscribe("bob", AAPL)
    core.rows(
        "CREATE FUNCTION pricing.broken(stamp timestamptz, ttl_minutes integer) RETURNS boolean LANGUAGE plpgsql"
        " AS 'BEGIN RAISE EXCEPTION ''no such calendar''; END'"
    )
    core.rows("UPDATE pricing.data_type_registry SET staleness_function = 'broken' WHERE data_type = 'equity_quote'")
    assert tick(core, clock, HOUR) == 0
    assert tick(core, clock, DAY) == 1


def test_a7_what_is_held_or_watched_and_has_no_demand_is_given_it(core: Core) -> None:
    """Whatever took it away, or kept it from being added: a duty finds it within a minute."""
    core.hold("ann", AAPL)
    core.heartbeat("bob", (QUOTE, "IBM"))
    core.rows("DELETE FROM pricing.demand")
    assert core.one("SELECT pricing.adopt_pairs()") == 2
    assert {row.symbol for row in core.rows("SELECT symbol FROM pricing.demand")} == {"AAPL", "IBM"}
    core.end_holding("ann", AAPL)
    core.unsubscribe("bob", (QUOTE, "IBM"))
    core.rows("DELETE FROM pricing.demand")
    assert core.one("SELECT pricing.adopt_pairs()") == 0


def test_a7_what_cannot_be_fetched_cannot_be_held(core: Core) -> None:
    core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = 'fx_rate'")
    for pair, words in (
        (("equity_qoute", "AAPL"), "no data type is called equity_qoute"),
        ((FX, "EUR/USD"), "the data type fx_rate is retired, so it is not fetched. This revives it: "),
        ((QUOTE, "A;B"), "is not a symbol of equity_quote: a symbol has 1 to 40"),
    ):
        with pytest.raises(PairsRefused) as refused:
            core.hold("ann", AAPL, pair)
        assert words in str(refused.value)
    assert core.rows("SELECT FROM pricing.holdings") == []


def test_b7_looks_are_written_once_in_ten_minutes(core: Core, clock: Clock) -> None:
    """And by who leaves or reads: heartbeats never touch them."""

    def views() -> list[Any]:
        return list(core.rows("SELECT viewed_at FROM pricing.pair_views WHERE data_type = 'equity_quote'"))

    core.heartbeat("ann", AAPL)
    core.heartbeat("bob", AAPL)
    clock.advance(HOUR)
    core.heartbeat("ann", AAPL)
    core.heartbeat("bob", AAPL)
    assert views() == []
    core.unsubscribe("ann", AAPL)
    first = views()
    assert len(first) == 1
    core.unsubscribe("bob", AAPL)
    clock.advance(9 * MINUTE)
    core.read("AAPL")
    assert views() == first
    clock.advance(2 * MINUTE)
    core.read("AAPL")
    assert views() > first
    clock.advance(2 * DAY - MINUTE)
    core.rows("SELECT pricing.forget_views()")
    assert len(views()) == 1
    clock.advance(2 * MINUTE)
    core.rows("SELECT pricing.forget_views()")
    assert views() == []


def test_a7_the_commands_hold_and_release(cli: CommandLine, core: Core) -> None:
    said = cli("holding", "open", "AAPL", "TSLA", "--type", QUOTE, "--user", "ann", "--json")
    held = {"user": "ann", "data_type": QUOTE, "symbols": ["AAPL", "TSLA"]}
    assert said.json == held | {
        "changed": 2,
        "accepted": 2,
        "doubtful": 0,
        "refused": 0,
        "pairs": [],
        "faults": [],
    }
    assert pending(core) == {"AAPL": 0, "TSLA": 0}
    assert "holds equity_quote AAPL already" in cli("holding", "open", "AAPL", "--type", QUOTE, "--user", "ann").stdout
    assert "bob holds equity_quote AAPL. " in cli("holding", "open", "AAPL", "--type", QUOTE, "--user", "bob").stdout
    assert cli("holding", "close", "AAPL", "META", "--type", QUOTE, "--user", "ann", "--json").json["ended"] == 1
    assert "was not holding" in cli("holding", "close", "AAPL", "--type", QUOTE, "--user", "ann").stdout
    assert (
        "ann no longer holds equity_quote TSLA"
        in cli("holding", "close", "TSLA", "--type", QUOTE, "--user", "ann").stdout
    )


@pytest.mark.parametrize(("begin", "end"), [("hold", ["holding", "close"]), ("heartbeat", ["subscription", "end"])])
def test_b1_what_is_of_a_retired_type_can_be_ended(cli: CommandLine, core: Core, begin: str, end: list[str]) -> None:
    getattr(core, begin)("ann", (QUOTE, "AAPL"))
    core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = 'equity_quote'")
    assert cli(*end, "AAPL", "--type", QUOTE, "--user", "ann", "--json").json["ended"] == 1
    assert "the data type equity_quote is retired" in cli(*end, "AAPL", "--type", QUOTE, "--user", "ann").error
    assert "no active data type 'nope'" in cli(*end, "AAPL", "--type", "nope", "--user", "ann").error


def test_a7_what_cannot_be_held_is_said_in_one_sentence(cli: CommandLine, core: Core) -> None:
    for arguments, words in (
        (["AAPL", "--type", "nope"], "no active data type 'nope'"),
        (["A;B", "--type", QUOTE], "a symbol has 1 to 40 letters"),
        (["AAPL", "--type", QUOTE, "--user", ""], "a user's name has 1 to 200 characters"),
        (["--type", QUOTE], "'SYMBOL'"),
    ):
        assert words in cli("holding", "open", *arguments).error
    assert core.rows("SELECT FROM pricing.holdings") == []


def quantities(core: Core, user: str = "ann") -> dict[str, Decimal | None]:
    rows = core.rows("SELECT symbol, quantity FROM pricing.holdings WHERE user_id = :user", user=user)
    return {row.symbol: row.quantity for row in rows}


def test_a7_a_quantity_is_kept_to_the_digit_until_another_replaces_it(cli: CommandLine, core: Core) -> None:
    def opened(*words: str) -> str:
        return cli("holding", "open", *words, "--type", QUOTE, "--user", "ann").stdout

    assert "ann holds equity_quote AAPL. " in opened("aapl", "--quantity", "0.123456789012345678")
    assert "ann holds equity_quote IBM. " in opened("IBM")
    assert quantities(core) == {"AAPL": Decimal("0.123456789012345678"), "IBM": None}
    shown = cli("holding", "list", "--user", "ann").stdout
    assert re.search(r"AAPL +0.123456789012345678 +none yet", shown) is not None
    assert re.search(r"IBM +none yet", shown) is not None
    listed = cli("holding", "list", "--user", "ann", "--json").json["holdings"]
    assert [one["quantity"] for one in listed] == ["0.123456789012345678", None]
    assert "already; its quantity is now 3." in opened("AAPL", "--quantity", "3")
    opened("AAPL")
    assert quantities(core)["AAPL"] == 3, "it is not said anew"
    core.end_holding("ann", AAPL)
    assert quantities(core)["AAPL"] == 3, "a record of what was held"
    opened("AAPL")
    assert quantities(core)["AAPL"] is None, "and no more than that"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["AAPL", "IBM", "--quantity", "1"], "--quantity takes one symbol, but 2 are named"),
        (["AAPL", "--quantity", "1,5"], "--quantity '1,5' is not a number. Write it like 0.5"),
        (["AAPL", "--quantity", "nan"], "is not a number"),
        (["AAPL", "--quantity", "1e31"], "is larger than 10^30"),
        (["AAPL", "--quantity", "1e-31"], "has more than 30 decimals"),
    ],
)
def test_a7_what_is_no_quantity_is_refused(cli: CommandLine, core: Core, words: list[str], error: str) -> None:
    assert error in cli("holding", "open", *words, "--type", QUOTE, "--user", "ann").error
    assert quantities(core) == {}


def test_a7_quantities_of_one_instrument_under_two_spellings_are_added(core: Core) -> None:
    pairs = [AAPL, (QUOTE, "aapl"), IBM, (QUOTE, "A;B")]
    with core.engine.begin() as connection:
        said = [Decimal("1.5"), Decimal(2), None, Decimal(7)]
        assert viewers.hold(connection, "ann", pairs, quantities=said).refused == 1
    assert quantities(core) == {"AAPL": Decimal("3.5"), "IBM": None}
    for said in ("'{1,2}'", "'{{1}}'"):
        with pytest.raises(DBAPIError, match="a quantity for each pair is needed"):
            core.rows(f"SELECT pricing.hold('ann', '{{equity_quote}}', '{{AAPL}}', {said})")
    for said in ("NaN", "Infinity", "1e40"):
        with pytest.raises(DBAPIError, match="quantity_is_sane"):
            core.rows(f"SELECT pricing.hold('ann', '{{equity_quote}}', '{{AAPL}}', '{{{said}}}')")
    assert quantities(core) == {"AAPL": Decimal("3.5"), "IBM": None}


def test_a7_quantities_are_changed_in_the_order_in_which_holdings_are_closed(core: Core) -> None:
    """So a session that closes some of them and one that changes them never wait for each other."""
    wait_for_locks(core)
    pairs = [(QUOTE, f"S{number:02}") for number in range(21)]
    with core.engine.begin() as connection:
        viewers.hold(connection, "ann", pairs)
    free = text("SELECT symbol FROM pricing.holdings ORDER BY symbol FOR UPDATE SKIP LOCKED")
    with core.engine.begin() as first, core.engine.begin() as watcher:
        assert viewers.release(first, "ann", pairs[10:11]) == 1
        quantities = [Decimal(number) for number in range(21)]
        other = meanwhile(core.engine, lambda second: viewers.hold(second, "ann", pairs[::-1], quantities=quantities))
        assert list(watcher.execute(free).scalars()) == [symbol for _, symbol in pairs[11:]]
        watcher.rollback()
    joined(*other)


@pytest.mark.parametrize(
    ("old", "new", "remains"),
    [(("5", True), ("3", True), 3), (("5", True), (None, True), 5), (("5", True), ("3", False), 5),
     (("5", False), (None, True), None)],
)  # fmt: skip
def test_a7_a_merge_keeps_the_quantity_of_what_remains_and_never_adds_the_same_shares_twice(
    core: Core, old: tuple[str | None, bool], new: tuple[str | None, bool], remains: int | None
) -> None:
    for symbol, (quantity, is_active) in (("AAPL", old), ("IBM", new)):
        with core.engine.begin() as connection:
            said = [None if quantity is None else Decimal(quantity)]
            viewers.hold(connection, "ann", [(QUOTE, symbol)], quantities=said)
        if not is_active:
            core.end_holding("ann", (QUOTE, symbol))
    core.rows("DELETE FROM pricing.api_call_queue_live")
    core.rows("SELECT pricing.merge_instruments('equity', 'AAPL', 'IBM')")
    assert quantities(core) == {"IBM": remains}
    assert core.one("SELECT status FROM pricing.holdings") == "active"
