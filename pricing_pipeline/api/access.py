"""Who asks, and whether they may: bearer tokens with scopes, each for one user or for an application."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy import Engine

from pricing_pipeline.api.problems import Refused
from pricing_pipeline.db.engine import KeptSessions
from pricing_pipeline.errors import ReadReplica
from pricing_pipeline.keys import api_tokens
from pricing_pipeline.keys.api_tokens import ApiToken, Scope

REMEMBERED_SECONDS = 5.0
"""So long a token is remembered; a removed one works no longer than that."""
_LOOKED_UP_AT_ONCE = 2
"""Requests with wrong tokens cannot keep more of the database's sessions than this."""

_BEARER = HTTPBearer(auto_error=False, description="A token of `pricing-pipeline token add`.")


class Tokens:
    """The tokens that requests came with in the last seconds, so that few requests ask the database for theirs."""

    def __init__(self, engine: Engine, clock: Callable[[], float] = time.monotonic) -> None:
        self._engine = engine
        self._clock = clock
        self._known: dict[str, tuple[ApiToken, float]] = {}
        self._turns = asyncio.Semaphore(_LOOKED_UP_AT_ONCE)

    async def find(self, token: str) -> ApiToken | None:
        """What a token allows; None if it is none of ours. Raises DatabaseError when nobody can tell."""
        known = self._known.get(token)
        if known is not None and known[1] > self._clock():
            return known[0]
        async with self._turns:
            found = await run_in_threadpool(self._look_up, token)
        if found is None:
            self._known.pop(token, None)
        else:
            self._known[token] = found, self._clock() + REMEMBERED_SECONDS
        return found

    def _look_up(self, token: str) -> ApiToken | None:
        with self._engine.connect() as connection:
            found = api_tokens.find(connection, token)
            if found is not None:
                with contextlib.suppress(ReadReplica):
                    api_tokens.note_uses(connection, [found.token_id])
                    connection.commit()
        return found


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
                422, "no-user", f"the token {self.token.name!r} acts for any user: name one as ?user=NAME"
            )
        return user


def allowed(scope: Scope) -> Callable[..., Coroutine[Any, Any, Caller]]:
    """A dependency that lets through tokens with a scope, and is the Caller."""

    async def caller(
        request: Request,
        bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)],
        user: Annotated[
            str | None,
            Query(min_length=1, max_length=200, description="For whom; only with a token for any user."),
        ] = None,
    ) -> Caller:
        if bearer is None:
            raise Refused(
                401,
                "no-token",
                "send a token as Authorization: Bearer. `pricing-pipeline token add` makes one",
                {"WWW-Authenticate": "Bearer"},
            )
        tokens: Tokens = request.app.state.tokens
        token = await tokens.find(bearer.credentials)
        if token is None:
            raise Refused(
                401,
                "wrong-token",
                "this token is not known. `pricing-pipeline token list` shows those there are",
                {"WWW-Authenticate": 'Bearer error="invalid_token"'},
            )
        if not token.allows(scope):
            raise Refused(
                403,
                "scope-missing",
                f"the token {token.name!r} does not allow {scope.value}. `pricing-pipeline token add NAME --scope "
                f"{scope.value}` makes one that does",
            )
        if token.user_id is not None and user not in (None, token.user_id):
            raise Refused(
                403,
                "other-user",
                f"the token {token.name!r} acts for {token.user_id!r} only. Leave out the user",
            )
        return Caller(token, user)

    return caller


async def _engine(request: Request) -> Engine:
    engine: Engine = request.app.state.engine
    return engine


async def _sessions(request: Request) -> KeptSessions:
    sessions: KeptSessions = request.app.state.sessions
    return sessions


Database = Annotated[Engine, Depends(_engine)]
Sessions = Annotated[KeptSessions, Depends(_sessions)]
Reader = Annotated[Caller, Depends(allowed(Scope.READ))]
Watcher = Annotated[Caller, Depends(allowed(Scope.WATCH))]
Operator = Annotated[Caller, Depends(allowed(Scope.OPERATE))]
Admin = Annotated[Caller, Depends(allowed(Scope.ADMIN))]
