"""B5: `subscription watch` while the database is away."""

from __future__ import annotations

from sqlalchemy import make_url

from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.fixtures.database import TestServer
from pricing_pipeline_tests.integration.test_cli_watch import Screen, outage, watchers, watching
from pricing_pipeline_tests.support.patience import wait_until


def test_b5_an_outage_is_survived_and_what_was_forgotten_restored(
    core: Core, server: TestServer, database_url: str
) -> None:
    database = make_url(database_url).database
    assert database is not None

    def warned() -> int:
        return len(screen.told("warning"))

    with Screen() as screen, watching(core.engine, "AAPL", heartbeat_seconds=600):
        wait_until(lambda: watchers(core))
        core.rows("DELETE FROM pricing.active_subscriptions")
        with outage(server, database):
            wait_until(lambda: warned() == 1)
        wait_until(lambda: warned() == 2)
        assert watchers(core) == [("ann", QUOTE, "AAPL")]
    first, second = (warning["message"] for warning in screen.told("warning"))
    assert "does not answer" in first
    assert second == "the database answers again"
    assert watchers(core) == []
