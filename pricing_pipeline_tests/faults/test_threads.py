"""Threads of a worker while somebody has locked the state of a provider."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import text

from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.integration.test_threads import Slow, enqueue, in_flight, slow

__all__ = ["slow"]


def look_again(refresher: Refresher) -> None:
    """As if each pause of a provider that is passed over had ended."""
    passed_over = refresher._order._passed_over
    for name, passed in passed_over.items():
        passed_over[name] = replace(passed, until=0.0)
    refresher._start_calls()


def test_b8_a_provider_whose_state_somebody_has_locked_is_passed_over(
    core: Core, slow: tuple[Refresher, dict[str, Slow]], caplog: pytest.LogCaptureFixture
) -> None:
    refresher, _ = slow
    enqueue(core, "alpha", 3, priority=9)
    enqueue(core, "omega", 3)
    with core.owner.begin() as connection:
        connection.execute(text("SELECT FROM pricing.provider_state WHERE provider = 'alpha' FOR UPDATE"))
        for _ in range(4):
            look_again(refresher)
        assert in_flight(refresher) == {"omega": 3}
    assert caplog.text.count("alpha is passed over, because another session has locked its row") == 1
    look_again(refresher)
    assert in_flight(refresher) == {"alpha": 3, "omega": 3}
