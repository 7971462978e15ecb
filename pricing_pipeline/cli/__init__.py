"""The command line `pricing-pipeline`. Here the commands are only put together."""

from __future__ import annotations

import gc
import logging

import typer

from pricing_pipeline.cli import commands, held_commands, history_commands, provider_commands, sandbox_command
from pricing_pipeline.cli.program import PlainLines, Program
from pricing_pipeline.env_file import env_file

_FILE = env_file()

app = typer.Typer(
    name="pricing-pipeline",
    cls=Program,
    help="Keeps exactly the prices people look at fresh, inside every provider's limits.",
    epilog="`pricing-pipeline COMMAND --help` shows an example of each command. "
    "Settings are variables of the environment; a file .env in the current folder adds to them, and "
    f"{f'{_FILE} is read' if _FILE else 'there is none here'}.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
_queue = typer.Typer(help="Look at the fetch queue, and step in.")
_registry = typer.Typer(help="Look at the data types, or add one.")
_instrument = typer.Typer(help="List instruments, pause, resume or remove them.")
_quarantine = typer.Typer(help="Look at values that are not believed, and decide on them.")
_provider = typer.Typer(help="Look after the API keys of providers.")
_backfills = typer.Typer(help="See how far backfills are, or call one off.")
_actions = typer.Typer(help="Look at splits and dividends, or enter what no source tells.")
_db = typer.Typer(help="Look after the database.")

for _command in (
    commands.up,
    commands.subscribe,
    commands.unsubscribe,
    commands.hold,
    commands.release,
    commands.price,
    commands.why,
    commands.document,
    commands.history,
    history_commands.gaps,
    history_commands.backfill,
    commands.status,
):
    app.command()(_command)
_queue.command("list")(commands.queue_list)
_queue.command("show")(commands.queue_show)
_queue.command("retry")(commands.queue_retry)
_queue.command("cancel")(commands.queue_cancel)
_registry.command("list")(commands.registry_list)
_registry.command("add")(commands.registry_add)
_instrument.command("list")(commands.instrument_list)
_instrument.command("pause")(commands.instrument_pause)
_instrument.command("resume")(commands.instrument_resume)
_instrument.command("remove")(commands.instrument_remove)
_quarantine.command("list")(held_commands.quarantine_list)
_quarantine.command("show")(held_commands.quarantine_show)
_quarantine.command("release")(held_commands.quarantine_release)
_quarantine.command("reject")(held_commands.quarantine_reject)
_provider.command("set-key")(provider_commands.set_key)
_provider.command("keys")(provider_commands.keys)
_provider.command("remove-key")(provider_commands.remove_key)
_provider.command("rotate")(provider_commands.rotate)
_backfills.command("list")(history_commands.backfills_list)
_backfills.command("cancel")(history_commands.backfills_cancel)
_actions.command("list")(history_commands.actions_list)
_actions.command("add")(history_commands.actions_add)
_actions.command("remove")(history_commands.actions_remove)
_db.command("upgrade")(commands.db_upgrade)
_db.command("backup")(commands.db_backup)
_db.command("restore")(commands.db_restore)
app.add_typer(_queue, name="queue")
app.add_typer(_registry, name="registry")
app.add_typer(_instrument, name="instrument")
app.add_typer(_quarantine, name="quarantine")
app.add_typer(_provider, name="provider")
app.add_typer(_backfills, name="backfills")
app.add_typer(_actions, name="actions")
app.add_typer(_db, name="db")
app.command()(sandbox_command.sandbox)


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    if version:
        typer.echo(_version())
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("pricing-pipeline")
    except PackageNotFoundError:
        return "a checkout that is not installed"


def main() -> None:
    """Entry point of the command `pricing-pipeline`."""
    # What is imported stays. To look through it for rubbish, ever again, took a tenth of a command's start.
    gc.set_threshold(50_000)
    logging.basicConfig(level=logging.WARNING, handlers=[PlainLines()])
    app(prog_name="pricing-pipeline")
