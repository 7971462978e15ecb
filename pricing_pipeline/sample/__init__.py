"""Sample registry, providers, limits, routes and instruments, for an empty database and for the first look."""

from __future__ import annotations

import csv
from pathlib import Path

from sqlalchemy import text

from pricing_pipeline import registry
from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.db.migrate import run_script
from pricing_pipeline.db.query_loader import named

_FOLDER = Path(__file__).parent


def load(owner_url: str) -> bool:
    """Load the sample into an empty database; False, and nothing done, when it holds a data type already."""
    engine = make_engine(owner_url, pool_size=1)
    try:
        with engine.begin() as connection:
            if not registry.is_empty(connection):
                return False
            for script in ("providers.sql", "data_types.sql"):
                run_script(connection, (_FOLDER / script).read_text())
            with (_FOLDER / "instruments.csv").open(newline="") as file:
                connection.execute(text(named("registry.add_instrument")), list(csv.DictReader(file)))
            return True
    finally:
        engine.dispose()
