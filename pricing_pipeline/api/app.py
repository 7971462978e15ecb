"""The application: routes, problems and guard, put together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from importlib.metadata import version

import anyio.to_thread
from fastapi import APIRouter, Depends, FastAPI
from sqlalchemy import Engine
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware

from pricing_pipeline.api import (
    actions,
    alerts,
    backfills,
    commodities,
    data_types,
    demand,
    documents,
    formats,
    gaps,
    health,
    history,
    holding_imports,
    instruments,
    lists,
    metrics,
    operations,
    price_alerts,
    prices,
    products,
    providers,
    quarantine,
    stream,
    tasks,
)
from pricing_pipeline.api.access import Gate, Tokens
from pricing_pipeline.api.description import add_description
from pricing_pipeline.api.guard import Guard
from pricing_pipeline.api.limits import Shares
from pricing_pipeline.api.page import routes as page
from pricing_pipeline.api.parameters import known_only
from pricing_pipeline.api.price_reads import PriceReads
from pricing_pipeline.api.problems import RESPONSES, add_handlers
from pricing_pipeline.api.stream_hub import StreamHub
from pricing_pipeline.db.loop_sessions import LoopSessions, ReplicaSessions
from pricing_pipeline.db.replica import Replica
from pricing_pipeline.settings import Settings

AT_ONCE = 8
"""Requests that are worked on at once, each with a session of the database. The others wait for their turn."""
MOST_SESSIONS = 2 * AT_ONCE + history.AT_ONCE + backfills.AT_ONCE + 9
"""Sessions that are used at once: those of the routes, those kept for reads of prices, those of histories and of
Dagster, and two for tokens, four for streams, one for health, one for figures and one that watches a replica."""
MOST_OF_REPLICA = AT_ONCE + history.AT_ONCE + 1
"""Sessions of a replica: those kept for reads of prices, those of histories, and the one that watches it."""
AT_ONCE_OF_ONE = 4
"""Most of these requests that one token may have at once."""
USUAL_RATE = 1000
"""Requests a second of one token."""
_GZIP_FROM = 1000
"""Bytes; a shorter body is sent in one packet anyway."""
_GZIP_LEVEL = 5
"""The highest one takes thrice as long for a few percent."""

_SUBJECTS = (
    prices,
    history,
    documents,
    products,
    commodities,
    actions,
    gaps,
    data_types,
    providers,
    demand,
    holding_imports,
    lists,
    stream,
    tasks,
    operations,
    quarantine,
    backfills,
    alerts,
    price_alerts,
    instruments,
    page,
)
_ABOUT = """Prices, who watches them, and where they come from.

Send a token as `Authorization: Bearer`; `pricing-pipeline token add` makes one. Numbers that must be exact are strings.
Times are UTC. Errors are `application/problem+json`; `detail` says what to do.
"""


def make_app(
    engine: Engine,
    hosts: Iterable[str],
    rate: float = USUAL_RATE,
    settings: Settings | None = None,
    replica: Replica | None = None,
) -> FastAPI:
    """The application on a worker's engine.

    `hosts` are the accepted values of the header Host; `rate` is the most requests a second of one token. `settings`
    name the home whose Dagster starts backfills; without them none can be started. Latest prices and histories come
    from the `replica` while it can be used.
    """
    app = FastAPI(
        title="Pricing pipeline",
        version=version("pricing-pipeline"),
        description=_ABOUT,
        # A path with another slash does not exist, and is not redirected.
        redirect_slashes=False,
        # They would load scripts from other servers.
        docs_url=None,
        redoc_url=None,
        openapi_url=None,  # description.py serves it
        # Generated clients name their functions by it.
        generate_unique_id_function=lambda route: route.name,
        lifespan=_limited,
    )
    app.state.engine = engine
    app.state.settings = settings
    app.state.replica = replica
    app.state.sessions = LoopSessions(engine, AT_ONCE) if replica is None else ReplicaSessions(engine, replica, AT_ONCE)
    app.state.tokens = Tokens(engine)
    app.state.streams = StreamHub(engine, app.state.tokens)
    app.state.shares = Shares(rate, AT_ONCE_OF_ONE)
    app.state.page = page.Page(engine, page.ui_url(settings), None if settings is None else settings.asset_prefix)
    app.state.health = health.cached_health(engine)
    app.state.figures = metrics.cached_figures(engine)
    app.state.request_times = metrics.RequestTimes()
    routes = APIRouter(prefix="/v1", responses=RESPONSES, dependencies=[Depends(known_only)])
    for module in _SUBJECTS:
        routes.include_router(module.router)
    for router in (routes, health.router, metrics.router, page.shell):
        app.include_router(router)
    add_description(app)
    add_handlers(app)
    # What is added first is reached last.
    app.add_middleware(PriceReads, sessions=app.state.sessions, shares=app.state.shares)
    app.add_middleware(
        GZipMiddleware,
        minimum_size=_GZIP_FROM,
        compresslevel=_GZIP_LEVEL,
        exclude_content_types=(*DEFAULT_EXCLUDED_CONTENT_TYPES, *formats.BINARY),
    )
    app.add_middleware(Guard, hosts=list(hosts), gate=Gate(app.state.tokens, app.state.shares), shares=app.state.shares)
    app.add_middleware(metrics.Measured, times=app.state.request_times)
    return app


@asynccontextmanager
async def _limited(app: FastAPI) -> AsyncIterator[None]:
    anyio.to_thread.current_default_thread_limiter().total_tokens = AT_ONCE
    replica: Replica | None = app.state.replica
    if replica is not None:
        replica.start()
    yield
    app.state.sessions.close()
    if replica is not None:
        replica.close()
