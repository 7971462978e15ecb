"""Back up the schema `pricing` to a file, and restore it, with PostgreSQL's own programs.

The caller starts the server, and decides whether the backup is allowed.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, cast

import psycopg
from psycopg.conninfo import make_conninfo
from sqlalchemy import Engine

from pricing_pipeline.db.embedded import RELOCATION
from pricing_pipeline.db.embedded_home import binaries
from pricing_pipeline.db.engine import make_engine, parsed_url
from pricing_pipeline.db.migrate import upgrade
from pricing_pipeline.db.query_loader import driver_query, query
from pricing_pipeline.errors import DatabaseError, EmbeddedServerError
from pricing_pipeline.local_files.own_files import sync_folder
from pricing_pipeline.processes.os_processes import without_libpq_variables

_PROGRAMS = ("pg_dump", "pg_restore", "psql")
_DEBIAN = Path("/usr/lib/postgresql")
_CHUNK = 1 << 16
_MAGIC = b"PGDMP"
"""The first bytes of a dump in `pg_dump`'s own format."""
_SECTIONS = ("pre-data", "data", "post-data")
"""The parts of a backup, in the order of a restore. Only the second has the rows of tables among its statements."""
_RESTORE = "pricing_restore"
"""The name of its session."""
_RESTRICT, _UNRESTRICT = b"\\restrict ", b"\\unrestrict "
"""How a script for psql begins and ends since August 2025, each with the same random key."""
_TRIES = 5
"""Of a restore that PostgreSQL ends because another session waits for it in turn."""
_TOO_NEW = b"SET transaction_timeout = 0;\n"
"""Programs since 17 write it, and servers since 17 understand it."""


def back_up(url: str, path: Path) -> None:
    """Write the schema to a new file, whole or not at all, that only its owner can read.

    Raises DatabaseError if the file exists already, or a program fails.
    """
    if path.exists():
        raise DatabaseError(f"{path} already exists, and is kept. Name another file.")
    programs = _programs(_server_version(url))
    address, environment = address_and_password(url)
    try:
        # Others may write in this folder, but cannot guess the name; the program opens a descriptor, not a name.
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.", suffix=".unfinished")
    except OSError as error:
        raise DatabaseError(f"{path} cannot be written: {error.strerror}.") from None
    unfinished = Path(name)
    try:
        # Not to its standard output: `pg_restore` does not notice when such a file lacks its end.
        output = [f"--file=/dev/fd/{descriptor}", "--no-sync"]
        _run(
            [programs / "pg_dump", "--format=custom", "--schema=pricing", *output, address],
            environment,
            descriptor,
        )
        os.fsync(descriptor)
        unfinished.rename(path)
        sync_folder(path.parent)
    finally:
        os.close(descriptor)
        unfinished.unlink(missing_ok=True)


def restore(url: str, path: Path) -> None:
    """Replace the schema by a backup, in one transaction, and upgrade it to the current version.

    Raises DatabaseError and changes nothing if the backup cannot be read or does not fit.
    """
    require_backup(path)
    programs = _programs(_server_version(url))
    upgrade(url)  # makes the roles that the backup names
    for tries_left in reversed(range(_TRIES)):
        try:
            _replace_schema(programs, url, path)
            break
        except psycopg.Error as error:
            if tries_left == 0 or not isinstance(error, psycopg.errors.DeadlockDetected):
                raise DatabaseError(f"the restore failed: {_reason(error)}. Nothing has changed.") from None
    upgrade(url)


def require_backup(path: Path) -> None:
    """Raise DatabaseError unless the file begins like a backup."""
    if not path.is_file():
        raise DatabaseError(f"there is no backup {path}.")
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise DatabaseError(f"{path} is no backup that `db backup` wrote. Nothing has changed.")


def has_prices(url: str) -> bool:
    """Whether the database holds any price."""
    engine = make_engine(url, pool_size=1)
    try:
        with engine.connect() as connection:
            if not connection.execute(query("databases.has_schema")).scalar_one():
                return False
            return bool(connection.execute(query("databases.has_prices")).scalar_one())
    finally:
        engine.dispose()


def _replace_schema(programs: Path, url: str, path: Path) -> None:
    """Run the backup as SQL in one transaction, without rights: the following upgrade grants them.

    Nothing changes without the final COMMIT, whichever process ends before it. The SQL goes to the server and not
    through psql, which would run a program for a line like `\\! program` in a backup that somebody has forged. Releases
    of August 2025 and later forbid that by the command `\\restrict`; this is as safe with older ones.
    """
    address, environment = address_and_password(url)
    with psycopg.connect(address, password=environment.get("PGPASSWORD"), application_name=_RESTORE) as connection:
        for name in ("set_up", "make_run", "drop"):
            connection.execute(driver_query(f"backup.{name}"))
        for section in _SECTIONS:
            as_sql: list[str | Path] = [
                "--no-owner",
                "--no-privileges",
                f"--section={section}",
                "--file=-",
                path,
            ]
            with subprocess.Popen(
                [programs / "pg_restore", *as_sql],
                env=_environment(),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            ) as script:
                source = cast("IO[bytes]", script.stdout)
                _run_script(connection, source, has_rows=section == "data")
                _, output = script.communicate()
                if script.returncode != 0:
                    raise DatabaseError(_failure("pg_restore", output))


def _run_script(connection: psycopg.Connection, source: IO[bytes], *, has_rows: bool) -> None:
    """Run what pg_restore writes. Only the rows of tables are for COPY; all else is SQL, which the server reads."""
    statements = bytearray()
    marks: set[bytes] = set()
    for line in source:
        if line.startswith(_RESTRICT) and not marks:
            key = line.removeprefix(_RESTRICT)
            marks = {line, _UNRESTRICT + key}
        if line in marks or line == _TOO_NEW:
            continue
        is_copy = line.startswith(b"COPY ") and line.endswith(b" FROM stdin;\n") and line.count(b";") == 1
        if has_rows and is_copy:
            _run_statements(connection, statements)
            statements.clear()
            _copy_rows(connection, line, source)
        else:
            statements += line
    _run_statements(connection, statements)


def _run_statements(connection: psycopg.Connection, statements: bytearray) -> None:
    """Run them inside a function, where nothing can end the transaction: a forged backup may hold a COMMIT."""
    try:
        script = statements.decode()
    except UnicodeDecodeError:
        raise DatabaseError("the restore failed: the backup is not in UTF-8. Nothing has changed.") from None
    connection.execute(driver_query("backup.run"), {"statements": script})


def _copy_rows(connection: psycopg.Connection, statement: bytes, source: IO[bytes]) -> None:
    rows = bytearray()
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for row in source:
            if row == b"\\.\n":
                break
            rows += row
            if len(rows) >= _CHUNK:
                copy.write(bytes(rows))
                rows.clear()
        else:
            raise DatabaseError("the restore failed: the rows of a table have no end. Nothing has changed.")
        copy.write(bytes(rows))


def psql_for(engine: Engine) -> Path:
    """The program psql. Raises DatabaseError when none is here that is as new as the server."""
    return _programs(_version_of(engine)) / "psql"


def _server_version(url: str) -> int:
    engine = make_engine(url, pool_size=1)
    try:
        return _version_of(engine)
    finally:
        engine.dispose()


def _version_of(engine: Engine) -> int:
    with engine.connect() as connection:
        return int(connection.connection.driver_connection.info.server_version) // 10_000  # type: ignore[union-attr]


def _programs(needed: int) -> Path:
    """A folder with the programs, of the server's version or newer: an older `pg_dump` refuses the server.

    Our own folder comes first, then the folders on PATH, then Debian's.
    """
    folders: dict[Path, int] = {}
    for folder in _folders():
        version = _version(folder)
        if version is not None:
            if version >= needed:
                return folder
            folders[folder] = version
    have = ", ".join(f"{version} in {folder}" for folder, version in folders.items()) or "none"
    raise DatabaseError(
        f"the server is PostgreSQL {needed}, and no {', '.join(_PROGRAMS)} of that version or newer is here (there is: "
        f"{have}). Install PostgreSQL {needed}'s client programs and put their folder on PATH."
    )


def _folders() -> Iterator[Path]:
    with suppress(EmbeddedServerError):
        yield binaries(None, RELOCATION)
    yield from (Path(folder) for folder in os.get_exec_path())
    yield from sorted(_DEBIAN.glob("*/bin"))


def _version(folder: Path) -> int | None:
    """The major version of the programs in a folder; None unless all are there."""
    if not all(os.access(folder / name, os.X_OK) for name in _PROGRAMS):
        return None
    output = subprocess.run(
        [folder / "pg_dump", "--version"], env=_environment(), capture_output=True, text=True, check=False
    )
    match = re.search(r"\(PostgreSQL\) (\d+)", output.stdout)
    return int(match[1]) if match else None


def _run(command: list[str | Path], environment: dict[str, str], *files: int) -> None:
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, pass_fds=files, check=False
    )
    if done.returncode != 0:
        raise DatabaseError(_failure(Path(command[0]).name, done.stderr))


def _reason(error: psycopg.Error) -> str:
    words = error.diag.message_primary or next(iter(str(error).splitlines()), "no reason given")
    return words.strip().rstrip(".")


def _failure(program: str, output: bytes) -> str:
    """A message with the first error of a program."""
    lines = output.decode(errors="replace").splitlines()
    first = next((line for line in lines if "rror:" in line or "ERROR:" in line), (lines or ["no reason given"])[0])
    reason = re.sub("^.*?(error|ERROR): *([0-9A-Z]{5}: )?", "", first).strip().rstrip(".")
    return f"{program} failed: {reason}. Nothing has changed."


def address_and_password(url: str) -> tuple[str, dict[str, str]]:
    """The address in libpq's form, and an environment with the password, where other users cannot see it."""
    parsed = parsed_url(url)
    environment = _environment()
    if parsed.password is not None:
        environment["PGPASSWORD"] = str(parsed.password)
    # Written by libpq's own rules: it reads SQLAlchemy's spelling of a space as another folder.
    named = parsed.translate_connect_args(username="user", database="dbname")
    named.pop("password", None)
    several = {name: value if isinstance(value, str) else ",".join(value) for name, value in parsed.query.items()}
    return make_conninfo("", **named, **several), environment


def _environment() -> dict[str, str]:
    return without_libpq_variables(dict(os.environ))
