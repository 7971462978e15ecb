"""The kinds of faults: each a name, a weight, words for people, and what commits one and ends it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from pricing_pipeline_tests.fault_run.load import Load
from pricing_pipeline_tests.fault_run.stage import Stage


@dataclass
class Scene:
    """What a fault is committed in. `dice` depends on the seed and the step alone."""

    stage: Stage
    load: Load
    dice: random.Random
    notes: list[str] = field(default_factory=list)
    """What the fault itself saw that must not be."""
    happened: bool = True
    """False if nothing came by that it could be done to: then it does not count."""


Act = Callable[[Scene], None]


@dataclass(frozen=True)
class Kind:
    """One kind of faults. `needs` says what a machine must have for it."""

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
