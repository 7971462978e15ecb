"""Dagster resources: the database, the provider clients, and the allowances of the providers.

Each is bound to the settings of its pipeline, and a run's config cannot change it: someone who may start runs
could otherwise use a database or a key of their own, without any limit. So they are no `ConfigurableResource`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any, TypeVar, cast

import dagster as dg
from sqlalchemy import Engine

from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.db.location import listen_url, worker_url
from pricing_pipeline.defs.markdown import escaped
from pricing_pipeline.defs.naming import Naming
from pricing_pipeline.keys.clients import open_clients
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.queue import limits
from pricing_pipeline.refresh.refresher import SESSIONS
from pricing_pipeline.settings import OWN, Settings, SettingsSource


class PricingDatabase:
    """The pricing database of the settings. One engine per process, so that a sensor tick opens no new connection."""

    def __init__(self, source: SettingsSource = OWN) -> None:
        self._source = source

    @property
    def settings(self) -> Settings:
        """The settings as they are now."""
        return self._source.settings()

    @property
    def engine(self) -> Engine:
        return self._engine(worker_url)

    @property
    def listening(self) -> Engine:
        """The engine that reaches the server past a pooler, if the settings name a way; else the same."""
        return self._engine(listen_url)

    def _engine(self, url_of: Callable[[Settings], str]) -> Engine:
        # Ticks run at the same time: if two made an engine at once, one would be lost with its open sessions.
        with _MAKING, self._source.names_in_errors():
            return _engine(url_of(self.settings), self._source.called("PRICING_DATABASE_URL"))


class Providers:
    """Rate-limited provider clients. Limits and quota apply across processes: the database grants each call."""

    def __init__(self, database: PricingDatabase) -> None:
        self._database = database

    @contextmanager
    def clients(self) -> Iterator[dict[str, ProviderClient]]:
        """Open a client for each active provider, against the sandbox or the real service.

        While they are open, they follow changes of keys in the database.
        """
        with open_clients(self._database.settings, self._database.engine) as clients:
            yield clients


class Allowances:
    """What each provider's rate limit and quota still allow."""

    def __init__(self, database: PricingDatabase) -> None:
        self._database = database

    def now(self) -> dict[str, limits.ProviderState]:
        """The allowance of each active provider, by name."""
        with self._database.engine.connect() as connection:
            return {standing.provider: standing for standing in limits.standings(connection)}


Resource = TypeVar("Resource", PricingDatabase, Providers, Allowances)
_KEYS = {PricingDatabase: "database", Providers: "providers", Allowances: "allowances"}


def resources(naming: Naming, source: SettingsSource) -> dict[str, dg.ResourceDefinition]:
    """The resources of one pipeline by their keys."""
    database = PricingDatabase(source)
    return {
        naming.name(_KEYS[type(resource)]): _bound(resource)
        for resource in (database, Providers(database), Allowances(database))
    }


def _bound(resource: object) -> dg.ResourceDefinition:
    return dg.ResourceDefinition(
        lambda context: resource, config_schema={}, description=escaped(type(resource).__doc__ or "")
    )


def needed(naming: Naming, *kinds: type[Any]) -> set[str]:
    """The keys of the resources of these classes, for `required_resource_keys`."""
    return {naming.name(_KEYS[kind]) for kind in kinds}


def given(context: Any, naming: Naming, kind: type[Resource]) -> Resource:
    """The resource of this class, in a run or a tick that needs it."""
    return cast("Resource", getattr(context.resources, naming.name(_KEYS[kind])))


_MAKING = Lock()


@cache
def _engine(url: str, setting: str) -> Engine:
    return make_engine(url, pool_size=SESSIONS, setting=setting)
