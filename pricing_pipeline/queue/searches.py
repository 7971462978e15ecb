"""Searches and lists of providers: calls within their limits that name instruments and bring no prices."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pricing_pipeline.db.query_loader import call_sql
from pricing_pipeline.domain.calls import Receipt
from pricing_pipeline.errors import PricingError
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.providers.declared import DeclaredProvider
from pricing_pipeline.providers.searches import Listing, Searched
from pricing_pipeline.queue import limits
from pricing_pipeline.queue.pages import BY_HAND_SECONDS, CallByHand, ClaimedPages

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, Row


class Names(NamedTuple):
    """The provider's names of symbols by ours, and the cost of the call that brought them."""

    names: dict[str, list[str]]
    receipt: Receipt


def search(engine: Engine, client: ProviderClient, data_type: str, words: str, worker: str) -> list[Listing]:
    """Ask a provider's search, in one call of 10 s at most; see `_asked`."""

    def make(claimed: Row[Any]) -> Searched:
        return client.search(words, now=claimed.claimed_at, key_name=claimed.key_name)

    return _asked(engine, client, data_type, worker, make).listings


def names(
    engine: Engine, client: ProviderClient, data_type: str, asset_class: str, worker: str
) -> dict[str, list[str]]:
    """Ask a declared provider for its list of names (`DeclaredProvider.lists`); see `_asked`."""
    provider = client.provider
    assert isinstance(provider, DeclaredProvider)  # noqa: S101 - no other has lists

    of_class = provider.lists[asset_class]

    def make(claimed: Row[Any]) -> Names:
        by_hand = CallByHand(claimed.call_id, provider.name)
        return Names(
            *client.read(
                of_class.request(),
                of_class.names,
                now=claimed.claimed_at,
                key_name=claimed.key_name,
                pages=ClaimedPages(engine, by_hand, seconds=BY_HAND_SECONDS),
            )
        )

    return _asked(engine, client, data_type, worker, make).names


T = TypeVar("T", Searched, Names)


def _asked(engine: Engine, client: ProviderClient, data_type: str, worker: str, make: Callable[[Row[Any]], T]) -> T:
    """Make a call within the provider's limits. `data_type` is one that it serves, for the call log.

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
        found = make(claimed)
    except PricingError as error:
        with engine.begin() as connection:
            message = limits.message_of(connection, provider, error)
            limits.settle_failed(connection, call_id, provider, key_name, error, message, is_owned=False)
        raise PricingError(message) from error
    with engine.begin() as connection:
        limits.settle(connection, call_id, found.receipt, is_owned=False)
    return found


def _claim(connection: Connection, client: ProviderClient, data_type: str, worker: str) -> Row[Any]:
    keys = sorted(client.key_names)
    return call_sql(connection, "claim_search", client.provider.name, worker, keys, data_type).one()
