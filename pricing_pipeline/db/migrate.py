"""Upgrade a database to the current schema: roles, numbered migrations, all functions, grants."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import ModuleType

import psycopg
from alembic.runtime.migration import MigrationContext, MigrationStep
from alembic.script import Script, ScriptDirectory
from alembic.script.revision import RevisionMap
from sqlalchemy import Connection, Engine, TextClause
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.db.errors import is_locked
from pricing_pipeline.db.query_loader import call_sql, query
from pricing_pipeline.domain.exchanges import corrections, exchanges
from pricing_pipeline.errors import DatabaseError, LockUnavailable

_PACKAGE = Path(__file__).parent
_MIGRATIONS = _PACKAGE.parent.parent / "migrations"
_FUNCTION = re.compile(r"^CREATE OR REPLACE FUNCTION pricing\.(\w+)", re.MULTILINE)
_TRIGGER = re.compile(r"^CREATE TRIGGER (\w+)\n[^;]*? ON pricing\.(\w+)\n[^;]*;\n", re.MULTILINE)
_PATIENCE = "30s"
"""How long an upgrade waits for another one."""


def upgrade(owner_url: str) -> None:
    """Migrate the database at `owner_url`, deploy the functions and give each role its rights, in one transaction.

    The roles themselves, with their timeouts, are made first if this role may do that. A role that is still missing is
    skipped.

    It is safe to repeat, and to run from several processes at once: the second waits for the first and then does
    nothing. Raises DatabaseError if the server cannot be reached, if this version cannot upgrade the database's
    version, or if a statement fails; then nothing is changed. Raises LockUnavailable after waiting for half a minute.
    """
    engine = make_engine(owner_url)
    try:
        with engine.begin() as connection:
            connection.execute(query("roles.make"))
        with engine.begin() as connection:
            connection.execute(query("roles.set_timeouts"))
        with engine.begin() as connection:
            _take_lock(engine, connection)
            connection.execute(query("migrate.be_patient"))
            connection.execute(query("migrate.be_quiet"))
            connection.execute(query("roles.act_as_owner"))
            connection.execute(query("migrate.schema"))
            _run_migrations(connection)
            # Functions refer to one another, so their bodies are checked only when all exist.
            connection.execute(query("migrate.defer_body_checks"))
            _deploy_functions(connection)
            run_script(connection, (_PACKAGE / "grants.sql").read_text())
            _load_exchanges(connection)
    except (DBAPIError, psycopg.Error) as error:
        raise _failed(error) from error
    finally:
        engine.dispose()


def _load_exchanges(connection: Connection) -> None:
    """Store this version's exchanges, and the days on which their calendars are wrong."""
    told = [asdict(exchange) | {"endings": exchange.endings} for exchange in exchanges().values()]
    call_sql(connection, "load_exchanges", json.dumps(told, default=str))
    wrong = [asdict(correction) for correction in corrections()]
    call_sql(connection, "load_corrections", json.dumps(wrong, default=str))


def _failed(error: DBAPIError | psycopg.Error) -> DatabaseError:
    cause = error.orig if isinstance(error, DBAPIError) else error
    diagnostics = getattr(cause, "diag", None)
    told = [getattr(diagnostics, "message_primary", None) or str(cause)]
    told += [text for text in (getattr(diagnostics, "message_detail", None),) if text]
    reason = ": ".join(told).replace("\n", "; ").rstrip(".")
    return DatabaseError(
        f"the upgrade failed and has changed nothing: {reason}. The database still fits the version before. If "
        "something of your own is in the way, such as a view, drop it, upgrade, and create it again."
    )


def _take_lock(engine: Engine, connection: Connection) -> None:
    connection.execute(query("migrate.wait_for_lock"), {"patience": _PATIENCE})
    try:
        connection.execute(query("migrate.lock"))
    except DBAPIError as error:
        if not is_locked(error):
            raise
        with engine.connect() as other:
            holders = other.execute(query("migrate.holders")).all()
        names = " and ".join(f"process {holder.pid} of the login {holder.usename}" for holder in holders)
        ends = ", ".join(f"pg_terminate_backend({holder.pid})" for holder in holders)
        raise LockUnavailable(
            f"the lock of upgrades is taken by {names}. If that is another upgrade, wait until it has ended. If not, "
            f"end the session as an administrator: SELECT {ends}. Then start again."
            if holders
            else "another upgrade has only just ended; start again."
        ) from error


def run_script(connection: Connection, script: str) -> None:
    """Run a script of several statements in the connection's transaction, without parameters."""
    driver = connection.connection.driver_connection
    assert driver is not None  # noqa: S101 - a checked-out connection has one
    driver.execute(script)


def _deploy_functions(connection: Connection) -> None:
    """Deploy all functions, and the triggers that are missing.

    A function with changed parameters or result replaces its predecessor. An existing trigger stays, because making one
    locks its table; a migration drops a trigger that must change.
    """
    there = {(row.trigger, row.relation) for row in connection.execute(query("migrate.triggers"))}
    deployed: list[str] = []
    for path in sorted((_PACKAGE / "functions").rglob("*.sql")):
        script = _TRIGGER.sub(lambda made: "" if made.groups() in there else made[0], path.read_text())
        names = _FUNCTION.findall(script)
        try:
            with connection.begin_nested():
                run_script(connection, script)
        except psycopg.errors.InvalidFunctionDefinition:
            # A function has another result, or a parameter another name.
            _drop(connection, query("migrate.functions"), names)
            run_script(connection, script)
        deployed += names
    _drop(connection, query("migrate.former_functions"), deployed)


def _drop(connection: Connection, found: TextClause, names: list[str]) -> None:
    for statement in connection.scalars(found, {"names": names}).all():
        connection.exec_driver_sql(statement)


def _run_migrations(connection: Connection) -> None:
    scripts = ScriptDirectory(str(_MIGRATIONS))
    scripts.revision_map = RevisionMap(lambda: _revisions(connection))

    def steps(at: tuple[str, ...], context: MigrationContext) -> list[MigrationStep]:
        _require_known_revision(at, scripts)
        missing = list(scripts.iterate_revisions("head", at))
        return [MigrationStep.upgrade_from_script(scripts.revision_map, script) for script in reversed(missing)]

    options = {"fn": steps, "version_table_schema": "pricing"}
    MigrationContext.configure(connection, opts=options).run_migrations()


def _revisions(connection: Connection) -> Iterator[Script]:
    """A revision for each numbered file, which comes after the one before it."""
    before = None
    for path in sorted((_MIGRATIONS / "versions").glob("*.sql")):
        module = ModuleType(path.stem)
        number = path.name.partition("_")[0]
        module.__dict__.update(
            revision=number,
            down_revision=before,
            upgrade=partial(run_script, connection, path.read_text()),
        )
        yield Script(module, number, str(path))
        before = number


def _require_known_revision(at: tuple[str, ...], scripts: ScriptDirectory) -> None:
    known = [script.revision for script in scripts.walk_revisions()]
    if unknown := [revision for revision in at if revision not in known]:
        raise DatabaseError(
            f"the database is at migration {unknown[0]}, and this version knows {known[-1]} to {known[0]}: another "
            "version made it. Use that version, or a new database."
        )
