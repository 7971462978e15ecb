"""`db upgrade|url|psql|backup|restore`: the last two run the embedded server for themselves where no pipeline does."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pricing_pipeline import sample
from pricing_pipeline.cli import reads
from pricing_pipeline.cli.database import explained, load_settings, open_connection, open_engine
from pricing_pipeline.cli.options import Json
from pricing_pipeline.cli.output import print_json, print_role_faults, size
from pricing_pipeline.cli.program import hint, warn
from pricing_pipeline.db import backup as backups
from pricing_pipeline.db import migrate
from pricing_pipeline.db.embedded import EmbeddedServer
from pricing_pipeline.db.engine import libpq_url, masked, parsed_url
from pricing_pipeline.db.location import owner_url, worker_url
from pricing_pipeline.db.roles import role_faults
from pricing_pipeline.errors import DatabaseError, SettingsError, SupervisorError
from pricing_pipeline.keys import master_keys
from pricing_pipeline.processes.home import lock_home, prepare_home, running_pid
from pricing_pipeline.registry import calendars, provider_rules

if TYPE_CHECKING:
    from pricing_pipeline.settings import Settings

noun = typer.Typer()


class Role(StrEnum):
    """The role of a session."""

    OWNER = "owner"
    WORKER = "worker"
    ADMINISTRATOR = "administrator"


Whose = Annotated[Role, typer.Option("--role", help="The role to use; administrator is the embedded server's.")]


@noun.command()
def upgrade(
    with_sample: Annotated[
        bool, typer.Option("--sample", help="Give an empty database the sample's data types and instruments.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Upgrade the database to the current schema. Safe to repeat, and to run twice at once.

    An empty database gets the providers.

    \b
    Example: pricing-pipeline db upgrade
    """
    settings = load_settings()
    url = owner_url(settings)
    try:
        migrate.upgrade(url)
        sample.load(url, demo=with_sample, in_use=settings.sandbox)
        provider_rules.apply_settings(url, settings)
        with open_engine(settings) as engine:
            # A newer library may know more of next year's holidays.
            extended = calendars.extend(engine, again=True)
        with open_connection(settings) as connection:
            revision = reads.revision(connection)
            faults = role_faults(connection)
    except DatabaseError as error:
        raise explained(settings, error) from error
    if as_json:
        print_json(
            {
                "database": masked(url),
                "revision": revision,
                "role_faults": [asdict(fault) for fault in faults],
                "failed_calendars": dict(extended.failed),
            }
        )
        return
    typer.echo(f"{masked(url)} is up to date (revision {revision}).")
    for calendar, why in extended.failed.items():
        warn(f"{calendar}: {why}.")
    print_role_faults(faults)


@noun.command()
def backup(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A file that does not exist yet.")],
    as_json: Json = False,
) -> None:
    """Write the database to a file, whether the pipeline runs or not. Dagster's own runs are not in it.

    \b
    Example: pricing-pipeline db backup prices.dump
    """
    settings = load_settings()
    if settings.database_url is None:
        owner_url(settings)  # refuses a home without a database, and does not make one
    with _server(settings):
        backups.back_up(owner_url(settings), path)
    written = path.stat().st_size
    if as_json:
        print_json({"file": str(path.absolute()), "bytes": written, "database": masked(owner_url(settings))})
        return
    typer.echo(f"{path} holds the database ({size(written)}).")
    if (keys := master_keys.master_key_file(settings)) is not None and keys.exists():
        hint(f"API keys in it are encrypted. Keep a copy of {keys} too, and elsewhere.")


@noun.command()
def restore(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A file of `db backup`.")],
    may_lose_prices: Annotated[
        bool, typer.Option("--yes", help="Replace the prices that the database has now.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Replace the database with a backup, while nothing runs. It succeeds as a whole or changes nothing.

    \b
    Example: pricing-pipeline db restore prices.dump --yes
    """
    settings = load_settings()
    if (pid := running_pid(settings.home)) is not None:
        raise SupervisorError(
            f"a pipeline is running in {settings.home.absolute()} (pid {pid}). Stop it before you restore a backup."
        )
    backups.require_backup(path)  # before a home is made for it
    if settings.database_url is None:
        prepare_home(settings.home)
    with _server(settings):
        url = owner_url(settings)
        if not may_lose_prices and backups.has_prices(url):
            raise DatabaseError(
                f"{_named(settings)} holds prices. Give --yes to lose them, or set PRICING_HOME to a new folder."
            )
        backups.restore(url, path)
    if as_json:
        print_json({"file": str(path.absolute()), "database": masked(url)})
        return
    typer.echo(f"{_named(settings)} holds what {path} contains. Start it with `pricing-pipeline up --no-demo`.")
    hint(
        "start it with the PRICING_SANDBOX of the home that the backup is of, and with a copy of its master.key if API "
        "keys were stored."
    )


@noun.command()
def url(role: Whose = Role.OWNER, as_json: Json = False) -> None:
    """Print the address of the database, without its password.

    \b
    Example: pricing-pipeline db url --role worker
    """
    address = parsed_url(_url(load_settings(), role))
    secret = [name for name in address.query if "password" in name]
    # URL.set takes None for what shall stay.
    hidden = address._replace(password=None).difference_update_query(secret)
    url = libpq_url(hidden)
    if as_json:
        print_json({"url": url, "role": role})
    else:
        typer.echo(url)


@noun.command()
def psql(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="ARGUMENT", help="Passed to psql, after --.", show_default=False),
    ] = None,
    role: Whose = Role.OWNER,
) -> None:
    """Open psql on the database. Others cannot see its password.

    \b
    Example: pricing-pipeline db psql --role worker -- --csv --file report.sql
    """
    arguments = arguments or []
    settings = load_settings()
    address = _url(settings, role)
    with open_engine(settings) as engine:
        # Asked as the worker: no session of ours but psql itself has more rights.
        program = backups.psql_for(engine)
    given, environment = backups.address_and_password(address)
    if role is Role.ADMINISTRATOR:
        # Others' functions must not be found in a session that may do anything.
        environment["PGOPTIONS"] = "-c search_path=pg_catalog,pg_temp"
    os.execve(program, [str(program), given, *arguments], environment)  # noqa: S606


def _url(settings: Settings, role: Role) -> str:
    match role:
        case Role.OWNER:
            return owner_url(settings)
        case Role.WORKER:
            return worker_url(settings)
    if settings.database_url is not None:
        raise SettingsError(
            "the administrator of a server of your own is not known here; use its own login. "
            "--role owner and --role worker are known."
        )
    return EmbeddedServer(settings.home).url("pricing", "superuser")


def _named(settings: Settings) -> str:
    if settings.database_url is None:
        return f"the database of {settings.home.absolute()}"
    return masked(owner_url(settings))


@contextmanager
def _server(settings: Settings) -> Iterator[None]:
    """The database server runs while this lasts: yours, that of a running pipeline, or one started for it."""
    server = EmbeddedServer(settings.home)
    if settings.database_url is not None or server.is_running:
        yield
        return
    lock = lock_home(settings.home, patience=5)
    try:
        with server:
            yield
    finally:
        os.close(lock)
