"""`python -m pricing_pipeline.api.server`: the HTTP API on the address and port of the settings.

It needs the pricing database and nothing else, neither Dagster nor the keys of providers.
"""

from __future__ import annotations

import gc
import socket
import sys

import uvicorn
from fastapi import FastAPI
from sqlalchemy import Engine

from pricing_pipeline.api.app import MOST_OF_REPLICA, MOST_SESSIONS, make_app
from pricing_pipeline.api.stream_hub import StreamHub
from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.db.location import replica_url, worker_url
from pricing_pipeline.db.replica import Replica
from pricing_pipeline.errors import PricingError
from pricing_pipeline.processes import process_log
from pricing_pipeline.processes.connections import server_config
from pricing_pipeline.processes.ports import listen_for_browsers, require_free_port
from pricing_pipeline.processes.web_guard import own_hosts
from pricing_pipeline.settings import Settings, load_settings

_ENDING_SECONDS = 3


def main() -> None:
    """Serve until a signal; exit with a message if a setting is wrong."""
    process_log.start()
    try:
        settings = load_settings()
        port = require_free_port(settings.api_port, "the HTTP API", "PRICING_API_PORT")
        engine = make_api_engine(worker_url(settings))
        hosts = own_hosts(settings.api_address, port, settings.api_hosts)
        replica = make_replica(engine, settings)
        app = make_app(engine, hosts, settings.api_requests_per_second, settings, replica)
        sockets = listen_for_browsers(settings.api_address.compressed, port, need_all=False)
    except PricingError as error:
        sys.exit(f"error: {error}")
    # Loaded modules stay. All requests would wait whenever garbage collection looked through them.
    gc.collect()
    gc.freeze()
    try:
        make_server(app).run(sockets=sockets)
    finally:
        engine.dispose()


def make_api_engine(url: str) -> Engine:
    """An engine whose pool never makes a caller wait for a session: one wait would delay every request with a token."""
    # It may lend twice its size.
    return make_engine(url, pool_size=(MOST_SESSIONS + 1) // 2)


def make_replica(engine: Engine, settings: Settings) -> Replica | None:
    """The replica of the settings, if they name one."""
    url = replica_url(settings)
    if url is None:
        return None
    return Replica(engine, url, max_lag=settings.replica_max_lag_seconds, pool_size=(MOST_OF_REPLICA + 1) // 2)


class Server(uvicorn.Server):
    """A server that ends live streams first: it would wait for them."""

    def __init__(self, config: uvicorn.Config, streams: StreamHub) -> None:
        super().__init__(config)
        self._streams = streams

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End all streams at once, and then as usual."""
        await self._streams.end()
        await super().shutdown(sockets)


def make_server(app: FastAPI) -> Server:
    """A server for the application, to be run with sockets that listen."""
    config = server_config(app, loop="uvloop", lifespan="on", ws="none", timeout_graceful_shutdown=_ENDING_SECONDS)
    return Server(config, app.state.streams)


if __name__ == "__main__":
    main()
