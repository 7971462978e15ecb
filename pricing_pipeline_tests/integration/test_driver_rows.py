"""Statements that go to the driver itself: transactions and errors are those of all others."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from sqlalchemy import Engine, event, text
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.db import copying
from pricing_pipeline.db.engine import driver_copy, driver_rows
from pricing_pipeline.db.query_loader import driver_query
from pricing_pipeline.errors import DatabaseError
from pricing_pipeline_tests.fixtures.database import bare_template

template = bare_template


def test_what_is_written_belongs_to_the_transaction(engine: Engine) -> None:
    note = (
        "INSERT INTO pricing.warnings (at, source, subject, message) VALUES (now(), %(source)s, 'x', 'x')"
        " RETURNING source"
    )
    with engine.connect() as connection:
        assert driver_rows(connection, note, {"source": "kept"}) == [("kept",)]
        connection.commit()
        driver_rows(connection, note, {"source": "given up"})
        connection.rollback()
        assert connection.execute(text("SELECT source FROM pricing.warnings")).scalars().all() == ["kept"]


def test_an_error_is_sqlalchemys_and_the_transaction_can_be_rolled_back(engine: Engine) -> None:
    with engine.connect() as connection:
        with pytest.raises(DBAPIError) as caught:
            driver_rows(connection, "SELECT 1 / %(by)s", {"by": 0})
        assert getattr(caught.value.orig, "sqlstate", None) == "22012"
        connection.rollback()
        assert driver_rows(connection, "SELECT 1", {}) == [(1,)]


_NOTES = "COPY pricing.warnings (at, source, subject, message) FROM STDIN (FORMAT binary)"
_TURNS = "COPY pricing.turns (name) FROM STDIN (FORMAT binary)"


def notes(source: str | None) -> bytes:
    at = datetime(2026, 11, 20, 12, 30, 0, 250_000, tzinfo=UTC)
    return copying.file([copying.rows(2, [copying.time(at), copying.text(source), b"x", b"x"])])


def test_what_is_copied_belongs_to_the_transaction(engine: Engine) -> None:
    kept = "SELECT source, at FROM pricing.warnings WHERE subject = 'x'"
    with engine.connect() as connection:
        driver_copy(connection, _NOTES, notes("kept"))
        connection.commit()
        driver_copy(connection, _NOTES, notes("given up"))
        connection.rollback()
        at = datetime(2026, 11, 20, 12, 30, 0, 250_000, tzinfo=UTC)
        assert [tuple(row) for row in connection.execute(text(kept))] == [("kept", at)] * 2


def test_f3_what_is_copied_twice_is_a_conflict_and_what_is_wrong_a_refusal(engine: Engine) -> None:
    found = []
    with engine.connect() as connection:
        for statement, rows in (
            (_TURNS, copying.file([copying.rows(2, [b"twice"])])),
            (_NOTES, notes(None)),
            (_NOTES, notes("cut")[:-9]),
        ):
            with pytest.raises(DBAPIError) as caught:
                driver_copy(connection, statement, rows)
            found.append(getattr(caught.value.orig, "sqlstate", None))
            connection.rollback()
    assert found == ["40001", "23502", "22P04"]


def test_e1_a_lost_session_is_said_in_words_and_replaced(engine: Engine) -> None:
    lose = "SELECT pg_terminate_backend(pg_backend_pid())"
    with engine.connect() as connection, pytest.raises(DatabaseError, match="does not answer"):
        driver_rows(connection, lose, {})
    with engine.connect() as connection:
        assert driver_rows(connection, "SELECT 1", {}) == [(1,)]


def test_parameters_are_spelled_as_the_driver_wants_them() -> None:
    assert "pricing.claim_calls(%(provider)s, %(worker)s" in driver_query("queue.claim")


def test_b11_an_interrupt_in_the_middle_of_a_statement_stays_one(engine: Engine) -> None:
    """Taken for a database that does not answer, it was waited for and forgotten: the worker went on."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with engine.connect() as connection:
        connection.execute(text("SELECT 1"))
        event.listen(engine, "do_execute", interrupted)
        with pytest.raises(KeyboardInterrupt):
            connection.execute(text("SELECT 1"))
