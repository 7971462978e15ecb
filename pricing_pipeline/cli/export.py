"""`export`: show and write the files of months of history, and move old months out of the database."""

from __future__ import annotations

from typing import Annotated

import typer

from pricing_pipeline.cli import reads
from pricing_pipeline.cli.arguments import day
from pricing_pipeline.cli.database import load_settings, open_connection, open_engine
from pricing_pipeline.cli.options import Json
from pricing_pipeline.cli.output import moment, print_json, print_table
from pricing_pipeline.cli.style import listing
from pricing_pipeline.domain.words import counted
from pricing_pipeline.prices import exporting, files

noun = typer.Typer()

OnlyType = Annotated[
    str | None, typer.Option("--type", metavar="NAME", help="Only this data type.", show_default=False)
]
_KEPT = {
    None: "to be moved",
    "being_fetched": "stays: days of it are being fetched",
    "quarantined": "stays: values of it are quarantined, which `quarantine list` shows",
    "not_thinned": "stays: it is not thinned yet",
}


@noun.command("list")
@listing
def list_(only_type: OnlyType = None, as_json: Json = False) -> None:
    """Show the months of history: which have a file, and which are due.

    \b
    Example: pricing-pipeline export list --type equity_daily
    """
    with open_connection() as connection:
        if only_type is not None:
            reads.any_data_type(connection, only_type)
        months = [
            month
            for name in ([only_type] if only_type else exporting.types(connection))
            for month in exporting.months(connection, name)
        ]
    if as_json:
        content = [
            {
                "data_type": month.data_type,
                "month": f"{month.month:%Y-%m}",
                "values_in_file": month.versions,
                "is_due": month.is_due,
                "exported_at": month.exported_at,
                "moved_at": month.moved_at,
            }
            for month in months
        ]
        print_json({"months": content})
        return
    rows = [
        [
            month.data_type,
            f"{month.month:%Y-%m}",
            month.versions,
            moment(month.exported_at),
            moment(month.moved_at),
            "due" if month.is_due else "",
        ]
        for month in months
    ]
    print_table(["type", "month", "in file", "exported", "moved", ""], rows, right=["in file"])


@noun.command()
def run(
    only_type: OnlyType = None,
    only_month: Annotated[
        str | None,
        typer.Option("--month", metavar="YYYY-MM", help="This month, due or not.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the files of all months that are due to PRICING_EXPORT_URL. In Dagster a schedule does it every day.

    \b
    Example: pricing-pipeline export run --type equity_daily --month 2020-03
    """
    month = None if only_month is None else day(only_month, "--month").replace(day=1)
    settings = load_settings()
    store = files.open_store(settings)
    done = []
    with open_engine(settings) as engine:
        with engine.connect() as connection:
            if only_type is not None:
                reads.any_data_type(connection, only_type)
            names = [only_type] if only_type else exporting.types(connection)
        for name in names:
            for wanted in exporting.each_due(engine, name) if month is None else [month]:
                exported = exporting.export(engine, store, name, wanted)
                if exported is None:
                    continue
                done.append(
                    {
                        "data_type": name,
                        "month": f"{wanted:%Y-%m}",
                        "values": exported.versions,
                        "file_bytes": exported.file_bytes,
                        "is_new": exported.is_new,
                    }
                )
                if not as_json:
                    how = "written" if exported.is_new else "unchanged"
                    typer.echo(f"{name} {wanted:%Y-%m}: {counted(exported.versions, 'value')}, {how}")
    if as_json:
        print_json({"months": done})
    elif not done:
        typer.echo("No month is due." if month is None else "Nothing is stored of that month.")


@noun.command()
def move(
    only_type: OnlyType = None,
    is_dry: Annotated[
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
    settings = load_settings()
    done = []
    with open_engine(settings) as engine:
        with engine.connect() as connection:
            if only_type is not None:
                reads.any_data_type(connection, only_type)
            months = exporting.movable(connection, only_type)
        for month in months:
            moved = None
            if month.keeps is None and not is_dry:
                moved = exporting.move(engine, files.open_store(settings), month.data_type, month.month)
            done.append(
                {
                    "data_type": month.data_type,
                    "month": f"{month.month:%Y-%m}",
                    "values": month.versions,
                    "keeps": month.keeps,
                    "rows_left_database": moved,
                }
            )
            if not as_json:
                how = _KEPT[month.keeps] if moved is None else f"moved {counted(moved, 'row')}"
                typer.echo(
                    f"{month.data_type} {month.month:%Y-%m}: {counted(month.versions, 'value')} in the file, {how}"
                )
    if as_json:
        print_json({"months": done})
    elif not done:
        typer.echo(
            "No month is to move: no exported month is older than its type keeps in the database. "
            "`type change NAME --keep-months N` sets that."
        )
