"""The commands of `db` as they are typed."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pricing_pipeline.cli.options import Json

noun = typer.Typer(help="Look after the database.")


@noun.command()
def upgrade(
    sample: Annotated[
        bool, typer.Option("--sample", help="Give an empty database the sample's data types and instruments.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Bring the database to the current schema. Safe to repeat, and to run twice at once.

    An empty database gets the providers.

    \b
    Example: pricing-pipeline db upgrade
    """
    from pricing_pipeline.cli import db

    db.upgrade(with_sample=sample, as_json=as_json)


@noun.command()
def backup(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A file that does not exist yet.")],
    as_json: Json = False,
) -> None:
    """Write the database to a file, while everything runs or while nothing does. Dagster's own runs are not in it.

    \b
    Example: pricing-pipeline db backup prices.dump
    """
    from pricing_pipeline.cli import db

    db.back_up(path, as_json=as_json)


@noun.command()
def restore(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="What `db backup` has written.")],
    yes: Annotated[bool, typer.Option("--yes", help="Lose the prices that the database holds now.")] = False,
    as_json: Json = False,
) -> None:
    """Put a backup in the place of what the database holds, while nothing runs. It succeeds as a whole or not at all.

    \b
    Example: pricing-pipeline db restore prices.dump --yes
    """
    from pricing_pipeline.cli import db

    db.restore(path, may_lose_prices=yes, as_json=as_json)


class Role(StrEnum):
    """Whose rights a session has."""

    OWNER = "owner"
    WORKER = "worker"
    ADMINISTRATOR = "administrator"


Whose = Annotated[
    Role, typer.Option("--role", help="Whose rights. The administrator is that of the embedded server.")
]


@noun.command()
def url(role: Whose = Role.OWNER, as_json: Json = False) -> None:
    """Print the address of the database, without its password.

    \b
    Example: pricing-pipeline db url --role worker
    """
    from pricing_pipeline.cli import db

    db.url(role.value, as_json=as_json)


@noun.command()
def psql(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="ARGUMENT", help="Handed on to psql, after --.", show_default=False),
    ] = None,
    role: Whose = Role.OWNER,
) -> None:
    """Open psql on the database. It gets the password where others cannot see it.

    \b
    Example: pricing-pipeline db psql --role worker -- --csv --file report.sql
    """
    from pricing_pipeline.cli import db

    db.psql(role.value, arguments or [])
