"""Plots for asset metadata: small SVG pictures as data URIs, short enough for Dagster to show them inline.

Pure drawing over what checks.py has read. Dagster shows Markdown of up to 999 characters at once and hides what is
longer behind a link, so a plot has a fixed number of columns and whole coordinates, however much it stands for.
Positions on a picture are no prices: doubles are exact enough for them.
"""

import base64
from collections.abc import Sequence
from datetime import datetime, time, timedelta
from itertools import pairwise
from statistics import median

import dagster as dg

from pricing_pipeline.checks import Portrait, Portrayed, Served

MOST_CHARACTERS = 999
_WIDTH, _HEIGHT = 240, 60
_COLUMNS = 60
_MARKS = 6
"""Gaps, and revisions, that are marked; of more the newest."""
_LINE, _GAP, _REVISED, _FRESH, _LATE = "#36c", "#fc8", "#d22", "#4a4", "#d22"


def price_plot(portrait: Portrait | None) -> dict[str, dg.MetadataValue]:
    """The price of one pair: gaps are bands, revised values dots. Empty with fewer than two values."""
    if portrait is None or len(portrait.values) < 2:
        return {}
    values = portrait.values
    for columns in (_COLUMNS, _COLUMNS // 2, _COLUMNS // 4):
        said = _markdown(_about(portrait), _price_svg(values, columns))
        if len(said) <= MOST_CHARACTERS:
            return {"price_plot": dg.MetadataValue.md(said)}
    return {}


def freshness_plot(samples: Sequence[Served]) -> dict[str, dg.MetadataValue]:
    """The share of watched pairs that were fresh over a day; times when some were late are bands at the foot."""
    if len(samples) < 2:
        return {}
    last = samples[-1]
    about = f"fresh {last.fresh} of {last.watched}, {_when(samples[0].at, last.at)}"
    for columns in (_COLUMNS, _COLUMNS // 2, _COLUMNS // 4):
        said = _markdown(about, _freshness_svg(samples, columns))
        if len(said) <= MOST_CHARACTERS:
            return {"freshness_plot": dg.MetadataValue.md(said)}
    return {}


def _about(portrait: Portrait) -> str:
    first, last = portrait.values[0], portrait.values[-1]
    revised = sum(value.is_revised for value in portrait.values)
    marks = [
        f"{count} {name}{'s' if count > 1 else ''}"
        for count, name in ((len(_gaps(portrait.values)), "gap"), (revised, "revision"))
        if count
    ]
    price = f"{last.price} {portrait.currency or ''}".strip()
    prices = [value.price for value in portrait.values]
    span = f"from {min(prices)} to {max(prices)}, {_when(first.at, last.at)}"
    return "; ".join([f"{portrait.symbol} {price}, {span}", *marks])


def _when(first: datetime, last: datetime) -> str:
    """Days where they say it all, else minutes."""
    if last - first > timedelta(days=2) or first.time() == last.time() == time():
        return f"{first:%Y-%m-%d} to {last:%Y-%m-%d}"
    return f"{first:%m-%d %H:%M} to {last:%m-%d %H:%M} UTC"


def _gaps(values: Sequence[Portrayed]) -> list[tuple[Portrayed, Portrayed]]:
    """Pairs of neighbours that are much further apart than is usual: holidays of four days are none."""
    usual = median((b.at - a.at).total_seconds() for a, b in pairwise(values))
    limit = max(timedelta(seconds=6 * usual), timedelta(hours=1))
    return [(a, b) for a, b in pairwise(values) if b.at - a.at > limit]


def _price_svg(values: Sequence[Portrayed], columns: int) -> str:
    begin, end = values[0].at.timestamp(), values[-1].at.timestamp()
    prices = [float(value.price) for value in values]
    low, high = min(prices), max(prices)

    def x(value: Portrayed) -> int:
        return round((value.at.timestamp() - begin) / (end - begin) * _WIDTH) if end > begin else 0

    def y(value: Portrayed) -> int:
        return (
            round((high - float(value.price)) / (high - low) * (_HEIGHT - 4) + 2)
            if high > low
            else _HEIGHT // 2
        )

    gaps = _gaps(values)
    bands = "".join(f"M{x(a)},0h{max(x(b) - x(a), 1)}v{_HEIGHT}H{x(a)}" for a, b in gaps[-_MARKS:])
    breaks = {id(b) for _, b in gaps}
    path, before = "", (0, 0)
    for value in _thinned(values, columns, breaks):
        at = (x(value), y(value))
        if not path or id(value) in breaks:
            path += f"M{at[0]},{at[1]}l"
        else:
            path += f"{at[0] - before[0]},{at[1] - before[1]},"
        before = at
    path = path.replace(",M", "M").replace("lM", "M").rstrip(",l")
    dots = "".join(f"M{x(v)},{y(v)}h0" for v in [v for v in values if v.is_revised][-_MARKS:])
    return _svg(
        f"<path d='{bands}' fill='{_GAP}'/>" if bands else "",
        f"<path d='{path}' fill='none' stroke='{_LINE}'/>",
        f"<path d='{dots}' stroke='{_REVISED}' stroke-width='5' stroke-linecap='round'/>" if dots else "",
    )


def _thinned(values: Sequence[Portrayed], columns: int, breaks: set[int]) -> list[Portrayed]:
    """The last value of each column, and both sides of every gap, so that none is drawn over."""
    step = max(1, len(values) // columns)
    last = len(values) - 1
    return [
        value
        for index, value in enumerate(values)
        if index % step == 0
        or index == last
        or id(value) in breaks
        or (index < last and id(values[index + 1]) in breaks)
    ]


def _freshness_svg(samples: Sequence[Served], columns: int) -> str:
    step = max(1, -(-len(samples) // columns))
    groups = [samples[start : start + step] for start in range(0, len(samples), step)]
    width = _WIDTH // len(groups)
    path = late = ""
    before = 0
    for index, group in enumerate(groups):
        # The worst moment of a column is what it is for.
        share = min((one.fresh / one.watched if one.watched else 1.0) for one in group)
        y = round((1 - share) * (_HEIGHT - 8) + 2)
        path += f"M0,{y}h{width}" if not path else f"v{y - before}h{width}"
        before = y
        if any(one.late for one in group):
            late += f"M{index * width},{_HEIGHT - 4}h{width}v4h-{width}"
    return _svg(
        f"<path d='{path}' fill='none' stroke='{_FRESH}'/>",
        f"<path d='{late}' fill='{_LATE}'/>" if late else "",
    )


def _svg(*parts: str) -> str:
    size = f"width='{2 * _WIDTH}' height='{2 * _HEIGHT}' viewBox='0 0 {_WIDTH} {_HEIGHT}'"
    return f"<svg xmlns='http://www.w3.org/2000/svg' {size}>{''.join(parts)}</svg>"


def _markdown(about: str, svg: str) -> str:
    picture = base64.b64encode(svg.encode()).decode()
    return f"{about}\n\n![{about.partition(',')[0]}](data:image/svg+xml;base64,{picture})"
