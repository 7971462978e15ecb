"""The guard in front of Dagster, with a token and without one."""

from __future__ import annotations

import pytest

from pricing_pipeline.processes.web_guard import Guard
from pricing_pipeline_tests.support.guarded import HOST, TOKEN, Dagster


@pytest.fixture
def dagster() -> Dagster:
    return Dagster()


@pytest.fixture
def guard(dagster: Dagster) -> Guard:
    return Guard(dagster.create_asgi_app(), hosts=[HOST], is_allowed=lambda *_: True)


@pytest.fixture
def now() -> list[float]:
    """The time; a test may change it."""
    return [1_000_000.0]


@pytest.fixture
def locked(dagster: Dagster, now: list[float]) -> Guard:
    """One that asks for a token."""
    return Guard(dagster.create_asgi_app(), hosts=[HOST], token=TOKEN, clock=lambda: now[0])
