"""Authentication and authorization: bearer tokens with scopes, each for one user or for an application, and feeds.

The token of a feed may also be in the URL, or be the password of basic authentication.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import shlex
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any
from urllib.parse import unquote_plus

import anyio
from anyio import CapacityLimiter, to_thread
from fastapi import Depends, Query
from fastapi.security import APIKeyQuery, HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError
from starlette.requests import Request
from starlette.types import Scope as RequestScope

from pricing_pipeline.api.limits import Shares
from pricing_pipeline.api.problems import Refused, database_busy, is_feed
from pricing_pipeline.db.errors import sentence
from pricing_pipeline.db.loop_sessions import LoopSessions
from pricing_pipeline.db.replica import Replica
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.errors import DatabaseError
from pricing_pipeline.keys import api_tokens
from pricing_pipeline.keys.api_tokens import ApiToken

_LOG = logging.getLogger(__name__)
STREAM_PATH = "/v1/stream"
REMEMBERED_SECONDS = 5.0
"""So long the tokens are remembered; a removed one works no longer than that."""
_PAUSE_SECONDS = 0.05
"""Between two looks at the tokens, however many wrong ones come."""
_NOTED_EVERY_SECONDS = 60.0
_PATIENCE_SECONDS = 10.0
"""How long a request waits for the tokens. The request that reads them waits as long as the database hangs."""

LONGEST_USER = 200
"""Characters of the name of a user."""
_LONGEST_TOKEN_NAME = 48
"""Characters of it, as the database takes it."""

_BEARER = HTTPBearer(auto_error=False, description="A token of `pricing-pipeline token add`.")
_IN_URL = APIKeyQuery(
    name="token",
    scheme_name="Feed",
    auto_error=False,
    description="A token of `pricing-pipeline token add --feed`.",
)


class Tokens:
    """All tokens, read together, so that checking one, right or wrong, costs no query."""

    def __init__(self, engine: Engine, clock: Callable[[], float] = time.monotonic) -> None:
        self._engine = engine
        self._clock = clock
        self._by_hash: dict[bytes, ApiToken] = {}
        self._read_at = float("-inf")
        self._failed: tuple[float, Exception] | None = None
        self._noted_at: dict[int, float] = {}
        self._turn = asyncio.Lock()
        # Its own thread, because all threads of requests may be busy. A note waits while its token is locked.
        self._reading, self._noting = CapacityLimiter(1), CapacityLimiter(1)

    async def find(self, token: str) -> ApiToken | None:
        """Return what a token allows and record its use; None if it is unknown or expired.

        Raises Refused, DatabaseError and DBAPIError when nobody can tell.
        """
        known = await self.look_up(token)
        if known is not None:
            await self._note_use(known)
        return known

    async def look_up(self, token: str, at_most_seconds_old: float | None = None) -> ApiToken | None:
        """The rights of a token, as known at most this long ago; otherwise as `find`."""
        secret_hash = api_tokens.hash_of(token)
        if secret_hash is None:
            return None
        oldest = REMEMBERED_SECONDS if at_most_seconds_old is None else at_most_seconds_old
        known = self._by_hash.get(secret_hash)
        is_over = known is not None and self._has_expired(known)
        # Also for an expired token: otherwise its refusal would come sooner than that of a token that never existed.
        if known is None or is_over or self._read_at + oldest <= self._clock():
            await self._read_again()
            known = self._by_hash.get(secret_hash)
        return None if known is None or is_over or self._has_expired(known) else known

    def expired(self, token: str) -> str | None:
        """The name of a token that `find` refused because it has expired; None for any other, and for a feed's: a
        stranger who finds an old URL learns nothing.
        """
        known = self._by_hash.get(api_tokens.hash_of(token) or b"")
        is_told = known is not None and not known.is_feed and self._has_expired(known)
        return known.name if known is not None and is_told else None

    def _has_expired(self, token: ApiToken) -> bool:
        return token.seconds_left is not None and self._read_at + token.seconds_left <= self._clock()

    async def _read_again(self) -> None:
        """Read the tokens. Raises Refused if that takes too long."""
        with anyio.move_on_after(_PATIENCE_SECONDS) as waiting:
            await self._read_in_turn()
        if waiting.cancelled_caught:
            raise database_busy("the database does not answer in time. Try again in a moment")

    async def _read_in_turn(self) -> None:
        """Read the tokens, unless another caller has begun to read them since this call; then share its result. While
        the database is away, callers share one failure instead of waiting for one attempt after another."""
        asked_at = self._clock()
        async with self._turn:
            if self._read_at > asked_at:
                return
            if self._failed is not None and self._failed[0] > asked_at:
                raise self._failed[1]
            await asyncio.sleep(max(0.0, self._read_at + _PAUSE_SECONDS - self._clock()))
            began_at = self._clock()
            try:
                self._by_hash = await self._stored()
            except Exception as error:
                if self._failed is None:
                    _LOG.warning("tokens cannot be read, so all requests are refused: %s", sentence(error))
                self._failed = began_at, error
                raise
            if self._failed is not None:
                _LOG.warning("tokens can be read again")
            self._read_at, self._failed = began_at, None

    async def _stored(self) -> dict[bytes, ApiToken]:
        return await to_thread.run_sync(self._read, limiter=self._reading)

    def _read(self) -> dict[bytes, ApiToken]:
        with self._engine.connect() as connection:
            return api_tokens.by_hash(connection)

    async def _note_use(self, token: ApiToken) -> None:
        now = self._clock()
        if self._noted_at.get(token.token_id, float("-inf")) + _NOTED_EVERY_SECONDS > now:
            return
        self._noted_at[token.token_id] = now
        try:
            with anyio.move_on_after(_PATIENCE_SECONDS):
                await to_thread.run_sync(self._note, token.token_id, limiter=self._noting)
        except (
            DatabaseError,
            DBAPIError,
        ) as error:  # a request must not fail of it; a replica takes no notes at all
            _LOG.info("the use of the token %s could not be recorded: %s", token.name, error)

    def _note(self, token_id: int) -> None:
        with self._engine.begin() as connection:
            api_tokens.note_uses(connection, [token_id])


class Gate:
    """Finds the token of a request, before anything else of the request is read."""

    def __init__(self, tokens: Tokens, shares: Shares) -> None:
        self._tokens = tokens
        self._shares = shares

    async def admit(self, request: Request, in_url: Sequence[str]) -> ApiToken:
        """The token of a request, of its header or of what `taken_from` gives of its URL.

        Raises Refused without one, for one that is wrong or has expired, and for one that may not be where it is.
        """
        path = request.scope["path"]
        headers = request.headers.getlist("authorization")
        if not headers and not in_url:
            raise _no_token(
                "no-token",
                "send a token as `Authorization: Bearer TOKEN`. `pricing-pipeline token add` makes one"
                + (", with --feed one that may be in the URL, as ?token=TOKEN" if is_feed(path) else ""),
                # A program that sends a password only when it is asked for one.
                'Bearer, Basic realm="feed"' if is_feed(path) else "Bearer",
            )
        way, sent = _sent(headers, in_url)
        token = await self._tokens.find(sent) if sent else None
        if token is not None:
            return _in_its_place(token, way, path)
        self._shares.count_wrong_token()
        if not sent:
            raise _no_token(
                "no-token",
                "send the token once, and with nothing else in its place. The header must be `Authorization: Bearer "
                "TOKEN`: the word Bearer, a space, the token"
                + (". A feed may also be ?token=TOKEN in the URL" if is_feed(path) else ""),
                "Bearer",
            )
        expired = self._tokens.expired(sent) if way is Way.BEARER else None
        if expired is not None:
            raise _no_token(
                "expired-token",
                f"the token {expired!r} has expired. `pricing-pipeline token add` makes another",
            )
        raise _no_token(
            "wrong-token",
            "this token is unknown, or belongs to a feed that has expired. `pricing-pipeline token list` shows the "
            "known ones, `pricing-pipeline token add` makes another",
        )


class Way(Enum):
    """Where a token is sent."""

    BEARER = "in the header Authorization"
    PASSWORD = "as a password"  # noqa: S105 - a way
    URL = "in a URL"


def taken_from(scope: RequestScope) -> list[str]:
    """The tokens in the URL of a request. They are removed from it, so that nothing downstream sees them."""
    tokens: list[str] = []
    others = []
    for part in scope["query_string"].decode("latin-1").split("&"):
        name, _, value = part.partition("=")
        if unquote_plus(name) == "token":
            tokens.append(unquote_plus(value))
        else:
            others.append(part)
    if tokens:
        scope["query_string"] = "&".join(others).encode("latin-1")
    return tokens


def _sent(headers: Sequence[str], in_url: Sequence[str]) -> tuple[Way, str]:
    """Where a token is sent, and the token; empty if it is not written as it must be, or sent twice."""
    if in_url:
        return Way.URL, in_url[0].strip() if len(in_url) == 1 and not headers else ""
    scheme, _, content = headers[0].partition(" ")
    if len(headers) > 1 or scheme.lower() != "basic":
        return Way.BEARER, credentials(headers)
    try:
        _, _, password = base64.b64decode(content, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        password = ""
    return Way.PASSWORD, password


def _in_its_place(token: ApiToken, way: Way, path: str) -> ApiToken:
    """The token, if it may be sent in this way to this path. Raises Refused."""
    if token.is_feed and not is_feed(path):
        raise _only_feed(token)
    if not token.is_feed and way is not Way.BEARER:
        exposed = (
            f". It may be stored wherever URLs are logged: `pricing-pipeline token remove {token.name}` ends it"
            if way is Way.URL
            else ""
        )
        raise Refused(
            403,
            "not-a-feed",
            f"the token {token.name!r} is refused {way.value}, which many programs keep, because it allows more "
            "than a feed does. Send it as `Authorization: Bearer TOKEN`, or make one for this: `pricing-pipeline token "
            f"add NAME --feed --symbols AAPL,MSFT`{exposed}",
        )
    return token


def _only_feed(token: ApiToken) -> Refused:
    return Refused(
        403,
        "feed-only",
        f"the token {token.name!r} belongs to a feed: it reads only /v1/prices and /v1/history of its own "
        "symbols. `pricing-pipeline token add --help` shows how to make another kind",
    )


def credentials(headers: Sequence[str]) -> str:
    """What the headers Authorization have as the token; empty if they are not one of the scheme Bearer."""
    scheme, _, token = headers[0].partition(" ") if len(headers) == 1 else ("", "", "")
    return token.strip() if scheme.lower() == "bearer" else ""


def _no_token(kind: str, detail: str, challenge: str = 'Bearer error="invalid_token"') -> Refused:
    return Refused(401, kind, detail, {"WWW-Authenticate": challenge})


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request: its token, and the user that the request named, if any."""

    token: ApiToken
    named_user: str | None

    @property
    def user_or_none(self) -> str | None:
        """The user that the request is for; None if an application reads for itself."""
        return self.token.user_id if self.token.user_id is not None else self.named_user

    @property
    def user(self) -> str:
        """The user that the request is for. Raises Refused if nobody is named."""
        user = self.user_or_none
        if user is None:
            raise Refused(
                422,
                "no-user",
                f"the token {self.token.name!r} acts for any user. Name the user as ?user=NAME",
            )
        return user


async def _turn(request: Request) -> AsyncIterator[None]:
    """A turn for as long as a route works: a token has a limited number of turns."""
    if request.scope["path"] == STREAM_PATH:
        # It waits for a look at the log, which all new streams share. After a restart there are hundreds of them.
        yield
        return
    shares: Shares = request.app.state.shares
    async with shares.of(request.state.token.token_id).threads:
        yield


def _command_for(token: ApiToken, scope: Scope) -> str:
    """The command that makes a token which allows a scope besides all that this one allows."""
    scopes = [f"--scope {one.value}" for one in Scope if one is scope or one in token.scopes]
    user = "--any-user" if token.user_id is None else f"--user {shlex.quote(token.user_id)}"
    name = f"{token.name[: _LONGEST_TOKEN_NAME - len(scope.value) - 1]}-{scope.value}"
    return f"pricing-pipeline token add {name} {' '.join(scopes)} {user}"


def caller_with(token: ApiToken, scope: Scope, user: str | None, *, takes_feeds: bool = False) -> Caller:
    """Who sends a request that needs a scope, or a feed if it `takes_feeds`, and may name a user.

    Raises Refused if the token does not allow it.
    """
    if token.is_feed:
        if not takes_feeds:
            raise _only_feed(token)
    elif not token.allows(scope):
        raise Refused(
            403,
            "scope-missing",
            f"the token {token.name!r} does not allow {scope.value}. "
            f"`{_command_for(token, scope)}` makes one that does",
        )
    if (token.user_id is not None or token.is_feed) and user not in (None, token.user_id):
        whom = "nobody" if token.user_id is None else f"{token.user_id!r} only"
        raise Refused(403, "other-user", f"the token {token.name!r} acts for {whom}. Leave out the user")
    return Caller(token, user)


def allowed(scope: Scope, *, takes_feeds: bool = False) -> Callable[..., Coroutine[Any, Any, Caller]]:
    """A dependency that lets through tokens with a scope, and is the Caller. A route may need several scopes.

    A route that takes feeds reads only what feeds.py leaves of a request.
    """

    async def caller(
        request: Request,
        _: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)],
        __: Annotated[None, Depends(_turn, scope="function")],
        user: Annotated[
            str | None,
            Query(
                min_length=1,
                max_length=LONGEST_USER,
                description="The user; only with a token for any user.",
            ),
        ] = None,
    ) -> Caller:
        return caller_with(request.state.token, scope, user, takes_feeds=takes_feeds)

    return caller


_reader_or_feed = allowed(Scope.READ, takes_feeds=True)


async def _feed_reader(
    caller: Annotated[Caller, Depends(_reader_or_feed)], _: Annotated[str | None, Depends(_IN_URL)]
) -> Caller:
    return caller


async def _engine(request: Request) -> Engine:
    engine: Engine = request.app.state.engine
    return engine


async def _sessions(request: Request) -> LoopSessions:
    sessions: LoopSessions = request.app.state.sessions
    return sessions


async def _replica(request: Request) -> Replica | None:
    replica: Replica | None = request.app.state.replica
    return replica


Database = Annotated[Engine, Depends(_engine)]
Sessions = Annotated[LoopSessions, Depends(_sessions)]
ReadReplica = Annotated[Replica | None, Depends(_replica)]
Reader = Annotated[Caller, Depends(allowed(Scope.READ))]
FeedReader = Annotated[Caller, Depends(_feed_reader)]
"""Who may read, or a feed."""
Watcher = Annotated[Caller, Depends(allowed(Scope.WATCH))]
Operator = Annotated[Caller, Depends(allowed(Scope.OPERATE))]
