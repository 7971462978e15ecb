"""A live stream ends soon after its token stops allowing it, and not before: the hub against a plain model.

Time is simulated, so five seconds are five seconds on a busy machine, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from pricing_pipeline.api import access, stream_hub
from pricing_pipeline.api.access import Tokens
from pricing_pipeline.api.live_stream import Stream
from pricing_pipeline.api.stream_hub import StreamHub
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.errors import DatabaseError
from pricing_pipeline.keys import api_tokens
from pricing_pipeline.keys.api_tokens import ApiToken

PROMISED = access.REMEMBERED_SECONDS
OUTAGE = stream_hub._OUTAGE_SECONDS
END = 150.0


class SimulatedLoop(asyncio.SelectorEventLoop):
    """A loop whose time goes on only while nothing is left to do, and then at once to what comes next."""

    def __init__(self) -> None:
        super().__init__()
        self._simulated = 0.0

    def time(self) -> float:
        return self._simulated

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self._simulated = max(self._simulated, self._scheduled[0]._when)  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


@dataclass(frozen=True)
class Case:
    """A token, and what happens to it at which second."""

    kind: str
    at: float
    is_in_use: bool
    """Requests come with it all the time, so that it is remembered."""


@dataclass(frozen=True)
class Outage:
    """From when and how long the tokens cannot be read; whether reading fails at once or hangs."""

    begins: float
    lasts: float
    hangs: bool

    def has(self, at: float) -> bool:
        return self.begins <= at < self.begins + self.lasts


class SimulatedTokens(Tokens):
    """Tokens that are read from a table in memory, each time as late as the database answers."""

    def __init__(self, cases: list[Case], outage: Outage, seconds: list[float]) -> None:
        self._loop = asyncio.get_running_loop()
        super().__init__(None, self._loop.time)  # type: ignore[arg-type]
        self.secrets = [f"pp_{number:043d}" for number in range(len(cases))]
        self._cases, self._outage, self._seconds, self._reads = cases, outage, seconds, 0

    async def _stored(self) -> dict[bytes, ApiToken]:
        with anyio.CancelScope(shield=True):  # a thread that reads is not cut short by a caller that gives up
            return await self._answered()

    async def _answered(self) -> dict[bytes, ApiToken]:
        self._reads += 1
        await asyncio.sleep(self._seconds[self._reads % len(self._seconds)])
        now = self._loop.time()
        if self._outage.has(now):
            if self._outage.hangs:
                await asyncio.sleep(self._outage.begins + self._outage.lasts - now)
            raise DatabaseError("the database is away")
        found = {}
        for secret, case in zip(self.secrets, self._cases, strict=True):
            token = _token(case, now)
            if token is not None:
                found[api_tokens.hash_of(secret) or b""] = token
        return found

    async def _note_use(self, token: ApiToken) -> None:
        """Uses are noted elsewhere."""


def _token(case: Case, now: float) -> ApiToken | None:
    """The row of a token as it is then; None if it is removed."""
    scopes = frozenset({Scope.READ, Scope.WATCH})
    token = ApiToken(
        token_id=1,
        name="a token",
        scopes=scopes,
        is_feed=False,
        user_id=None,
        list=None,
        created_at=datetime.now(UTC),
        last_used_at=None,
        expires_at=None,
        seconds_left=None,
    )
    if case.kind == "expires":
        return replace(token, seconds_left=case.at - now)
    if now < case.at or case.kind == "stays":
        return token
    changed = {
        "is removed": None,
        "may no longer read": replace(token, scopes=frozenset({Scope.WATCH})),
        "may no longer watch": replace(token, scopes=frozenset({Scope.READ})),
        "is another user's": replace(token, user_id="bob"),
    }
    return changed[case.kind]


async def _ends(cases: list[Case], outage: Outage, seconds: list[float]) -> list[float | None]:
    """When the stream of each token ended."""
    loop = asyncio.get_running_loop()
    tokens = SimulatedTokens(cases, outage, seconds)
    hub = StreamHub(None, tokens)  # type: ignore[arg-type]
    streams = [Stream(secret, "a token", "ann", True, None) for secret in tokens.secrets]
    hub._streams.update(streams)
    for stream in streams:
        stream.opened.set_result(None)
    watching = asyncio.create_task(hub._watch_tokens())
    ended: list[float | None] = [None] * len(streams)
    while loop.time() < END:
        for number, stream in enumerate(streams):
            if ended[number] is None and stream.scope.cancel_called:
                ended[number] = loop.time()
                hub.leave(stream)
            if cases[number].is_in_use:
                asyncio.create_task(_ask(tokens, tokens.secrets[number]))  # noqa: RUF006 - it ends by itself
        await asyncio.sleep(0.25)
    hub._ending.set()
    await watching
    return ended


async def _ask(tokens: Tokens, secret: str) -> None:
    try:
        await tokens.find(secret)
    except Exception:
        return


def _simulate(work: Coroutine[Any, Any, list[float | None]]) -> list[float | None]:
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(work)


KINDS = ["stays", "is removed", "expires", "may no longer read", "may no longer watch", "is another user's"]
CASES = st.builds(Case, st.sampled_from(KINDS), st.floats(0, 80), st.booleans())
OUTAGES = st.builds(Outage, st.floats(0, 80), st.sampled_from([0.0, 3.0, 20.0, 45.0]), st.booleans())


@settings(max_examples=40, deadline=None)
@given(st.lists(CASES, min_size=1, max_size=5), OUTAGES, st.lists(st.floats(0, 0.9), min_size=1, max_size=7))
def test_b27_a_stream_ends_within_five_seconds_of_its_token_and_not_before(
    cases: list[Case], outage: Outage, seconds: list[float]
) -> None:
    ended = _simulate(_ends(cases, outage, seconds))
    for case, end in zip(cases, ended, strict=True):
        is_long = outage.lasts > OUTAGE
        if case.kind == "stays":
            # A stream outlasts an outage that is short, and ends in one that is not.
            assert (end is not None) == is_long
            assert end is None or outage.begins + OUTAGE - 5 <= end <= outage.begins + OUTAGE + 5
            continue
        # Nobody can be told while the tokens cannot be read. Then the same five seconds begin, or the outage ends all.
        unknown = outage.begins < case.at + PROMISED and case.at < outage.begins + outage.lasts
        # An answer that is under way when the outage ends fails, too, and the next one takes its time.
        known_again = outage.begins + min(outage.lasts, OUTAGE) + 2 * max(seconds)
        last = (known_again if unknown else case.at) + PROMISED
        assert end is not None
        assert end <= max(last, case.at + PROMISED) + 0.25
        # What is left of a token counts from when it was asked for, so it ends as much too early as the answer took.
        early = max(seconds) if case.kind == "expires" else 0.0
        assert end >= min(case.at - early, outage.begins + OUTAGE - 5 if is_long else END)
