"""`python -m pricing_pipeline.operations.notifier [FOLDER]`: looks for trouble and does side effects.

It needs the pricing database and the master keys, and nothing of Dagster: whoever runs the pipeline is told of trouble
even when Dagster is dead. In FOLDER two files change as long as it works, by which a supervisor notices that it hangs.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from sqlalchemy import Engine

from pricing_pipeline.db.engine import make_engine, masked
from pricing_pipeline.db.location import worker_url
from pricing_pipeline.errors import PricingError
from pricing_pipeline.operations import alerts, last_resort
from pricing_pipeline.operations.handlers import make_handlers
from pricing_pipeline.operations.life import SignsOfLife
from pricing_pipeline.operations.runner import OperationRunner
from pricing_pipeline.settings import load_settings

_LOG = logging.getLogger(__name__)


def main() -> None:
    """Do side effects that are due, each second, until SIGTERM or SIGINT.

    Those under way then get three seconds; the others return to the queue.
    """
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    settings = load_settings()
    resort = last_resort.from_settings(settings)
    url = worker_url(settings)
    engine = make_engine(url)
    worker = f"{socket.gethostname()}:{os.getpid()}"
    signs = SignsOfLife(_folder_of_signs(sys.argv[1:]))
    runner = OperationRunner(engine, make_handlers(engine, settings), worker=worker, signs=signs)
    # Rules have a thread of their own: a slow query holds no message up.
    work = [partial(look_or_end, engine, stop, worker=worker, signs=signs)]
    if resort is not None:
        watch = last_resort.Watch(resort, signs, settings.home, masked(url))
        work.append(partial(_do_or_end, partial(watch.keep_watching, stop), stop))
    threads = [threading.Thread(target=each, daemon=True) for each in work]
    for thread in threads:
        thread.start()
    try:
        runner.run(stop)
    except Exception:
        _LOG.exception("the notifier fails, and ends")
        raise
    finally:
        stop.set()
        for thread in threads:
            thread.join(1)
        if runner.is_busy or any(thread.is_alive() for thread in threads):
            # Python would wait for them, and what is under way would be killed with nothing noted.
            logging.shutdown()
            os._exit(0)
        runner.close()
        engine.dispose()


def look_or_end(
    engine: Engine, stop: threading.Event, *, worker: str | None = None, signs: SignsOfLife | None = None
) -> None:
    """Look for trouble. If looking itself fails, end the process, which is started again: nobody would be told."""
    _do_or_end(partial(alerts.keep_looking, engine, stop, worker=worker, signs=signs), stop)


def _do_or_end(work: Callable[[], None], stop: threading.Event) -> None:
    try:
        work()
    finally:
        stop.set()


def _folder_of_signs(arguments: list[str]) -> Path | None:
    if not arguments:
        return None
    folder = Path(arguments[0])
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


if __name__ == "__main__":
    try:
        main()
    except PricingError as error:
        sys.exit(f"error: {error}")
