"""`python -m benchmarks.curves FIGURES FOLDER`: draw the curves of `python -m benchmarks scaling --json` as SVG.

FIGURES is a file with that line of JSON. Both axes are logarithmic: a flat curve does not depend on the number.
"""

from __future__ import annotations

import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterable
from html import escape
from pathlib import Path

Point = tuple[float, float]
_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 720, 420, 70, 40, 150, 50
_COLOURS = ("#1b6ca8", "#c0392b", "#1e8449", "#7d3c98", "#b9770e")
_LABELS = {
    "subscriptions": "subscriptions",
    "data_types": "data types",
    "rows": "rows of history",
}


def main() -> None:
    """Write a picture for each kind of number."""
    figures, folder = Path(sys.argv[1]), Path(sys.argv[2])
    curves: dict[str, dict[str, list[Point]]] = defaultdict(lambda: defaultdict(list))
    for row in json.loads(figures.read_text())["rows"]:
        name, _, place = row["metric"].partition("@")
        kind, _, number = place.partition("=")
        if not row["peers"]:
            curves[kind][name].append((float(number), float(row["ours"])))
    for kind, found in curves.items():
        (folder / f"scaling-{kind.replace('_', '-')}.svg").write_text(draw(_LABELS[kind], found))


def draw(label: str, curves: dict[str, list[Point]]) -> str:
    """A picture of some curves over one axis."""
    points = [point for curve in curves.values() for point in curve]
    across, up = _Axis(x for x, _ in points), _Axis(y for _, y in points)
    width, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def place(x: float, y: float) -> str:
        return f"{_LEFT + across.part(x) * width:.1f},{_TOP + (1 - up.part(y)) * height:.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="20" font-size="14">Milliseconds by {escape(label)}</text>',
    ]
    for tick in across.ticks:
        x = place(tick, up.low).partition(",")[0]
        parts.append(f'<line x1="{x}" x2="{x}" y1="{_TOP}" y2="{_TOP + height}" stroke="#ddd"/>')
        parts.append(f'<text x="{x}" y="{_TOP + height + 18}" text-anchor="middle">{tick:,.0f}</text>')
    for tick in up.ticks:
        y = place(across.low, tick).partition(",")[2]
        parts.append(f'<line x1="{_LEFT}" x2="{_LEFT + width}" y1="{y}" y2="{y}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y}" dy="4" text-anchor="end">{tick:g}</text>')
    for number, (name, curve) in enumerate(curves.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        line = " ".join(place(*point) for point in sorted(curve))
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for point in curve:
            x, y = place(*point).split(",")
            parts.append(f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>')
        y_of_name = _TOP + 14 + 18 * number
        parts.append(
            f'<text x="{_LEFT + width + 10}" y="{y_of_name}" fill="{colour}">{escape(name.replace("_", " "))}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


class _Axis:
    """A logarithmic axis from one power of ten to another."""

    def __init__(self, values: Iterable[float]) -> None:
        found = [value for value in values if value > 0]
        self._from = math.floor(math.log10(min(found)))
        self._to = max(math.ceil(math.log10(max(found))), self._from + 1)
        self.low = 10.0**self._from
        self.ticks = [10.0**power for power in range(self._from, self._to + 1)]

    def part(self, value: float) -> float:
        """How far along the axis a value is, from 0 to 1."""
        return (math.log10(value) - self._from) / (self._to - self._from)


if __name__ == "__main__":
    main()
