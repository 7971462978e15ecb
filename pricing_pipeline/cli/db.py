"""`db upgrade|url|psql|backup|restore`: the last two run the embedded server for themselves where no pipeline does."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

import typer

from pricing_pipeline import sample
from pricing_pipeline.cli import reads
from pricing_pipeline.cli.database import explained, open_connection, open_engine
from pricing_pipeline.cli.output import print_json, print_role_faults, size
from pricing_pipeline.cli.program import hint, warn
from pricing_pipeline.db import backup, migrate
from pricing_pipeline.db.embedded import EmbeddedServer
from pricing_pipeline.db.engine import libpq_url, masked, parsed_url
from pricing_pipeline.db.location import owner_url, worker_url
from pricing_pipeline.db.roles import role_faults
from pricing_pipeline.errors import DatabaseError, SettingsError, SupervisorError
from pricing_pipeline.keys import master_keys
from pricing_pipeline.processes.home import lock_home, prepare_home, running_pid
from pricing_pipeline.registry import calendars, provider_rules
from pricing_pipeline.settings import Settings, load_settings


def upgrade(*, with_sample: bool, as_json: bool) -> None:
    """Bring the database to the current schema, as the owner; safe to repeat and to run twice at once.

    An empty one gets the providers, and the sample's data types and instruments too where they are wanted.
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


def url(role: str, *, as_json: bool) -> None:
    """Tell the address of the database by which a role reaches it, without the password."""
    address = parsed_url(_url(load_settings(), role))
    secret = [name for name in address.query if "password" in name]
    # URL.set takes None for what shall stay.
    hidden = address._replace(password=None).difference_update_query(secret)
    url = libpq_url(hidden)
    if as_json:
        print_json({"url": url, "role": role})
    else:
        typer.echo(url)


def psql(role: str, arguments: Sequence[str]) -> NoReturn:
    """Become psql, with the rights of a role. Raises DatabaseError when there is none."""
    settings = load_settings()
    address = _url(settings, role)
    with open_engine(settings) as engine:
        # Asked as the worker: no session of ours but psql itself has more rights.
        program = backup.psql_for(engine)
    given, environment = backup.address_and_password(address)
    if role == "administrator":
        # Others' functions must not be found in a session that may do anything.
        environment["PGOPTIONS"] = "-c search_path=pg_catalog,pg_temp"
    os.execve(program, [str(program), given, *arguments], environment)  # noqa: S606


def _url(settings: Settings, role: str) -> str:
    match role:
        case "owner":
            return owner_url(settings)
        case "worker":
            return worker_url(settings)
    if settings.database_url is not None:
        raise SettingsError(
            "the administrator of a server of your own is not known here; use its own login. "
            "--role owner and --role worker are known."
        )
    return EmbeddedServer(settings.home).url("pricing", "superuser")


def back_up(path: Path, *, as_json: bool) -> None:
    """Write all prices and settings of the database to a file; safe while everything runs."""
    settings = load_settings()
    if settings.database_url is None:
        owner_url(settings)  # a home without a database is told of, and not given one
    with _server(settings):
        backup.back_up(owner_url(settings), path)
    written = path.stat().st_size
    if as_json:
        print_json({"file": str(path.absolute()), "bytes": written, "database": masked(owner_url(settings))})
        return
    typer.echo(f"{path} holds the database ({size(written)}).")
    if (keys := master_keys.master_key_file(settings)) is not None and keys.exists():
        hint(f"API keys in it are encrypted. Keep a copy of {keys} too, and elsewhere.")


def restore(path: Path, *, may_lose_prices: bool, as_json: bool) -> None:
    """Put a backup in the place of what the database holds. Raises PricingError while a pipeline runs there."""
    settings = load_settings()
    if (pid := running_pid(settings.home)) is not None:
        raise SupervisorError(
            f"a pipeline is running in {settings.home.absolute()} (pid {pid}). Stop it before you restore a backup."
        )
    backup.require_backup(path)  # before a home is made for it
    if settings.database_url is None:
        prepare_home(settings.home)
    with _server(settings):
        url = owner_url(settings)
        if not may_lose_prices and backup.has_prices(url):
            raise DatabaseError(
                f"{_named(settings)} holds prices. Give --yes to lose them, or set PRICING_HOME to a new folder."
            )
        backup.restore(url, path)
    if as_json:
        print_json({"file": str(path.absolute()), "database": masked(url)})
        return
    typer.echo(
        f"{_named(settings)} holds what {path} contains. Start it with `pricing-pipeline up --no-demo`."
    )
    hint(
        "start it with the PRICING_SANDBOX of the home that the backup is of, and with a copy of its master.key if API "
        "keys were stored."
    )


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
