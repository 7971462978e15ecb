"""`python -m pricing_pipeline.sample.viewer`: a viewer who looks at the sample's prices, so that there is demand."""

from __future__ import annotations

import signal
import threading

from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.db.location import worker_url
from pricing_pipeline.demand.subscriptions import SubscriptionManager
from pricing_pipeline.processes import process_log
from pricing_pipeline.settings import load_settings

WATCHED = {
    "equity_quote": ("AAPL", "MSFT", "IBM", "GOOG", "META"),
    "equity_daily": ("AAPL", "MSFT"),
    "fx_rate": ("EUR/USD", "GBP/USD"),
    "mf_nav": ("118632", "125497"),
    "slots_today": ("OCT-1001",),
    "commodity_price": ("UEX:6",),
}
USER = "demo"


def main() -> None:
    """Watch until asked to stop, then leave."""
    process_log.start()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    engine = make_engine(worker_url(load_settings()), pool_size=1)
    pairs = [(data_type, symbol) for data_type, symbols in WATCHED.items() for symbol in symbols]
    with SubscriptionManager(engine, USER) as manager, manager.watching(*pairs):
        keep_watching(manager, stop)


def keep_watching(manager: SubscriptionManager, stop: threading.Event, every: float = 60.0) -> None:
    """Watch again what was refused, every so many seconds: a data type may be retired for a while."""
    while not stop.wait(every):
        manager.enter(manager.refused)


if __name__ == "__main__":
    main()
