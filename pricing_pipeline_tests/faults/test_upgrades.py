"""An upgrade lets one at a time work, and says who keeps it waiting."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from sqlalchemy import make_url

from pricing_pipeline.db import migrate
from pricing_pipeline.errors import LockUnavailable
from pricing_pipeline_tests.fixtures.database import TestServer, bare_template

template = bare_template

LOCK = "SELECT pg_advisory_lock(hashtextextended('pricing.migrate', 0))"


@pytest.mark.own_sessions
def test_b2_an_upgrade_says_who_holds_its_lock(
    owner_url: str, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert migrate._PATIENCE == "30s"
    monkeypatch.setattr(migrate, "_PATIENCE", "200ms")
    with psycopg.connect(database_url) as worker:
        worker.execute(LOCK)
        said = rf"process {worker.info.backend_pid} of the login {make_url(database_url).username}\."
        with pytest.raises(LockUnavailable, match=said) as refusal:
            migrate.upgrade(owner_url)
        assert re.search(r"pg_terminate_backend", str(refusal.value))
    migrate.upgrade(owner_url)


def test_b2_two_upgrades_of_one_database_at_once_both_succeed(server: TestServer) -> None:
    database = "upgraded_by_two"
    server.drop(database)
    server.create(database, "template1")
    try:
        with ThreadPoolExecutor(2) as threads:
            url = server.url_of_owner(database)
            for upgraded in [threads.submit(migrate.upgrade, url) for _ in range(2)]:
                upgraded.result()
    finally:
        server.drop(database)
