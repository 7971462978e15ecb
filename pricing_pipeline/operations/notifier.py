"""`python -m pricing_pipeline.operations.notifier`: looks for trouble and does side effects until it is asked to stop.

It needs the pricing database and the master keys, and nothing of Dagster: whoever runs the pipeline is told of trouble
even when Dagster is dead.
"""

from __future__ import annotations

import os
import signal
import socket
import threading

from sqlalchemy import Engine

from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.db.location import worker_url
from pricing_pipeline.operations import alerts
from pricing_pipeline.operations.handlers import make_handlers
from pricing_pipeline.operations.runner import OperationRunner
from pricing_pipeline.settings import load_settings


def main() -> None:
    """Do side effects that are due, each second, until SIGTERM or SIGINT; those under way are finished first."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    settings = load_settings()
    engine = make_engine(worker_url(settings))
    worker = f"{socket.gethostname()}:{os.getpid()}"
    runner = OperationRunner(engine, make_handlers(engine, settings), worker=worker)
    # Rules have a thread of their own: a slow query holds no message up.
    looking = threading.Thread(target=look_or_end, args=(engine, stop, settings.ui_url), name="alerts")
    looking.start()
    try:
        runner.run(stop)
    finally:
        stop.set()
        looking.join()
        runner.close()
        engine.dispose()


def look_or_end(engine: Engine, stop: threading.Event, ui_url: str | None = None) -> None:
    """Look for trouble. If looking itself fails, end the process, which is started again: nobody would be told."""
    try:
        alerts.keep_looking(engine, stop, ui_url=ui_url)
    finally:
        stop.set()


if __name__ == "__main__":
    main()
