"""Back up the schema `pricing` to a file, and restore it, with PostgreSQL's own programs.

The caller starts the server, and decides whether the backup is allowed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, cast

from psycopg.conninfo import make_conninfo
from sqlalchemy import Engine

from pricing_pipeline.db.embedded import RELOCATION
from pricing_pipeline.db.embedded_home import binaries
from pricing_pipeline.db.engine import make_engine, parsed_url
from pricing_pipeline.db.migrate import upgrade
from pricing_pipeline.db.query_loader import query
from pricing_pipeline.errors import DatabaseError, EmbeddedServerError
from pricing_pipeline.local_files.own_files import sync_folder
from pricing_pipeline.processes.os_processes import without_libpq_variables

_PROGRAMS = ("pg_dump", "pg_restore", "psql")
_DEBIAN = Path("/usr/lib/postgresql")
_CHUNK = 1 << 16
_MAGIC = b"PGDMP"
"""The first bytes of a dump in `pg_dump`'s own format."""
_BEGIN = b"""
SET lock_timeout = '10s';
SET client_min_messages = 'error';
BEGIN;
DROP SCHEMA IF EXISTS pricing CASCADE;
"""
"""Nobody may use the replaced schema: the restore waits a while for other sessions, and then fails with a message."""
_TRIES = 5
"""Of a restore that PostgreSQL ends because another session waits for it in turn."""
_DEADLOCK = b":  40P01: "
_TOO_NEW = b"SET transaction_timeout = 0;\n"
"""Programs since 17 write it, and servers since 17 understand it."""


def back_up(url: str, path: Path) -> None:
    """Write the schema to a new file, whole or not at all, that only its owner can read.

    Raises DatabaseError if the file exists already, or a program fails.
    """
    if path.exists():
        raise DatabaseError(f"{path} is there already, and is kept. Name another file.")
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
        output = _replace_schema(programs, url, path)
        if output is None:
            break
        if tries_left == 0 or _DEADLOCK not in output:
            raise DatabaseError(_failure("psql", output))
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


def _replace_schema(programs: Path, url: str, path: Path) -> bytes | None:
    """Run the backup as SQL in one transaction, without rights: the following upgrade grants them.

    Nothing changes without the final COMMIT, whichever process ends before it. What psql says if it fails is returned.
    """
    address, environment = address_and_password(url)
    as_sql: list[str | Path] = ["--no-owner", "--no-privileges", "--file=-", path]
    settings = ("--set=ON_ERROR_STOP=1", "--set=VERBOSITY=verbose")  # with the code of an error
    run: list[str | Path] = ["--no-psqlrc", "--quiet", *settings, "--output=/dev/null", address]
    with (
        subprocess.Popen(
            [programs / "pg_restore", *as_sql],
            env=_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as script,
        subprocess.Popen(
            [programs / "psql", *run], env=environment, stdin=subprocess.PIPE, stderr=subprocess.PIPE
        ) as psql,
    ):
        source, target = cast("IO[bytes]", script.stdout), cast("IO[bytes]", psql.stdin)
        try:
            target.write(_BEGIN + source.read(_CHUNK).replace(_TOO_NEW, b"", 1))
            shutil.copyfileobj(source, target, _CHUNK)
            _, output = script.communicate()
            if script.returncode != 0:
                raise DatabaseError(_failure("pg_restore", output))
            target.write(b"COMMIT;\n")
        except BrokenPipeError:
            script.kill()  # psql reports the reason
        _, output = psql.communicate()
        return None if psql.returncode == 0 else output


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


def _failure(program: str, output: bytes) -> str:
    """A message with the first error of a program."""
    lines = output.decode(errors="replace").splitlines()
    first = next(
        (line for line in lines if "rror:" in line or "ERROR:" in line), (lines or ["no reason given"])[0]
    )
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
    several = {
        name: value if isinstance(value, str) else ",".join(value) for name, value in parsed.query.items()
    }
    return make_conninfo("", **named, **several), environment


def _environment() -> dict[str, str]:
    return without_libpq_variables(dict(os.environ))
