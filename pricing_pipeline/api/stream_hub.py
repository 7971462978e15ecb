"""The live streams of this process, and the one reader that serves all of them.

The reader looks at the log of demand/stream_log.py and hands each event to the streams of its pair. A stream keeps the
events that its client has not read yet, up to a bound. Beyond the bound it drops them, and sends `missed`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.api.access import Tokens
from pricing_pipeline.api.live_stream import Stream
from pricing_pipeline.api.problems import Refused, database_busy
from pricing_pipeline.api.stream_events import EventId, spell_pair_event
from pricing_pipeline.db.engine import KeptSession
from pricing_pipeline.demand import stream_log, viewers
from pricing_pipeline.demand.stream_log import Look, Pair, PairEvent
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.errors import PricingError
from pricing_pipeline.keys.api_tokens import ApiToken
from pricing_pipeline.prices import conversion
from pricing_pipeline.prices.conversion import LatestRates, Target

_LOG = logging.getLogger(__name__)

PACE_SECONDS = 0.5
"""Between two looks at the log."""
_REST, _LONGEST_REST_SECONDS = 9, 2.0
"""Looks take a tenth of the time, so that they slow down nothing else. One that took long may only have waited for a
lock, or for a database that stood still."""
MOST_STREAMS = 500
"""The most streams of this process at a time."""
MOST_OF_TOKEN = 400
"""The most of them for a token, so that no application takes all."""
MOST_OF_USER = 20
"""The most of them for a user of a token."""
_UPKEEP_SECONDS, _BEAT_SECONDS = 5.0, 60.0
_TOKENS_SECONDS, _TOKENS_REMEMBERED_SECONDS = 2.0, 1.0
"""Between two looks at the tokens of streams, and how old what they go by may be. Together with the time that a look
takes, that is less than the five seconds after which no request gets anywhere with a removed token."""
_OUTAGE_SECONDS = 30.0
"""So long streams last, and one that begins waits, while the database fails or hangs. Then they end. A client that
connects again gets the reason."""
_ENDING_SECONDS = 2.0
_MOST_OPENING = 2
"""So many streams are opened at once, and one of a token: an opening may wait for locks of its user. Of the token's
users each has one that waits for that turn."""
_MOST_BEATEN = 10_000
"""Pairs of one heartbeat."""


class StreamHub:
    """All streams of this process."""

    def __init__(self, engine: Engine, tokens: Tokens) -> None:
        self._engine, self._tokens = engine, tokens
        self._streams: set[Stream] = set()
        self._of_pair: defaultdict[Pair, set[Stream]] = defaultdict(set)
        self._since: dict[Pair, int] = {}
        self._beginning: list[Stream] = []
        self._position: int | None = None
        self._log_id = ""
        self._nudge, self._ending = asyncio.Event(), asyncio.Event()
        # The hub's own threads, by kind of work, so that one kind does not delay another.
        self._looking, self._keeping = anyio.CapacityLimiter(1), anyio.CapacityLimiter(1)
        self._opening = anyio.CapacityLimiter(_MOST_OPENING)
        self._turns: WeakValueDictionary[tuple[str, ...], asyncio.Lock] = WeakValueDictionary()
        self._reader: asyncio.Task[None] | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._gatekeeper: asyncio.Task[None] | None = None
        self._unanswered_since: float | None = None

    async def open(
        self,
        token: str,
        owner: str,
        user: str,
        pairs: Collection[Pair] | None,
        last: EventId | None,
        into: Target | None = None,
    ) -> Stream:
        """A stream of these pairs, or of what the user watches, opened; its opener must leave it.

        Raises Refused if there are too many, and what a heartbeat for the pairs raises.
        """
        self._require_room(owner, user)
        stream = Stream(token, owner, user, pairs is None, last, into)
        self._streams.add(stream)
        try:
            with anyio.move_on_after(_OUTAGE_SECONDS) as waiting:
                async with self._turn_of(owner, user), self._turn_of(owner):
                    watched = await anyio.to_thread.run_sync(self._watch, user, pairs, into, limiter=self._opening)
            if waiting.cancelled_caught:
                raise _no_answer()
            stream.wanted, stream.rates = watched
            self.request_states(stream)
            self._keep_working()
            await stream.opened
        except BaseException:
            self.leave(stream)
            raise
        return stream

    def _turn_of(self, *who: str) -> asyncio.Lock:
        return self._turns.setdefault(who, asyncio.Lock())

    def _require_room(self, owner: str, user: str) -> None:
        if self._ending.is_set():
            raise _ends()
        if len(self._streams) >= MOST_STREAMS:
            raise Refused(
                503,
                "too-many-streams",
                f"this server has {MOST_STREAMS} open streams, and no room for more. Try again later",
                {"Retry-After": "30"},
            )
        of_token = [stream for stream in self._streams if stream.owner == owner]
        for streams, who, most in (
            (of_token, f"the token {owner!r}", MOST_OF_TOKEN),
            (
                [stream for stream in of_token if stream.user == user],
                f"{user!r} with this token",
                MOST_OF_USER,
            ),
        ):
            if len(streams) >= most:
                raise Refused(
                    429,
                    "too-many-streams",
                    f"{who} has {most} open streams. Close one, or show more pairs in one",
                    {"Retry-After": "30"},
                )

    def leave(self, stream: Stream) -> None:
        """Remove an ended stream. The subscriptions of its user end as usual."""
        self._streams.discard(stream)
        if stream in self._beginning:
            self._beginning.remove(stream)
        self._forget_pairs(stream)

    async def end(self) -> None:
        """End all streams at once, and let none begin; return when they use no database, or after two seconds."""
        self._ending.set()
        self._nudge.set()
        self._end_streams(_ends())
        tasks = [task for task in (self._reader, self._keeper, self._gatekeeper) if task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=_ENDING_SECONDS)

    def last_id(self, stream: Stream) -> EventId | None:
        """The position up to which a stream has sent all events; None while events wait or are missing."""
        if self._position is None or stream.is_overrun or stream in self._beginning:
            return None
        return EventId(self._position, stream.fingerprint)

    def request_states(self, stream: Stream) -> None:
        """Have the next look tell a stream the states of its pairs, as Stream.begin says."""
        if stream not in self._beginning:
            self._beginning.append(stream)
        self._nudge.set()

    # The reader

    def _keep_working(self) -> None:
        if self._reader is None or self._reader.done():
            self._unanswered_since = None
            self._reader = asyncio.create_task(self._read())
        if self._keeper is None or self._keeper.done():
            self._keeper = asyncio.create_task(self._keep_up())
        if self._gatekeeper is None or self._gatekeeper.done():
            self._gatekeeper = asyncio.create_task(self._watch_tokens())

    async def _read(self) -> None:
        session = KeptSession(self._engine)
        try:
            while self._streams and not self._ending.is_set():
                began = time.monotonic()
                if self._unanswered_since is None:
                    self._unanswered_since = began
                try:
                    await self._outlast(asyncio.create_task(self._turn(session)))
                    self._unanswered_since = None
                    pause = _rest_after(time.monotonic() - began)
                except Exception as error:  # whatever it is: without a reader, all streams would stand still
                    self._note_failure(error)
                    pause = 1.0
                with anyio.move_on_after(pause):
                    await self._nudge.wait()
                self._nudge.clear()
        finally:
            # Without an await: a caller that opens a stream must see a reader that either works or has ended.
            self._position = None
            session.close()

    async def _outlast(self, turn: asyncio.Task[None]) -> None:
        """Wait for one look. While it hangs, streams get no events, so they must not look as if nothing were new."""
        while not turn.done():
            await asyncio.wait([turn], timeout=1.0)
            self._end_after_outage("it hangs")
        turn.result()

    async def _turn(self, session: KeptSession) -> None:
        beginning, self._beginning = {stream: stream.wanted for stream in self._beginning}, []
        after = self._position
        opened = {pair for stream, wanted in beginning.items() for pair in wanted | stream.rates}
        resume_from = [stream.last.position for stream in beginning if stream.last is not None]
        targets = {stream.into for stream in self._streams if stream.into is not None}
        try:
            looks = await anyio.to_thread.run_sync(
                _look, session, after, opened, resume_from, targets, limiter=self._looking
            )
        except BaseException:
            self._beginning = list(dict.fromkeys([*beginning, *self._beginning]))
            raise
        look = looks[None]
        if after is not None and (look.log_id != self._log_id or not look.kept_from <= after <= look.position):
            self._overrun(stream for stream in self._streams if stream.opened.done())
        for into, its_look in looks.items():
            for event in its_look.events:
                self._hand_out(event, into)
        self._position, self._log_id = look.position, look.log_id
        since = {pair: state.position for pair, state in look.states.items()}
        self._note_since(since)
        for stream, wanted in beginning.items():
            if stream in self._streams:
                self._forget_pairs(stream)
                stream.begin(looks[stream.into], wanted)
                for pair in stream.pairs:
                    self._of_pair[pair].add(stream)
        self._note_since(since)
        self._note_rates({event.pair for event in look.events if event.is_new_price})

    def _note_rates(self, changed: set[Pair]) -> None:
        """Make streams send again the prices that changed rates convert."""
        for stream in self._streams:
            if new := stream.rates & changed:
                stream.new_rates |= new
                self.request_states(stream)

    def _hand_out(self, event: PairEvent, into: Target | None) -> None:
        streams = [stream for stream in self._of_pair.get(event.pair, ()) if stream.into == into]
        if streams:
            text = spell_pair_event(event)
            for stream in streams:
                stream.offer(event.position, text)

    def _note_failure(self, error: Exception) -> None:
        fresh = [stream for stream in self._beginning if not stream.opened.done()]
        for stream in fresh:
            stream.opened.set_exception(error)
            self._beginning.remove(stream)
        self._end_after_outage(error)

    def _end_after_outage(self, cause: object) -> None:
        since = self._unanswered_since
        if since is None or time.monotonic() - since <= _OUTAGE_SECONDS:
            return
        if not all(stream.scope.cancel_called for stream in self._streams):
            _LOG.warning("live streams end, because the database has not answered for a while: %s", cause)
            self._end_streams(_no_answer())

    def _note_since(self, since: Mapping[Pair, int]) -> None:
        """Streams of a pair that was deleted and added again have a gap: they begin again."""
        for pair, position in since.items():
            if pair in self._of_pair:
                if self._since.setdefault(pair, position) != position:
                    self._overrun(self._of_pair[pair])
                self._since[pair] = position

    def _overrun(self, streams: Iterable[Stream]) -> None:
        for stream in streams:
            stream.overrun(0)

    def _end_streams(self, why: Refused) -> None:
        for stream in list(self._streams):
            stream.scope.cancel()
            if not stream.opened.done():
                stream.opened.set_exception(why)

    def _forget_pairs(self, stream: Stream) -> None:
        for pair in stream.pairs:
            streams = self._of_pair[pair]
            streams.discard(stream)
            if not streams:
                del self._of_pair[pair]
                self._since.pop(pair, None)

    # Subscriptions

    def _watch(
        self, user: str, pairs: Collection[Pair] | None, into: Target | None
    ) -> tuple[frozenset[Pair], frozenset[Pair]]:
        """The pairs of a stream, and the rates that convert their prices, each watched by its user from now on."""
        with self._engine.begin() as connection:
            if pairs is None:
                stream_log.renew(connection, user)
                wanted = stream_log.watched(connection, [user])[user]
            else:
                wanted = stream_log.spelled(connection, pairs)
                _beat_all(connection, user, wanted, all_or_nothing=True)
            rates = frozenset() if into is None else conversion.pairs_of_rates(connection, into, wanted)
            _beat_all(connection, user, rates)
        return frozenset(wanted), rates

    async def _keep_up(self) -> None:
        beat_at = time.monotonic()
        while self._streams:
            with anyio.move_on_after(_UPKEEP_SECONDS):
                await self._ending.wait()
                return
            now = time.monotonic()
            await self._attempt(self._follow)
            if now >= beat_at + _BEAT_SECONDS and await self._attempt(self._beat):
                beat_at = now
                await self._attempt(self._note_uses)
                await self._attempt(self._follow_all_rates)

    async def _attempt(self, work: Callable[[], Awaitable[None]]) -> bool:
        """Do some upkeep; False if it fails. The other kinds must go on."""
        try:
            await work()
        except Exception as error:  # whatever it is: without it, subscriptions would end
            _LOG.info("live streams: %s", error)
            return False
        return True

    async def _follow(self) -> None:
        """Show what users watch now, in the streams that follow them."""
        following = [stream for stream in self._streams if stream.follows and stream.opened.done()]
        if not following:
            return
        users = sorted({stream.user for stream in following})
        found = await anyio.to_thread.run_sync(self._watched, users, limiter=self._keeping)
        for stream in following:
            wanted = frozenset(found[stream.user])
            if wanted != stream.wanted:
                stream.wanted = wanted
                await self._follow_rates(stream)
                self.request_states(stream)

    def _watched(self, users: list[str]) -> dict[str, set[Pair]]:
        with self._engine.connect() as connection:
            return stream_log.watched(connection, users)

    async def _follow_all_rates(self) -> None:
        for stream in list(self._streams):
            await self._follow_rates(stream)

    async def _follow_rates(self, stream: Stream) -> None:
        """Choose again the rates that convert the prices of a stream: another pair may have a newer rate by now."""
        if stream.into is None:
            return
        rates = await anyio.to_thread.run_sync(self._rates, stream.into, stream.wanted, limiter=self._keeping)
        if rates != stream.rates:
            stream.new_rates |= rates - stream.rates
            stream.rates = rates
            self.request_states(stream)

    def _rates(self, into: Target, wanted: frozenset[Pair]) -> frozenset[Pair]:
        with self._engine.connect() as connection:
            return conversion.pairs_of_rates(connection, into, wanted)

    async def _beat(self) -> None:
        """Send heartbeats for the users of streams, and keep their pairs streamed."""
        named: defaultdict[str, set[Pair]] = defaultdict(set)
        followed: defaultdict[str, set[Pair]] = defaultdict(set)
        for stream in self._streams:
            (followed if stream.follows else named)[stream.user] |= stream.wanted
            named[stream.user] |= stream.rates
        since = await anyio.to_thread.run_sync(self._send_beats, dict(named), dict(followed), limiter=self._keeping)
        self._note_since(since)

    def _send_beats(self, named: dict[str, set[Pair]], followed: dict[str, set[Pair]]) -> dict[Pair, int]:
        for user in sorted(named.keys() | followed.keys()):
            try:
                if user in followed:
                    # Alone, so that leaving does not wait for other locks.
                    with self._engine.begin() as connection:
                        stream_log.renew(connection, user)
                # A pair that the user left, and for which the caps have no room now, must not end a watched one.
                with self._engine.begin() as connection:
                    refusals = _beat_all(connection, user, named.get(user, set()))
                if refusals:
                    _LOG.warning("the streams of %r do not keep all their pairs alive: %s", user, refusals)
            except (DBAPIError, PricingError) as error:
                _LOG.warning("the subscriptions of %r are not kept alive by its streams: %s", user, error)
        with self._engine.begin() as connection:
            everything = set[Pair]().union(*named.values(), *followed.values())
            look = stream_log.look(connection, None, everything)
        return {pair: state.position for pair, state in look.states.items()}

    # Tokens

    async def _note_uses(self) -> None:
        for token in {stream.token for stream in self._streams}:
            await self._tokens.find(token)

    async def _watch_tokens(self) -> None:
        """End streams whose tokens no longer allow them, or all when nobody can tell for as long as an outage may last.

        It is independent of other upkeep: another session's lock must not keep a stream open.
        """
        now = asyncio.get_running_loop().time
        known_at = now()
        while self._streams and not self._ending.is_set():
            began = now()
            look = asyncio.create_task(self._attempt(self._require_tokens))
            while not look.done() and not self._ending.is_set():
                await asyncio.wait([look], timeout=1.0)
                if now() - known_at > _OUTAGE_SECONDS and not all(s.scope.cancel_called for s in self._streams):
                    _LOG.warning("live streams end, because their tokens cannot be checked")
                    self._end_streams(_no_answer())
            if look.done() and look.result():
                known_at = began
            with anyio.move_on_after(_TOKENS_SECONDS):
                await self._ending.wait()

    async def _require_tokens(self) -> None:
        """End the streams of tokens that are removed, have expired, or no longer allow them."""
        for stream in list(self._streams):
            found = await self._tokens.look_up(stream.token, _TOKENS_REMEMBERED_SECONDS)
            if found is None or not _allows(found, stream):
                stream.scope.cancel()


def _allows(token: ApiToken, stream: Stream) -> bool:
    is_for_user = token.user_id in (None, stream.user)
    return is_for_user and token.allows(Scope.READ) and token.allows(Scope.WATCH)


def _rest_after(took: float) -> float:
    return max(PACE_SECONDS, min(_REST * took, _LONGEST_REST_SECONDS))


def _beat_all(connection: Connection, user: str, pairs: Collection[Pair], *, all_or_nothing: bool = False) -> str:
    """One heartbeat, or several where they are too many for one; returns why pairs are refused."""
    ordered = sorted(pairs)
    answers = [
        viewers.heartbeat(connection, user, ordered[first : first + _MOST_BEATEN], all_or_nothing=all_or_nothing)
        for first in range(0, len(ordered), _MOST_BEATEN)
    ]
    return " ".join(answer.refusals for answer in answers if answer.refused)


def _look(
    session: KeptSession,
    after: int | None,
    opened: set[Pair],
    resume_from: list[int],
    targets: Collection[Target],
) -> dict[Target | None, Look]:
    """A look at the log, in the currencies of the prices and in each target currency."""
    with session.use() as connection:
        look = stream_log.look(connection, after, opened, resume_from)
        looks: dict[Target | None, Look] = {None: look}
        for target in targets:
            looks[target] = look.convert_prices(LatestRates(connection, target).converted)
    return looks


def _ends() -> Refused:
    return Refused(503, "ending", "this server is stopping. Try again in a moment", {"Retry-After": "2"})


def _no_answer() -> Refused:
    return database_busy(f"the database has not answered for {_OUTAGE_SECONDS:.0f} s. Try again later")
