"""Answers whose values may be quarantined, and the values that are."""

from __future__ import annotations

from datetime import date
from typing import Any

from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.domain.observations import Observation, Rows
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.quarantine import reviews
from pricing_pipeline.quarantine.quarantined_values import Decision
from pricing_pipeline.refresh import settling
from pricing_pipeline.refresh.tally import Tally
from pricing_pipeline_tests.fixtures.core import (
    Core,
)

BODY = b'{"close": "7250"}'


def bring(core: Core, call: Call, *observations: Observation, body: bytes = BODY, **parts: Any) -> Tally:
    """Settle a call as if its answer had brought these values."""
    answer = Answer(observations=Rows(observations), **parts)
    return settling.settle_answer(core.engine, call, Fetched(answer, 200, len(body), body=body))


def one_call(core: Core, data_type: str, *symbols: str, days: tuple[date, date] | None = None) -> Call:
    core.lift_limits()
    core.enqueue(data_type, *symbols, days=days)
    return core.claim_one()


def quarantined(core: Core) -> list[Any]:
    return list(core.rows("SELECT * FROM pricing.quarantined_values ORDER BY value_id"))


def release(core: Core, value_id: int, by: str, why: str | None = None) -> Decision:
    (decision,) = reviews.decide(core.engine, [value_id], "released", by, why)
    return decision


def reject(core: Core, value_id: int, by: str, why: str | None = None) -> Decision:
    (decision,) = reviews.decide(core.engine, [value_id], "rejected", by, why)
    return decision
