"""`/livez` and `/healthz`: whether this process answers, and whether the pipeline works.

They need no token: a stranger learns the names of late parts and the state of the replica, and nothing else. A token
that allows `operate` also shows why they are late.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Literal

import anyio
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import Field
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.api.access import Tokens, credentials
from pricing_pipeline.api.bodies import Shape
from pricing_pipeline.api.cached import Cached
from pricing_pipeline.api.problems import Refused
from pricing_pipeline.db.replica import Replica, ReplicaState
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.errors import DatabaseError
from pricing_pipeline.operations import health
from pricing_pipeline.operations.health import Part

_CACHED_SECONDS = 2.0
_PATIENCE_SECONDS = 1.8
"""A watchdog waits for the answer; a database that takes longer is away."""

router = APIRouter(tags=["health"])


class Health(Shape):
    """Whether the pipeline does its work."""

    status: Literal["ok", "late"]
    late: list[str] = Field(examples=[["daemon", "sensor"]])
    """The parts that are late; docs/operations.md says what each does. `database` is alone if it does not answer."""

    causes: dict[str, str] | None = None
    """Why each of them is late; only with a token that allows `operate`."""

    replica: ReplicaState | None = None
    """Whether latest prices and histories are read from the replica, or why not; absent where none is set. Without it
    the primary is read, so it makes nothing late."""


def cached_health(engine: Engine) -> Cached[list[Part]]:
    """The parts that are late, measured at most every two seconds."""
    watch = health.HealthWatch(engine)
    return Cached(
        lambda: health.late(watch.measure()),
        seconds=_CACHED_SECONDS,
        patience=_PATIENCE_SECONDS,
    )


@router.head("/livez", include_in_schema=False)
@router.get("/livez", response_class=PlainTextResponse)
async def is_alive() -> str:
    """`ok` as long as this process answers."""
    return "ok\n"


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz", response_model=Health, responses={503: {"model": Health}})
async def is_well(request: Request) -> JSONResponse:
    """200 while every part of the pipeline does its work; 503 with the names of those that are late."""
    cached: Cached[list[Part]] = request.app.state.health
    answer_by = time.monotonic() + _PATIENCE_SECONDS
    try:
        late: Sequence[Part] = await cached.get()
    except (TimeoutError, DatabaseError, DBAPIError):
        late = [Part(health.DATABASE, True, None, None)]
    causes = {part.part: part.says for part in late if part.says}
    with anyio.move_on_after(answer_by - time.monotonic()) as asked:
        may_know = bool(causes) and await _may_know(request)
    replica: Replica | None = request.app.state.replica
    content = Health(
        status="late" if late else "ok",
        late=[part.part for part in late],
        causes=causes if not asked.cancelled_caught and may_know else None,
        replica=replica.state if replica else None,
    )
    return JSONResponse(content.model_dump(mode="json", exclude_none=True), 503 if late else 200)


async def _may_know(request: Request) -> bool:
    """Whether a request has a token that allows `operate`. With a wrong token the caller is a stranger."""
    tokens: Tokens = request.app.state.tokens
    sent = credentials(request.headers.getlist("authorization"))
    try:
        token = await tokens.find(sent) if sent else None
    except (Refused, DatabaseError, DBAPIError):
        return False
    return token is not None and token.allows(Scope.OPERATE)
