"""Find out who owns Dagster's storage: it was made for the pipeline, or we share somebody else's.

`up` notes in its home that it has made a storage. Where no home is shared, as among containers, the storage itself has
the note.

This module does not import Dagster. Only our own storage is upgraded and tidied up as a whole. A storage can have only
one of our homes: Dagster knows an asset by its key, a backfill by its assets and a sensor by its name, so two homes
would show each other's prices and execute each other's runs.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from sqlalchemy import Connection, inspect

from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.db.query_loader import query
from pricing_pipeline.errors import SettingsError

_RECORD = "made-by-up"
"""A file in the instance's folder: the identities of the storages that were made for it, one in each line."""

_FIRST_TABLE = "event_logs"
_KEYS_AND_VALUES = "kvs"


def claim_if_new(folder: Path, url: str, *, is_embedded: bool) -> bool:
    """Note in an instance's folder that its storage is ours, if it has no tables yet; returns whether it is ours.

    The note is written before the tables are made, so that an interrupted start can be repeated. A server embedded in
    the home has no other storage. Raises DatabaseError if the server does not answer.
    """
    engine = make_engine(url, pool_size=1)
    try:
        with engine.connect() as connection:
            if is_made_here(folder, connection):
                return True
            if not is_embedded and inspect(connection).has_table(_FIRST_TABLE):
                return False
            with (folder / _RECORD).open("a") as record:
                record.write(f"{_identity(connection)}\n")
            return True
    finally:
        engine.dispose()


def name_of_home(home: Path, pricing_url: str, *, is_embedded: bool) -> str:
    """The name of a home: its pricing database, and its folder if the database is embedded and so copied with it."""
    engine = make_engine(pricing_url, pool_size=1)
    try:
        with engine.connect() as connection:
            database = f"the pricing database {_identity(connection)}"
    finally:
        engine.dispose()
    return f"{database} in {home.absolute()}" if is_embedded else database


def settle(url: str, home: str, *, is_owner: bool) -> bool:
    """Note that a storage has the runs of the home with this name; the note of its owner replaces another one.

    Returns whether the storage has tables; it does nothing before. Raises SettingsError if it has the runs of another
    home.
    """
    engine = make_engine(url, pool_size=1)
    try:
        with engine.begin() as connection:
            if not inspect(connection).has_table(_KEYS_AND_VALUES):
                return False
            settled = connection.execute(query("dagster.settle"), {"home": home, "is_owner": is_owner}).scalar_one()
    finally:
        engine.dispose()
    if settled != home:
        raise SettingsError(
            f"Dagster's storage has the runs of another home, that of {settled}; this is the home of {home}. Each "
            "would execute the other's runs. Set PRICING_DAGSTER_URL to a database of this home's own. If the other "
            'home is gone for ever, docs/running.md, "Dagster\'s storage", says how this one takes its place.'
        )
    return True


def is_of_others(url: str) -> bool:
    """Whether a storage has tables, and no note that they were made for the pipeline.

    Raises DatabaseError if the server does not answer.
    """
    engine = make_engine(url, pool_size=1)
    try:
        with engine.connect() as connection:
            return inspect(connection).has_table(_FIRST_TABLE) and not _has_note(connection)
    finally:
        engine.dispose()


def note_maker(connection: Connection) -> None:
    """Note in a storage with tables that it was made for the pipeline, whichever instance opens it."""
    connection.execute(query("dagster.note_maker"), {"identity": _identity(connection)})


def is_made_here(folder: Path, connection: Connection) -> bool:
    """Whether the storage of this connection was made for the instance in `folder`, or for the pipeline anywhere."""
    with suppress(FileNotFoundError):
        if _identity(connection) in (folder / _RECORD).read_text().splitlines():
            return True
    return _has_note(connection)


def _has_note(connection: Connection) -> bool:
    if not inspect(connection).has_table(_KEYS_AND_VALUES):
        return False
    noted = connection.execute(query("dagster.maker")).scalar_one_or_none()
    return noted is not None and noted == _identity(connection)


def _identity(connection: Connection) -> str:
    return str(connection.execute(query("databases.identity")).scalar_one())
