"""`docs/schema.sql`: the whole database to read in one place, written by `make schema` and held to by a test.

Run as a module it writes the page anew, from an empty database on a server of its own.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from pricing_pipeline.db.embedded import EmbeddedServer
from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.db.migrate import upgrade
from pricing_pipeline.db.query_loader import query
from pricing_pipeline_tests.fix_home import make_open_folder, quickest_place

PAGE = Path(__file__).parents[1] / "docs" / "schema.sql"

_HEAD = """\
-- The database in one place: what `db upgrade` makes of an empty one. To be read, not run: columns and constraints
-- stand one to a line without commas, functions without bodies (pricing_pipeline/db/functions/ has them).
-- Written by `make schema`; a test compares it with a migrated database. What each data type adds is not here: its
-- table partition pricing.price_history_<data_type> and its view pricing.latest_price_<data_type>.

"""


def written(owner_url: str) -> str:
    """The page for a migrated database that holds no data type."""
    engine = make_engine(owner_url, pool_size=1)
    try:
        with engine.connect() as connection:
            # Names are written in full whatever the session's path is; the path of functions is ''.
            connection.exec_driver_sql("SET search_path = ''")
            lines = connection.scalars(query("schema.dump")).all()
    finally:
        engine.dispose()
    return _HEAD + "\n".join(lines) + "\n"


def main() -> None:
    """Write the page."""
    home = make_open_folder("pricing-tests-", within=quickest_place())
    try:
        with EmbeddedServer(home, for_tests=True) as server:
            url = server.url("pricing")
            upgrade(url)
            PAGE.write_text(written(url))
    finally:
        shutil.rmtree(home)


if __name__ == "__main__":
    main()
