"""The database can be read in one place, and everything in it says what it is."""

from __future__ import annotations

import re

import pytest

from pricing_pipeline.db.query_loader import named
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import bare_template
from pricing_pipeline_tests.support.pages import ROOT
from pricing_pipeline_tests.tools.schema_page import PAGE, written

template = bare_template
pytestmark = pytest.mark.own_database  # a lent one has a clock that can be moved


def test_b26_the_page_shows_the_database_as_it_is(owner_url: str) -> None:
    """Tables, columns, defaults, constraints, indexes, triggers, policies, grants, signatures; on 15 as on 18."""
    assert written(owner_url) == PAGE.read_text(), "the schema has changed: run `make pages`"


def test_everything_in_the_schema_has_words(core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes)"
        " VALUES ('crypto_quote', 'quote', 2)"
    )
    found = core.rows(named("schema.without_words"))
    assert [row.object for row in found] == [], "COMMENT ON these"


def test_f12_a_function_that_changes_a_history_notes_the_change() -> None:
    """Exports find the months that are due by these notes. A move to files changes nothing for them."""
    writes = re.compile(r"(INSERT INTO|UPDATE|DELETE FROM) pricing\.price_(history|revisions)\b")
    notes = re.compile(r"INSERT INTO pricing\.data_changes|pricing\.(note_changes|keep_revisions) ?\(")
    bodies = {
        body.split("(", 1)[0]: body
        for path in (ROOT / "pricing_pipeline/db/functions").rglob("*.sql")
        for body in path.read_text().split("CREATE OR REPLACE FUNCTION pricing.")[1:]
    }
    writing = {name for name, body in bodies.items() if writes.search(body)}
    assert {"store_rows", "merge_bars", "thin_history", "move_month"} <= writing
    assert {name for name in writing if not notes.search(bodies[name].split("(", 1)[1])} == {"move_month"}
