"""`python -m pricing_pipeline.operations.notifier [FOLDER]`: looks for trouble and at prices, and does side effects.

It needs the pricing database and the master keys, and not Dagster: operators hear of trouble
even when Dagster is dead. Files in FOLDER change as long as it works, by which a supervisor notices that it hangs.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from pricing_pipeline.db.engine import make_engine, masked
from pricing_pipeline.db.location import worker_url
from pricing_pipeline.errors import PricingError
from pricing_pipeline.operations import alerts, console, last_resort, own_handlers, price_watch
from pricing_pipeline.operations.handlers import for_active_recipients, make_handlers
from pricing_pipeline.operations.life import SignsOfLife
from pricing_pipeline.operations.runner import Handler, OperationRunner
from pricing_pipeline.processes import process_log
from pricing_pipeline.processes.closed_memory import close_memory
from pricing_pipeline.settings import load_settings

if TYPE_CHECKING:
    from sqlalchemy import Engine

_LOG = logging.getLogger(__name__)
_OF_ONE_OWN_TYPE = 4
"""So many operations of a type of the user's own are done at once."""
_ENDING_SECONDS = 4.0
"""For all threads to end: a second more than attempts have that are under way. A supervisor kills what lives longer."""

Work = Callable[[threading.Event], object]
"""What goes on until the event is set, in a thread of its own."""


def main() -> None:
    """Do all that until SIGTERM or SIGINT. Attempts then have three seconds to end; the others return to the queue."""
    close_memory()
    process_log.start()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    settings = load_settings()
    resort = last_resort.from_settings(settings)
    url = worker_url(settings)
    engine = make_engine(url)
    worker = f"{socket.gethostname()}:{os.getpid()}"
    folder = _folder_of_signs(sys.argv[1:])
    signs = SignsOfLife(folder)
    built_in = make_handlers(engine, settings)
    in_hand: dict[int, UUID] = {}
    runner = OperationRunner(engine, built_in, worker=worker, signs=signs, in_hand=in_hand)
    # Rules and prices have threads of their own: a slow query holds no message up.
    work: list[Work] = [
        partial(
            alerts.keep_looking,
            engine,
            ui_url=settings.ui_url,
            asset_prefix=settings.asset_prefix,
            signs=signs,
        ),
        partial(price_watch.keep_watching, engine, signs=signs),
        runner.run,
    ]
    if folder is not None:
        work.append(partial(console.keep_writing, engine, folder=folder))
    if resort is not None:
        work.append(last_resort.Watch(resort, signs, settings.home, masked(url)).keep_watching)
    threads = start(work, stop)
    # Handlers by others are imported when everything else works.
    try:
        own = make_own_runners(engine, built_in, worker, in_hand)
    except Exception:
        _LOG.exception("handlers of installed packages are not used: looking for them fails")
        own = []
    threads += start([each.run for each in own], stop)
    stop.wait()
    _end(threads, [runner, *own], engine)


def make_own_runners(
    engine: Engine, built_in: Mapping[str, Handler], worker: str, in_hand: dict[int, UUID] | None = None
) -> list[OperationRunner]:
    """A runner for each type with a handler of the user's own: one that hangs holds up its own type alone."""
    runners = []
    for own in own_handlers.load(built_in):
        if own.handler is None:
            _LOG.error("the handler for %s (%s) is not used: %s", own.operation_type, own.source, own.fault)
            continue
        handlers = {own.operation_type: for_active_recipients(engine, own.handler)}
        runners.append(OperationRunner(engine, handlers, worker=worker, at_once=_OF_ONE_OWN_TYPE, in_hand=in_hand))
    return runners


def start(work: Sequence[Work], stop: threading.Event) -> list[threading.Thread]:
    """Start a thread for each piece of work that goes on until `stop`."""
    threads = [threading.Thread(target=do_or_end, args=(each, stop), daemon=True) for each in work]
    for thread in threads:
        thread.start()
    return threads


def do_or_end(work: Work, stop: threading.Event) -> None:
    """Do work that goes on until `stop`. If a fault of ours ends it, end the process, which is then restarted."""
    try:
        work(stop)
    except Exception:
        _LOG.exception("the notifier fails, and ends")
        raise
    finally:
        stop.set()


def _end(threads: Sequence[threading.Thread], runners: Sequence[OperationRunner], engine: Engine) -> None:
    """Wait briefly for threads to end. A thread that does not return, such as a hanging handler, would keep Python from
    ending."""
    deadline = time.monotonic() + _ENDING_SECONDS
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0))
    is_alive = any(thread.is_alive() for thread in threads)
    if is_alive or not all(runner.close() for runner in runners):
        _LOG.warning("something has not returned; the process ends without it")
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
    engine.dispose()


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
