"""The registry of data types and providers. Comments in the database document its columns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date
from typing import TYPE_CHECKING, Any

from pricing_pipeline.db.errors import reason, statement_error
from pricing_pipeline.db.query_loader import call_sql, query
from pricing_pipeline.domain.data_types import DataType, Fetcher
from pricing_pipeline.errors import PricingError, UnknownDataType, UnknownSymbol

if TYPE_CHECKING:
    from sqlalchemy import Connection


def active_data_types(connection: Connection) -> list[DataType]:
    """Every active data type, by name."""
    rows = connection.execute(query("registry.types"), {"is_active": True}).mappings()
    return [DataType(**{**row, "fetcher": Fetcher(row["fetcher"])}) for row in rows]


def retired_data_types(connection: Connection) -> list[DataType]:
    """Every retired data type, by name."""
    rows = connection.execute(query("registry.types"), {"is_active": False}).mappings()
    return [DataType(**{**row, "fetcher": Fetcher(row["fetcher"])}) for row in rows]


def active_data_type(connection: Connection, name: str) -> DataType:
    """An active data type. Raises UnknownDataType, which says how to revive a retired one, or lists the active ones."""
    types = {type_.data_type: type_ for type_ in active_data_types(connection)}
    if name not in types:
        retired = connection.execute(query("registry.said_of_retired"), {"data_type": name}).scalar()
        if retired is not None:
            raise UnknownDataType(f"{retired}.")
        raise UnknownDataType(
            f"there is no active data type {name!r}; there are: {', '.join(types) or 'none yet'}. "
            "`pricing-pipeline type list` describes them."
        )
    return types[name]


def misfit(
    connection: Connection, symbol: str, *, data_type: str | None = None, asset_class: str | None = None
) -> str | None:
    """Why watching does not make a symbol known: how symbols of the data type or class look. None if it does."""
    words: str | None = call_sql(connection, "describe_misfit", symbol, data_type, asset_class).scalar_one()
    return words


def unknown_symbol(
    connection: Connection,
    symbol: str,
    way: str = "watching it adds it",
    *,
    data_type: str | None = None,
    asset_class: str | None = None,
) -> UnknownSymbol:
    """The error of a symbol that no instrument, of a class, has: it names the way to make it known, if there is one."""
    misfits = misfit(connection, symbol, data_type=data_type, asset_class=asset_class)
    of_class = "" if asset_class is None else f"{asset_class} "
    return UnknownSymbol(f"no {of_class}instrument is called {symbol!r}; {misfits or way}.")


def content_of(type_: DataType) -> dict[str, Any]:
    """A data type as the API and --json answer it."""
    content = asdict(type_)
    content["contents"] = type_.contents.value
    content["ttl_minutes"] = content.pop("default_ttl_minutes")
    content["strategy"] = content.pop("refresh_strategy")
    content["schedule"] = content.pop("refresh_schedule")
    content["timezone"] = content.pop("schedule_timezone")
    return content


def about(connection: Connection, data_type: str) -> Mapping[str, Any] | None:
    """Everything about a data type, active or retired; None for an unknown name."""
    row = connection.execute(query("registry.one"), {"data_type": data_type}).mappings().one_or_none()
    return None if row is None else dict(row)


def change(connection: Connection, data_type: str, changes: Mapping[str, Any]) -> None:
    """Change a data type: columns of pricing.data_type_registry by their names; others stay."""
    parameters = {"data_type": data_type, "changes": json.dumps(changes, default=str)}
    connection.execute(query("registry.change_type"), parameters)


def set_ttl(
    connection: Connection, data_type: str, ttl_minutes: int | None, background_ttl_minutes: int | None
) -> bool:
    """Change the TTLs of a data type that are not None; False when there is no such type."""
    parameters = {
        "data_type": data_type,
        "ttl_minutes": ttl_minutes,
        "background_ttl_minutes": background_ttl_minutes,
    }
    return connection.execute(query("registry.set_ttl"), parameters).one_or_none() is not None


def set_own_ttl(connection: Connection, data_type: str, symbols: Sequence[str], ttl_minutes: int | None) -> list[str]:
    """Give pairs a TTL of their own, or with None that of their type; returns the symbols that have anything stored."""
    parameters = {"data_type": data_type, "symbols": list(symbols), "ttl_minutes": ttl_minutes}
    return list(connection.execute(query("registry.set_own_ttl"), parameters).scalars())


def set_active(connection: Connection, data_type: str, *, is_active: bool) -> bool:
    """Retire a data type, or revive it; False when it is so already."""
    parameters = {"data_type": data_type, "is_active": is_active}
    return connection.execute(query("registry.set_active"), parameters).one_or_none() is not None


def version(connection: Connection) -> int:
    """A number that grows with every change of the data types, the providers and their routes."""
    return int(connection.execute(query("registry.version")).scalar_one())


def first_stored(connection: Connection) -> dict[str, date]:
    """The day of the first price of each active type without history; types without a price are left out."""
    return {row.data_type: row.first_day for row in connection.execute(query("registry.first_stored"))}


def is_empty(connection: Connection) -> bool:
    """True for a database without a data type."""
    return bool(connection.execute(query("registry.is_empty")).scalar_one())


def has_providers(connection: Connection) -> bool:
    """True once any provider is known, active or not."""
    return bool(connection.execute(query("registry.has_providers")).scalar_one())


def provider_urls(connection: Connection) -> dict[str, str]:
    """Base URL of each active provider."""
    rows = connection.execute(query("registry.providers")).mappings()
    return {row["provider"]: row["base_url"] for row in rows}


def addresses(connection: Connection) -> dict[str, str]:
    """Base URL of each provider, switched off or not."""
    return {row.provider: row.base_url for row in connection.execute(query("registry.addresses"))}


def routes(connection: Connection) -> dict[str, list[str]]:
    """The active providers of each active data type, including those of only some of its symbols."""
    return {row.data_type: row.providers for row in connection.execute(query("registry.routes"))}


def add_data_type(
    connection: Connection,
    data_type: str,
    *,
    fetcher: str,
    ttl_minutes: int,
    asset_class: str = "equity",
    description: str = "",
    schedule: str | None = None,
    timezone: str = "UTC",
    history_from: date | None = None,
    background_ttl_minutes: int = 1440,
    staleness_function: str = "",
    owner: str | None = None,
    days_ahead: int | None = None,
) -> None:
    """Add a data type with one INSERT, which creates its storage and route, too.

    `schedule` is a cron expression and makes the type scheduled. TTLs are in minutes; the background one is for held
    pairs without viewers. The `staleness_function` is_market_stale makes no call while a market is closed, and asks for
    daily values when they should exist; is_data_stale follows the TTL alone. Without one, daily values follow their
    market, and all others their TTL. `owner` is an email address or team:NAME. `days_ahead` is for the
    fetcher slots: for how many days of a product's calendar it asks. Raises PricingError with the database's
    own reason if the row is refused.
    """
    try:
        connection.execute(
            query("registry.add"),
            {
                "data_type": data_type,
                "description": description,
                "asset_class": asset_class,
                "fetcher": fetcher,
                "ttl_minutes": ttl_minutes,
                "strategy": "scheduled" if schedule else "on-demand",
                "schedule": schedule,
                "timezone": timezone,
                "history_from": history_from,
                "background_ttl_minutes": background_ttl_minutes,
                "staleness_function": staleness_function,
                "owner": owner,
                "days_ahead": days_ahead,
            },
        )
    except statement_error() as error:
        raise PricingError(f"the registry refused data type {data_type!r}: {reason(error)}") from error
