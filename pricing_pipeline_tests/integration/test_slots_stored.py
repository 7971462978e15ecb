"""Slots: what an answer changes, and what it leaves alone (D4)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from pricing_pipeline.domain.answers import Stored
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.inventory import (
    MONDAY, TOUR, add_partner, days, offer, read, revisions, slot, store, versions,
)

pytestmark = pytest.mark.usefixtures("still")


@pytest.fixture(autouse=True)
def partner(core: Core) -> None:
    add_partner(core)


def test_d4_an_answer_is_read_as_it_was_said(core: Core) -> None:
    said = slot(MONDAY, 9, offer("ADULT", 2500, original=3000, is_primary=True), offer("CHILD", 0))
    assert store(core, days(said)) == [Stored(TOUR, 1, 0)]
    (day,) = read(core)
    (found,) = day.slots
    assert (found.slot_id, found.status, found.remaining, found.capacity) == (said.slot_id, "available", 9, 10)
    print(found)
    again = versions(core)
    assert store(core, days(said)) == [Stored(TOUR, 0, 0)]
    assert versions(core) == again
    assert set(revisions(core).values()) == {0}
