"""What `up` loads into a database that lacks it, and what it leaves alone."""

from __future__ import annotations

from typing import Any

import psycopg

from pricing_pipeline import sample
from pricing_pipeline_tests.fixtures.database import bare_template

template = bare_template


def counts(connection: psycopg.Connection[Any]) -> tuple[int, ...]:
    row = connection.execute(
        "SELECT (SELECT count(*) FROM pricing.data_collectors), (SELECT count(*) FROM pricing.data_type_registry),"
        " (SELECT count(*) FROM pricing.instruments)"
    ).fetchone()
    assert row is not None
    return row


def test_without_the_demo_providers_are_there_and_nothing_is_watched_or_fetched(
    owner_url: str, connection: psycopg.Connection[Any]
) -> None:
    assert sample.load(owner_url, demo=False)
    assert counts(connection) == (7, 0, 0)
    connection.execute(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes) VALUES ('shares', 'quote', 5)"
    )
    route = connection.execute("SELECT data_type, provider FROM pricing.provider_routing").fetchall()
    assert route == [("shares", "twelvedata")]


def test_the_sample_is_loaded_once_and_never_over_what_is_there(
    owner_url: str, connection: psycopg.Connection[Any]
) -> None:
    assert sample.load(owner_url)
    full = counts(connection)
    assert full == (7, 9, 18)
    connection.execute("UPDATE pricing.provider_limits SET units = 8 WHERE name = 'minute'")
    connection.execute("UPDATE pricing.data_collectors SET is_active = false")
    assert not sample.load(owner_url)
    assert counts(connection) == full
    limit = connection.execute("SELECT units FROM pricing.provider_limits WHERE name = 'minute'").fetchone()
    assert limit == (8,)


def test_a_registry_of_ones_own_gets_no_sample_types(owner_url: str, connection: psycopg.Connection[Any]) -> None:
    sample.load(owner_url, demo=False)
    connection.execute(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes) VALUES ('shares', 'quote', 5)"
    )
    assert not sample.load(owner_url)
    assert counts(connection) == (7, 1, 0)
