"""Converted live streams against a plain model: the last price sent is the newest price at the newest rate."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from sqlalchemy import text

from pricing_client.events import read_events
from pricing_pipeline.api.access import Tokens
from pricing_pipeline.api.live_stream import Stream
from pricing_pipeline.api.stream_events import read_id
from pricing_pipeline.api.stream_hub import StreamHub
from pricing_pipeline.db.engine import KeptSession
from pricing_pipeline.prices.conversion import Target
from pricing_pipeline_tests.fixtures.core import FX, QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.machines import run_machine

CURRENCIES = {"AAPL": "USD", "IBM": "USD", "VOD": "GBP", "SAP": "EUR"}
# Each in one spelling only, so that the newest rate is the stored one. Dollars are converted directly or via pounds.
RATES = {"USD/EUR": "EUR", "GBP/EUR": "EUR", "USD/GBP": "GBP"}
STORE = text(
    "SELECT pricing.merge_prices(:data_type, 'twelvedata', 1, true, ARRAY[:symbol],"
    " ARRAY[CAST(:at AS timestamptz)], ARRAY[CAST(:cents AS bigint)], ARRAY[NULL::bigint], ARRAY[NULL::bigint],"
    " ARRAY[NULL::bigint], ARRAY[2::smallint], ARRAY[:currency], ARRAY[NULL::numeric], ARRAY['x'], ARRAY['raw'])"
)


@dataclass
class Viewer:
    """A client: the pairs it shows, its stream, the last id that it has read, and what it shows of each symbol."""

    symbols: frozenset[str]
    stream: Stream | None = None
    last_id: str | None = None
    shown: dict[str, Decimal | None] = field(default_factory=dict)


def machine(core: Core, clock: Clock, loop: asyncio.Runner) -> type[RuleBasedStateMachine]:
    """The rules, on this database. Streams take turns as the hub's reader does, without its pauses."""

    class Machine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            for table in ("latest_prices", "price_history", "streamed_pairs"):
                core.rows(f"DELETE FROM pricing.{table}")
            clock.advance(3600)
            self.at = clock.now()
            self.cents: dict[str, int] = {}
            self.viewers: list[Viewer] = []
            self.hub, self.session = StreamHub(core.engine, Tokens(core.engine)), KeptSession(core.engine)

        def teardown(self) -> None:
            for viewer in self.viewers:
                self.cut(viewer)
            self.session.close()

        def value(self, symbol: str) -> Decimal | None:
            """The newest price in euros, rounded half up to 8 decimals; None without a price or a rate."""
            ways = {"EUR": [()], "GBP": [("GBP/EUR",)], "USD": [("USD/EUR",), ("USD/GBP", "GBP/EUR")]}
            for way in ways[CURRENCIES[symbol]]:
                if {symbol, *way} <= self.cents.keys():
                    exact = Fraction(self.cents[symbol], 100)
                    for rate in way:
                        exact *= Fraction(self.cents[rate], 100)
                    return Decimal(int(exact * 10**8 + Fraction(1, 2))).scaleb(-8)
            return None

        def turn(self) -> None:
            """Two looks: the second sends what the first asks for, such as prices at a new rate."""
            for _ in range(2):
                if self.hub._streams:
                    loop.run(self.hub._turn(self.session))

        def connect(self, viewer: Viewer) -> None:
            async def begin() -> None:
                stream = Stream("token", "owner", "ann", False, read_id(viewer.last_id), Target.named("EUR"))
                stream.wanted = frozenset((QUOTE, symbol) for symbol in viewer.symbols)
                stream.rates = self.hub._rates(stream.into, stream.wanted)  # type: ignore[arg-type]
                self.hub._streams.add(stream)
                self.hub.request_states(stream)
                viewer.stream = stream

            if viewer.stream is None:
                loop.run(begin())

        def read(self, viewer: Viewer, most: int = 1_000_000) -> None:
            if viewer.stream is None:
                return
            for event in read_events(viewer.stream.take()[:most].decode().split("\n")[:-1]):
                if event.id is not None:
                    viewer.last_id = event.id or None
                if event.kind in ("price", "freshness", "missing"):
                    price = event.data.get("price")
                    viewer.shown[event.data["symbol"]] = None if price is None else Decimal(price)

        @initialize()
        def all_are_shown(self) -> None:
            for symbol in (*CURRENCIES, "GBP/EUR"):  # dollars have no rate yet
                self.comes_new(symbol, 100)
            for symbols in (CURRENCIES, ["AAPL"]):
                self.comes(set(symbols))
            self.all_catch_up()

        @rule(symbols=st.sets(st.sampled_from(sorted(CURRENCIES)), min_size=1))
        def comes(self, symbols: set[str]) -> None:
            if len(self.viewers) < 4:
                self.viewers.append(Viewer(frozenset(symbols)))
                self.connect(self.viewers[-1])

        @rule(symbol=st.sampled_from(sorted(CURRENCIES | RATES)), cents=st.integers(50, 500))
        def comes_new(self, symbol: str, cents: int) -> None:
            self.at += timedelta(seconds=1)
            clock.advance(1)
            row = {
                "data_type": FX if symbol in RATES else QUOTE,
                "symbol": symbol,
                "at": self.at,
                "cents": cents,
                "currency": (CURRENCIES | RATES)[symbol],
            }
            with core.engine.begin() as connection:
                connection.execute(STORE, row)
            self.cents[symbol] = cents

        @rule(readers=st.sets(st.integers(0, 3)))
        def looks(self, readers: set[int]) -> None:
            self.turn()
            for place in readers & set(range(len(self.viewers))):
                self.read(self.viewers[place])

        @rule(place=st.integers(0, 3), most=st.integers(0, 1500))
        def is_cut(self, place: int, most: int) -> None:
            """A client reads some of the waiting events and is cut off."""
            viewer = self.viewers[place % len(self.viewers)]
            self.read(viewer, most)
            self.cut(viewer)

        def cut(self, viewer: Viewer) -> None:
            if viewer.stream is not None:
                self.hub.leave(viewer.stream)
                viewer.stream = None

        @rule()
        def all_catch_up(self) -> None:
            for viewer in self.viewers:
                self.connect(viewer)
            loop.run(self.hub._follow_all_rates())
            self.turn()
            for viewer in self.viewers:
                self.read(viewer)
                assert viewer.shown == {symbol: self.value(symbol) for symbol in viewer.symbols}

    return Machine


def test_e9_b27_a_converted_stream_ends_with_the_newest_prices_by_the_newest_rates(core: Core, clock: Clock) -> None:
    clock.stop()
    core.heartbeat("ann", *((QUOTE, symbol) for symbol in CURRENCIES), *((FX, symbol) for symbol in RATES))
    core.rows("UPDATE pricing.instruments SET calendar = NULL")
    with asyncio.Runner() as loop:
        run_machine(machine(core, clock, loop), examples(24), steps=15)
