"""C4: prices of commodities as they are stored: current, as of a time, by version of the game, and as routes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from pricing_pipeline.commodities import storage
from pricing_pipeline.demand import freshness
from pricing_pipeline.domain.answers import Answer, FailureKind, Stored
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.domain.commodities import CommodityPrice, TerminalPrices
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.refresh import settling
from pricing_pipeline.refresh.tally import Tally
from pricing_pipeline_tests.fixtures.core import Core, a_call
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.commodities import TYPE, UEX, add_type
from pricing_pipeline_tests.support.storing import versions

pytestmark = pytest.mark.usefixtures("still")

SOURCE = datetime(2026, 11, 1, tzinfo=UTC)
GOLD = CommodityPrice(33, "Gold", "GOLD", "gold", None, Decimal(6173), None, 1206, "4.1", SOURCE)
STEEL = CommodityPrice(70, "Medical Supplies", None, None, Decimal(120), None, 40, None, "4.1", SOURCE)


@pytest.fixture(autouse=True)
def kind(core: Core) -> None:
    add_type(core)


def terminal(symbol: str, *prices: CommodityPrice, is_whole: bool = True) -> TerminalPrices:
    return TerminalPrices(symbol, prices, f"Terminal {symbol}", symbol[4:], is_whole)


def settle(core: Core, *records: TerminalPrices, empty: Sequence[str] = ()) -> Tally:
    """One call that brings these records, stored and settled as a worker does."""
    core.rows("UPDATE pricing.provider_limits SET units = 1000000 WHERE provider = 'uex'")
    core.rows("UPDATE pricing.data_collectors SET request_delay_ms = 0 WHERE provider = 'uex'")
    core.enqueue(TYPE, *sorted({record.symbol for record in records} | set(empty)))
    call = core.claim_one(UEX)
    answer = Answer(records=records, empty=frozenset(empty))
    return settling.settle_answer(core.engine, call, Fetched(answer, 200, 700))


def store(core: Core, call: Call, record: TerminalPrices) -> list[Stored]:
    with core.engine.begin() as connection:
        return storage.store(connection, call, Answer(records=(record,)))


def live(core: Core, version: str) -> None:
    with core.engine.begin() as connection:
        storage.store_versions(connection, version)


Row = tuple[Decimal | None, Decimal | None, int | None, int | None, str | None, datetime | None]
Key = tuple[str, int, str]


def believed(core: Core, moment: datetime | None = None) -> dict[Key, Row]:
    rows = core.rows(
        "SELECT symbol, commodity_id, quality, buy, sell, stock, demand, game_version, modified_at"
        " FROM pricing.commodity_prices_as_of(:moment)",
        moment=moment,
    )
    found = {(row.symbol, row.commodity_id, row.quality): tuple(row)[3:] for row in rows}
    assert len(found) == len(rows), "one price is believed twice"
    return found  # type: ignore[return-value]


@pytest.mark.parametrize("test", [None, "4.2"])
def test_c4_prices_of_a_patch_come_before_the_list_of_versions_and_those_for_tests_never(
    core: Core, test: str | None
) -> None:
    with core.engine.begin() as connection:
        storage.store_versions(connection, "4.1", test)
    settle(core, terminal("UEX:12", GOLD))
    later = replace(GOLD, sell=7000, game_version="4.2", modified_at=SOURCE + timedelta(hours=1))
    tally = settle(core, terminal("UEX:12", later))
    assert tally.failed == (0 if test is None else 1)
    known = believed(core)["UEX:12", GOLD.commodity_id, ""]
    assert (known[1], known[4]) == ((7000, "4.2") if test is None else (GOLD.sell, "4.1"))
    with core.engine.begin() as connection:
        call = a_call(core.claimed("equity_quote", "AAPL"), provider=UEX, data_type=TYPE)
        last = terminal("UEX:12", replace(GOLD, modified_at=SOURCE + timedelta(hours=2)))
        storage.store(connection, call, Answer(records=(last,)))
    assert believed(core)["UEX:12", GOLD.commodity_id, ""][4] == "4.1", "the source has the last word"


def test_c4_what_a_later_call_has_brought_is_not_withdrawn_by_an_earlier_list(core: Core) -> None:
    first = a_call(core.claimed("equity_quote", "AAPL"), provider=UEX, data_type=TYPE)
    store(core, replace(first, id=first.id + 1), terminal("UEX:12", GOLD, STEEL))
    store(core, first, terminal("UEX:12", GOLD))
    assert believed(core)["UEX:12", STEEL.commodity_id, ""][0] == STEEL.buy
    store(core, replace(first, id=first.id + 2), terminal("UEX:12", GOLD))
    assert believed(core)["UEX:12", STEEL.commodity_id, ""][:2] == (None, None)


def test_c4_zero_is_not_traded_and_never_a_price(core: Core) -> None:
    settle(core, terminal("UEX:12", GOLD, STEEL))
    assert believed(core) == {
        ("UEX:12", 33, ""): (None, 6173, None, 1206, "4.1", SOURCE),
        ("UEX:12", 70, ""): (120, None, 40, None, "4.1", SOURCE),
    }
    with pytest.raises(Exception, match="sell_is_positive"):
        core.rows("UPDATE pricing.commodity_prices SET sell = 0")


def test_c4_older_prices_of_the_source_change_nothing_and_confirm_nothing(core: Core, clock: Clock) -> None:
    settle(core, terminal("UEX:12", GOLD))
    confirmed = core.one("SELECT fetched_at FROM pricing.confirmed_pairs")
    clock.advance(60)
    before = versions(core, "commodity_prices")
    tally = settle(core, terminal("UEX:12", replace(GOLD, sell=1, modified_at=SOURCE - timedelta(days=1))))
    assert (tally.added, tally.revised, tally.failed) == (0, 0, 1)
    assert core.tasks("UEX:12")[-1].errors[-1]["kind"] == FailureKind.STALE_SOURCE
    assert versions(core, "commodity_prices") == before
    assert core.one("SELECT fetched_at FROM pricing.confirmed_pairs") == confirmed


def test_c4_versions_have_the_order_of_their_numbers(core: Core, clock: Clock) -> None:
    """As texts, 4.9 is after 4.10: what a terminal trades no more would stay for sale."""
    live(core, "4.10")
    old, new = replace(STEEL, game_version="4.9"), replace(GOLD, game_version="4.10")
    both = replace(GOLD, commodity_id=71, name="Iron", code=None, slug=None, game_version="4.10")
    settle(core, terminal("UEX:7", old, both, new))
    clock.advance(3600)
    settle(core, terminal("UEX:7", old, both))
    assert {key[1]: row[1] for key, row in believed(core).items()} == {33: None, 70: None, 71: 6173}
    assert core.rows("SELECT pricing.version_numbers('4.10'), pricing.version_numbers('4.9-PTU.123')") == [
        ([4, 10], [4, 9, 123])
    ]


def test_b4_an_answer_without_a_price_confirms_and_erases_nothing(core: Core, clock: Clock) -> None:
    settle(core, terminal("UEX:12", GOLD))
    before, first = (
        versions(core, "commodity_prices"),
        core.one("SELECT fetched_at FROM pricing.confirmed_pairs"),
    )
    clock.advance(60)
    settle(core, empty=["UEX:12"])
    assert versions(core, "commodity_prices") == before
    assert core.one("SELECT fetched_at FROM pricing.confirmed_pairs") > first


def test_a7_viewers_of_a_terminal_keep_it_fresh_by_the_common_queue(core: Core, clock: Clock) -> None:
    core.heartbeat("alice", (TYPE, "UEX:12"))
    call = core.claim_one(UEX)
    assert (call.symbols, call.asset_class) == (["UEX:12"], "commodity")
    settling.settle_answer(core.engine, call, Fetched(Answer(records=(terminal("UEX:12", GOLD),)), 200, 700))
    with core.engine.begin() as connection:
        (why,) = freshness.why(connection, "UEX:12", TYPE)
    assert why.state == "fresh"
    assert core.enqueue_due() == 0
    clock.advance(31 * 60)
    core.heartbeat("alice", (TYPE, "UEX:12"))
    assert core.enqueue_due() == 1
    assert [task.symbol for task in core.tasks() if task.status == "pending"] == ["UEX:12"]


# --- routes -------------------------------------------------------------------------------------


def buying(symbol: str, price: Decimal | int, stock: int | None, version: str = "4.1") -> TerminalPrices:
    return terminal(
        symbol, replace(GOLD, buy=Decimal(price), sell=None, stock=stock, demand=None, game_version=version)
    )


def selling(symbol: str, price: Decimal | int, demand: int | None, version: str = "4.1") -> TerminalPrices:
    return terminal(symbol, replace(GOLD, buy=None, sell=Decimal(price), demand=demand, game_version=version))


def test_c4_routes_are_what_a_player_can_earn(core: Core) -> None:
    live(core, "4.1")
    settle(
        core,
        buying("UEX:1", 5000, 100),
        buying("UEX:2", 5500, None),
        buying("UEX:3", 4000, 0),
        buying("UEX:4", 1000, 50, "4.0"),
        selling("UEX:5", 6000, 60),
        selling("UEX:6", 5400, None),
        selling("UEX:7", 9000, 10, "4.0"),
        selling("UEX:8", 9000, 10),
        selling("UEX:9", 9000, 10),
    )
    settle(core, terminal("UEX:10", replace(GOLD, sell=Decimal(9000), demand=10, quality="900")))
    core.rows("UPDATE pricing.terminals SET is_available = false WHERE symbol = 'UEX:8'")
    core.rows("UPDATE pricing.terminals SET vanished_at = pricing.clock() WHERE symbol = 'UEX:9'")
    routes = core.rows(
        "SELECT from_symbol, to_symbol, margin, margin_percent, quantity, total FROM pricing.trade_routes"
        " ORDER BY total DESC NULLS LAST, margin DESC"
    )
    assert [(row[0], row[1], row[2], str(row[3]), row[4], row[5]) for row in routes] == [
        ("UEX:1", "UEX:5", 1000, "20.0", 60, 60000),
        ("UEX:1", "UEX:6", 400, "8.0", 100, 40000),
        ("UEX:2", "UEX:5", 500, "9.1", 60, 30000),
    ]
