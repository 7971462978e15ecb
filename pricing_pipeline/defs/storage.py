"""Make Dagster's own tables in a way that the next start can resume after a kill.

Dagster makes them one by one, each statement in its own transaction, and later looks for only one of them: a Ctrl-C in
between left a database that no start could use or repair. Here all tables with their indexes are made in one
transaction, and Dagster's revision, which says that nothing is missing, is written last.
"""

from __future__ import annotations

from dagster._core.storage.event_log import SqlEventLogStorageMetadata  # internal like the next ones: pinned
from dagster._core.storage.runs.schema import RunStorageSqlMetadata
from dagster._core.storage.schedules.schema import ScheduleStorageSqlMetadata
from dagster._core.storage.sql import check_alembic_revision, stamp_alembic_rev
from dagster_postgres import DagsterPostgresStorage
from dagster_postgres.run_storage import run_storage
from dagster_postgres.utils import pg_alembic_config
from sqlalchemy import Connection, Engine, NullPool, create_engine, inspect

from pricing_pipeline.db.query_loader import query

_TABLES = (RunStorageSqlMetadata, SqlEventLogStorageMetadata, ScheduleStorageSqlMetadata)


def make_tables(url: str) -> None:
    """Make the missing tables of Dagster at `url`, unless an older Dagster made them: its upgrade does the rest then.

    It is safe to repeat, to interrupt anywhere, and to run from several processes at once.
    """
    engine = create_engine(url, poolclass=NullPool)
    if _make(engine):
        _mark_as_new(DagsterPostgresStorage(url, should_autocreate_tables=False))
        with engine.begin() as connection:
            stamp_alembic_rev(pg_alembic_config(run_storage.__file__), connection)


def _make(engine: Engine) -> bool:
    """Make the tables in one transaction; False if an earlier start has made all of them."""
    with engine.begin() as connection:
        connection.execute(query("migrate.lock"))
        if not _is_unfinished(connection):
            return False
        for tables in _TABLES:
            tables.create_all(connection)
    return True


def _is_unfinished(connection: Connection) -> bool:
    revision, newest = check_alembic_revision(pg_alembic_config(run_storage.__file__), connection)
    missing = {name for tables in _TABLES for name in tables.tables} - set(
        inspect(connection).get_table_names()
    )
    # An earlier version of this project could leave out tables of the newest revision.
    return revision is None or (revision == newest and bool(missing))


def _mark_as_new(storage: DagsterPostgresStorage) -> None:
    """Mark the tables as having no data in an older format, so that Dagster reads them in the fast way."""
    storage.run_storage.migrate()
    storage.run_storage.optimize()
    storage.event_log_storage.reindex_events()
    storage.event_log_storage.reindex_assets()
    storage.schedule_storage.migrate()
    storage.schedule_storage.optimize()
