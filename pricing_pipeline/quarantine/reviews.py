"""What becomes of held values: a person decides on one or a whole level, or a split becomes known that explains them.

A released value is stored as a price, a rejected one stays out. Each decision is one statement and can be repeated.
What is held, and why, is plausibility.py's and held_values.py's.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from uuid import UUID

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.db.errors import is_conflict, is_refusal, reason, transact
from pricing_pipeline.domain.answers import Adjustment, Answer, Observation
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.prices import actions, known_values
from pricing_pipeline.quarantine import closed_days, held_values, judgement
from pricing_pipeline.quarantine.held_values import Decision, HeldValue
from pricing_pipeline.registry import data_type_registry
from pricing_pipeline.validation import plausibility
from pricing_pipeline.validation.knowledge import Verdict

_LOG = logging.getLogger(__name__)
_NO_CLAIM = UUID(int=0)


def release(engine: Engine, value_id: int, by: str, why: str | None = None) -> Decision:
    """Believe a value: store it exactly as it was held, with the provider and call that brought it.

    It enters the history, and is the latest price if none is newer. A pair that was backing off is due at once.
    """
    (decision,) = decide(engine, [value_id], "released", by, why)
    return decision


def reject(engine: Engine, value_id: int, by: str, why: str | None = None) -> Decision:
    """Keep a value out for good: when it comes again it is counted, and nobody is asked."""
    (decision,) = decide(engine, [value_id], "rejected", by, why)
    return decision


def decide(
    engine: Engine, ids: Sequence[int], decision: str, by: str, why: str | None = None
) -> list[Decision]:
    """Have values `released` or `rejected`: all of them, or none."""
    return transact(engine, lambda connection: held_values.decide(connection, ids, decision, by, why))


def decide_level(
    engine: Engine, value_id: int, decision: str, by: str, why: str | None = None
) -> list[Decision]:
    """Have all values `released` or `rejected` that are held with this one, on the same level."""

    def work(connection: Connection) -> list[Decision]:
        return held_values.decide(connection, held_values.level(connection, value_id), decision, by, why)

    return transact(engine, work)


def judge_anew(engine: Engine) -> list[Decision]:
    """Judge what is held of instruments of which a split has become known: a person or a source has told it.

    What it explains is stored; what it shows to be the stored values once more stays out; the rest waits on. A past
    that came by one ratio is asked for once more. Returns what was decided.
    """
    decisions = []
    with engine.connect() as connection:
        due = actions.unjudged(connection)
    for instrument in due:
        try:
            decisions += transact(engine, partial(_judge_instrument, instrument))
        except DBAPIError as error:
            if is_conflict(error):
                continue  # its turn comes again
            if not is_refusal(error):
                raise
            _LOG.warning(
                "what is held of %s stays so, for it cannot be stored: %s",
                instrument.symbol,
                reason(error),
            )
            transact(engine, partial(actions.note_judged, instrument=instrument))
    return decisions


def _judge_instrument(instrument: actions.Unjudged, connection: Connection) -> list[Decision]:
    decisions = []
    fetchers = {kind.data_type: kind.fetcher for kind in data_type_registry.active_data_types(connection)}
    for data_type in instrument.data_types:
        values = held_values.of_level(connection, data_type, instrument.symbol)
        for provider in sorted({value.provider for value in values}):
            own = [value for value in values if value.provider == provider]
            believed, repeated = _judged(connection, own, fetchers[data_type], instrument.until)
            decisions += held_values.decide(
                connection, believed, "released", instrument.by_whom, instrument.why
            )
            why = f"{instrument.why}, by which this is what is stored"
            decisions += held_values.decide(connection, repeated, "rejected", instrument.by_whom, why)
    actions.note_judged(connection, instrument)
    return decisions


def _judged(
    connection: Connection, values: Sequence[HeldValue], fetcher: Fetcher, now: datetime
) -> tuple[list[int], list[int]]:
    """The ids of the values that are believed now, and of those that are the stored ones of later shares.

    They are judged among what is stored around them, as if one answer had brought both.
    """
    rows = {value.value_id: observation for value in values if (observation := value.observation) is not None}
    if not rows:
        return [], []
    call = _call(values[0], fetcher, list(rows.values()), now)
    verdict = _look(connection, call, list(rows.values()))
    believed, repeated = _points(verdict.good), _points(verdict.confirmed)
    return (
        [value_id for value_id, row in rows.items() if _points([row]) <= believed],
        [value_id for value_id, row in rows.items() if _points([row]) <= repeated],
    )


def _look(connection: Connection, call: Call, observed: list[Observation]) -> Verdict:
    (symbol,) = {row.symbol for row in observed}
    # They are judged as an answer that should have named every split of its days.
    first = min(row.observed_at for row in observed).date()
    answer = Answer(observations=observed, actions_since={symbol: first - timedelta(days=1)})
    known = actions.refined(connection, call, answer, known_values.load(connection, call, observed))
    about = (known | judgement.with_proofs(connection, call, observed, known))[symbol]
    if not (about.anchors or about.stored):
        return Verdict()  # with nothing to compare them with, they would believe each other
    times = {row.observed_at for row in observed}
    basis = about.adjustment or Adjustment.RAW
    around = [
        Observation(symbol, at, value, str(value), adjustment=basis)
        for at, value in about.stored.items()
        if at not in times
    ]
    rows = sorted([*observed, *around], key=lambda row: row.observed_at)
    verdict = plausibility.judge(about, rows, call.fetcher, is_latest=True)
    return closed_days.doubt_closed_days(connection, call, {symbol: verdict})[symbol]


def _points(rows: Iterable[Observation]) -> set[tuple[datetime, Decimal]]:
    return {(row.observed_at, row.close) for row in rows}


def _call(value: HeldValue, fetcher: Fetcher, rows: Sequence[Observation], now: datetime) -> Call:
    """A call that would have brought these values, as far as judging needs it: it holds no task."""
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
        claimed_at=now,
    )
