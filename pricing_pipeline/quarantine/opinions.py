"""Second opinions: ask another provider about quarantined values, once, as a worker or for a person.

The database grants the call within the provider's limits, quota and breaker, like any other call. The opinion is kept
beside the quarantined value and is never stored as a price.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from sqlalchemy import Connection, Engine

from pricing_pipeline.db.query_loader import query
from pricing_pipeline.domain.calls import Call, Receipt
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Observation
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import PricingError
from pricing_pipeline.providers.client import Fetched, ProviderClient
from pricing_pipeline.queue import limits

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
    return list(connection.execute(query("opinions.due")).scalars())


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


def put(engine: Engine, client: ProviderClient, question: Question) -> int:
    """Make the call of a question and store the opinions; returns the bytes on the wire.

    It takes 10 s at most. An error of the provider is not raised, but stored as its opinion.
    """
    call = question.call
    try:
        fetched = client.fetch(
            call.fetcher,
            question.symbols,
            call.window,
            now=call.claimed_at,
            key_name=call.key_name,
            asset_class=call.asset_class,
            overrides=call.overrides,
        )
    except PricingError as error:
        return _note_failure(engine, call, error)
    _note(engine, question, fetched)
    return fetched.wire_bytes


def ask(engine: Engine, clients: Mapping[str, ProviderClient], value_id: int, worker: str) -> str | None:
    """Ask the next provider of a quarantined value's route now; returns why nobody can be asked, else None.

    Makes one call, of 10 s at most. `of` returns the opinion.
    """
    with engine.begin() as connection:
        row = connection.execute(query("opinions.second_provider"), {"value_id": value_id}).one_or_none()
        if row is None:
            return "there is no such value"
        if row.provider is None:
            return (
                f"no other provider than {row.sent_by} is routed to {row.data_type}; add one to "
                "pricing.provider_routing with a higher rank"
            )
        keys = clients[row.provider].key_names
        question = claim(connection, row.provider, worker, keys, only_value=value_id)
    if isinstance(question, str):
        return question
    put(engine, clients[row.provider], question)
    return None


def _note(engine: Engine, question: Question, fetched: Fetched) -> None:
    call, answer = question.call, fetched.answer
    newest: dict[str, Observation] = {}
    for row in sorted(answer.observations, key=lambda other: other.observed_at):
        newest[row.symbol] = row
    reasons = {failure.symbol: failure.message for failure in answer.failures}
    values = [newest.get(symbol) for symbol in question.symbols]
    with engine.begin() as connection:
        connection.execute(
            query("opinions.note"),
            {
                "call_id": call.id,
                "symbols": list(question.symbols),
                "times": [row and row.observed_at for row in values],
                "amounts": [row and row.close for row in values],
                "currencies": [row and row.currency for row in values],
                "adjustments": [row and row.adjustment.value for row in values],
                "failures": [
                    None
                    if row is not None
                    else reasons.get(symbol, f"{call.provider} has no value of {symbol} for that time")
                    for symbol, row in zip(question.symbols, values, strict=True)
                ],
            },
        )
        receipt = Receipt(
            fetched.http_status, fetched.wire_bytes, fetched.units_left, shown=fetched.receipt.shown
        )
        limits.settle(connection, call.id, receipt)


def _note_failure(engine: Engine, call: Call, error: PricingError) -> int:
    with engine.begin() as connection:
        message = limits.message_of(connection, call.provider, error)
        connection.execute(query("opinions.fail"), {"call_id": call.id, "failure": message})
        limits.settle_failed(connection, call.id, call.provider, call.key_name, error, message)
    return int(getattr(error, "wire_bytes", 0))
