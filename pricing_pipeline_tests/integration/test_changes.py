"""Versions of stored data rise when what is stored changes, and only then."""

from __future__ import annotations

from collections import Counter

import psycopg
import pytest

from pricing_pipeline.prices import changes
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core

pytestmark = pytest.mark.usefixtures("still")

Key = tuple[str, str | None]
"""A data type, and a month or None for what is latest."""


def versions(core: Core) -> dict[Key, int]:
    changes.number(core.engine)
    found = core.rows(
        "SELECT data_type, CASE WHEN month > '-infinity' THEN to_char(month, 'YYYY-MM-DD') END AS month, version"
        " FROM pricing.data_versions"
    )
    return {(row.data_type, row.month): row.version for row in found}


def test_g8_a_change_is_numbered_after_its_commit_whatever_came_first(core: Core, database_url: str) -> None:
    """A reader that has seen a version has missed none below it, though transactions end in any order."""
    core.rows("SELECT pricing.note_latest_changes(:t, 1)", t=DAILY)
    with psycopg.connect(database_url) as slow:
        slow.execute("SELECT pricing.note_latest_changes(%s, 2)", [QUOTE])
        first = versions(core)
        assert first.keys() == {(DAILY, None)}
        core.rows("SELECT pricing.note_latest_changes(:t, 1)", t=DAILY)
        second = versions(core)
        slow.commit()
    last = versions(core)
    assert last[QUOTE, None] > second[DAILY, None] > first[DAILY, None]
    counted = Counter(
        {row.data_type: row.changes for row in core.rows("SELECT data_type, changes FROM pricing.data_versions")}
    )
    assert counted == {DAILY: 2, QUOTE: 2}


def test_g8_who_stores_waits_for_nobody_who_numbers(core: Core, database_url: str) -> None:
    """A session that stops in the middle of it keeps no drain and no sensor waiting."""
    core.rows("SELECT pricing.note_latest_changes(:t, 1)", t=DAILY)
    with psycopg.connect(database_url) as stopped:
        stopped.execute("SELECT pricing.number_changes()")
        core.rows("SELECT pricing.note_latest_changes(:t, 1)", t=QUOTE)
        assert versions(core) == {}
        stopped.rollback()
    assert versions(core).keys() == {(DAILY, None), (QUOTE, None)}


def test_g8_whoever_tells_for_long_keeps_the_turn(core: Core) -> None:
    """Hundreds of months take longer than a worker's transaction may be idle."""
    with changes.turn_to_tell(core.engine) as connection:
        allowed = connection.exec_driver_sql("SHOW idle_in_transaction_session_timeout").scalar_one()
        assert allowed == "10min"
        with core.engine.begin() as other:
            assert not other.exec_driver_sql("SELECT pricing.take_turn('tell_changes')").scalar_one()
