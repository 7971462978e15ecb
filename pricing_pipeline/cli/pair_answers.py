"""What became of the symbols that a command names, as `subscription watch` and `holding open` tell it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pricing_pipeline.cli.program import hint, warn
from pricing_pipeline.errors import PairsRefused

if TYPE_CHECKING:
    from pricing_pipeline.demand.viewers import Answer


def content(answer: Answer) -> Mapping[str, Any]:
    """An answer for `--json`, in the shape that the API has."""
    return asdict(answer)


def tell_doubts(answer: Answer) -> None:
    """Tell which symbols are spelled otherwise, and which are doubtful. Refusals are the caller's to tell."""
    for pair in answer.pairs:
        if pair.outcome == "accepted":
            hint(f"{pair.given} is spelled {pair.symbol} here.")
    for fault in answer.faults:
        if fault.outcome == "doubtful":
            warn(fault.sentence)


def require_all(answer: Answer) -> None:
    """Raise PairsRefused if a symbol is refused; the others are served by now."""
    if answer.refused:
        raise PairsRefused(answer.refusals, [asdict(pair) for pair in answer.pairs])
