"""Bring a database to the current schema: roles, numbered migrations, every function anew, grants."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.db.query_loader import query
from pricing_pipeline.errors import DatabaseError

_PACKAGE = Path(__file__).parent
_MIGRATIONS = _PACKAGE.parent.parent / "migrations"


def upgrade(owner_url: str) -> None:
    """Migrate the database at `owner_url`, deploy the functions and give each role its rights, in one transaction.

    The roles themselves are made first, with their timeouts, if this role may do that; what is missing then is
    passed over.

    Safe to repeat, and to run from several processes at once: the second waits for the first
    and then finds nothing to do. Raises DatabaseError when the server cannot be reached, or when the database is of
    another version than this one can upgrade.
    """
    engine = make_engine(owner_url)
    try:
        with engine.begin() as connection:
            connection.execute(query("roles.make"))
        with engine.begin() as connection:
            connection.execute(query("roles.set_timeouts"))
        with engine.begin() as connection:
            connection.execute(query("migrate.be_patient"))
            connection.execute(query("migrate.lock"))
            connection.execute(query("roles.act_as_owner"))
            connection.execute(query("migrate.schema"))
            _run_migrations(connection)
            # Functions refer to one another, so bodies are checked when all are there, not one by one.
            connection.execute(query("migrate.defer_body_checks"))
            for path in sorted((_PACKAGE / "functions").rglob("*.sql")):
                run_script(connection, path.read_text())
            run_script(connection, (_PACKAGE / "grants.sql").read_text())
    finally:
        engine.dispose()


def run_script(connection: Connection, script: str) -> None:
    """Run a script of several statements in the connection's transaction, text taken as it is."""
    driver = connection.connection.driver_connection
    assert driver is not None  # noqa: S101 - a checked-out connection has one
    driver.execute(script)


def _run_migrations(connection: Connection) -> None:
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    script = ScriptDirectory.from_config(config)
    known = [revision.revision for revision in script.walk_revisions()]
    found = MigrationContext.configure(
        connection, opts={"version_table_schema": "pricing"}
    ).get_current_revision()
    if found is not None and found not in known:
        raise DatabaseError(
            f"the database is at migration {found}, and this version knows {known[-1]} to {known[0]}. If a newer "
            f"version made it, use that one. If an older one did, first run `pricing-pipeline db upgrade` of the last "
            f"version that upgrades to {known[-1]}."
        )
    command.upgrade(config, "head")
