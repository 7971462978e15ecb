"""The commands of `export` as they are typed."""

from __future__ import annotations

from typing import Annotated

import typer

from pricing_pipeline.cli.options import Json
from pricing_pipeline.cli.style import listing

noun = typer.Typer(help="Write months of history to files, and move old months out of the database.")

OnlyType = Annotated[
    str | None, typer.Option("--type", metavar="NAME", help="Only this data type.", show_default=False)
]


@noun.command("list")
@listing
def list_(only_type: OnlyType = None, as_json: Json = False) -> None:
    """Show the months of history, which have a file, and which are due. It reads all rows of the history.

    \b
    Example: pricing-pipeline export list --type equity_daily
    """
    from pricing_pipeline.cli import history_files

    history_files.show(only_type, as_json=as_json)


@noun.command()
def run(
    only_type: OnlyType = None,
    month: Annotated[
        str | None, typer.Option(metavar="YYYY-MM", help="This month, due or not.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the files of all months that are due to PRICING_EXPORT_URL. In Dagster a schedule does it every day.

    \b
    Example: pricing-pipeline export run --type equity_daily --month 2020-03
    """
    from pricing_pipeline.cli import history_files
    from pricing_pipeline.cli.arguments import day

    chosen = None if month is None else day(month, "--month").replace(day=1)
    history_files.run(only_type, chosen, as_json=as_json)


@noun.command()
def move(
    only_type: OnlyType = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show which months would move, and which would not.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Move months that are older than their type keeps in the database. Each is compared with its file first.

    `type change NAME --keep-months 24` sets how many months a type keeps; without it, no month moves. Reads still
    find moved values.

    \b
    Example: pricing-pipeline export move --dry-run
    """
    from pricing_pipeline.cli import history_files

    history_files.move(only_type, is_dry=dry_run, as_json=as_json)
