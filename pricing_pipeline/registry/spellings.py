"""How providers spell an instrument: by their rules, and where people have given another spelling."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pricing_pipeline.db.errors import sentence, statement_error
from pricing_pipeline.db.query_loader import query
from pricing_pipeline.errors import PricingError, UnknownRule
from pricing_pipeline.providers.base import Provider
from pricing_pipeline.providers.declared import DeclaredProvider
from pricing_pipeline.providers.spellings import NO_OVERRIDES, spelling_of
from pricing_pipeline.registry.declarations import known_providers, provider_named

if TYPE_CHECKING:
    from sqlalchemy import Connection

_MOST_NAMES = 5
"""How many names of one symbol are told."""


@dataclass(frozen=True, slots=True)
class Spelled:
    """A provider's spelling of a symbol. `by` is rule or override; `is_possible` is False if it can have no such."""

    provider: str
    spelling: str
    by: str
    is_possible: bool


def of(connection: Connection, asset_class: str, symbol: str) -> list[Spelled]:
    """How each provider that serves a class spells one of its symbols."""
    parameters = {"asset_class": asset_class, "symbol": symbol}
    return [
        _spelled(connection, row.provider, asset_class, symbol, row.spelling)
        for row in connection.execute(query("spellings.at_providers"), parameters)
    ]


def at(connection: Connection, provider: str, asset_class: str, symbol: str) -> str:
    """How one provider spells a symbol: as a person has said, else by its rule."""
    spelled = {row.provider: row.spelling for row in of(connection, asset_class, symbol)}
    return spelled.get(provider) or _by_rule(provider_named(connection, provider), asset_class, symbol)


@dataclass(frozen=True, slots=True)
class SpellingUse:
    """What is stored of a symbol from a provider, read while it was spelled so."""

    spelling: str
    values: int
    data_types: Sequence[str]


def use(connection: Connection, provider: str, asset_class: str, symbol: str) -> SpellingUse:
    """The spelling in use, and what was read under it: since it was given, or ever where it is the rule's."""
    parameters = {"provider": provider, "asset_class": asset_class, "symbol": symbol}
    row = connection.execute(query("spellings.use"), parameters).one()
    return SpellingUse(
        row.spelling or _by_rule(provider_named(connection, provider), asset_class, symbol),
        row.values_read,
        row.data_types,
    )


def give(connection: Connection, provider: str, asset_class: str, symbol: str, spelling: str) -> Spelled:
    """Have a provider asked for a symbol in this spelling.

    Raises PricingError for one that the provider cannot have, or that another instrument has there by rule; the
    database refuses one that another instrument has by an override.
    """
    _require_possible(connection, provider, spelling)
    parameters = {"provider": provider, "asset_class": asset_class, "symbol": symbol}
    # First: from here on no session adds an instrument until the transaction ends.
    connection.execute(query("spellings.give"), {**parameters, "spelling": spelling})
    service = provider_named(connection, provider)
    for other in connection.execute(query("spellings.others"), parameters).scalars():
        # Providers make no difference between small and capital letters.
        if _by_rule(service, asset_class, other).upper() == spelling.upper():
            raise _shared(provider, other, spelling)
    return _spelled(connection, provider, asset_class, symbol, spelling)


@dataclass(frozen=True, slots=True)
class Filled:
    """The result of reading a provider's list: the spellings given, and why others were not, by symbol."""

    given: dict[str, str]
    left: dict[str, str]


def fill(
    connection: Connection, service: DeclaredProvider, asset_class: str, names: Mapping[str, Sequence[str]]
) -> Filled:
    """Have a provider asked for instruments by its own `names` in a list, by ours in capital letters.

    A name in the declaration counts more, and so does a spelling that is there. Two names of one symbol are left to a
    person.
    """
    given, left = dict[str, str](), dict[str, str]()
    parameters = {"provider": service.name, "asset_class": asset_class, "symbol": ""}
    for symbol in connection.execute(query("spellings.others"), parameters).scalars().all():
        part = service.listed_part(symbol, asset_class)
        if part is None:
            continue
        found = names.get(part.upper(), [])
        if len(found) != 1:
            several = ", ".join(found[:_MOST_NAMES]) + (" and others" if len(found) > _MOST_NAMES else "")
            left[symbol] = f"{part} may be {several}" if found else f"{part} is not in the list"
            continue
        spelling = service.spell_listed(symbol, asset_class, found[0])
        try:
            with connection.begin_nested():
                give(connection, service.name, asset_class, symbol, spelling)
        except PricingError as error:
            left[symbol] = str(error)
        except statement_error() as error:
            left[symbol] = sentence(error)
        else:
            given[symbol] = spelling
    return Filled(given, left)


def require_free(connection: Connection, asset_class: str, symbols: Collection[str]) -> None:
    """Raise PricingError for new symbols that a provider spells as a person has said that it spells another one."""
    given = list(connection.execute(query("spellings.given"), {"asset_class": asset_class}))
    own = {(row.provider, row.symbol) for row in given}
    known = known_providers(connection) if given else {}
    for row in given:
        for symbol in symbols:
            rule = _by_rule(known.get(row.provider), asset_class, symbol)
            if (row.provider, symbol) not in own and rule.upper() == row.spelling.upper():
                raise PricingError(
                    f"{row.provider} is asked for {row.symbol} as {row.spelling}, and would be for {symbol}, too: two "
                    f"symbols would get one answer. `pricing-pipeline instrument spell {row.symbol} --at "
                    f"{row.provider} --undo` takes that spelling back. Nothing is added."
                )


def take_back(connection: Connection, provider: str, asset_class: str, symbol: str) -> Spelled:
    """Have a provider asked for a symbol by its rule again.

    Raises UnknownRule if nobody has given a spelling, and PricingError if another symbol is spelled so now.
    """
    parameters = {"provider": provider, "asset_class": asset_class, "symbol": symbol}
    if connection.execute(query("spellings.take_back"), parameters).one_or_none() is None:
        raise UnknownRule(
            f"nobody has given a spelling of {symbol} ({asset_class}) at {provider}; its rule holds already."
        )
    spelled = _spelled(connection, provider, asset_class, symbol, None)
    holder = {"provider": provider, "asset_class": asset_class, "spelling": spelled.spelling}
    other = connection.execute(query("spellings.holder"), holder).scalar_one_or_none()
    if other is not None:
        raise _shared(provider, other, spelled.spelling)
    return spelled


def _shared(provider: str, other: str, spelling: str) -> PricingError:
    return PricingError(
        f"{provider} is asked for {other} as {spelling}: two symbols would get one answer. "
        f"`pricing-pipeline instrument spell {other} --at {provider} --as SPELLING` gives {other} another one."
    )


def _require_possible(connection: Connection, provider: str, spelling: str) -> None:
    known = provider_named(connection, provider)
    if known is not None and not known.accepts(spelling):
        raise PricingError(f"{provider} has no symbols spelled like {spelling!r}. Nothing has changed.")


def _by_rule(known: Provider | None, asset_class: str, symbol: str) -> str:
    """The rule's spelling; a provider without a class in this version has no rules."""
    return symbol if known is None else spelling_of(known, symbol, asset_class, NO_OVERRIDES)


def _spelled(connection: Connection, provider: str, asset_class: str, symbol: str, override: str | None) -> Spelled:
    known = provider_named(connection, provider)
    spelling = override or _by_rule(known, asset_class, symbol)
    is_possible = known is None or known.accepts(spelling)
    return Spelled(provider, spelling, "override" if override else "rule", is_possible)
