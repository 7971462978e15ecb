"""Dagster resources: the database, the provider clients, and the allowances of the providers.

No postponed annotations here: Dagster reads the fields of a resource when its class is made.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock

import dagster as dg
from sqlalchemy import Engine

from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.db.location import listen_url, worker_url
from pricing_pipeline.keys.clients import open_clients
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.queue import limits
from pricing_pipeline.refresh.refresher import SESSIONS
from pricing_pipeline.settings import load_settings_as_guest


class PricingDatabase(dg.ConfigurableResource[Engine]):
    """The pricing database of the settings. One engine per process, so that a sensor tick opens no new connection.

    It has no field: a run's config could set a field, and whoever may start runs could use a database of their own,
    without any limit.
    """

    @property
    def engine(self) -> Engine:
        # Ticks run at the same time: if two made an engine at once, one would be lost with its open sessions.
        with _MAKING:
            return _engine(worker_url(load_settings_as_guest()))

    @property
    def listening(self) -> Engine:
        """The engine that reaches the server past a pooler, if the settings name a way; else the same."""
        with _MAKING:
            return _engine(listen_url(load_settings_as_guest()))


class Providers(dg.ConfigurableResource[None]):
    """Rate-limited provider clients. Limits and quota apply across processes: the database grants each call."""

    database: PricingDatabase

    @contextmanager
    def clients(self) -> Iterator[dict[str, ProviderClient]]:
        """Open a client for each active provider, against the sandbox or the real service.

        While they are open, they follow changes of keys in the database.
        """
        with open_clients(load_settings_as_guest(), self.database.engine) as clients:
            yield clients


class Allowances(dg.ConfigurableResource[None]):
    """What each provider's rate limit and quota still allow."""

    database: PricingDatabase

    def now(self) -> dict[str, limits.Allowance]:
        """The allowance of each active provider, by name."""
        with self.database.engine.connect() as connection:
            return {allowance.provider: allowance for allowance in limits.allowances(connection)}


_MAKING = Lock()


@cache
def _engine(url: str) -> Engine:
    return make_engine(url, pool_size=SESSIONS)
