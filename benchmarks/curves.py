"""`python -m benchmarks.curves FIGURES FOLDER`: draw what `python -m benchmarks scaling --json` answers as SVG.

FIGURES is a file with that line of JSON. Both axes are logarithmic: a flat curve does not depend on the number. The
answer of `latency --json` is drawn as bars: where the seconds from due to stored go.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

Point = tuple[float, float]
_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 720, 420, 70, 40, 150, 50
_BAR, _BAR_LEFT = 40, 130
_COLOURS = ("#1b6ca8", "#c0392b", "#1e8449", "#7d3c98", "#b9770e")
_LABELS = {
    "subscriptions": "subscriptions",
    "data_types": "data types",
    "events": "prices fetched a day",
    "rows": "rows of history",
}


_STEP = re.compile(r"(?P<bar>cold|warm)_until_(?P<step>[a-z]+)_seconds(?:@pairs=(?P<pairs>\d+))?")
_STEPS = {
    "requested": "sensor requests a run",
    "launched": "Dagster launches it",
    "executing": "its process starts",
    "drained": "its drain begins",
    "queued": "price is queued",
    "claimed": "call is claimed",
    "stored": "price is stored",
}


def main() -> None:
    """Write the pictures for an answer."""
    answer, folder = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    if answer["name"] == "latency":
        (folder / "latency-steps.svg").write_text(draw_steps(_steps(answer["rows"])))
        return
    for kind, found in _curves(answer["rows"]).items():
        (folder / f"scaling-{kind.replace('_', '-')}.svg").write_text(draw(_LABELS[kind], found))


def _curves(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, list[Point]]]:
    curves: dict[str, dict[str, list[Point]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        name, _, place = row["metric"].partition("@")
        kind, _, number = place.partition("=")
        if not row["peers"]:
            curves[kind][name].append((float(number), float(row["ours"])))
    return curves


def _steps(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Seconds until each step, by bar."""
    bars: dict[str, dict[str, float]] = defaultdict(dict)
    for row in rows:
        found = _STEP.fullmatch(row["metric"])
        if found:
            pairs = f", {int(found['pairs']):,} pairs" if found["pairs"] else ""
            bars[found["bar"] + pairs][found["step"]] = float(row["ours"])
    return bars


def draw_steps(bars: Mapping[str, Mapping[str, float]]) -> str:
    """A picture of bars, each cut into the seconds that its steps take."""
    height = _TOP + len(bars) * _BAR + 40
    scale = (_WIDTH - _BAR_LEFT - 40) / max(max(ends.values()) for ends in bars.values())
    colours = dict(zip(_STEPS, (*_COLOURS, "#5d6d7e", "#117a65"), strict=True))
    parts = [*_start(height, "Seconds from due to stored, on average")]
    for number, (name, ends) in enumerate(bars.items()):
        top, began = _TOP + number * _BAR, 0.0
        parts.append(f'<text x="{_BAR_LEFT - 8}" y="{top + 18}" text-anchor="end">{escape(name)}</text>')
        for step, end in ends.items():
            x, width = _BAR_LEFT + began * scale, (end - began) * scale
            title = f"<title>{escape(_STEPS[step])}: {end - began:.2f} s</title>"
            parts.append(
                f'<rect x="{x:.1f}" y="{top}" width="{width:.1f}" height="26" fill="{colours[step]}">{title}</rect>'
            )
            if width > 30:
                middle = f'x="{x + width / 2:.1f}" y="{top + 18}" fill="white" text-anchor="middle"'
                parts.append(f"<text {middle}>{end - began:.2f}</text>")
            began = end
        parts.append(f'<text x="{_BAR_LEFT + began * scale + 6:.1f}" y="{top + 18}">{began:.2f}</text>')
    for number, (step, name) in enumerate(_STEPS.items()):
        x, y = _LEFT + number % 4 * 155, height - 30 + number // 4 * 18
        parts.append(f'<rect x="{x}" y="{y}" width="10" height="10" fill="{colours[step]}"/>')
        parts.append(f'<text x="{x + 14}" y="{y + 9}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _start(height: int, title: str) -> Iterator[str]:
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        'font-family="sans-serif" font-size="12">'
    )
    yield f'<rect width="{_WIDTH}" height="{height}" fill="white"/>'
    yield f'<text x="{_LEFT}" y="20" font-size="14">{escape(title)}</text>'


def draw(label: str, curves: dict[str, list[Point]]) -> str:
    """A picture of some curves over one axis."""
    points = [point for curve in curves.values() for point in curve]
    across, up = _Axis(x for x, _ in points), _Axis(y for _, y in points)
    width, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def place(x: float, y: float) -> str:
        return f"{_LEFT + across.part(x) * width:.1f},{_TOP + (1 - up.part(y)) * height:.1f}"

    parts = [*_start(_HEIGHT, f"Milliseconds by {label}")]
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
