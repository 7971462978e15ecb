"""What a person decides about a held value: released, it is stored as a price; rejected, it stays out for good.

Each decision is one transaction and can be repeated. What is held, and why, is plausibility.py's and quarantine.py's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from sqlalchemy import Engine

from pricing_pipeline import prices, quarantine, registry
from pricing_pipeline.domain import Call, Fetcher, Window
from pricing_pipeline.quarantine import HeldValue

_NO_CLAIM = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of one held value that a person decided on.

    `outcome` is released, rejected, released_already, rejected_already, unreadable (there is no value that could be
    stored), retired (nor a data type to store it in) or unknown. `is_latest` says that a released value is the pair's
    newest price now; `revised` that it took the place of another one of the same time.
    """

    value_id: int
    outcome: str
    value: HeldValue | None = None
    is_latest: bool = False
    revised: bool = False


def release(engine: Engine, value_id: int, by: str, why: str | None = None) -> Decision:
    """Believe a value: store it exactly as it was held, with the provider and call that brought it.

    It enters the history, and is the latest price if none is newer. A pair that was backing off is due at once.
    """
    with engine.begin() as connection:
        value = quarantine.show(connection, value_id)
        if value is None:
            return Decision(value_id, "unknown")
        if value.status == "released":
            return Decision(value_id, "released_already", value)
        observation = value.observation
        if observation is None:
            return Decision(value_id, "unreadable", value)
        kinds = {kind.data_type: kind for kind in registry.active_data_types(connection)}
        if value.data_type not in kinds:
            return Decision(value_id, "retired", value)
        quarantine.end_hold_off(connection, value)  # demand is locked before prices, here as everywhere
        call = _call(value, kinds[value.data_type].fetcher)
        day = observation.observed_at.date()
        in_the_past = replace(call, window=Window(day, day))
        is_latest = not any(near.place == "after" for near in quarantine.neighbours(connection, value_id))
        (stored,) = prices.store(connection, call if is_latest else in_the_past, [observation])
        if stored.is_stale_source:  # the latest price is newer than all of the history
            is_latest = False
            (stored,) = prices.store(connection, in_the_past, [observation])
        if is_latest:
            quarantine.date_released(connection, value_id)
        outcome = quarantine.decide(connection, value_id, "released", by, why)
        return Decision(value_id, outcome, value, is_latest, stored.revised > 0)


def reject(engine: Engine, value_id: int, by: str, why: str | None = None) -> Decision:
    """Keep a value out for good: when it comes again it is counted, and nobody is asked."""
    with engine.begin() as connection:
        value = quarantine.show(connection, value_id)
        return Decision(value_id, quarantine.decide(connection, value_id, "rejected", by, why), value)


def _call(value: HeldValue, fetcher: Fetcher) -> Call:
    """The call that brought a value, as far as storing needs it: long settled, and holding no task."""
    return Call(
        id=value.call_id,
        provider=value.provider,
        key_name="",
        data_type=value.data_type,
        fetcher=fetcher,
        window=None,
        tasks=(),
        claim_token=_NO_CLAIM,
        claimed_at=value.last_seen_at,
    )
