"""`db backup` and `db restore`: they run the embedded server for themselves where no pipeline does."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from pricing_pipeline.cli.output import print_json, size
from pricing_pipeline.cli.program import hint
from pricing_pipeline.db import backup
from pricing_pipeline.db.embedded import EmbeddedServer
from pricing_pipeline.db.engine import masked
from pricing_pipeline.db.location import owner_url
from pricing_pipeline.errors import DatabaseError, SupervisorError
from pricing_pipeline.keys import master_keys
from pricing_pipeline.processes.home import lock_home, prepare_home, running_pid
from pricing_pipeline.settings import Settings, load_settings


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


def restore(path: Path, *, replace: bool, as_json: bool) -> None:
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
        if not replace and backup.has_prices(url):
            raise DatabaseError(
                f"{_named(settings)} holds prices. Give --replace to lose them, or set PRICING_HOME to a new folder."
            )
        backup.restore(url, path)
    if as_json:
        print_json({"file": str(path.absolute()), "database": masked(url)})
        return
    typer.echo(f"{_named(settings)} holds what {path} held. Start it with `pricing-pipeline up --no-demo`.")
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
