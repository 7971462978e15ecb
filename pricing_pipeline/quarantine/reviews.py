"""Decide on quarantined values: a person decides on one value or a whole level, or a new split explains them.

A released value is stored as a price, a rejected one is not. Each decision is one statement and can be repeated.
plausibility.py decides which values are quarantined, quarantined_values.py keeps them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from pricing_pipeline.db.errors import is_conflict, is_refusal, reason, statement_error, transact
from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Adjustment, Observation, Observations, Rows
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import PricingError, UnknownValue
from pricing_pipeline.judging import plausibility
from pricing_pipeline.judging.knowledge import Verdict
from pricing_pipeline.prices import actions
from pricing_pipeline.prices import context as contexts
from pricing_pipeline.quarantine import quarantined_values
from pricing_pipeline.quarantine.quarantined_values import Decision, QuarantinedValue
from pricing_pipeline.registry import calendars, data_type_registry
from pricing_pipeline.registry.calendars import OpenedDay

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

_LOG = logging.getLogger(__name__)
_NO_CLAIM = UUID(int=0)


def decide(
    engine: Engine,
    ids: Sequence[int],
    decision: str,
    by: str,
    why: str | None = None,
    *,
    with_levels: bool = False,
    is_strict: bool = False,
) -> list[Decision]:
    """Make values `released` or `rejected`, with all quarantined values on their levels if so wanted.

    A released value is stored exactly as it came, with the provider and call that brought it: it enters the history,
    and is the latest price if none is newer. A pair that was backing off is due at once. A rejected one that comes
    again is counted, and nobody has to decide again. With `is_strict` either all are decided on or none: it raises
    UnknownValue for one that is not there, PricingError for others that cannot be.
    """

    def work(connection: Connection) -> list[Decision]:
        wanted = list(dict.fromkeys(ids))
        if with_levels:
            beside = (quarantined_values.level(connection, value_id) for value_id in wanted)
            wanted = list(dict.fromkeys([*wanted, *(value_id for level in beside for value_id in level)]))
        decisions = quarantined_values.decide(connection, wanted, decision, by, why)
        for decided in decisions if is_strict else ():
            if decided.is_refused(decision):
                kind = UnknownValue if decided.outcome == "unknown" else PricingError
                raise kind(
                    f"value {decided.value_id} cannot be {decision}: {_WHY_NOT[decided.outcome]}. Nothing has changed."
                )
        return decisions

    return transact(engine, work)


_WHY_NOT = {
    "unknown": "no value has this id",
    "unreadable": "its answer gave no value that could be stored",
    "retired": "its data type is retired",
    "released_already": "it was released already, and is believed now",
}


def judge_anew(engine: Engine) -> list[Decision]:
    """Judge quarantined values again: what is known of their instrument's splits or trading days has changed.

    Values that a new split explains are stored; repetitions of stored values are rejected; the others keep waiting. A
    history that came divided by one ratio is fetched again. Bars of a day that has become a session are stored.
    Returns the decisions.
    """
    decisions = release_opened_days(engine)
    with engine.connect() as connection:
        due = actions.unjudged(connection)
    for instrument in due:
        try:
            decisions += transact(engine, partial(_judge_instrument, instrument))
        except statement_error() as error:
            if is_conflict(error):
                continue  # the next round judges it
            if not is_refusal(error):
                raise
            _LOG.warning(
                "quarantined values of %s stay quarantined, because they cannot be stored: %s",
                instrument.symbol,
                reason(error),
            )
            transact(engine, partial(actions.note_judged, instrument=instrument))
    return decisions


def release_opened_days(engine: Engine) -> list[Decision]:
    """Release bars that were quarantined only because their exchange had no session on a day that is one now."""
    decisions: list[Decision] = []
    with engine.connect() as connection:
        opened_days = calendars.opened_days(connection)
    for opened in opened_days:
        try:
            decisions += transact(engine, partial(_release_opened, opened))
        except statement_error() as error:
            if is_conflict(error):
                continue  # the next round releases them
            if not is_refusal(error):
                raise
            _LOG.warning(
                "bars of %s on %s stay quarantined, because they cannot be stored: %s",
                opened.calendar,
                opened.day,
                reason(error),
            )
            transact(engine, partial(calendars.forget_opened_day, opened=opened))
    return decisions


def _release_opened(opened: OpenedDay, connection: Connection) -> list[Decision]:
    decisions = quarantined_values.decide(connection, opened.value_ids, "released", "calendars", opened.reason)
    calendars.forget_opened_day(connection, opened)
    return decisions


def _judge_instrument(instrument: actions.Unjudged, connection: Connection) -> list[Decision]:
    decisions = []
    fetchers = {type_.data_type: type_.fetcher for type_ in data_type_registry.active_data_types(connection)}
    for data_type in instrument.data_types:
        values = quarantined_values.of_level(connection, data_type, instrument.symbol)
        for provider in sorted({value.provider for value in values}):
            own = [value for value in values if value.provider == provider]
            believed, repeated = _judged(connection, own, fetchers[data_type], instrument)
            decisions += quarantined_values.decide(connection, believed, "released", instrument.by_whom, instrument.why)
            why = f"{instrument.why}, by which this is what is stored"
            decisions += quarantined_values.decide(connection, repeated, "rejected", instrument.by_whom, why)
    actions.note_judged(connection, instrument)
    return decisions


def _judged(
    connection: Connection,
    values: Sequence[QuarantinedValue],
    fetcher: Fetcher,
    instrument: actions.Unjudged,
) -> tuple[list[int], list[int]]:
    """The ids of the values that are believed now, and of those that repeat stored values in later shares.

    They are judged together with the stored values around them, as if one answer had brought both.
    """
    rows = {value.value_id: observation for value in values if (observation := value.observation) is not None}
    if not rows:
        return [], []
    call = _call(values[0], fetcher, list(rows.values()), instrument)
    verdict = _look(connection, call, Rows(rows.values()))
    believed, repeated = _points(verdict.good), _points(verdict.confirmed)
    return (
        [value_id for value_id, row in rows.items() if _points([row]) <= believed],
        [value_id for value_id, row in rows.items() if _points([row]) <= repeated],
    )


def _look(connection: Connection, call: Call, observed: Observations) -> Verdict:
    (symbol,) = {row.symbol for row in observed}
    # They are judged like an answer that should have named every split of its days.
    first = min(row.observed_at for row in observed).date()
    answer = Answer(observations=observed, actions_since={symbol: first - timedelta(days=1)})
    known = contexts.known_of(connection, call, answer)
    # Earlier doubted values are no witnesses, because they are the values being judged.
    about = replace((known | contexts.evidence(connection, call, observed, known))[symbol], witnesses=())
    if not (about.anchors or about.stored):
        return Verdict()  # with nothing stored to compare with, they would confirm each other
    times = {row.observed_at for row in observed}
    basis = about.adjustment or Adjustment.RAW
    around = [
        Observation(symbol, at, value, str(value), adjustment=basis)
        for at, value in about.stored.items()
        if at not in times
    ]
    rows = sorted([*observed, *around], key=lambda row: row.observed_at)
    return plausibility.judge(about, rows, call.fetcher, is_latest=True)


def _points(rows: Iterable[Observation]) -> set[tuple[datetime, Decimal]]:
    return {(row.observed_at, row.close) for row in rows}


def _call(value: QuarantinedValue, fetcher: Fetcher, rows: Sequence[Observation], instrument: actions.Unjudged) -> Call:
    """A call that could have brought these values, as far as judging needs it: it has no task."""
    days = [row.observed_at.date() for row in rows]
    return Call(
        id=value.call_id,
        provider=value.provider,
        key_name="",
        data_type=value.data_type,
        fetcher=fetcher,
        window=Window(min(days), max(days)),
        tasks=(),
        claim_token=_NO_CLAIM,
        claimed_at=instrument.until,
        asset_class=instrument.asset_class,
    )
