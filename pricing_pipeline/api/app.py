"""The application: routes, problems and guard, put together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from importlib.metadata import version

import anyio.to_thread
from fastapi import APIRouter, FastAPI
from fastapi.middleware.gzip import GZipMiddleware
from sqlalchemy import Engine

from pricing_pipeline.api import demand, health, prices, stream
from pricing_pipeline.api.access import Tokens
from pricing_pipeline.api.guard import Guard
from pricing_pipeline.api.problems import RESPONSES, add_handlers
from pricing_pipeline.api.stream_hub import StreamHub

AT_ONCE = 8
"""So many requests are worked on at once, each with a session of the database. The others wait for their turn."""
_GZIP_FROM = 1000
"""Bytes; a shorter body is sent in one packet anyway."""

_ABOUT = """Prices, who watches them, and where they come from.

Send a token as `Authorization: Bearer`; `pricing-pipeline token add` makes one. Numbers that must be exact are strings.
Times are UTC. Whatever goes wrong is told as `application/problem+json`, with what to do about it in `detail`.
"""


def make_app(engine: Engine, hosts: Iterable[str]) -> FastAPI:
    """The application on a worker's engine. `hosts` are the values of the header Host that are ours."""
    app = FastAPI(
        title="Pricing pipeline",
        version=version("pricing-pipeline"),
        description=_ABOUT,
        # They would load scripts from other servers.
        docs_url=None,
        redoc_url=None,
        lifespan=_limited,
    )
    app.state.engine = engine
    app.state.tokens = Tokens(engine)
    app.state.streams = StreamHub(engine, app.state.tokens)
    routes = APIRouter(prefix="/v1", responses=RESPONSES)
    for module in (prices, demand, stream):
        routes.include_router(module.router)
    app.include_router(routes)
    app.include_router(health.router)
    add_handlers(app)
    app.add_middleware(GZipMiddleware, minimum_size=_GZIP_FROM)
    app.add_middleware(Guard, hosts=list(hosts))
    return app


@asynccontextmanager
async def _limited(_: FastAPI) -> AsyncIterator[None]:
    anyio.to_thread.current_default_thread_limiter().total_tokens = AT_ONCE
    yield
