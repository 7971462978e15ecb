"""The command line `pricing-pipeline`: a verb to a noun, each noun in a module of its name, or one of four words."""

from __future__ import annotations

import gc
import logging

import typer

from pricing_pipeline.cli.page import page
from pricing_pipeline.cli.program import Noun, PlainLines, Program
from pricing_pipeline.cli.sandbox import sandbox
from pricing_pipeline.cli.status import status
from pricing_pipeline.cli.up import up
from pricing_pipeline.local_files.env_file import env_file
from pricing_pipeline.processes.closed_memory import close_memory

NOUNS = {
    "subscription": "Watch prices, or see who does.",
    "holding": "Open, close, import or list holdings.",
    "list": "Manage lists of symbols that are read and watched together.",
    "price": "Read prices and history, and see why a price is old.",
    "document": "Read documents about companies.",
    "product": "Look at products that are sold in slots, and at their availability; set their time zone.",
    "commodity": "Read what commodities of a game cost, and what can be earned.",
    "backfill": "Start, follow or cancel backfills of history.",
    "export": "Write months of history to files, and move old months out of the database.",
    "instrument": "Look at instruments; find, add, change, spell, pause, resume, merge or remove them.",
    "calendar": "Look at trading calendars, and correct wrong days.",
    "type": "Look at the data types; add, change or retire one.",
    "task": "Look at tasks of the fetch queue; retry, forget or cancel them.",
    "provider": "Look at providers, choose which to use, and configure them.",
    "route": "Say which provider serves what.",
    "limit": "Set rate limits of providers and caps of users.",
    "key": "Manage API keys of providers.",
    "quarantine": "Look at quarantined values, and release or reject them.",
    "action": "Look at splits, spin-offs, dividends and capital gains, or enter what no source reports.",
    "alert": "Look at alerts; acknowledge or silence them.",
    "price-alert": "Send messages when a price crosses a value, moves, grows stale, or is new.",
    "recipient": "Manage who is notified of trouble and prices, how, and when.",
    "notify": "Try a recipient's channel, and read the messages of the channel log.",
    "operation": "Look at side effects such as messages; retry or cancel them.",
    "operation-type": "Manage types of side effects, such as your own.",
    "token": "Manage tokens of the HTTP API.",
    "db": "Look after the database.",
}
"""Help for each noun. Its module is imported when one of its commands is asked for, and `type` is in data_type.py."""
_FILE = env_file()

app = typer.Typer(
    name="pricing-pipeline",
    cls=Program,
    help="Keeps exactly the prices people look at fresh, inside every provider's limits.",
    epilog="`pricing-pipeline COMMAND --help` shows an example of each command. "
    "--home may stand anywhere in a command. "
    "Settings are variables of the environment; a file .env in the current folder "
    f"adds to them, unless it names another home, and {f'{_FILE} is there' if _FILE else 'there is none here'}.",
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
# Their modules import what they use when they run.
for _command in (up, status, page, sandbox):
    app.command()(_command)
for _name, _help in NOUNS.items():
    app.add_typer(typer.Typer(cls=Noun), name=_name, help=_help)


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
    home: str | None = typer.Option(  # `Program` takes it out of every command
        None, metavar="DIR", help="The home that the command is about, instead of PRICING_HOME."
    ),
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
    close_memory()
    # Imported modules stay. Looking through them for garbage took a tenth of a command's start.
    gc.set_threshold(50_000)
    logging.basicConfig(level=logging.WARNING, handlers=[PlainLines()])
    # From a session that Ctrl-C interrupted; any other error that matters is also raised.
    logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)
    app(prog_name="pricing-pipeline")
