"""The kinds of faults: each has a name, a weight, a description, and a function that injects and ends it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from pricing_pipeline_tests.fault_run.load import Load
from pricing_pipeline_tests.fault_run.stage import Stage


@dataclass
class Scene:
    """What a fault is injected into. `dice` depends on the seed and the step alone."""

    stage: Stage
    load: Load
    dice: random.Random
    notes: list[str] = field(default_factory=list)
    """What the fault itself saw and should not have."""
    happened: bool = True
    """False if there was nothing to inject the fault into: then it does not count."""


Act = Callable[[Scene], None]


@dataclass(frozen=True)
class Kind:
    """A kind of fault. `needs` says what the machine must have for it."""

    name: str
    words: str
    weight: int
    act: Act
    needs: Callable[[Stage], bool] = lambda stage: True


KINDS: dict[str, Kind] = {}


def kind(
    name: str, words: str, weight: int = 4, needs: Callable[[Stage], bool] = lambda stage: True
) -> Callable[[Act], Act]:
    """Make a kind of faults of a function."""

    def add(act: Act) -> Act:
        KINDS[name] = Kind(name, words, weight, act, needs)
        return act

    return add
