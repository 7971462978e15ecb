"""A database server that is not ours: `PRICING_DATABASE_URL` is all it takes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import psycopg
import pytest
from sqlalchemy import make_url

from pricing_pipeline.db.databases import ensure_database
from pricing_pipeline.db.embedded import EmbeddedServer
from pricing_pipeline_tests.fixtures.home import make_open_folder, quickest_place
from pricing_pipeline_tests.fixtures.stack import new_stack


@pytest.fixture
def external_url() -> Iterator[str]:
    """An empty database on a server of its own, by a role that may make others and nothing else."""
    folder = make_open_folder("pricing-tests-", within=quickest_place())
    server = EmbeddedServer(folder, for_tests=True)
    server.start()
    try:
        superuser = server.url("postgres", "superuser")
        with psycopg.connect(superuser, autocommit=True) as admin:
            admin.execute("DROP DATABASE dagster")
            # With PUBLIC's rights as other servers have them.
            admin.execute("ALTER DATABASE template1 IS_TEMPLATE false")
            admin.execute("DROP DATABASE template1")
            admin.execute("CREATE DATABASE template1 TEMPLATE template0")
            admin.execute("CREATE ROLE app LOGIN CREATEDB PASSWORD 'of the app'")
            admin.execute("CREATE DATABASE prices OWNER app")
        url = make_url(superuser).set(username="app", password="of the app", database="prices")
        yield url.render_as_string(hide_password=False)
    finally:
        server.stop("immediate")
        shutil.rmtree(folder)


def test_up_works_on_a_server_that_is_not_ours(external_url: str) -> None:
    with new_stack(DATABASE_URL=external_url) as stack:
        stack.start()
        stack.wait_until_up()
        assert stack.json("status")["first_price_seconds"] > 0
        assert "postgresql" not in stack.state()["processes"]
        assert not (stack.home / "postgres").exists()
        call = stack.wait_for_price("equity_quote", "AAPL")
        assert call.run_id in stack.drains()
        assert "of the app" not in stack.logs()
        _a_second_home_is_refused(external_url)


def _a_second_home_is_refused(url: str) -> None:
    """It would carry out the runs of the first one, whose storage of Dagster's it names."""
    dagster, prices = (
        make_url(url).set(database=name).render_as_string(hide_password=False) for name in ("dagster", "others_prices")
    )
    ensure_database(url, "others_prices")
    with new_stack(DATABASE_URL=prices, DAGSTER_URL=dagster) as second:
        refused = second.cli("up")
        assert refused.exit_code == 1
        assert refused.stderr.startswith("error: Dagster's storage has the runs of another home")
        assert "Set PRICING_DAGSTER_URL to a database of this home's own" in refused.stderr
        assert second.processes() == []
