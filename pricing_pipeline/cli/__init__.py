"""The command line `pricing-pipeline`. Here the commands are only put together."""

from __future__ import annotations

import gc
import logging

import typer

from pricing_pipeline.cli.commands import NOUNS, PROCESSES
from pricing_pipeline.cli.program import PlainLines, Program
from pricing_pipeline.local_files.env_file import env_file
from pricing_pipeline.processes.closed_memory import close_memory

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
for _process in PROCESSES:
    app.command()(_process)
for _name, _noun in NOUNS.items():
    app.add_typer(_noun, name=_name)


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
    # What is imported stays. To look through it for rubbish, ever again, took a tenth of a command's start.
    gc.set_threshold(50_000)
    logging.basicConfig(level=logging.WARNING, handlers=[PlainLines()])
    # Of a session that Ctrl-C has broken off; what matters of others is raised as well.
    logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)
    app(prog_name="pricing-pipeline")
