"""Answers that bring daily bars of one share, with the splits and dividends that their provider tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from pricing_pipeline.domain.answers import Adjust, Answer, CorporateAction, Dividend, Split
from pricing_pipeline.domain.observations import Adjustment, Observation, Rows
from pricing_pipeline.prices import actions, price_reader
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.refresh import settling
from pricing_pipeline.refresh.tally import Tally
from pricing_pipeline_tests.fixtures.core import DAILY, Core, midnight, observation

MARCH = (date(2010, 3, 1), date(2010, 3, 31))


def day(number: int) -> date:
    return date(2010, 3, number)


def split(on: int, new: str = "4", old: str = "1") -> Split:
    return Split("AAPL", day(on), Decimal(new), Decimal(old))


def dividend(on: int, cash: str, currency: str | None = "USD") -> Dividend:
    return Dividend("AAPL", day(on), Decimal(cash), currency)


def bar(on: int, close: str, adjustment: Adjustment = Adjustment.RAW, **more: Any) -> Observation:
    return replace(observation("AAPL", close, midnight(day(on)), **more), adjustment=adjustment)


def bring(
    core: Core,
    *bars: Observation,
    told: Sequence[CorporateAction] | None = None,
    latest: bool = False,
    gains_reported: frozenset[str] = frozenset(),
) -> Tally:
    """Settle a call that brought these bars, and the actions since the month's first day if any are told."""
    core.lift_limits()
    core.enqueue(DAILY, "AAPL", days=None if latest else MARCH)
    call = core.claim_one()
    since = {} if told is None else {"AAPL": day(1)}
    answer = Answer(
        observations=Rows(bars), actions=tuple(told or ()), actions_since=since, gains_reported=gains_reported
    )
    return settling.settle_answer(core.engine, call, Fetched(answer, 200, 100, body=b"{}"))


def closes(core: Core, adjust: Adjust | None = None, as_of: datetime | None = None) -> dict[int, str]:
    with core.engine.connect() as connection:
        found = price_reader.bars(connection, "AAPL", DAILY, *MARCH, as_of=as_of, adjust=adjust)
    return {one.observed_at.day: format(one.close, "f") for one in found}


def stored(core: Core, as_of: datetime | None = None) -> list[CorporateAction]:
    with core.engine.connect() as connection:
        return [one.action for one in actions.read(connection, "equity", "AAPL", as_of)]


def know_split(core: Core, on: int, new: int = 4) -> None:
    """Somebody has told a split, before the answer that does not name it."""
    core.heartbeat("ann", (DAILY, "AAPL"))
    core.rows(
        "INSERT INTO pricing.corporate_actions (asset_class, symbol, ex_on, kind, new_shares, old_shares, provider,"
        " call_id, recorded_at) VALUES ('equity', 'AAPL', :on, 'split', :new, 1, 'another', 0, pricing.clock())",
        on=day(on),
        new=new,
    )


def restatements(core: Core) -> list[Any]:
    return list(core.rows("SELECT * FROM pricing.restatements ORDER BY restatement_id"))
