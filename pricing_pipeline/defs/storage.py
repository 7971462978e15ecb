"""Make Dagster's own tables in a way that the next start can resume after a kill.

`python -m pricing_pipeline.defs.storage` does it once for processes of Dagster that start without `up`, as containers
do: each would otherwise make the tables, all at the same time.

Dagster makes them one by one, each statement in its own transaction, and later looks for only one of them: a Ctrl-C in
between left a database that no start could use or repair. Here all tables with their indexes are made in one
transaction, and Dagster's revision, which says that nothing is missing, is written last.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import dagster as dg
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from dagster_postgres import DagsterPostgresStorage
from dagster_postgres.run_storage import run_storage
from dagster_postgres.utils import pg_alembic_config
from sqlalchemy import Connection, Engine, NullPool, create_engine, inspect

from pricing_pipeline.db import dagster_storage
from pricing_pipeline.db.engine import checked_url, libpq_url, masked
from pricing_pipeline.db.location import worker_url
from pricing_pipeline.db.query_loader import query
from pricing_pipeline.defs.internals import (
    InstanceRef,
    RunStorageSqlMetadata,
    ScheduleStorageSqlMetadata,
    SqlEventLogStorageMetadata,
)
from pricing_pipeline.errors import PricingError, SettingsError
from pricing_pipeline.settings import Settings, load_settings

_TABLES = (RunStorageSqlMetadata, SqlEventLogStorageMetadata, ScheduleStorageSqlMetadata)


def main() -> None:
    """Make or upgrade the tables; exit with a message if a setting is wrong."""
    try:
        print(prepare(load_settings()))  # noqa: T201 - what it has done
    except PricingError as error:
        sys.exit(f"error: {error}")


def prepare(settings: Settings) -> str:
    """Make the tables of PRICING_DAGSTER_URL, or bring those that were made so up to date; says which.

    Tables that somebody else has made stay as they are. Raises SettingsError if Dagster could not use the URL, or if
    another pricing database has its runs there.
    """
    url = _usable(settings)
    if dagster_storage.is_of_others(url):
        state = "were made by somebody else and stay as they are; `dagster instance migrate` upgrades them"
    else:
        make_tables(url, noted=True)
        upgrade(url)
        state = "are up to date"
    name = dagster_storage.name_of_home(settings.home, worker_url(settings), is_embedded=False)
    dagster_storage.settle(url, name, is_owner=False)
    return f"Dagster's tables in {masked(url)} {state}."


def _usable(settings: Settings) -> str:
    if settings.dagster_url is None:
        raise SettingsError("PRICING_DAGSTER_URL is not set. It names the database for Dagster's tables.")
    url = checked_url(settings.dagster_url.get_secret_value(), "PRICING_DAGSTER_URL")
    if url.get_driver_name() != "psycopg2":
        raise SettingsError(
            "PRICING_DAGSTER_URL must begin with postgresql+psycopg2:// for Dagster's own processes. With another "
            "driver, Dagster's statements fail."
        )
    return libpq_url(url)


def upgrade(url: str) -> None:
    """Bring tables of an older Dagster up to date."""
    storage = {"postgres": {"postgres_url": url, "should_autocreate_tables": False}}
    with TemporaryDirectory() as folder:
        (Path(folder) / "dagster.yaml").touch()  # Dagster warns of one that is missing
        ref = InstanceRef.from_dir(folder, overrides={"storage": storage, "telemetry": {"enabled": False}})
        with dg.DagsterInstance.from_ref(ref) as instance:
            instance.upgrade()


def make_tables(url: str, *, noted: bool = False) -> None:
    """Make the missing tables of Dagster at `url`, unless an older Dagster made them: its upgrade does the rest then.

    With `noted`, new tables have the note that they were made for the pipeline, whichever home opens them.
    It is safe to repeat, to interrupt anywhere, and to run from several processes at once.
    """
    engine = create_engine(url, poolclass=NullPool)
    if _make(engine, noted=noted):
        _mark_as_new(DagsterPostgresStorage(url, should_autocreate_tables=False))
        with engine.begin() as connection:
            MigrationContext.configure(connection).stamp(_revisions(), "head")


def _make(engine: Engine, *, noted: bool) -> bool:
    """Make the tables in one transaction; False if an earlier start has made all of them."""
    with engine.begin() as connection:
        connection.execute(query("migrate.lock"))
        if not _is_unfinished(connection):
            return False
        for tables in _TABLES:
            tables.create_all(connection)
        if noted:
            dagster_storage.note_maker(connection)
    return True


def _is_unfinished(connection: Connection) -> bool:
    revision = MigrationContext.configure(connection).get_current_revision()
    missing = {name for tables in _TABLES for name in tables.tables} - set(inspect(connection).get_table_names())
    # An earlier version of this project could leave out tables of the newest revision.
    return revision is None or (revision == _revisions().get_current_head() and bool(missing))


def _revisions() -> ScriptDirectory:
    return ScriptDirectory.from_config(pg_alembic_config(run_storage.__file__))


def _mark_as_new(storage: DagsterPostgresStorage) -> None:
    """Mark the tables as having no data in an older format, so that Dagster reads them in the fast way."""
    storage.run_storage.migrate()
    storage.run_storage.optimize()
    storage.event_log_storage.reindex_events()
    storage.event_log_storage.reindex_assets()
    storage.schedule_storage.migrate()
    storage.schedule_storage.optimize()


if __name__ == "__main__":
    main()
