"""A viewer who looks at the sample's prices, so that there is demand. It lives in threads of `up`."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.demand import subscriptions
from pricing_pipeline.demand.subscriptions import SubscriptionManager

WATCHED = {
    "equity_quote": ("AAPL", "MSFT", "IBM", "GOOG", "META"),
    "equity_daily": ("AAPL", "MSFT"),
    "fx_rate": ("EUR/USD", "GBP/USD"),
    "mf_nav": ("118632", "125497"),
    "slots_today": ("OCT-1001",),
    "commodity_price": ("UEX:6",),
}
USER = "demo"


@contextmanager
def watching(worker_url: str) -> Iterator[None]:
    """Watch the sample's pairs for the block, and leave them at its end.

    Nothing is said of heartbeats that fail: they are tried again, and `up` says that the database is away.
    """
    logging.getLogger(subscriptions.__name__).setLevel(logging.CRITICAL)
    stop = threading.Event()
    engine = make_engine(worker_url, pool_size=1)
    pairs = [(data_type, symbol) for data_type, symbols in WATCHED.items() for symbol in symbols]
    try:
        with SubscriptionManager(engine, USER) as manager, manager.watching(*pairs):
            threading.Thread(target=keep_watching, args=(manager, stop), name=USER, daemon=True).start()
            yield
    finally:
        stop.set()
        engine.dispose()


def keep_watching(manager: SubscriptionManager, stop: threading.Event, every: float = 60.0) -> None:
    """Watch refused pairs again at this interval in seconds: a data type may be retired for a while."""
    while not stop.wait(every):
        manager.enter(manager.refused)
