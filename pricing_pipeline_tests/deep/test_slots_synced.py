"""Slots that change at the partner: after each cadence the database has the same slots as the partner (D1, D4).

PRICING_TEST_PRODUCTS=100 compares 100 products on 30 days with 10 slots each, which takes minutes; else there are five.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox, running_sandbox
from pricing_pipeline_tests.support.slots_synced import (
    MONTH,
    NOON,
    PRODUCT,
    TODAY,
    UNLIMITED,
    WEEK,
    all_versions,
    database,
    load_types,
    partner,
    sell,
    sync,
)
from pricing_pipeline_tests.tools.audit import audit

CADENCES = ((MONTH, 30), (WEEK, 7), (TODAY, 1))
COUNT = int(os.environ.get("PRICING_TEST_PRODUCTS", "5"))


@pytest.fixture
def sandbox(core: Core, clock: Clock) -> Iterator[RunningSandbox]:
    """A sandbox without limits that goes by the database's clock, which stands at noon until it is moved."""
    load_types(core)
    clock.set(NOON)
    clock.stop()
    with running_sandbox(clock=core.clock, **UNLIMITED) as sandbox:
        yield sandbox


@pytest.mark.parametrize("provider", ["octo", "headout"])
def test_d1_d4_after_each_cadence_the_database_is_what_the_partner_has(
    core: Core, sandbox: RunningSandbox, clock: Clock, provider: str
) -> None:
    """Between two cadences 5 % of all slots change, and a quarter of an hour passes."""
    numbers = range(1, COUNT + 1)
    symbols = sell(core, provider, numbers)
    sync(core, sandbox, PRODUCT, symbols)
    sync(core, sandbox, MONTH, symbols)
    believed = partner(core, sandbox, provider, numbers, 30)
    assert database(core, sandbox, numbers, provider, 30).fields == believed
    for turn, (data_type, days) in enumerate(CADENCES * 2):
        clock.advance(900)
        sandbox.change_slots(5, seed=turn)
        was, truth = (
            database(core, sandbox, numbers, provider, days),
            partner(core, sandbox, provider, numbers, days),
        )
        changed = {key for key in was.fields.keys() | truth.keys() if was.fields.get(key) != truth.get(key)}
        before = all_versions(core)
        sync(core, sandbox, data_type, symbols)
        now = database(core, sandbox, numbers, provider, days)
        assert now.fields == truth
        untouched = now.versions.keys() - changed
        assert {key: now.versions[key] for key in untouched} == {key: was.versions[key] for key in untouched}
        writes = len(all_versions(core) - before)
        assert len(changed) > 0
        assert writes <= 1.2 * len(changed), (data_type, writes, len(changed))
    assert core.statuses().keys() == set(symbols)
    assert set(core.statuses().values()) == {"completed"}
    audit(core)
