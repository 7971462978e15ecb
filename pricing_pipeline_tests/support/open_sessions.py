"""What clients do in a transaction that they leave open, and how long others then take."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta

import psycopg
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
BOUND = 2.0 + 0.9  # what a busy machine takes for the statements themselves

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


def seconds(work: Callable[[], object]) -> float:
    """How long it took; being refused a lock is one way to end."""
    faults: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as fault:
            faults.append(fault)

    thread = threading.Thread(target=run, daemon=True)
    began = time.monotonic()
    thread.start()
    thread.join(PATIENCE / 4)
    took = time.monotonic() - began
    for fault in faults:
        is_lock = isinstance(fault, (DBAPIError, psycopg.Error)) and "55P03" in (
            getattr(getattr(fault, "orig", fault), "sqlstate", None) or ""
        )
        if not is_lock:
            raise fault
    return took
