"""Second opinions: ask another provider about quarantined values, once, as a worker or for a person.

The database grants the call within the provider's limits, quota and breaker, like any other call. The opinion is kept
beside the quarantined value and is never stored as a price.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pricing_pipeline.db.query_loader import call_sql, query
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Observation
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import PricingError, UnknownValue
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.providers.dialogue import Pages
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.queue import limits
from pricing_pipeline.queue.pages import BY_HAND_SECONDS, ClaimedPages

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, Row

_NO_CLAIM = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Opinion:
    """Another provider's value for a quarantined value, with its time (UTC), or its `failure` in words.

    `ratio` is the quarantined value divided by this one, on one basis. `verdict` is agrees (within a tenth) or
    disagrees. Both are None if the values cannot be compared.
    """

    provider: str
    call_id: int
    asked_at: datetime
    answered_at: datetime | None
    observed_at: datetime | None
    value: Decimal | None
    currency: str | None
    adjustment: str | None
    ratio: Decimal | None
    verdict: str | None
    failure: str | None


@dataclass(frozen=True, slots=True)
class Question:
    """A granted call about quarantined values: it has no task. `symbols` are those of the `value_ids`, each once."""

    call: Call
    value_ids: Sequence[int]
    symbols: Sequence[str]


def of(connection: Connection, value_ids: Collection[int]) -> Mapping[int, list[Opinion]]:
    """The opinions on some quarantined values, by their ids."""
    opinions: defaultdict[int, list[Opinion]] = defaultdict(list)
    for row in connection.execute(query("opinions.of"), {"value_ids": list(value_ids)}).mappings():
        fields = dict(row)
        opinions[fields.pop("value_id")].append(Opinion(**fields))
    return opinions


def due(connection: Connection) -> list[str]:
    """Providers that can be asked about quarantined values now."""
    return list(call_sql(connection, "opinions_due").scalars())


def claim(
    connection: Connection,
    provider: str,
    worker: str,
    keys: Collection[str],
    *,
    run_id: str | None = None,
    only_value: int | None = None,
) -> Question | str:
    """Claim one call to a provider about quarantined values; returns the reason, in words, if none is granted.

    Commit before making the call. `only_value` limits it to that value.
    """
    parameters = {
        "provider": provider,
        "worker": worker,
        "keys": sorted(keys),
        "run_id": run_id,
        "only_value": only_value,
    }
    row = connection.execute(query("opinions.claim"), parameters).one()
    if row.refusal is not None:
        return str(row.refusal)
    call = Call(
        id=row.call_id,
        provider=provider,
        key_name=row.key_name,
        data_type=row.data_type,
        fetcher=Fetcher(row.fetcher),
        window=None if row.day is None else Window(row.day, row.day),
        tasks=(),
        claim_token=_NO_CLAIM,
        claimed_at=row.claimed_at,
        asset_class=row.asset_class,
        overrides=row.overrides or {},
    )
    return Question(call, row.value_ids, row.symbols)


def fetch(engine: Engine, client: ProviderClient, question: Question, pages: Pages) -> int:
    """Make the call of a question and store the opinions; returns the bytes on the wire of its first request.

    A request takes 10 s at most. An error of the provider is not raised, but stored as its opinion.
    """
    call = question.call
    try:
        fetched = client.make(call, question.symbols, pages=pages)
    except PricingError as error:
        return _note_failure(engine, call, error)
    _note(engine, question, fetched)
    return fetched.wire_bytes


def ask(engine: Engine, clients: Mapping[str, ProviderClient], value_id: int, worker: str) -> str | None:
    """Ask the next provider of a quarantined value's route now; returns why nobody can be asked, else None.

    Makes one call, of 10 s at most, or of a minute if it takes several requests. `of` returns the opinion.
    """
    with engine.begin() as connection:
        row = connection.execute(query("opinions.second_providers"), {"value_ids": [value_id]}).one_or_none()
        if row is None:
            return "there is no such value"
        if row.provider is None:
            return _without_route(row)
        keys = clients[row.provider].key_names
        question = claim(connection, row.provider, worker, keys, only_value=value_id)
    if isinstance(question, str):
        return question
    fetch(engine, clients[row.provider], question, ClaimedPages(engine, question.call, seconds=BY_HAND_SECONDS))
    return None


def ask_soon(connection: Connection, value_ids: Collection[int]) -> Mapping[int, str]:
    """Have the next drain ask about quarantined values, as soon as limits allow; returns the provider of each value.

    `of` returns the opinions later. Raises UnknownValue, and PricingError for a value that is decided on or about which
    nobody can be asked.
    """
    parameters = {"value_ids": list(value_ids)}
    rows = {row.value_id: row for row in connection.execute(query("opinions.second_providers"), parameters)}
    waiting = set(connection.execute(query("opinions.ask_again"), parameters).scalars())
    for value_id in value_ids:
        if value_id not in rows:
            raise UnknownValue(f"there is no quarantined value {value_id}. Nothing has changed.")
        refusal = None
        if value_id not in waiting:
            refusal = f"it is {rows[value_id].status} already"
        elif rows[value_id].provider is None:
            refusal = _without_route(rows[value_id])
        elif not rows[value_id].has_day:
            refusal = "it names no day that another provider could be asked about"
        if refusal is not None:
            raise PricingError(f"no provider was asked about value {value_id}: {refusal}. Nothing has changed.")
    return {value_id: rows[value_id].provider for value_id in value_ids}


def _without_route(row: Row[Any]) -> str:
    return f"no other provider than {row.sent_by} is routed to {row.data_type}; `pricing-pipeline route add` adds one"


def _note(engine: Engine, question: Question, fetched: Fetched) -> None:
    call, answer = question.call, fetched.answer
    newest: dict[str, Observation] = {}
    for row in sorted(answer.observations, key=lambda other: other.observed_at):
        newest[row.symbol] = row
    reasons = {failure.symbol: failure.message for failure in answer.failures}
    values = [newest.get(symbol) for symbol in question.symbols]
    with engine.begin() as connection:
        call_sql(
            connection,
            "note_opinions",
            call.id,
            list(question.symbols),
            [row and row.observed_at for row in values],
            [row and row.close for row in values],
            [row and row.currency for row in values],
            [row and row.adjustment.value for row in values],
            [
                None
                if row is not None
                else reasons.get(symbol, f"{call.provider} has no value of {symbol} for that time")
                for symbol, row in zip(question.symbols, values, strict=True)
            ],
        )
        limits.settle(connection, call.id, replace(fetched.receipt, kind=None))


def _note_failure(engine: Engine, call: Call, error: PricingError) -> int:
    with engine.begin() as connection:
        message = limits.message_of(connection, call.provider, error)
        connection.execute(query("opinions.fail"), {"call_id": call.id, "failure": message})
        limits.settle_failed(connection, call.id, call.provider, call.key_name, error, message)
    return int(getattr(error, "wire_bytes", 0))
