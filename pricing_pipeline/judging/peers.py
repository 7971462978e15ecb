"""Check that a quote and the daily bar of its day agree.

The later one is quarantined by the same limit as a quote beside the last quote. Pure functions.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from math import log

from pricing_pipeline.domain.bars import Bars
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Observation
from pricing_pipeline.judging.knowledge import Doubt, Doubted, Known, Peer
from pricing_pipeline.judging.steps import NEVER, QUESTIONED, QUOTE_LIMIT, are_confirmed, unit_factor


def agree(known: Known, bars: Bars) -> bool:
    """Whether none of the bars contradicts the quote of its day."""
    if known.peer is None:
        return True
    day = known.peer.at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return all(_distance(known, row) <= QUOTE_LIMIT for row in bars[bars.place_of(day) :])


def contradiction(known: Known, row: Observation, fetcher: Fetcher, needed: int) -> Doubted | None:
    """Why a value cannot be believed beside the believed value of its day; None if it can.

    `needed` values on one level, quarantined before, confirm it, unless it is too far away for any price.
    """
    peer, size = known.peer, _distance(known, row)
    if peer is None or size <= QUOTE_LIMIT or known.are_jumps_trusted:
        return None
    message = f"{row.close} of {row.observed_at:%Y-%m-%d} comes, and {peer.data_type} has {peer.value.normalize():f}"
    if (unit := unit_factor(size)) is not None:
        return Doubted(row, Doubt.UNIT, f"{message}: as if in another unit (a factor of {unit})")
    if size >= NEVER:
        return Doubted(row, Doubt.JUMP, f"{message}: no price is both on one day")
    alike = {p.at for p in known.witnesses if abs(log(float(p.value) / float(row.close))) <= QUESTIONED}
    if are_confirmed(alike | {row.observed_at}, fetcher, needed):
        return None
    return Doubted(row, Doubt.JUMP, f"{message}: quarantined until more values confirm it")


def _distance(known: Known, row: Observation) -> float:
    """The distance, as a logarithm, between a value and the believed one of its day; 0 if they cannot be compared.

    A bar reaches from its low to its high: on the day of a crash, a quote lies between them. A value that equals the
    stored one is believed already. A value in another currency is judged by the rule on currencies.
    """
    peer = known.peer
    if peer is None or _day(peer.at) != _day(row.observed_at):
        return 0.0
    if known.stored.get(row.observed_at) == row.close or _are_of_two_currencies(peer, row):
        return 0.0
    if peer.is_bar:
        bar, quote = _reach(peer.low, peer.high, peer.value), row.close
    else:
        bar, quote = _reach(row.low, row.high, row.close), peer.value
    # On a split's day, a quote before the session is in old shares; a quote may also be in new shares a day early.
    near = [shares for ex_on, shares in known.splits if abs((ex_on - _day(peer.at)).days) <= 1]
    ratios = [1.0, *peer.splits, *near]
    return min(_outside(float(quote) * by, bar) for ratio in ratios for by in (ratio, 1 / ratio))


def _reach(low: Decimal | None, high: Decimal | None, close: Decimal) -> tuple[Decimal, Decimal]:
    return (close, close) if low is None or high is None else (low, high)


def _outside(value: float, bar: tuple[Decimal, Decimal]) -> float:
    return max(log(float(bar[0]) / value), log(value / float(bar[1])), 0.0)


def _are_of_two_currencies(peer: Peer, row: Observation) -> bool:
    return None not in (peer.currency, row.currency) and peer.currency != row.currency


def _day(at: datetime) -> date:
    return at.astimezone(UTC).date()
