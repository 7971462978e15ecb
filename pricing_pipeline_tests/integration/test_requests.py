"""What clients ask for and workers serve: a request can wait, and never keeps others from being served."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.demand import freshness
from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock, TestServer
from pricing_pipeline_tests.fixtures.logins import a_login


@pytest.fixture
def client(server: TestServer, owner_url: str, core: Core) -> Iterator[psycopg.Connection[Any]]:
    """A session of a login that is a client and nothing else; documents of a type "earned" can be read."""
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes)"
        " VALUES ('earned', 'earnings', 60)"
    )
    with (
        a_login(server, owner_url, "pricing_client") as (_, url),
        psycopg.connect(url, autocommit=True) as session,
    ):
        yield session


def requests(core: Core) -> list[tuple[str, str]]:
    return [
        (row.kind, row.symbol)
        for row in core.rows("SELECT kind, symbol FROM pricing.pair_requests ORDER BY request_id")
    ]


def test_b7_reads_of_names_that_are_no_instruments_ask_for_nothing(core: Core, client: psycopg.Connection[Any]) -> None:
    """A client's reads of long invented names stopped all checks: their request came first again each time."""
    core.heartbeat("ann", (QUOTE, "AAPL"))
    for symbol in ("INVENTED", "x" * 200_000, ""):
        client.execute("SELECT pricing.document('earned', %s)", [symbol])
    assert requests(core) == []
    client.execute("SELECT pricing.document('earned', 'AAPL')")
    assert ("seen", "AAPL") in requests(core)
    with pytest.raises(DBAPIError, match="symbol_is_sane"):
        core.rows(
            "INSERT INTO pricing.pair_requests (data_type, symbol, kind) VALUES ('earned', repeat('x', 41), 'seen')"
        )


def test_b7_who_watches_is_served_before_who_reads(core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.pair_requests (data_type, symbol, kind)"
        " SELECT 'equity_quote', 'S' || n, 'seen' FROM generate_series(1, 6000) AS n"
    )
    core.rows("SELECT pricing.heartbeat('ann', '{equity_quote}', '{IBM}', false)")
    core.enqueue_due()
    assert core.statuses() == {"IBM": "pending"}


def test_b8_a_request_that_fails_costs_no_other(core: Core) -> None:
    core.rows(
        "CREATE FUNCTION pricing.fail_on_bad() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN IF NEW.symbol = ''BAD'' THEN RAISE ''no such thing''; END IF; RETURN NEW; END'"
    )
    core.rows(
        "CREATE TRIGGER fail_on_bad BEFORE INSERT ON pricing.instruments"
        " FOR EACH ROW EXECUTE FUNCTION pricing.fail_on_bad()"
    )
    core.rows("SELECT pricing.heartbeat('ann', '{equity_quote,equity_quote}', '{BAD,GOOD}', false)")
    core.enqueue_due()
    assert core.statuses() == {"GOOD": "pending"}
    assert requests(core) == []
    assert core.one("SELECT count(*) FROM pricing.warnings WHERE source = 'serve_requests'") == 1


def test_g2_what_no_worker_has_taken_up_counts_as_owed(core: Core, clock: Clock) -> None:
    clock.stop()
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh()
    core.rows("SELECT pricing.heartbeat('bob', '{equity_quote}', '{NEW}', false)")

    def served() -> freshness.Freshness:
        with core.engine.connect() as connection:
            (row,) = freshness.measure(connection, [QUOTE])
        return row

    assert (served().due, served().is_calm) == (1, True)
    clock.advance(31)
    assert (served().late, served().is_calm) == (1, False)


def test_b17_a_lost_turn_is_made_anew(core: Core) -> None:
    core.rows("DELETE FROM pricing.turns")
    core.enqueue(QUOTE, "AAPL")
    assert core.claim_one().symbols == ["AAPL"]
    assert core.one("SELECT count(*) FROM pricing.turns WHERE name = 'claim'") == 1
