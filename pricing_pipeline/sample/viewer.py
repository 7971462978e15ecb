"""`python -m pricing_pipeline.sample.viewer`: a viewer who looks at the sample's prices, so that there is demand."""

from __future__ import annotations

import logging
import signal
import threading

from sqlalchemy.exc import DBAPIError

from pricing_pipeline import demand
from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.db.location import worker_url
from pricing_pipeline.errors import DatabaseError
from pricing_pipeline.settings import load_settings

WATCHED = {
    "equity_quote": ("AAPL", "MSFT", "IBM", "GOOG", "FB"),
    "equity_daily": ("AAPL", "MSFT"),
    "fx_rate": ("EUR/USD", "GBP/USD"),
    "mf_nav": ("118632", "125497"),
}
USER = "demo"

_LOG = logging.getLogger(__name__)


def main() -> None:
    """Send heartbeats until asked to stop, then leave."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    engine = make_engine(worker_url(load_settings()), pool_size=1)
    pairs = [(data_type, symbol) for data_type, symbols in WATCHED.items() for symbol in symbols]
    while not stop.is_set():
        pause = 60.0
        try:
            with engine.begin() as connection:
                demand.heartbeat(connection, USER, pairs)
        except (DatabaseError, DBAPIError) as error:
            _LOG.warning("the heartbeat failed and is sent again in 5 s: %s", error)
            pause = 5.0
        stop.wait(pause)
    with engine.begin() as connection:
        demand.unsubscribe(connection, USER, pairs)


if __name__ == "__main__":
    main()
