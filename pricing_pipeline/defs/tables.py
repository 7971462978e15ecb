"""Tables in the metadata of Dagster's events."""

from collections.abc import Sequence

import dagster as dg

Metadata = dict[str, dg.MetadataValue]


def named_table(name: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> Metadata:
    """A table under its name; none without rows."""
    return {name: table(header, rows)} if rows else {}


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> dg.TableMetadataValue:
    """A table for Dagster. Numbers stay numbers, all other cells become text."""

    def shown(cell: object) -> str | int | float:
        return cell if isinstance(cell, (int, float)) else str(cell)

    numeric = [bool(rows) and all(isinstance(row[place], (int, float)) for row in rows) for place in range(len(header))]
    columns = [
        dg.TableColumn(name, "number" if is_number else "text") for name, is_number in zip(header, numeric, strict=True)
    ]
    return dg.MetadataValue.table(
        records=[dg.TableRecord(dict(zip(header, map(shown, row), strict=True))) for row in rows],
        schema=dg.TableSchema(columns=columns),
    )
