"""`type list|show|add|change|set-ttl|refresh|retire|revive`: the registry of data types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date
from typing import Any

import typer
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.cli import reads
from pricing_pipeline.cli.database import open_connection, open_engine, open_owner
from pricing_pipeline.cli.output import (
    bounds_words,
    duration,
    listed,
    print_change,
    print_json,
    print_lines,
    print_table,
)
from pricing_pipeline.db.errors import sentence
from pricing_pipeline.demand import instruments, schedules
from pricing_pipeline.errors import PricingError, UnknownSymbol
from pricing_pipeline.registry import data_type_registry, provider_rules
from pricing_pipeline.settings import load_settings


def list_(*, retired: bool, as_json: bool) -> None:
    """Tell every active data type, and the retired ones if they are wanted."""
    with open_connection(load_settings()) as connection:
        types = data_type_registry.active_data_types(connection)
        old = data_type_registry.retired_data_types(connection) if retired else []
        no_provider = provider_rules.no_provider(connection)
    if as_json:
        retired_types = (
            {"retired": [data_type_registry.content_of(type_) for type_ in old]} if retired else {}
        )
        print_json({"data_types": [data_type_registry.content_of(type_) for type_ in types], **retired_types})
        return
    print_table(
        ["data type", "fetcher", "asset class", "TTL", "refreshed", "history from", "description"],
        [
            (
                type_.data_type,
                type_.fetcher.value,
                type_.asset_class,
                duration(type_.default_ttl_minutes * 60),
                "retired" if type_ in old else _refreshed(type_.refresh_schedule, type_.schedule_timezone),
                type_.history_from,
                type_.description,
            )
            for type_ in [*types, *old]
        ],
        right=["TTL"],
        spare=["description", "history from", "fetcher"],
    )
    if not types and not old:
        way = no_provider or "`pricing-pipeline type add --help` shows how to fill it"
        typer.echo(f"the registry is empty; {way}.")


def _refreshed(schedule: str | None, timezone: str) -> str:
    return f"{schedule} ({timezone})" if schedule else "on demand"


def show(name: str, *, as_json: bool) -> None:
    """Tell everything about one data type. Raises UnknownDataType."""
    with open_connection(load_settings()) as connection:
        type_ = reads.any_data_type(connection, name)
        routes = provider_rules.routes(connection, name)
        bounds = instruments.bounds_of_type(connection, name)
    if as_json:
        print_json({**type_, **bounds, "routes": [asdict(route) for route in routes]})
        return
    thinned = type_["thin_after_days"]
    counting = [route for route in routes if route.is_active and route.provider_active]
    print_lines(
        {
            "data type": name if type_["is_active"] else f"{name} (retired)",
            "what": type_["description"],
            "fetcher": type_["fetcher"],
            "days ahead": type_["days_ahead"],
            "of": f"{type_['asset_class']}, {type_['instruments']} instruments",
            "TTL": duration(type_["ttl_minutes"] * 60),
            "held": f"{duration(type_['background_ttl_minutes'] * 60)} while nobody watches",
            "refreshed": _refreshed(type_["schedule"], type_["timezone"]),
            "judged by": type_["staleness_function"],
            "history": f"from {type_['history_from']}" if type_["history_from"] else "none to backfill",
            "thinned": f"to one for {duration(type_['thin_to_minutes'] * 60)} after {thinned} days"
            if thinned
            else "",
            "kept": f"{type_['keep_months']} months in the database, older ones in files"
            if type_["keep_months"]
            else "",
            "bounds": bounds_words(**bounds),
            "owner": type_["owner"],
            "served by": ", ".join(route.provider for route in counting if route.symbol is None),
            "symbols by": ", ".join(
                f"{route.symbol} by {route.provider}" for route in counting if route.symbol
            ),
        }
    )


def set_ttl(name: str, ttl: int | None, background_ttl: int | None, *, as_json: bool) -> None:
    """Change TTLs, as the owner. Raises UnknownDataType; the database refuses what is no TTL."""
    with open_owner(load_settings()) as engine, engine.begin() as connection:
        data_type_registry.set_ttl(connection, name, ttl, background_ttl)
        type_ = reads.any_data_type(connection, name)
    if as_json:
        print_json({key: type_[key] for key in ("data_type", "ttl_minutes", "background_ttl_minutes")})
        return
    typer.echo(
        f"{name} grows at most {duration(type_['ttl_minutes'] * 60)} old while it is watched, and "
        f"{duration(type_['background_ttl_minutes'] * 60)} while it is held and not watched."
    )


def set_own_ttl(name: str, symbols: Sequence[str], ttl: int | None, *, as_json: bool) -> None:
    """Give symbols a TTL of their own, or with None their type's. Raises UnknownSymbol where nothing is stored."""
    with open_owner(load_settings()) as engine, engine.begin() as connection:
        type_ = reads.any_data_type(connection, name)
        symbols = list(dict.fromkeys(instruments.spelled(connection, name, symbols)))
        changed = data_type_registry.set_own_ttl(connection, name, symbols, ttl)
        missing = [symbol for symbol in symbols if symbol not in changed]
        if missing:
            raise UnknownSymbol(
                f"nothing is stored of {name} {listed(missing)} yet, and a TTL of its own is kept with what is stored. "
                "Nothing has changed."
            )
    if as_json:
        print_json({"data_type": name, "symbols": symbols, "ttl_minutes": ttl})
        return
    how = "as its type's do" if ttl is None else "by a TTL of its own"
    typer.echo(
        f"{name} {listed(symbols)} grows at most {duration((ttl or type_['ttl_minutes']) * 60)} old, {how}."
    )


_SETTINGS = (
    "description",
    "owner",
    "staleness_function",
    "schedule",
    "timezone",
    "history_from",
    "thin_after_days",
    "thin_to_minutes",
    "keep_months",
    "days_ahead",
)


def change(
    name: str,
    columns: Mapping[str, Any],
    bounds: Mapping[str, Any],
    *,
    follow_market: bool | None,
    as_json: bool,
) -> None:
    """Change columns of a data type, and the bounds of all its symbols, as the owner. Raises UnknownDataType."""
    columns = dict(columns)
    if "refresh_schedule" in columns:
        columns["refresh_strategy"] = "on-demand" if columns["refresh_schedule"] is None else "scheduled"
    if follow_market is not None:
        columns["staleness_function"] = _JUDGES[follow_market]
    with open_owner(load_settings()) as engine, engine.begin() as connection:
        before = _settings(connection, name)
        if columns:
            data_type_registry.change(connection, name, columns)
        if bounds:
            instruments.change_bounds(connection, name, None, bounds)
        after = _settings(connection, name)
    print_change({"data_type": name}, before, after, as_json=as_json)


def _settings(connection: Connection, name: str) -> dict[str, Any]:
    about = reads.any_data_type(connection, name)
    return {setting: about[setting] for setting in _SETTINGS} | instruments.bounds_of_type(connection, name)


def set_active(name: str, *, is_active: bool, as_json: bool) -> None:
    """Retire or revive a data type, as the owner. Raises UnknownDataType."""
    with open_owner(load_settings()) as engine, engine.begin() as connection:
        reads.any_data_type(connection, name)
        changed = data_type_registry.set_active(connection, name, is_active=is_active)
    if as_json:
        print_json({"data_type": name, "is_active": is_active, "changed": changed})
    elif not changed:
        typer.echo(f"{name} is {'active' if is_active else 'retired'} already; nothing has changed.")
    elif is_active:
        typer.echo(f"{name} is active again; what is watched of it is due.")
    else:
        typer.echo(
            f"{name} is retired: nothing is fetched of it, and its prices stay. `type revive` takes it back."
        )


def refresh(name: str, *, as_json: bool) -> None:
    """Queue all instruments of a scheduled type. Raises UnknownDataType; PricingError without a schedule."""
    with open_engine(load_settings()) as engine, engine.begin() as connection:
        queued = schedules.refresh(connection, name)
    if as_json:
        print_json({"data_type": name, "queued": queued})
    elif queued:
        typer.echo(f"{queued} tasks of {name} are queued; if there are more instruments, they follow.")
    else:
        typer.echo(
            f"Nothing new of {name} is queued: its instruments are fresh, back off or wait in the queue, or its "
            "providers can take no more. `pricing-pipeline price why SYMBOL` says which."
        )


_JUDGES = {None: "", True: "is_market_stale", False: "is_data_stale"}


def add(
    data_type: str,
    *,
    fetcher: str,
    ttl_minutes: int,
    asset_class: str,
    schedule: str | None,
    timezone: str,
    history_from: date | None,
    description: str,
    background_ttl_minutes: int,
    follow_market: bool | None,
    owner: str | None,
    days_ahead: int | None,
    as_json: bool,
) -> None:
    """Add a data type, as the owner. Raises PricingError with the database's reason when it refuses."""
    with open_owner(load_settings()) as engine:
        try:
            with engine.begin() as connection:
                data_type_registry.add_data_type(
                    connection,
                    data_type,
                    fetcher=fetcher,
                    ttl_minutes=ttl_minutes,
                    asset_class=asset_class,
                    description=description,
                    schedule=schedule,
                    timezone=timezone,
                    history_from=history_from,
                    background_ttl_minutes=background_ttl_minutes,
                    staleness_function=_JUDGES[follow_market],
                    owner=owner,
                    days_ahead=days_ahead,
                )
                type_ = data_type_registry.active_data_type(connection, data_type)
        except PricingError as error:
            refusal = error.__cause__
            if isinstance(refusal, DBAPIError):
                raise PricingError(f"{data_type!r} is not added: {sentence(refusal)}") from refusal
            raise
    if as_json:
        print_json(data_type_registry.content_of(type_))
    else:
        typer.echo(f"{data_type} is added; a running pipeline shows its assets within half a minute.")
