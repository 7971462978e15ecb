"""The fixtures that other tests stand on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from pricing_pipeline_tests.fixtures.database import Clock, TestServer, bare_template

template = bare_template


@pytest.mark.parametrize("run", [1, 2])
def test_each_test_has_a_database_of_its_own(connection: psycopg.Connection[Any], run: int) -> None:
    """What one test leaves behind, the next does not see."""
    connection.execute("CREATE TABLE pricing.left_behind (run integer)")


def test_the_clock_moves_in_this_database_only(
    clock: Clock, connection: psycopg.Connection[Any], server: TestServer
) -> None:
    """An open session sees the move at once, and time goes on from there."""
    before = connection.execute("SELECT pricing.clock()").fetchone()
    clock.advance(3600)
    clock.advance(-60)
    after = connection.execute("SELECT pricing.clock()").fetchone()
    assert before is not None
    assert after is not None
    assert timedelta(minutes=59) <= after[0] - before[0] < timedelta(minutes=59, seconds=30)

    there = datetime(2031, 5, 6, tzinfo=UTC)
    clock.set(there)
    assert timedelta() <= clock.now() - there < timedelta(seconds=30)
    with server.admin() as admin:
        row = admin.execute("SELECT clock_timestamp()").fetchone()
    assert row is not None
    assert row[0] < there
