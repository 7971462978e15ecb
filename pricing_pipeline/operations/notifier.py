"""`python -m pricing_pipeline.operations.notifier`: looks for trouble and does side effects until it is asked to stop.

It needs the pricing database and the master keys, and nothing of Dagster: whoever runs the pipeline is told of trouble
even when Dagster is dead.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from sqlalchemy import Engine

from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.db.location import worker_url
from pricing_pipeline.operations import alerts, own_handlers
from pricing_pipeline.operations.handlers import for_active_recipients, make_handlers
from pricing_pipeline.operations.runner import Handler, OperationRunner
from pricing_pipeline.settings import load_settings

_LOG = logging.getLogger(__name__)
_OF_ONE_OWN_TYPE = 4
"""So many operations of a type of the user's own are done at once."""


def main() -> None:
    """Do side effects that are due, each second, until SIGTERM or SIGINT; those under way are finished first."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    settings = load_settings()
    engine = make_engine(worker_url(settings))
    worker = f"{socket.gethostname()}:{os.getpid()}"
    built_in = make_handlers(engine, settings)
    runners = make_runners(engine, built_in, worker)
    # Rules have a thread of their own: a slow query holds no message up.
    threads = start([partial(alerts.keep_looking, engine), *(runner.run for runner in runners)], stop)
    # What others wrote is imported when all else is at work.
    try:
        own = make_own_runners(engine, built_in, worker)
    except Exception:
        _LOG.exception("handlers of installed packages are not used: looking for them fails")
        own = []
    threads += start([runner.run for runner in own], stop)
    runners += own
    for thread in threads:
        thread.join()
    returned = [runner.close() for runner in runners]
    engine.dispose()
    if not all(returned):
        _LOG.warning("handlers have not returned long after their time limit; the process ends without them")
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)  # Python would wait for their threads


def make_runners(engine: Engine, built_in: Mapping[str, Handler], worker: str) -> list[OperationRunner]:
    """A runner for tables, whose services may be slow, and one for all other messages."""
    tables = {"rest": built_in["rest"]}
    messages = {name: handler for name, handler in built_in.items() if name not in tables}
    return [OperationRunner(engine, each, worker=worker) for each in (messages, tables)]


def make_own_runners(engine: Engine, built_in: Mapping[str, Handler], worker: str) -> list[OperationRunner]:
    """A runner for each type with a handler of the user's own: one that hangs holds up its own type alone."""
    runners = []
    for own in own_handlers.load(built_in):
        if own.handler is None:
            _LOG.error("the handler for %s (%s) is not used: %s", own.operation_type, own.source, own.fault)
            continue
        handlers = {own.operation_type: for_active_recipients(engine, own.handler)}
        runners.append(OperationRunner(engine, handlers, worker=worker, at_once=_OF_ONE_OWN_TYPE))
    return runners


def start(
    work: Sequence[Callable[[threading.Event], object]], stop: threading.Event
) -> list[threading.Thread]:
    """Start a thread for each piece of work that goes on until `stop`."""
    threads = [threading.Thread(target=do_or_end, args=(each, stop)) for each in work]
    for thread in threads:
        thread.start()
    return threads


def do_or_end(work: Callable[[threading.Event], object], stop: threading.Event) -> None:
    """Do work that goes on until `stop`. If it ends by a fault of ours, end the process, which is started again."""
    try:
        work(stop)
    finally:
        stop.set()


if __name__ == "__main__":
    main()
