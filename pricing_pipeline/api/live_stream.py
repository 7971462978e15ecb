"""One client's live stream: its pairs, and the events that its client has not read yet, up to a bound."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection

import anyio

from pricing_pipeline.api.stream_events import (
    EventId,
    Left,
    Missed,
    Ready,
    fingerprint,
    spell,
    spell_pair_event,
)
from pricing_pipeline.demand.stream_log import Look, Pair
from pricing_pipeline.domain.prices import Price
from pricing_pipeline.prices.conversion import Target, named_rates

MOST_PENDING = 1000
"""The most events that wait for a slow client, apart from the first ones of its stream."""


class Stream:
    """One client's stream: its pairs, and what waits to be sent. `follows` says that it shows what its user watches."""

    def __init__(
        self,
        token: str,
        owner: str,
        user: str,
        follows: bool,
        last: EventId | None,
        into: Target | None = None,
    ) -> None:
        self.token, self.owner, self.user, self.follows, self.last = token, owner, user, follows, last
        self.into = into
        """The currency that its prices are in; None for their own."""
        self.rates: frozenset[Pair] = frozenset()
        """The exchange rates that it needs for that, which its user watches."""
        self.new_rates: frozenset[Pair] = frozenset()
        """The rates that have changed: the prices that they convert are sent again."""
        self.wanted: frozenset[Pair] = frozenset()
        self.pairs: frozenset[Pair] = frozenset()
        self.fingerprint = ""
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.scope = anyio.CancelScope()
        """The scope of its sending: cancelling it ends the stream."""
        self.dropped = 0
        """How many events were dropped because the client did not read them."""
        self.is_overrun = False
        self._waiting: deque[tuple[int | None, str, bytes]] = deque()
        self._room = MOST_PENDING
        self._changed = asyncio.Event()

    def offer(self, position: int, event: bytes) -> None:
        """Add an event of one of its pairs, as text."""
        if len(self._waiting) >= self._room:
            self.overrun(len(self._waiting))
        if self.is_overrun:
            self.dropped += 1
        else:
            self._put(position, event)

    def overrun(self, dropped: int) -> None:
        """Drop the waiting events. When the client reads again, it gets `missed` and the states."""
        self._waiting.clear()
        self.dropped += dropped
        self.is_overrun = True
        self._changed.set()

    def begin(self, look: Look, wanted: frozenset[Pair]) -> None:
        """Send the states of its pairs; or, if the stream resumes, the events since its client's last one.

        A stream that has begun before is told which pairs it has gained and lost, and the prices that new rates
        convert; or, if it has dropped events, `missed` and all states. `wanted` are its pairs when the look began:
        pairs that came later wait for the next look.
        """
        self.fingerprint = fingerprint(look.log_id, wanted, None if self.into is None else self.into.code)
        gone, has_begun = self.pairs - wanted, bool(self.pairs)
        if self.is_overrun:
            self._tell_missed(self.dropped or None, "this stream was read too slowly, or the log had a gap")
            self.is_overrun, self.dropped, to_tell = False, 0, wanted
        elif has_begun:
            to_tell = (wanted - self.pairs) | _converted_by(self.new_rates, wanted, look)
        elif self._can_go_on(look, wanted):
            self._catch_up(look, wanted)
            to_tell = _converted_by(self.rates, wanted, look)  # a rate may have changed meanwhile
        else:
            to_tell = wanted
        self.last, self.new_rates = None, frozenset()
        self.pairs = wanted
        for data_type, symbol in sorted(gone):
            self._put(None, spell("left", Left(data_type=data_type, symbol=symbol)))
        for pair in sorted(to_tell & look.states.keys()):
            self._put(None, spell_pair_event(look.states[pair]))
        if to_tell or gone or not has_begun:
            self._put(look.position, spell("ready", Ready(pairs=len(self.pairs))))
        self._room = len(self._waiting) + MOST_PENDING
        if not self.opened.done():
            self.opened.set_result(None)

    def _can_go_on(self, look: Look, wanted: frozenset[Pair]) -> bool:
        if self.last is None:
            return False
        if self.last.fingerprint != self.fingerprint:
            self._tell_missed(None, "the event that was read last belongs to other pairs, or to another database")
            return False
        if (
            look.kept_from <= self.last.position <= look.position
            and wanted <= look.states.keys()
            and all(look.states[pair].position <= self.last.position for pair in wanted)
        ):
            return True
        self._tell_missed(None, "the log does not go back to the event that was read last")
        return False

    def _catch_up(self, look: Look, wanted: frozenset[Pair]) -> None:
        assert self.last is not None  # noqa: S101 - it can go on
        for event in look.caught_up:
            if event.position > self.last.position and event.pair in wanted:
                self._put(event.position, spell_pair_event(event))

    def _tell_missed(self, events: int | None, cause: str) -> None:
        detail = f"Some events are missing here: {cause}. The state of each pair follows."
        # With an empty id: a client that is cut off before it has all states must not resume from an earlier event.
        self._put(None, b"id\n" + spell("missed", Missed(events=events, detail=detail)))

    def _put(self, position: int | None, event: bytes) -> None:
        self._waiting.append((position, self.fingerprint, event))
        self._changed.set()

    def take(self) -> bytes:
        """The waiting events as text, each with its id. Of the first events only `ready` has one."""
        parts = []
        for position, of_pairs, event in self._waiting:
            if position is not None:
                parts.append(f"id: {EventId(position, of_pairs)}\n".encode())
            parts.append(event)
        self._waiting.clear()
        self._room = MOST_PENDING
        return b"".join(parts)

    async def changes(self) -> None:
        """Return when an event waits, or events were dropped."""
        await self._changed.wait()
        self._changed.clear()


def _converted_by(rates: Collection[Pair], wanted: frozenset[Pair], look: Look) -> frozenset[Pair]:
    """The pairs whose prices are converted by one of these rates."""
    symbols = {symbol for _, symbol in rates}
    return frozenset(
        pair
        for pair in wanted & look.states.keys()
        if isinstance(content := look.states[pair].content, Price) and not symbols.isdisjoint(named_rates(content.rate))
    )
