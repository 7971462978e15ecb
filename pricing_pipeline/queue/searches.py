"""Searches of providers: a call within their limits, like any other, that names instruments and brings no price."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Engine, Row

from pricing_pipeline.db.query_loader import query
from pricing_pipeline.errors import PricingError
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.providers.searches import Listing
from pricing_pipeline.queue import limits


def search(engine: Engine, client: ProviderClient, data_type: str, words: str, worker: str) -> list[Listing]:
    """Ask a provider's search, in one call of 10 s at most. `data_type` is one that it serves, for the call log.

    The call uses units and bytes, and a refusal pauses its key. Otherwise it says nothing about the provider: its
    answer neither begins nor ends an outage of prices. Raises PricingError with the reason if it may not be asked now,
    and what went wrong with the call.
    """
    provider = client.provider.name
    with engine.begin() as connection:
        limits.register_keys(connection, provider, client.key_names)
        claimed = _claim(connection, client, data_type, worker)
    if claimed.refusal is not None:
        raise PricingError(f"{provider} is not asked: {claimed.refusal.rstrip('.')}.")
    call_id, key_name = claimed.call_id, claimed.key_name
    try:
        searched = client.search(words, now=claimed.claimed_at, key_name=key_name)
    except PricingError as error:
        with engine.begin() as connection:
            message = limits.message_of(connection, provider, error)
            limits.settle_failed(connection, call_id, provider, key_name, error, message, is_owned=False)
        raise PricingError(message) from error
    with engine.begin() as connection:
        limits.settle(connection, call_id, searched.receipt, is_owned=False)
    return searched.listings


def _claim(connection: Connection, client: ProviderClient, data_type: str, worker: str) -> Row[Any]:
    parameters = {
        "provider": client.provider.name,
        "worker": worker,
        "keys": sorted(client.key_names),
        "data_type": data_type,
    }
    return connection.execute(query("queue.claim_search"), parameters).one()
