"""Sample registry, providers, limits, routes and instruments, for an empty database and for the first look."""

from __future__ import annotations

import csv
from pathlib import Path

from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.db.migrate import run_script
from pricing_pipeline.db.query_loader import query
from pricing_pipeline.registry import data_type_registry

_FOLDER = Path(__file__).parent


def load(owner_url: str, *, demo: bool = True, in_use: bool = True) -> bool:
    """Load what an empty database lacks; False when nothing was missing.

    Providers with their capabilities and limits come always, since without them no data type could be served; data
    types and instruments only with `demo`. New providers are `in_use`, or wait for `provider use`. Existing rows are
    never changed.
    """
    engine = make_engine(owner_url, pool_size=1)
    try:
        with engine.begin() as connection:
            needs_providers = not data_type_registry.has_providers(connection)
            needs_types = demo and data_type_registry.is_empty(connection)
            if needs_providers:
                run_script(connection, (_FOLDER / "providers.sql").read_text())
                if not in_use:
                    connection.execute(query("registry.put_aside"))
            if needs_types:
                for script in ("data_types.sql", "inventory.sql", "commodities.sql"):
                    run_script(connection, (_FOLDER / script).read_text())
                with (_FOLDER / "instruments.csv").open(newline="") as file:
                    connection.execute(query("registry.add_instrument"), list(csv.DictReader(file)))
            return needs_providers or needs_types
    finally:
        engine.dispose()
