"""Whose Dagster's storage is: made by `up` for this home, or somebody else's that we share.

Dagster itself is not known here. Only a storage that we made is upgraded and tidied up as a whole.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect

from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.db.query_loader import query

_RECORD = "made-by-up"
"""A file in the instance's folder: the identity of each storage that was made for it, one in a line."""

_FIRST_TABLE = "event_logs"


def claim_if_new(folder: Path, url: str, *, is_embedded: bool) -> bool:
    """Note in an instance's folder that its storage is ours, if nobody has made its tables; whether it is ours.

    It is noted before the tables are made, so that a start that is cut off can be made again. A server that is
    embedded in the home holds nobody else's. Raises DatabaseError when the server does not answer.
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


def is_made_here(folder: Path, connection: Connection) -> bool:
    """Whether the storage of this connection was made for the instance in `folder`."""
    try:
        made = (folder / _RECORD).read_text().splitlines()
    except FileNotFoundError:
        return False
    return _identity(connection) in made


def _identity(connection: Connection) -> str:
    return str(connection.execute(query("databases.identity")).scalar_one())
