"""Runs of other code locations beside ours, for events in any order: one for each real change of a price."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import ModuleType

import pytest

from pricing_pipeline.defs.naming import PLAIN
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core
from pricing_pipeline_tests.fixtures.dagster import Stage, environment, stage
from pricing_pipeline_tests.orchestration.test_beside_ours import BEAT, MONTHS, QUOTE_RUNS, Beside, theirs

__all__ = ["environment", "stage", "theirs"]
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:dagster"),
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
    pytest.mark.filterwarnings("ignore::dagster.PreviewWarning"),
]


@pytest.mark.parametrize("seed", range(2))
def test_g8_runs_downstream_are_the_real_changes(stage: Stage, core: Core, theirs: ModuleType, seed: int) -> None:
    """Events in any order: a run for each change of a quote and of each month, and one an hour on a cron."""
    dice = random.Random(seed)
    beside = Beside(stage, theirs)
    quotes, bars = PLAIN.latest_key(QUOTE), PLAIN.history_key(DAILY)
    had_cron = False
    steps: list[tuple[int, Callable[[], list[str]]]] = []

    def told(what: Callable[[], object], *runs: str) -> Callable[[], list[str]]:
        def step() -> list[str]:
            what()
            return list(runs)

        return step

    steps = [
        (6, told(beside.beat)),
        (1, told(lambda: beside.instance.wipe_assets([BEAT]))),
        (2, told(lambda: beside.work(quotes))),
        (3, told(lambda: beside.news(quotes), *QUOTE_RUNS)),
        *((1, told(lambda month=month: beside.work(bars, month))) for month in MONTHS),
        *((1, told(lambda month=month: beside.news(bars, month), f"month_ends {month}")) for month in MONTHS),
    ]
    for _ in range(30):
        (step,) = dice.choices([step for _, step in steps], [weight for weight, _ in steps])
        runs = step()
        if runs == QUOTE_RUNS and not had_cron:
            runs, had_cron = [*runs, "on_cron"], True
        assert beside.tick() == sorted(runs)
        assert beside.tick() == []
        if dice.random() < 0.2:
            beside.hour()
            had_cron = False
