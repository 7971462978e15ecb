"""Of all slots of the sandbox, as many change as are asked for."""

from __future__ import annotations

import pytest

from pricing_pipeline.sandbox.slots import SlotChange, Tours
from pricing_pipeline_tests.unit.test_sandbox_tours import NOW, all_slots, changes


@pytest.mark.parametrize("percent", [5, 100])
def test_so_many_percent_of_slots_change_on_request(percent: int) -> None:
    tours = Tours(7)
    before = all_slots(tours, NOW)
    tours.change(SlotChange(percent=percent, seed=3))
    after = all_slots(tours, NOW)
    assert changes(before, after) == pytest.approx(len(before) * percent / 100, rel=0.2)
    assert after == all_slots(tours, NOW), "and stay so"
    if percent == 100:
        same = {key for key in before.keys() & after.keys() if before[key] == after[key]}
        assert {f"{key}+1" for key in same} == after.keys() - before.keys(), "another one was added beside it"
    tours.reset()
    assert all_slots(tours, NOW) == before
