"""`price gaps`: the trading days of a symbol without a value, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

import typer
from sqlalchemy import Connection

from pricing_pipeline.cli import export, reads
from pricing_pipeline.cli.database import open_connection
from pricing_pipeline.cli.output import print_json, print_table
from pricing_pipeline.cli.program import hint
from pricing_pipeline.db.query_loader import query
from pricing_pipeline.demand import backfills, instruments
from pricing_pipeline.domain.windows import last_of
from pricing_pipeline.errors import UnknownSymbol
from pricing_pipeline.registry import calendars, data_type_registry
from pricing_pipeline.registry.calendars import Gap, GapKind
from pricing_pipeline.settings import load_settings

_HOLIDAYS_TOLD = 5
_FETCHABLE = frozenset({GapKind.NOT_ASKED, GapKind.FAILED, GapKind.UNREADABLE})


def gaps(
    symbol: str,
    data_type: str | None,
    first: date | None,
    last: date | None,
    csv: Path | None,
    parquet: Path | None,
    *,
    as_json: bool,
) -> None:
    """Tell the gaps between two days (the first one None: where history begins; the last: today).

    Raises UnknownDataType, UnknownSymbol, and InvalidRange where no gaps can be told.
    """
    with open_connection(load_settings()) as connection:
        symbol = instruments.spelled_anywhere(connection, symbol)
        last_day = last_of(first, last, calendars.today(connection))
        begins = {
            name: first or min(since or last_day, last_day)
            for name, since in _types(connection, symbol, data_type)
        }
        gaps_of_type = {
            name: calendars.gaps(connection, name, symbol, day, last_day) for name, day in begins.items()
        }
        closed = {
            name: calendars.closed_days(connection, name, symbol, day, last_day)
            for name, day in begins.items()
        }
        known = {name: calendars.known_to(connection, name, symbol) for name in gaps_of_type}
        paused = {name for name in gaps_of_type if "paused" in backfills.left_out(connection, name, [symbol])}
    if as_json:
        print_json(
            {
                "symbol": symbol,
                "to": last_day,
                "gaps": [_row(name, gap) for name in gaps_of_type for gap in gaps_of_type[name]],
                "market_closed": closed,
            }
        )
        return
    rows = [_row(name, gap) for name in sorted(gaps_of_type) for gap in gaps_of_type[name]]
    if export.write(["data_type", "from", "to", "sessions", "kind", "detail"], rows, csv, parquet):
        return
    _list(gaps_of_type)
    for name, days in closed.items():
        if days:
            typer.echo(_holidays(name, days))
    for name, gaps_ in gaps_of_type.items():
        hint(_advice(symbol, name, gaps_, is_paused=name in paused))
        until = known[name]
        if until is not None and until[1] < last_day:
            hint(
                f"Trading days of {until[0]} are known to {until[1]} only: what lacks after that is not known."
            )


def _list(gaps_of_type: Mapping[str, Sequence[Gap]]) -> None:
    rows = [
        (name, gap.first_day, gap.last_day, gap.sessions, str(gap.kind), gap.detail)
        for name, gaps in gaps_of_type.items()
        for gap in gaps
    ]
    if rows:
        headings = ["data type", "from", "to", "sessions", "kind", "why"]
        print_table(headings, sorted(rows), right=["sessions"], long="why")


def _holidays(data_type: str, days: Sequence[date]) -> str:
    """A holiday lacks no value; listed with the gaps, it explains why its day has none."""
    newest = ", ".join(day.isoformat() for day in days[-_HOLIDAYS_TOLD:])
    if len(days) <= _HOLIDAYS_TOLD:
        return f"{data_type}: the market was closed on {newest}"
    return f"{data_type}: the market was closed on {len(days)} days; the last were {newest} (--json has all)"


def _types(connection: Connection, symbol: str, wanted: str | None) -> Sequence[tuple[str, date | None]]:
    if wanted is not None:
        type_ = data_type_registry.active_data_type(connection, wanted)
        reads.require_instruments(connection, type_, [symbol])
        return [(type_.data_type, type_.history_from)]
    rows = connection.execute(query("calendars.daily_types"), {"symbol": symbol}).all()
    if not rows:
        way = data_type_registry.misfit(connection, symbol) or "watching a symbol makes it known"
        raise UnknownSymbol(
            f"no data type of daily values applies to {symbol}. `pricing-pipeline type list` shows the types; {way}."
        )
    return [(row.data_type, row.history_from) for row in rows]


def _row(data_type: str, gap: Gap) -> dict[str, object]:
    return {
        "data_type": data_type,
        "from": gap.first_day,
        "to": gap.last_day,
        "sessions": gap.sessions,
        "kind": gap.kind.value,
        "detail": gap.detail,
    }


def _advice(symbol: str, data_type: str, gaps: Sequence[Gap], *, is_paused: bool) -> str:
    if not gaps:
        return f"{data_type} of {symbol} has a value for every trading day that is known."
    wanted = [gap for gap in gaps if gap.kind in _FETCHABLE]
    if not wanted:
        return f"Nothing of {data_type} is worth asking for again."
    first = (
        f"{symbol} is paused; first resume it: pricing-pipeline instrument resume {symbol}. "
        if is_paused
        else ""
    )
    return first + (
        f"This fetches what was not asked for or failed: pricing-pipeline backfill start {symbol} "
        f"--type {data_type} --from {wanted[0].first_day} --to {wanted[-1].last_day}"
    )
