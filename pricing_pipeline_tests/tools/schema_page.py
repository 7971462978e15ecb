"""The whole database in `docs/maintainers/schema.sql`, and the rights on the embedded server in `server.sql` beside it.

`make pages` writes both, and tests hold them to what is there. Run as a module, this writes the pages
anew, from an empty database on a server of its own.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from textwrap import wrap

from pricing_pipeline.db.embedded import DATABASES, EmbeddedServer
from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.db.migrate import upgrade
from pricing_pipeline.db.query_loader import query
from pricing_pipeline_tests.fixtures.home import make_open_folder, quickest_place

_WIDTH = 120
PAGE = Path(__file__).parents[2] / "docs" / "maintainers" / "schema.sql"
SERVER_PAGE = PAGE.with_name("server.sql")

_HEAD = """\
-- The database in one place: what `db upgrade` makes of an empty one. To be read, not run: columns and constraints
-- stand one to a line without commas, functions without bodies (pricing_pipeline/db/functions/ has them).
-- Written by `make pages`; a test compares it with a migrated database. What each data type adds is not here: its
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
    return _HEAD + "\n".join(_wrapped(line) for item in lines for line in item.split("\n")) + "\n"


def _wrapped(line: str) -> str:
    """A line of the dump within 120 columns: a comment that does not fit beside its column stands above it."""
    code, _, comment = line.partition("-- ") if len(line) > _WIDTH or line.startswith("-- ") else (line, "", "")
    indent = code[: len(code) - len(code.lstrip())]
    marked = f"{indent}-- "
    lines = _broken(comment, marked, marked) if comment else []
    if code := code.rstrip():
        spaced = re.sub(r",(?=\w)", ", ", code.strip())
        lines += [code] if len(code) <= _WIDTH else _broken(spaced, indent, f"{indent}    ")
    return "\n".join(lines) if line.strip() else line


def _broken(text: str, first: str, later: str) -> list[str]:
    return wrap(
        text,
        _WIDTH,
        initial_indent=first,
        subsequent_indent=later,
        break_long_words=False,
        break_on_hyphens=False,
    )


_SERVER_HEAD = """\
-- Who may do what on the embedded server, outside the schema pricing (schema.sql has that). To be read, not run.
-- Written by `make pages`; a test compares it with a new server.

"""


def server_rights(server: EmbeddedServer) -> str:
    """The page for a server on which `db upgrade` has run."""
    lines = []
    for database, name in (
        ("postgres", "embedded.rights"),
        *((database, "embedded.rights_within") for database in DATABASES),
    ):
        engine = make_engine(server.url(database, "superuser"), pool_size=1)
        try:
            with engine.connect() as connection:
                lines += [f"-- In the database {database}", *connection.scalars(query(name)).all(), ""]
        finally:
            engine.dispose()
    return _SERVER_HEAD + "\n".join(_wrapped(line) for line in lines)


def main() -> None:
    """Write the pages."""
    home = make_open_folder("pricing-tests-", within=quickest_place())
    try:
        with EmbeddedServer(home) as server:
            url = server.url("pricing")
            upgrade(url)
            PAGE.write_text(written(url))
            SERVER_PAGE.write_text(server_rights(server))
    finally:
        shutil.rmtree(home)


if __name__ == "__main__":
    main()
