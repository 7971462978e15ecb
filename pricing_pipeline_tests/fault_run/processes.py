"""The processes of a run, each forked off one that has imported everything, so that a restart takes no time."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from importlib import import_module
from typing import Any, cast

from sqlalchemy.exc import SQLAlchemyError

from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.errors import PricingError
from pricing_pipeline.refresh.refresher import SESSIONS
from pricing_pipeline.sandbox.server import create_app, make_server
from pricing_pipeline.sandbox.settings import SandboxSettings
from pricing_pipeline_tests.support import workers
from pricing_pipeline_tests.support.refreshing import Point, refreshing, shorten_idling
from pricing_pipeline_tests.support.workers import Say

PROGRAMS = {"api": "pricing_pipeline.api.server", "notifier": "pricing_pipeline.operations.notifier"}
workers.import_once(__name__, *PROGRAMS.values(), "benchmarks.faults", "benchmarks.peers", "benchmarks.server")

CALL_SECONDS = 3.0
"""The deadline of a call, of the product's ten: a provider that hangs must not cost the run ten seconds each time."""
_DRAIN_SECONDS = 10
_DRAINS = 3


def work_on(say: Say, url: str, sandbox: str, name: str, halt: str = "", idle: str = "") -> dict[str, Any]:
    """Drain the queue until the process is killed, as runs of the job do that follow each other.

    One that is not needed as a drain works beside the others, as a backfill does. With `halt` it says so when a call
    has come to that point, and waits there.
    """
    _be_quiet_and_end_with_parent()
    engine = make_engine(url, pool_size=SESSIONS)
    if idle:
        shorten_idling(engine, idle)
    point = Point(engine, halt, say)
    client = cast("Any", point.client)
    with refreshing(engine, sandbox, worker=name, client=client, deadline=CALL_SECONDS) as refresher:
        while True:
            ends = time.monotonic() + _DRAIN_SECONDS
            try:
                if not refresher.drain(_DRAIN_SECONDS, most=_DRAINS):
                    refresher._work_until(lambda ends=ends: time.monotonic() > ends)  # type: ignore[misc]
            except (PricingError, SQLAlchemyError):
                time.sleep(0.2)  # the run fails, and Dagster starts another one


def serve_sandbox(say: Say, port: int) -> dict[str, Any]:
    """Be the providers on this port, without limits of their own: their log is judged."""
    _be_quiet_and_end_with_parent()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    settings = unlimited(port)
    with socket.create_server(("127.0.0.1", port), backlog=512) as listener:
        make_server(create_app(settings)).run(sockets=[listener])
    return {}


def run_program(say: Say, name: str, environment: dict[str, str], log: str) -> dict[str, Any]:
    """Be the API or the notifier, as `python -m` runs it with these settings and no others."""
    _be_quiet_and_end_with_parent()
    logging.disable(logging.NOTSET)
    for variable in [*os.environ]:
        if variable.startswith(("PRICING_", "PG")):
            del os.environ[variable]
    os.environ.update(environment)
    os.chdir(environment["PRICING_HOME"])
    with open(log, "a") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.argv = [name]
    import_module(PROGRAMS[name]).main()
    return {}


def unlimited(port: int) -> SandboxSettings:
    """A sandbox that refuses nobody for speed."""
    return SandboxSettings(port=port, credits_per_minute=None, fmp_calls_per_minute=None, partner_calls_per_minute=None)


def _be_quiet_and_end_with_parent() -> None:
    """What is complained of is expected, and judged by the books. A run that is killed leaves no process behind."""
    logging.disable(logging.CRITICAL)
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        with contextlib.suppress(Exception):
            parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
