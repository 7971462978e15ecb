"""What a benchmark answers: rows of figures, and their ratios to the peers'. Measuring belongs elsewhere."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of ours beside the same figure of each peer, in `unit`.

    `lower_is_better` is for times: ratios are turned round, so that above 1 always means that we are better.
    """

    metric: str
    unit: str
    ours: float
    peers: Mapping[str, float] = field(default_factory=dict)
    lower_is_better: bool = False

    def to_json(self) -> dict[str, Any]:
        return {
            "metric": self.metric,
            "unit": self.unit,
            "ours": _rounded(self.ours),
            "peers": {name: _rounded(value) for name, value in self.peers.items()},
            "ratios": {name: self._ratio(value) for name, value in self.peers.items()},
        }

    def _ratio(self, peer: float) -> float | None:
        """None if the divisor is zero."""
        above, below = (peer, self.ours) if self.lower_is_better else (self.ours, peer)
        return _rounded(above / below) if below else None


def to_json(name: str, rows: Iterable[Row]) -> dict[str, Any]:
    """Return the whole answer to one question, ready to be written as JSON."""
    return {"name": name, "machine": machine(), "rows": [row.to_json() for row in rows]}


def to_text(name: str, rows: Iterable[Row]) -> str:
    """Return the answer as lines for a person."""
    lines = [f"{name} ({machine()})"]
    for row in rows:
        shown = row.to_json()
        lines.append(f"  {row.metric}: {shown['ours']:,} {row.unit}")
        for peer, value in shown["peers"].items():
            ratio = shown["ratios"][peer]
            lines.append(f"      {peer}: {value:,}" + ("" if ratio is None else f", ratio {ratio:,}"))
    return "\n".join(lines)


def medians(subjects: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Measure each subject once a round, one after the other, and return the median of each.

    Interleaving spreads what else the machine does over all of them.
    """
    seen: dict[str, list[float]] = {name: [] for name in subjects}
    for _ in range(rounds):
        for name, measure in subjects.items():
            seen[name].append(measure())
    return {name: statistics.median(values) for name, values in seen.items()}


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which `share` of the values lie."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def machine() -> str:
    """Name what was measured on: cores, memory, system, Python."""
    memory = Path("/proc/meminfo")
    size = f"{int(memory.read_text().split()[1]) / 2**20:.0f} GiB, " if memory.exists() else ""
    return f"{os.cpu_count()} cores, {size}{platform.system()} {platform.machine()}, Python {platform.python_version()}"


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
