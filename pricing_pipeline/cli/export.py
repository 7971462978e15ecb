"""Results as files for other programs: CSV, and Parquet where pyarrow is installed. Every digit is kept."""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pricing_pipeline.cli.output import plain
from pricing_pipeline.cli.program import hint
from pricing_pipeline.domain import cells
from pricing_pipeline.errors import PricingError
from pricing_pipeline.prices import arrow

_STANDARD_OUTPUT = Path("-")


def write(
    columns: Sequence[str], rows: Sequence[Mapping[str, Any]], csv_file: Path | None, parquet: Path | None
) -> bool:
    """Write rows to the files that are wanted; False where none is. Raises PricingError without pyarrow."""
    if parquet is not None:
        _write_parquet(columns, rows, parquet)
    if csv_file is not None:
        _write_csv(columns, rows, csv_file)
    for path in (csv_file, parquet):
        if path is not None and path != _STANDARD_OUTPUT:
            hint(f"{path} has {len(rows)} row{'' if len(rows) == 1 else 's'}.")
    return csv_file is not None or parquet is not None


def _write_csv(columns: Sequence[str], rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    def write_to(file: Any) -> None:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(columns)
        table.writerows([_cell(row[name]) for name in columns] for row in rows)

    if path == _STANDARD_OUTPUT:
        write_to(sys.stdout)
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        write_to(file)


def _cell(value: object) -> object:
    return cells.safe(value) if isinstance(value, str) else plain(value)


def _write_parquet(columns: Sequence[str], rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Prices become exact decimals, times become UTC timestamps."""
    from pandas import DataFrame

    if path == _STANDARD_OUTPUT:
        raise PricingError("Parquet is no text for a terminal or a pipe. Give --parquet the name of a file.")
    frame = DataFrame({name: [row[name] for row in rows] for name in columns})
    try:
        frame.to_parquet(path, engine="pyarrow", index=False)
    except ImportError as error:
        raise PricingError(arrow.NOT_INSTALLED) from error
