"""What clients do in a transaction that they leave open, and how long others then wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta

import psycopg
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.domain.observations import Rows
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline_tests.fixtures.core import (
    FX,
    QUOTE,
    Core,
    observation,
)
from pricing_pipeline_tests.support.patience import PATIENCE

AAPL, IBM, MSFT, EURUSD = (QUOTE, "AAPL"), (QUOTE, "IBM"), (QUOTE, "MSFT"), (FX, "EUR/USD")
BOUND = 2.0 + 0.9  # what a busy machine takes to notice that a wait is over
WAITING = text(
    "SELECT l.pid, l.waitstart, extract(epoch FROM clock_timestamp() - l.waitstart)::float8 AS seconds"
    " FROM pg_locks l JOIN pg_stat_activity a USING (pid)"
    " WHERE l.waitstart IS NOT NULL AND a.datname = current_database()"
)

# What a client can do in an open transaction, of pairs that others want, too: known ones, and one that is new.
CLIENTS = {
    "heartbeat": "SELECT pricing.heartbeat('{equity_quote,equity_quote,fx_rate}', '{AAPL,NEW,EUR/USD}')",
    "unsubscribe": "SELECT pricing.unsubscribe('{equity_quote,fx_rate}', '{IBM,EUR/USD}')",
    "hold": "SELECT pricing.hold('{equity_quote,equity_quote}', '{AAPL,NEW}')",
    "release": "SELECT pricing.release('{equity_quote}', '{IBM}')",
    "price": "SELECT pricing.price('AAPL'), pricing.price('IBM'), pricing.price('EUR/USD')",
    "history": "SELECT pricing.history('equity_quote', 'AAPL', '2020-01-01', '2030-01-01')",
    "document": "SELECT pricing.document('earned', 'AAPL')",
}


def good(core: Core, call: Call) -> Fetched:
    at = core.clock() - timedelta(seconds=1)
    return Fetched(Answer(Rows(observation(symbol, "101.00", at) for symbol in call.symbols)), 200, 900)


def waited(core: Core, work: Callable[[], object]) -> float:
    """How many seconds it waited for locks, all in all; being refused a lock is one way to end.

    What its statements take besides depends on the machine, and is not counted.
    """
    faults: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as fault:
            faults.append(fault)

    thread = threading.Thread(target=run, daemon=True)
    waits: dict[tuple[int, object], float] = {}
    ends = time.monotonic() + PATIENCE
    with core.owner.connect().execution_options(isolation_level="AUTOCOMMIT") as watcher:
        thread.start()
        while thread.is_alive() and time.monotonic() < ends:
            waits |= {(row.pid, row.waitstart): row.seconds for row in watcher.execute(WAITING)}
            thread.join(0.01)
    assert not thread.is_alive(), f"it has not ended in {PATIENCE:.0f} s"
    for fault in faults:
        is_lock = isinstance(fault, (DBAPIError, psycopg.Error)) and "55P03" in (
            getattr(getattr(fault, "orig", fault), "sqlstate", None) or ""
        )
        if not is_lock:
            raise fault
    return sum(waits.values())
