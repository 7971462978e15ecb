"""Few combinations in which every two values of different factors meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any


def pairwise(factors: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Combinations of one value for each factor. Each pair of values of two factors is in at least one."""
    names = list(factors)
    unmet = {
        (one, a, other, b)
        for one, other in combinations(names, 2)
        for a in range(len(factors[one]))
        for b in range(len(factors[other]))
    }
    made = []
    while unmet:
        one, a, other, b = min(unmet)
        chosen = {one: a, other: b}
        for name in (name for name in names if name not in chosen):
            # The value that meets most of those it has not met.
            chosen[name] = max(
                range(len(factors[name])),
                key=lambda value, name=name: sum(  # type: ignore[misc]
                    pair in unmet for pair in _pairs(names, {**chosen, name: value})
                ),
            )
        unmet -= set(_pairs(names, chosen))
        made.append({name: factors[name][value] for name, value in chosen.items()})
    return made


def _pairs(names: Sequence[str], chosen: Mapping[str, int]) -> list[tuple[str, int, str, int]]:
    met = [name for name in names if name in chosen]
    return [(one, chosen[one], other, chosen[other]) for one, other in combinations(met, 2)]
