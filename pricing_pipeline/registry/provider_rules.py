"""Rules that people set: routes and limits of providers, how they are called, and how much a user may ask for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.db.query_loader import call_sql, query
from pricing_pipeline.errors import UnknownRule
from pricing_pipeline.settings import Settings

if TYPE_CHECKING:
    from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class Route:
    """A provider that serves a data type, or one symbol of it. The lowest rank is asked first."""

    data_type: str
    symbol: str | None
    rank: int
    provider: str
    is_active: bool
    provider_active: bool


@dataclass(frozen=True, slots=True)
class Limit:
    """Units that a provider allows to each of its keys, or to one; in some seconds, or in a day of a time zone."""

    provider: str
    name: str
    key_name: str | None
    units: int
    window_seconds: int | None
    day_timezone: str | None


@dataclass(frozen=True, slots=True)
class Provider:
    """A source of prices: what it can be asked for (`fetchers`), and the active data types that it serves."""

    provider: str
    description: str
    base_url: str
    is_active: bool
    max_in_flight: int
    request_delay_ms: int
    throttle_pause_seconds: int
    quota_bytes: int
    fetchers: Sequence[str]
    data_types: Sequence[str]


@dataclass(frozen=True, slots=True)
class Batch:
    """How large a call of a fetcher may be.

    A call for latest prices has at most `batch_size` symbols; fewer than `batch_from` are asked for one by one. A call
    for a span has at most `window_batch_size` symbols and `window_days_per_call` days over all of them (None = any),
    each at most `max_window_days` days.
    """

    fetcher: str
    batch_size: int
    batch_from: int
    window_batch_size: int
    window_days_per_call: int | None
    max_window_days: int


@dataclass(frozen=True, slots=True)
class Caps:
    """How many pairs each user may watch at once, hold and begin in a minute, and how many price alerts it may have."""

    pairs_per_user: int
    new_pairs_per_minute: int
    price_alerts_per_user: int


def routes(
    connection: Connection,
    data_type: str | None = None,
    provider: str | None = None,
    symbols: Sequence[str] | None = None,
) -> list[Route]:
    """Routes by data type, symbol and rank: all, or some."""
    parameters = {"data_type": data_type, "provider": provider, "symbols": symbols}
    rows = connection.execute(query("registry.rules_of_routes"), parameters).mappings()
    return [Route(**row) for row in rows]


def add_route(connection: Connection, provider: str, data_type: str, symbol: str | None, rank: int | None) -> int:
    """Have a provider serve a data type, or a symbol of it; returns its rank, the last unless one is given."""
    parameters = {"provider": provider, "data_type": data_type, "symbol": symbol, "rank": rank}
    return int(connection.execute(query("registry.add_route"), parameters).scalar_one())


def remove_route(connection: Connection, provider: str, data_type: str, symbol: str | None) -> bool:
    """Take a route away; False when there was none."""
    parameters = {"provider": provider, "data_type": data_type, "symbol": symbol}
    return connection.execute(query("registry.remove_route"), parameters).scalar_one_or_none() is not None


def limits(connection: Connection, provider: str | None = None) -> list[Limit]:
    """Rate limits by provider and name; after each, the limits of single keys."""
    rows = connection.execute(query("registry.rules_of_limits"), {"provider": provider}).mappings()
    return [Limit(**row) for row in rows]


def set_limit(connection: Connection, limit: Limit) -> bool:
    """Write a limit. Without a window only its units change; False if there is no limit of this name then."""
    parameters = {
        "provider": limit.provider,
        "name": limit.name,
        "key_name": limit.key_name,
        "units": limit.units,
        "window_seconds": limit.window_seconds,
        "day_timezone": limit.day_timezone,
    }
    if limit.key_name is not None:
        wanted = "registry.set_key_limit"
    elif limit.window_seconds is None and limit.day_timezone is None:
        wanted = "registry.set_units"
    else:
        wanted = "registry.set_limit"
    return connection.execute(query(wanted), parameters).scalar_one_or_none() is not None


def remove_limit(connection: Connection, provider: str, name: str, key_name: str | None) -> bool:
    """Take a limit away, or what one key has instead of it; False when there was none."""
    wanted = "registry.remove_limit" if key_name is None else "registry.remove_key_limit"
    parameters = {"provider": provider, "name": name, "key_name": key_name}
    return connection.execute(query(wanted), parameters).scalar_one_or_none() is not None


def providers(connection: Connection, provider: str | None = None) -> list[Provider]:
    """Providers by name, switched off ones too: all, or one."""
    rows = connection.execute(query("registry.about_providers"), {"provider": provider}).mappings()
    return [Provider(**row) for row in rows]


def no_provider(connection: Connection) -> str | None:
    """That no provider is in use, and how one is chosen, in words; None while one is."""
    words: str | None = call_sql(connection, "describe_no_provider").scalar_one()
    return words


def change_provider(connection: Connection, provider: str, changes: Mapping[str, int | bool]) -> None:
    """Change how a provider is called: columns of pricing.data_collectors by their names; others stay."""
    parameters = {"provider": provider, "changes": json.dumps(changes)}
    connection.execute(query("registry.change_provider"), parameters)


def apply_settings(owner_url: str, settings: Settings) -> None:
    """Write what the environment says about a provider into its row, as its owner. Without the row nothing happens."""
    if settings.uex_request_delay_ms is None:
        return
    engine = make_engine(owner_url, pool_size=1)
    try:
        with engine.begin() as connection:
            change_provider(connection, "uex", {"request_delay_ms": settings.uex_request_delay_ms})
    finally:
        engine.dispose()


def batches(connection: Connection, provider: str) -> list[Batch]:
    """How large the calls of a provider may be, by fetcher."""
    rows = connection.execute(query("registry.batches"), {"provider": provider}).mappings()
    return [Batch(**row) for row in rows]


def change_batch(connection: Connection, provider: str, fetcher: str, changes: Mapping[str, int | None]) -> bool:
    """Change how large a call may be: columns by their names; False when the provider cannot be asked for this.

    With a smaller `batch_size`, `batch_from` is lowered to it.
    """
    parameters = {"provider": provider, "fetcher": fetcher, "changes": json.dumps(changes)}
    return connection.execute(query("registry.change_batch"), parameters).one_or_none() is not None


def probe(connection: Connection, provider: str) -> bool:
    """Let the next task of a provider be the probe; False when its breaker is not open."""
    return connection.execute(query("registry.probe"), {"provider": provider}).one_or_none() is not None


def caps(connection: Connection) -> Caps:
    """The caps of each user. Raises UnknownRule where somebody has deleted their row."""
    row = connection.execute(query("registry.caps")).mappings().one_or_none()
    if row is None:
        raise UnknownRule("pricing.user_caps has no row. Put it back: INSERT INTO pricing.user_caps DEFAULT VALUES.")
    return Caps(**row)


def set_caps(
    connection: Connection,
    pairs_per_user: int | None,
    new_pairs_per_minute: int | None,
    price_alerts_per_user: int | None,
) -> None:
    """Change the caps of users that are not None."""
    parameters = {
        "pairs_per_user": pairs_per_user,
        "new_pairs_per_minute": new_pairs_per_minute,
        "price_alerts_per_user": price_alerts_per_user,
    }
    connection.execute(query("registry.set_caps"), parameters)
