"""Live streams against a plain model: whatever comes between, each price is told once, in order, and none is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
)
from sqlalchemy import Connection, text

from pricing_client.events import Event, read_events
from pricing_pipeline.api import live_stream
from pricing_pipeline.api.access import Tokens
from pricing_pipeline.api.live_stream import Stream
from pricing_pipeline.api.stream_events import read_id
from pricing_pipeline.api.stream_hub import StreamHub
from pricing_pipeline.db.engine import KeptSession
from pricing_pipeline.demand import stream_log
from pricing_pipeline.errors import DatabaseError
from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.machines import run_machine

SYMBOLS = ("AAPL", "IBM", "MSFT")
TTL, GRACE, RECHECK = 60, 5, 60
OLDEST = timedelta(days=5)  # of a price from a source that keeps up, where no calendar is known
STORE = text(
    "SELECT pricing.merge_prices('equity_quote', 'twelvedata', 1, true, ARRAY[:symbol],"
    " ARRAY[CAST(:at AS timestamptz)], ARRAY[CAST(:cents AS bigint)], ARRAY[NULL::bigint], ARRAY[NULL::bigint],"
    " ARRAY[NULL::bigint], ARRAY[2::smallint], ARRAY['USD'], ARRAY[NULL::numeric], ARRAY['x'], ARRAY['raw'])"
)

Entry = tuple[datetime, int]
"""A time at the source, and cents."""


@dataclass
class Viewer:
    """A client: what it shows, what it has read, and which of the prices of each symbol it can have got to.

    These are several places if a correction was corrected back, so that two prices of one moment are the same."""

    symbols: frozenset[str]
    stream: Stream | None = None
    last_id: str | None = None
    known: dict[str, set[int]] = field(default_factory=dict)
    freshness: dict[str, tuple[bool, str | None]] = field(default_factory=dict)


@dataclass
class Open:
    """A transaction that has stored a price and is not committed."""

    connection: Connection
    symbol: str
    entry: Entry


class Model:
    """The prices that were the latest of each symbol, in order; and how many of them a look has seen."""

    def __init__(self) -> None:
        self.prices: dict[str, list[Entry]] = {symbol: [] for symbol in SYMBOLS}
        self.seen = dict.fromkeys(SYMBOLS, 0)

    def stores(self, symbol: str, entry: Entry) -> None:
        prices, unseen = self.prices[symbol], len(self.prices[symbol]) > self.seen[symbol]
        # A correction is told, unless the next price or correction comes before anybody has looked.
        is_correction = len(prices) > 1 and prices[-1][0] == prices[-2][0]
        if unseen and (is_correction or prices[-1][0] == entry[0]):
            prices.pop()
        if not prices or prices[-1] != entry:
            prices.append(entry)

    def is_seen(self) -> None:
        self.seen = {symbol: len(prices) for symbol, prices in self.prices.items()}

    def reads(self, viewer: Viewer, event: Event) -> None:
        """What a viewer reads must be what comes next of the pair, or what held when its stream began anew."""
        if event.id is not None:
            viewer.last_id = event.id or None
        if event.data is None or event.kind in ("ready", "missed"):
            return
        symbol, prices = event.data["symbol"], self.prices[event.data["symbol"]]
        known, is_truth = viewer.known.get(symbol, set()), event.id is None
        freshness = event.data.get("fresh", False), (event.data["why"] or {}).get("state")
        if event.kind == "missing":
            assert known in (set(), {-1})
            viewer.known[symbol] = {-1}
        else:
            entry = datetime.fromisoformat(event.data["observed_at"]), round(float(event.data["price"]) * 100)
            same = {place for place, stored in enumerate(prices) if stored == entry}
            if is_truth or known == {-1}:  # the first price that is told is the newest
                viewer.known[symbol] = {place for place in same if place >= min(known, default=-1)}
            elif event.kind == "price":
                viewer.known[symbol] = same & {place + 1 for place in known}
            else:
                viewer.known[symbol] = same & known
            assert viewer.known[symbol], "each price once, in order"
        if not is_truth and event.kind != "price":
            assert viewer.freshness[symbol] != freshness, "a change is told once"
        viewer.freshness[symbol] = freshness


def events_of(chunk: bytes) -> Iterator[Event]:
    return read_events(chunk.decode(errors="ignore").split("\n")[:-1])


def machine(core: Core, clock: Clock, loop: asyncio.Runner) -> type[RuleBasedStateMachine]:
    """The rules, on this database. Streams take turns as the hub's reader does, without its pauses."""

    class Machine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            core.rows("DELETE FROM pricing.latest_prices")
            core.rows("DELETE FROM pricing.price_history")
            core.rows("DELETE FROM pricing.streamed_pairs")
            clock.advance(3600)
            self.model = Model()
            self.viewers: list[Viewer] = []
            self.open: list[Open] = []
            # As time passes, some prices are older than a source that keeps up would send.
            self.stamp = clock.now() - OLDEST + timedelta(minutes=1)
            self.hub = StreamHub(core.engine, Tokens(core.engine))
            self.session = KeptSession(core.engine)
            # One that lasts: it has a number, as what somebody has written and not committed.
            self.elsewhere = core.owner.connect()
            self.elsewhere.execute(text("SELECT pg_current_xact_id()"))

        def teardown(self) -> None:
            try:
                while self.open:
                    self.commits(0)
                self.ends_with_what_holds()
            finally:
                for open_ in self.open:
                    open_.connection.close()
                self.elsewhere.close()
                self.restart()

        def ends_with_what_holds(self) -> None:
            for viewer in self.viewers:
                self.connect(viewer)
            self.turn()
            clock.advance(RECHECK + 1)
            self.turn()
            for viewer in self.viewers:
                self.reads_all(viewer)
                self.knows_what_holds(viewer)

        def knows_what_holds(self, viewer: Viewer) -> None:
            for symbol in viewer.symbols:
                price = core.latest(symbol)
                last = len(self.model.prices[symbol]) - 1
                assert last in viewer.known[symbol], symbol
                if price is not None:
                    assert round(float(price.price) * 100) == self.model.prices[symbol][last][1]
                    keeps_up = price.observed_at >= price.fetched_at - OLDEST
                    assert viewer.freshness[symbol][0] == (keeps_up and price.age_seconds < TTL + GRACE)

        def turn(self) -> None:
            if self.hub._streams:
                loop.run(self.hub._turn(self.session))
                self.model.is_seen()

        def connect(self, viewer: Viewer) -> None:
            async def begin() -> None:
                last = read_id(viewer.last_id)
                pairs = {(QUOTE, symbol) for symbol in viewer.symbols}
                viewer.stream = Stream("token", "owner", "ann", False, last)
                viewer.stream.wanted = frozenset(pairs)
                self.hub._streams.add(viewer.stream)
                self.hub.request_states(viewer.stream)

            if viewer.stream is None:
                loop.run(begin())

        def read(self, viewer: Viewer, most: int = 1_000_000) -> None:
            if viewer.stream is not None:
                for event in events_of(viewer.stream.take()[:most]):
                    self.model.reads(viewer, event)

        def cut(self, viewer: Viewer) -> None:
            if viewer.stream is not None:
                self.hub.leave(viewer.stream)
                viewer.stream = None

        @rule(
            values=st.lists(st.tuples(st.sampled_from(SYMBOLS), st.integers(100, 105)), min_size=1, max_size=4),
            kind=st.sampled_from(["new", "new", "correction"]),
            is_left_open=st.booleans(),
        )
        def stores(self, values: list[tuple[str, int]], kind: str, is_left_open: bool) -> None:
            for symbol, cents in values:
                if any(open_.symbol == symbol for open_ in self.open):
                    continue
                prices = self.model.prices[symbol]
                is_correction = kind == "correction" and bool(prices)
                self.stamp += timedelta(seconds=0 if is_correction else 1)
                entry = prices[-1][0] if is_correction else self.stamp, cents
                clock.advance(0.001)  # two revisions of a moment would be one
                connection = core.engine.connect()
                connection.execute(STORE, {"symbol": symbol, "at": entry[0], "cents": cents})
                self.open.append(Open(connection, symbol, entry))
                if not is_left_open:
                    self.commits(-1)

        @precondition(lambda self: self.open)
        @rule(place=st.integers(0, 9))
        def commits(self, place: int) -> None:
            open_ = self.open.pop(place % len(self.open) if place >= 0 else -1)
            open_.connection.commit()
            open_.connection.close()
            self.model.stores(open_.symbol, open_.entry)

        @precondition(lambda self: self.open)
        @rule(place=st.integers(0, 9))
        def rolls_back(self, place: int) -> None:
            self.open.pop(place % len(self.open)).connection.close()

        @initialize()
        def two_come(self) -> None:
            for symbols in (SYMBOLS, SYMBOLS[:1]):
                self.comes(set(symbols))

        @precondition(lambda self: len(self.viewers) < 4)
        @rule(symbols=st.sets(st.sampled_from(SYMBOLS), min_size=1))
        def comes(self, symbols: set[str]) -> None:
            self.viewers.append(Viewer(frozenset(symbols)))
            self.connect(self.viewers[-1])
            self.turn()

        @rule(readers=st.sets(st.integers(0, 3)))
        def looks(self, readers: set[int]) -> None:
            """Some read at once what there is; the others are slow."""
            self.turn()
            for place, viewer in enumerate(self.viewers):
                if place in readers:
                    self.reads_all(viewer)

        def reads_all(self, viewer: Viewer) -> None:
            if viewer.stream is not None and viewer.stream.is_overrun:
                self.hub.request_states(viewer.stream)
                self.turn()
            self.read(viewer)

        @rule(place=st.integers(0, 3), most=st.integers(0, 1500), comes_back=st.booleans())
        def is_cut(self, place: int, most: int, comes_back: bool) -> None:
            """A client reads a part of what waits and is cut off."""
            viewer = self.viewers[place % len(self.viewers)]
            if viewer.stream is not None and viewer.stream.is_overrun:
                self.hub.request_states(viewer.stream)
                self.turn()
            self.read(viewer, most)
            self.cut(viewer)
            if comes_back:
                self.connect(viewer)

        @rule(seconds=st.sampled_from([3, 30, 70, 700, 1000]))
        def time_passes(self, seconds: int) -> None:
            clock.advance(seconds)
            self.turn()
            if self.hub._streams:
                loop.run(self.hub._beat())
                self.model.is_seen()

        @rule(kind=st.sampled_from(["restart", "another process looks", "all come back", "a session is lost"]))
        def something_happens(self, kind: str) -> None:
            if kind == "restart":
                self.restart()
            if kind in ("restart", "all come back"):
                for viewer in self.viewers:
                    self.connect(viewer)
                self.turn()
            elif kind == "another process looks":
                with core.engine.begin() as connection:
                    stream_log.look(connection, None)
                self.model.is_seen()
            elif self.session._connection is not None and self.hub._streams:
                with self.session.use() as connection:
                    pid = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
                core.call("SELECT pg_terminate_backend(:pid, 5000)", pid=pid)
                with pytest.raises(DatabaseError, match="does not answer"):
                    self.turn()

        def restart(self) -> None:
            for viewer in self.viewers:
                self.cut(viewer)
            self.session.close()
            self.hub = StreamHub(core.engine, Tokens(core.engine))
            self.session = KeptSession(core.engine)

    return Machine


@pytest.mark.own_sessions
def test_b27_streams_tell_each_price_once_as_a_plain_model_says(
    core: Core, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock.stop()
    monkeypatch.setattr(live_stream, "MOST_PENDING", 4)
    core.heartbeat("ann", *((QUOTE, symbol) for symbol in SYMBOLS))
    # By a calendar, a price would be old or not by the day on which the test runs.
    core.rows("UPDATE pricing.instruments SET calendar = NULL")
    with asyncio.Runner() as loop:
        run_machine(machine(core, clock, loop), examples(50), steps=30)
