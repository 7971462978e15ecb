"""The registry from which definitions are built: read from the database, or the last good copy on disk.

Definitions must not depend on a live database: a reload during an outage would leave no assets. A run worker rebuilds
its definitions from the copy that came with the code location, so that a type removed meanwhile cannot fail it.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from sqlalchemy.exc import DBAPIError

from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.db.location import worker_url
from pricing_pipeline.defs.naming import PLAIN, Naming
from pricing_pipeline.domain.data_types import Contents, DataType, Fetcher
from pricing_pipeline.errors import DatabaseError
from pricing_pipeline.providers.configured import call_url
from pricing_pipeline.registry import data_type_registry, declarations
from pricing_pipeline.settings import OWN, Settings, SettingsSource

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RegistrySnapshot:
    """The registry at one version: active data types, all providers with their base URLs, and the routes.

    A provider that is switched off stays in it: its assets show that, and keep what was reported of them.
    `called_at` is where calls to each go, to the provider or to the sandbox; with the sandbox on, it lacks those
    whom nobody stands for. `first_months` are those with which the partitions of each type of prices begin. They are
    kept here, so that a run that starts after the end of a month has the partitions that it was asked for.
    """

    version: int
    data_types: tuple[DataType, ...]
    providers: dict[str, str]
    routes: dict[str, list[str]]
    called_at: dict[str, str] = field(default_factory=dict)
    first_months: dict[str, date] = field(default_factory=dict)
    naming: Naming = PLAIN
    source: SettingsSource = OWN

    def to_json(self) -> str:
        registry = asdict(self)
        del registry["naming"], registry["source"]  # the code says them, not the registry
        return json.dumps(registry, default=str, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> RegistrySnapshot:
        content = json.loads(text)
        return cls(
            version=content["version"],
            data_types=tuple(_data_type(row) for row in content["data_types"]),
            providers=content["providers"],
            routes=content["routes"],
            called_at=content.get("called_at", {}),
            first_months={name: date.fromisoformat(month) for name, month in content.get("first_months", {}).items()},
        )

    def first_month(self, data_type: str) -> date:
        """The month with which the partitions of a type of prices begin. A copy of an earlier release has none."""
        return self.first_months.get(data_type) or datetime.now(UTC).date().replace(day=1)

    def names(self) -> list[str]:
        return [data_type.data_type for data_type in self.data_types]


EMPTY = RegistrySnapshot(0, (), {}, {})


def take(settings: Settings, naming: Naming = PLAIN, source: SettingsSource = OWN) -> RegistrySnapshot:
    """Read the registry and keep the copy; without a database, the last good copy, or else an empty registry."""
    path = _copy(settings, naming)
    try:
        with source.names_in_errors():
            snapshot = _read(settings)
    except (DatabaseError, DBAPIError) as error:
        snapshot = last_good(settings, naming)
        found = "using the last good copy in" if snapshot != EMPTY else "and there is no good copy in"
        _LOG.warning("the registry cannot be read, %s %s: %s", found, path, error)
        return snapshot
    _keep(path, snapshot)
    return snapshot


def _read(settings: Settings) -> RegistrySnapshot:
    engine = make_engine(worker_url(settings), pool_size=1)
    try:
        with engine.connect() as connection:
            base_urls = data_type_registry.addresses(connection)
            known = declarations.known_providers(connection)
            called_at = {name: call_url(settings, known[name], base_urls[name]) for name in base_urls if name in known}
            version = data_type_registry.version(connection)
            types = tuple(data_type_registry.active_data_types(connection))
            return RegistrySnapshot(
                version=version,
                data_types=types,
                providers=base_urls,
                routes=data_type_registry.routes(connection),
                called_at={name: url for name, url in called_at.items() if url is not None},
                first_months=_first_months(types, data_type_registry.first_stored(connection)),
            )
    finally:
        engine.dispose()


def _first_months(types: Sequence[DataType], stored: Mapping[str, date]) -> dict[str, date]:
    """The first month of each type of prices: of its history, else of its first price, else this month."""
    today = datetime.now(UTC).date()
    begins = {
        type_.data_type: type_.history_from or stored.get(type_.data_type, today)
        for type_ in types
        if type_.contents is Contents.PRICES
    }
    return {name: min(day, today).replace(day=1) for name, day in begins.items()}


def last_good(settings: Settings, naming: Naming = PLAIN) -> RegistrySnapshot:
    """The copy from the last load of the code location; an empty registry if there is no readable copy."""
    path = _copy(settings, naming)
    try:
        return RegistrySnapshot.from_json(path.read_text())
    except FileNotFoundError:
        return EMPTY
    except (OSError, ValueError, KeyError, TypeError) as error:
        # Damaged, or of another version: the code location must load anyway.
        _LOG.warning("the copy of the registry in %s cannot be read: %r", path, error)
        return EMPTY


def _copy(settings: Settings, naming: Naming) -> Path:
    # Pipelines in one project have prefixes, and may have no homes of their own.
    return settings.home / f"{naming.name('registry')}.json"


def _keep(path: Path, snapshot: RegistrySnapshot) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}")
        unfinished.write_text(snapshot.to_json())
        unfinished.replace(path)
    except OSError as error:
        _LOG.warning("the copy of the registry cannot be kept in %s: %s", path, error)


def _data_type(row: dict[str, Any]) -> DataType:
    since = row["history_from"]
    return DataType(
        **{
            **row,
            "fetcher": Fetcher(row["fetcher"]),
            "history_from": date.fromisoformat(since) if since else None,
        }
    )
