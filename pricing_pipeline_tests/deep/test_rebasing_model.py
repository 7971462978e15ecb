"""A history has one basis at any time, and ends as traded if its source does, against a plain model (F5)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pricing_pipeline.domain.observations import Adjustment
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.integration.test_rebasing import (
    DAYS,
    RAW,
    SAID,
    SPLITS,
    Belief,
    asked,
    belief,
    bring,
    of,
)
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.yahoo_answers import NOW

pytestmark = pytest.mark.usefixtures("still")


@pytest.fixture(autouse=True)
def _now(core: Core, clock: Clock, still: None) -> None:
    clock.set(NOW)
    core.lift_limits()


@dataclass
class Model:
    """A history has the basis of its first answer, until one as traded holds all of its days."""

    basis: Adjustment | None = None
    days: set[int] = field(default_factory=set)

    def told(self, basis: Adjustment, first: int, last: int) -> None:
        brought = set(range(first, last + 1))
        if self.basis in (None, basis):
            self.days |= brought
        elif basis is SPLITS or not self.days <= brought:
            return
        self.basis, self.days = basis, self.days | brought

    @property
    def belief(self) -> Belief:
        assert self.basis is not None
        return {DAYS[n]: (SAID[self.basis][DAYS[n]], self.basis) for n in self.days}


spans = st.tuples(st.integers(0, 29), st.integers(0, 29)).map(lambda ends: (min(ends), max(ends)))
told = st.tuples(st.sampled_from([RAW, SPLITS]), spans | st.just((0, 29)))


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(told, min_size=1, max_size=6))
def test_f5_a_history_has_one_basis_at_any_time_and_ends_as_traded_if_its_source_does(
    core: Core, clock: Clock, answers: list[tuple[Adjustment, tuple[int, int]]]
) -> None:
    for table in (
        "price_history",
        "price_revisions",
        "restatements",
        "corporate_actions",
        "quarantined_values",
    ):
        core.rows(f"DELETE FROM pricing.{table}")
    model, believed = Model(), list[tuple[datetime, Belief]]()
    for basis, (first, last) in [*answers, (RAW, (0, 29))]:
        clock.advance(90_000)
        bring(core, basis, first, last)
        model.told(basis, first, last)
        assert belief(core) == model.belief
        believed.append((core.clock(), model.belief))
        # A worker asks for what it should, and the source goes on as it just did.
        if asked(core, clock):
            clock.advance(60)
            bring(core, basis, 0, 29)
            model.told(basis, 0, 29)
            believed.append((core.clock(), model.belief))
        assert belief(core) == model.belief
    assert belief(core) == of(RAW, 0, 29)
    for at, then in believed:
        assert belief(core, at) == then
