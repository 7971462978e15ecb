"""Plots for asset metadata: small SVG pictures as data URIs, short enough for Dagster to show them inline.

This module only draws; prices/quality.py and samples.py read. Dagster hides Markdown of more than 999 characters behind
a link, so a plot has a fixed number of columns and whole coordinates, however many values it shows. Positions in a
picture are no prices: doubles are exact enough for them.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import pairwise
from statistics import median
from typing import Protocol
from xml.sax.saxutils import escape

import dagster as dg

from pricing_pipeline.defs.markdown import with_picture
from pricing_pipeline.prices.quality import FreshnessSample, PlotSeries, PlotValue

MOST_CHARACTERS = 999
_WIDTH, _HEIGHT = 240, 60
_COLUMNS = (60, 30, 15, 8)
_MARKS = 6
"""How many gaps, and how many revisions, are marked at most: the newest."""
_LINE, _GAP, _REVISED, _FRESH, _LATE = "#36c", "#f80", "#d22", "#292", "#d22"
_SAMPLED = timedelta(minutes=5)
_UNSAMPLED = timedelta(minutes=15)
"""Between two samples further apart the pipeline was down."""

Span = tuple[datetime, datetime]


def price_plot(series: PlotSeries | None) -> dict[str, dg.MetadataValue]:
    """The plot of one pair's price, with gaps as bands and revised values as dots; none with fewer than two values."""
    if series is None or len(series.values) < 2:
        return {}
    gaps = _gaps(series)
    return _shortest("price_plot", _about(series, len(gaps)), lambda columns: _price_svg(series.values, gaps, columns))


def freshness_plot(samples: Sequence[FreshnessSample]) -> dict[str, dg.MetadataValue]:
    """The plot of the fresh share of watched pairs over a day, with bands at the foot while some were late."""
    if len(samples) < 2:
        return {}
    last = samples[-1]
    about = f"fresh {last.fresh} of {last.watched} at {last.at:%m-%d %H:%M} UTC"
    return _shortest("freshness_plot", about, lambda columns: _freshness_svg(samples, columns))


class Day(Protocol):
    """A local day of a product: its slots, places taken and in all (None = not said), and the lowest price."""

    day: date
    slots: int
    taken: int | None
    capacity: int | None
    lowest: Decimal | None
    currency: str | None


def occupancy_plot(name: str, days: Sequence[Day]) -> dict[str, dg.MetadataValue]:
    """The plot of how full each day of a product is, as bars, with the lowest price as a line; none for one day."""
    if len(days) < 2 or not any(day.capacity for day in days):
        return {}
    slots = sum(day.slots for day in days)
    about = f"{name}, {slots} slots from {days[0].day} to {days[-1].day}"
    return _shortest("occupancy_plot", about, lambda columns: _occupancy_svg(days[:columns]))


class Offer(Protocol):
    """The prices at which a terminal sells a commodity to players (buy) and buys it (sell); None = not traded."""

    terminal: str
    buy: float | None
    sell: float | None


def spread_plot(commodity: str, terminals: Sequence[Offer]) -> dict[str, dg.MetadataValue]:
    """The plot of a commodity's prices at each terminal; None with fewer than two terminals."""
    if len(terminals) < 2:
        return {}
    about = f"{commodity} at {len(terminals)} terminals, the dearest first"
    return _shortest("spread_plot", about, lambda columns: _spread_svg(terminals[:columns]))


def _shortest(name: str, about: str, draw: Callable[[int], str]) -> dict[str, dg.MetadataValue]:
    """The picture with the most columns that Dagster still shows at once."""
    for columns in _COLUMNS:
        picture = with_picture(about, draw(columns))
        if len(picture.value or "") <= MOST_CHARACTERS:
            return {name: picture}
    return {}


def _about(series: PlotSeries, gaps: int) -> str:
    first, last = series.values[0], series.values[-1]
    revised = sum(value.is_revised for value in series.values)
    marks = [
        f"{count} {name}{'s' if count > 1 else ''}" for count, name in ((gaps, "gap"), (revised, "revision")) if count
    ]
    price = f"{last.price} {series.currency or ''}".strip()
    return "; ".join([f"{series.symbol} {price}, {_when(first.at, last.at)}", *marks])


def _when(first: datetime, last: datetime) -> str:
    """Both ends of the span, in days if that is exact enough, else in minutes."""
    begin, end = _ends(first, last)
    return f"{begin} to {end}{'' if _are_days(first, last) else ' UTC'}"


def _ends(first: datetime, last: datetime) -> tuple[str, str]:
    form = "%Y-%m-%d" if _are_days(first, last) else "%m-%d %H:%M"
    return f"{first:{form}}", f"{last:{form}}"


def _are_days(first: datetime, last: datetime) -> bool:
    return last - first > timedelta(days=2) or first.time() == last.time() == time()


def _gaps(series: PlotSeries) -> list[Span]:
    """Spans with missing values: by the calendar, or else much longer than usual between two values."""
    if series.gaps is not None:
        return [
            (datetime.combine(first, time(), UTC), datetime.combine(last, time(), UTC)) for first, last in series.gaps
        ]
    values = series.values
    usual = median((b.at - a.at).total_seconds() for a, b in pairwise(values))
    limit = max(timedelta(seconds=6 * usual), timedelta(hours=1))
    return [(a.at, b.at) for a, b in pairwise(values) if b.at - a.at > limit]


def _across(begin: datetime, end: datetime) -> Callable[[datetime], int]:
    """A function that gives the position of a time in the picture."""
    span = (end - begin).total_seconds()
    return lambda at: round((at - begin).total_seconds() / span * _WIDTH) if span > 0 else 0


def _price_svg(values: Sequence[PlotValue], gaps: Sequence[Span], columns: int) -> str:
    first, last = values[0].at, values[-1].at
    x = _across(first, last)
    prices = [value.price for value in values]
    low, high = min(prices), max(prices)

    def y(value: PlotValue) -> int:
        return round(float((high - value.price) / (high - low)) * (_HEIGHT - 4) + 2) if high > low else _HEIGHT // 2

    bands = "".join(f"M{x(a)},0h{max(x(b) - x(a), 1)}v{_HEIGHT}H{x(a)}" for a, b in gaps[-_MARKS:])
    path = ""
    for stroke in _strokes(values, gaps):
        corners = [(x(value.at), y(value)) for value in _thinned(stroke, len(values), columns)]
        steps = ",".join(f"{b[0] - a[0]},{b[1] - a[1]}" for a, b in pairwise(corners))
        path += f"M{corners[0][0]},{corners[0][1]}l{steps or '0,0'}"
    dots = "".join(f"M{x(v.at)},{y(v)}h0" for v in [v for v in values if v.is_revised][-_MARKS:])
    return _svg(
        (f"{low:.15g}", f"{high:.15g}"),
        _ends(first, last),
        [("price", _LINE)] + [("gap", _GAP)] * bool(bands) + [("revised", _REVISED)] * bool(dots),
        f"<path d='{bands}' fill='{_GAP}' opacity='.4'/>" if bands else "",
        f"<path d='{path}' stroke='{_LINE}'/>",
        f"<path d='{dots}' stroke='{_REVISED}' stroke-width='5' stroke-linecap='round'/>" if dots else "",
    )


def _strokes(values: Sequence[PlotValue], gaps: Sequence[Span]) -> Iterator[list[PlotValue]]:
    """The values between gaps, each part for a line of its own."""
    stroke = [values[0]]
    for before, value in pairwise(values):
        if any(a < value.at and b > before.at for a, b in gaps):
            yield stroke
            stroke = []
        stroke.append(value)
    yield stroke


def _thinned(stroke: Sequence[PlotValue], count: int, columns: int) -> list[PlotValue]:
    """One value of each column, and both ends of the stroke."""
    step = max(1, count // columns)
    last = len(stroke) - 1
    return [value for index, value in enumerate(stroke) if index % step == 0 or index == last]


def _freshness_svg(samples: Sequence[FreshnessSample], columns: int) -> str:
    first, last = samples[0].at, samples[-1].at
    x = _across(first, last)
    path = late = ""
    ended = height = late_to = -1
    for begin, end, group in _columns(samples, columns):
        # A column shows its worst moment.
        share = min((sample.fresh / sample.watched if sample.watched else 1.0) for sample in group)
        y = round((1 - share) * (_HEIGHT - 8) + 2)
        # The last sample is of this moment: it gets a small width to be visible.
        left, right = min(x(begin), _WIDTH - 2), min(x(end), _WIDTH)
        path += (f"v{y - height}" if y != height else "") if left == ended else f"M{left},{y}"
        path += f"h{right - left}"
        ended, height = right, y
        if any(sample.late for sample in group):
            late += f"H{right}" if late_to == left else f"M{left},58H{right}"
            late_to = right
    return _svg(
        ("0 %", "100 %"),
        _ends(first, last),
        [("fresh", _FRESH)] + [("some late", _LATE)] * bool(late),
        f"<path d='{path}' stroke='{_FRESH}'/>",
        f"<path d='{late}' stroke='{_LATE}' stroke-width='4'/>" if late else "",
    )


def _occupancy_svg(days: Sequence[Day]) -> str:
    width = _WIDTH // len(days)
    bars = ""
    for index, day in enumerate(days):
        if day.capacity:
            height = round((day.taken or 0) / day.capacity * _HEIGHT)
            bars += f"M{index * width},{_HEIGHT}v-{height}h{max(width - 1, 1)}v{height}"
    prices = [day.lowest for day in days if day.lowest is not None]
    low, high = (min(prices), max(prices)) if prices else (Decimal(0), Decimal(0))
    path = ""
    for index, day in enumerate(days):
        if day.lowest is not None:
            y = round(float((high - day.lowest) / (high - low)) * (_HEIGHT - 4) + 2) if high > low else _HEIGHT // 2
            path += f"{'L' if path else 'M'}{index * width + width // 2},{y}"
    currency = next((f" {day.currency}" for day in days if day.currency), "")
    return _svg(
        (f"{low}", f"{high}") if prices else ("", ""),
        (f"{days[0].day}", f"{days[-1].day}"),
        [("taken", _FRESH)] + [(f"from{currency}", _LINE)] * bool(path),
        f"<path d='{bars}' fill='{_FRESH}' opacity='.5'/>" if bars else "",
        f"<path d='{path}' stroke='{_LINE}'/>" if path else "",
    )


def _spread_svg(terminals: Sequence[Offer]) -> str:
    amounts = [amount for offer in terminals for amount in (offer.buy, offer.sell) if amount is not None]
    low, high = min(amounts), max(amounts)
    width = _WIDTH // len(terminals)

    def marks(values: Sequence[float | None]) -> str:
        path = ""
        for index, value in enumerate(values):
            if value is not None:
                y = round((high - value) / (high - low) * (_HEIGHT - 4) + 2) if high > low else _HEIGHT // 2
                path += f"M{index * width},{y}h{max(width - 1, 1)}"
        return path

    buys, sells = marks([offer.buy for offer in terminals]), marks([offer.sell for offer in terminals])
    return _svg(
        (f"{low:.15g}", f"{high:.15g}"),
        (terminals[0].terminal[:16], terminals[-1].terminal[:16]),
        [("costs", _LATE)] * bool(buys) + [("brings", _LINE)] * bool(sells),
        f"<path d='{buys}' stroke='{_LATE}' stroke-width='3'/>" if buys else "",
        f"<path d='{sells}' stroke='{_LINE}' stroke-width='3'/>" if sells else "",
    )


def _columns(
    samples: Sequence[FreshnessSample], columns: int
) -> Iterator[tuple[datetime, datetime, Sequence[FreshnessSample]]]:
    """Begin, end and samples of each column. Times without samples have no column."""
    step = -(-len(samples) // columns)
    start = 0
    for index, sample in enumerate(samples):
        following = samples[index + 1] if index + 1 < len(samples) else None
        is_seen_on = following is not None and following.at - sample.at <= _UNSAMPLED
        if is_seen_on and index - start + 1 < step:
            continue
        end = following.at if following is not None and is_seen_on else sample.at + _SAMPLED
        yield samples[start].at, end, samples[start : index + 1]
        start = index + 1


def _svg(prices: tuple[str, str], ends: tuple[str, str], legend: Sequence[tuple[str, str]], *parts: str) -> str:
    """A picture with a scale at its left, times and a legend at its foot, on white whatever the theme is."""
    low, high, begin, end = map(escape, (*prices, *ends))
    texts = f"<text x='-3' y='60'>{low}</text><text x='-3' y='8'>{high}</text>"
    texts += f"<text x='{_WIDTH}' y='69'>{end}</text>"
    names = "".join(f"<tspan fill='{colour}'>{escape(name)} </tspan>" for name, colour in legend)
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='400' viewBox='-45 -3 290 75' style='background:white'>"
        f"<g fill='none'><path d='M0,0V{_HEIGHT}H{_WIDTH}' stroke='#999'/>{''.join(parts)}</g>"
        f"<g font-size='8'><g text-anchor='end'>{texts}</g><text y='69'>{begin}</text>"
        f"<text x='85' y='69'>{names}</text></g></svg>"
    )
