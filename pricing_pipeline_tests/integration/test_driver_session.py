"""A session of a short command: results, transactions and errors are those of SQLAlchemy, which it does not import."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import make_url, text
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.db import engine, query_loader
from pricing_pipeline.db.engine import driver_rows, driver_session
from pricing_pipeline.db.query_loader import driver_query, named, query
from pricing_pipeline.errors import DatabaseError, ReadReplica, UnknownDataType
from pricing_pipeline.prices import price_reader
from pricing_pipeline.registry import data_type_registry
from pricing_pipeline_tests.fixtures.core import QUOTE, Core

READINGS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda found: [tuple(row) for row in found],
    "all": lambda found: [tuple(row) for row in found.all()],
    "attributes": lambda found: [row.data_type for row in found],
    "first": lambda found: found.first(),
    "mappings": lambda found: [dict(row) for row in found.mappings()],
    "scalars": lambda found: list(found.scalars()),
    "scalar": lambda found: found.scalar(),
}


@pytest.mark.parametrize("is_active", [True, False])
def test_rows_are_read_as_sqlalchemys(core: Core, database_url: str, is_active: bool) -> None:
    """Of a query with many rows, and of one without any."""
    with core.engine.connect() as connection, driver_session(database_url) as session:
        of = {"is_active": is_active}
        for way, read in READINGS.items():
            assert read(session.execute(query("registry.types"), of)) == read(
                connection.execute(query("registry.types"), of)
            ), way


def test_one_row_is_one(database_url: str) -> None:
    with driver_session(database_url) as session:
        version = session.execute(query("registry.version"))
        several = session.execute(query("registry.types"), {"is_active": True})
    assert version.one() == version.one_or_none() == (version.scalar_one(),)
    assert version.scalar_one() == version.scalar_one_or_none()
    with pytest.raises(ValueError, match="too many"):
        several.one_or_none()


def test_every_query_is_the_same_to_the_driver_as_to_sqlalchemy() -> None:
    names = query_loader._load()
    for name in names:
        assert driver_query(name) == str(text(named(name)).compile(dialect=PGDialect_psycopg())), name  # type: ignore[no-untyped-call]


def test_a3_what_a_read_requests_is_kept_by_a_commit_alone(core: Core, database_url: str) -> None:
    with driver_session(database_url) as session:
        assert price_reader.read(session, "AAPL", QUOTE).requested
    assert core.tasks() == []
    with driver_session(database_url) as session:
        price_reader.read(session, "AAPL", QUOTE)
        session.commit()
    assert [task.symbol for task in core.tasks()] == ["AAPL"]


def test_an_error_is_sqlalchemys_and_a_savepoint_survives_it(database_url: str) -> None:
    with driver_session(database_url) as session:
        assert session.execute(query("registry.version")).one()
        with pytest.raises(DBAPIError) as caught, session.begin_nested():
            session.execute(query("prices.request"), {"symbols": 7, "data_type": []})
        assert getattr(caught.value.orig, "sqlstate", None)
        assert session.execute(query("registry.version")).one()
        with pytest.raises(UnknownDataType, match="'none'"):
            data_type_registry.active_data_type(session, "none")


def test_e1_a_lost_session_and_a_server_that_does_not_answer_are_said_in_words(database_url: str) -> None:
    with (
        driver_session(database_url) as session,
        pytest.raises(DatabaseError, match="does not answer") as lost,
    ):
        driver_rows(session, "SELECT pg_terminate_backend(pg_backend_pid())", {})
    password = "hidden"
    for places in ("127.0.0.1:9", "127.0.0.1:9,127.0.0.1:9"):
        url = f"postgresql://ann:{password}@{places}/pricing"
        with (
            pytest.raises(DatabaseError, match="PRICING_DATABASE_URL is right") as refused,
            driver_session(url),
        ):
            pass
        assert password not in str(refused.value)
    assert "does not answer" in str(lost.value)


@given(st.text())
@example("of the app")
@example("\0")
def test_c3_what_goes_to_the_driver_as_it_is_means_the_same_there(password: str) -> None:
    url = f"postgresql://ann:{password}@localhost/prices"
    if engine._PLAIN.fullmatch(url):
        read = conninfo_to_dict(url)
        assert (read.get("password"), read["host"]) == (make_url(url).password or None, "localhost")


def test_b11_a_database_that_only_reads_is_said_to_be_one(core: Core, database_url: str) -> None:
    with driver_session(database_url) as session:
        driver_rows(session, "SELECT set_config('transaction_read_only', 'on', true)", {})
        with pytest.raises(ReadReplica, match="takes no writes"):
            driver_rows(session, "DELETE FROM pricing.turns WHERE false RETURNING name", {})
    with driver_session(database_url) as session:
        driver_rows(session, "SELECT set_config('transaction_read_only', 'on', true)", {})
        assert price_reader.latest(session, "AAPL") == []
        assert price_reader.read(session, "AAPL", QUOTE).requested == 0
