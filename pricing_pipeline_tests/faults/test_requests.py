"""Requests and workers while others hold locks on what they need."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.providers.configured import SANDBOX_KEY
from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline_tests.fixtures.core import NAV, QUOTE, Core
from pricing_pipeline_tests.integration.test_requests import client
from pricing_pipeline_tests.support.patience import PATIENCE
from pricing_pipeline_tests.support.refreshing import is_idle, refreshing, work_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox

__all__ = ["client"]


def test_a10_a_read_answers_although_requests_are_locked(core: Core, client: psycopg.Connection[Any]) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh()
    core.rows("UPDATE pricing.latest_prices SET fetched_at = fetched_at - interval '1 hour'")
    with core.owner.begin() as connection:
        connection.execute(text("LOCK TABLE pricing.pair_requests IN SHARE MODE"))
        client.execute(f"SET statement_timeout = '{PATIENCE:.0f}s'")  # or it would hang
        notices: list[str | None] = []
        client.add_notice_handler(lambda notice: notices.append(notice.message_primary))
        (row,) = client.execute("SELECT symbol FROM pricing.price('AAPL')").fetchall()
        assert row == ("AAPL",)
    assert notices == ["nothing newer is asked for now: another session has locked pricing.pair_requests"], (
        "it waited for one lock, and once"
    )


def test_b8_a_type_is_not_deleted_behind_an_open_reader_and_nobody_waits_behind_that(
    core: Core, client: psycopg.Connection[Any]
) -> None:
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes) VALUES ('brief', 'quote', 1)"
    )
    with client.transaction():
        client.execute("SELECT pricing.history('equity_quote', 'AAPL', '2020-01-01', '2030-01-01')")
        with pytest.raises(DBAPIError, match="data type brief cannot be deleted now"):
            core.rows("DELETE FROM pricing.data_type_registry WHERE data_type = 'brief'")
    core.rows("DELETE FROM pricing.data_type_registry WHERE data_type = 'brief'")


LOCKS = {
    "its own drain": "SELECT FROM pricing.drains FOR UPDATE",
    "a key that is being registered": "SELECT pricing.register_keys('twelvedata', '{second}')",
}


@pytest.mark.parametrize("lock", LOCKS)
def test_b8_a_worker_makes_calls_although_a_row_of_its_own_is_locked(
    core: Core, sandbox: RunningSandbox, lock: str
) -> None:
    """A lock was taken for a database that does not answer, and no call was made."""
    with refreshing(core.engine, sandbox.url) as refresher, core.engine.connect() as other:
        _hold_two_keys(refresher)
        core.call("SELECT pricing.begin_drain('other', 'run', 600)")
        other.execute(text(LOCKS[lock]))
        core.heartbeat("ann", (NAV, "118632"))
        work_until(refresher, is_idle(core))
        other.rollback()
    assert core.statuses() == {"118632": "completed"}


def _hold_two_keys(refresher: Refresher) -> None:
    """Have the worker register a second key of Twelve Data."""
    refresher._clients["twelvedata"].replace_keys({"default": SANDBOX_KEY, "second": SANDBOX_KEY})
