"""`export`: files of months of history, written and shown, and months that leave the database."""

from __future__ import annotations

from datetime import date

import typer

from pricing_pipeline.cli import reads
from pricing_pipeline.cli.database import open_connection, open_engine
from pricing_pipeline.cli.output import moment, print_json, print_table
from pricing_pipeline.prices import exporting, files
from pricing_pipeline.settings import load_settings

_KEPT = {
    None: "leaves",
    "being_fetched": "stays: days of it are being fetched",
    "quarantined": "stays: values of it are quarantined, which `quarantine list` shows",
    "not_thinned": "stays: it is not thinned yet",
}


def show(only_type: str | None, *, as_json: bool) -> None:
    """Tell how the file of each month stands. Raises UnknownDataType."""
    with open_connection(load_settings()) as connection:
        if only_type is not None:
            reads.any_data_type(connection, only_type)
        found = [
            month
            for name in ([only_type] if only_type else exporting.types(connection))
            for month in exporting.months(connection, name)
        ]
    if as_json:
        months = [
            {
                "data_type": one.data_type,
                "month": f"{one.month:%Y-%m}",
                "values_in_database": one.versions,
                "is_due": one.is_due,
                "exported_at": one.exported_at,
                "moved_at": one.moved_at,
            }
            for one in found
        ]
        print_json({"months": months})
        return
    rows = [
        [
            one.data_type,
            f"{one.month:%Y-%m}",
            one.versions,
            moment(one.exported_at),
            moment(one.moved_at),
            "due" if one.is_due else "",
        ]
        for one in found
    ]
    print_table(["type", "month", "in database", "exported", "left", ""], rows, right=["in database"])


def run(only_type: str | None, month: date | None, *, as_json: bool) -> None:
    """Write the files that are due, or those of one month. Raises UnknownDataType, and PricingError without a place."""
    settings = load_settings()
    store = files.open_store(settings)
    done = []
    with open_engine(settings) as engine:
        with engine.connect() as connection:
            if only_type is not None:
                reads.any_data_type(connection, only_type)
            names = [only_type] if only_type else exporting.types(connection)
            due = {name: exporting.due(connection, name) if month is None else [month] for name in names}
        for name, months in due.items():
            for wanted in months:
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
                    typer.echo(f"{name} {wanted:%Y-%m}: {exported.versions} values, {how}")
    if as_json:
        print_json({"months": done})
    elif not done:
        typer.echo("No month is due." if month is None else "Nothing is stored of that month.")


def move(only_type: str | None, *, is_dry: bool, as_json: bool) -> None:
    """Let months leave the database, or only tell which would. Raises what `run` raises."""
    settings = load_settings()
    done = []
    with open_engine(settings) as engine:
        with engine.connect() as connection:
            if only_type is not None:
                reads.any_data_type(connection, only_type)
            found = exporting.movable(connection, only_type)
        for one in found:
            left = None
            if one.keeps is None and not is_dry:
                left = exporting.move(engine, files.open_store(settings), one.data_type, one.month)
            done.append(
                {
                    "data_type": one.data_type,
                    "month": f"{one.month:%Y-%m}",
                    "values": one.versions,
                    "keeps": one.keeps,
                    "rows_left_database": left,
                }
            )
            if not as_json:
                how = _KEPT[one.keeps] if left is None else f"{left} rows have left the database"
                typer.echo(f"{one.data_type} {one.month:%Y-%m}: {one.versions} values in the file, {how}")
    if as_json:
        print_json({"months": done})
    elif not done:
        typer.echo(
            "Nothing is to leave the database: no exported month is older than its type keeps. "
            "`type change NAME --keep-months N` sets that."
        )
