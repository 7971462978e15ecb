"""`/v1/gaps`: the trading days of a symbol without a value, and why."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from pricing_pipeline.api.access import Database, Reader
from pricing_pipeline.api.bodies import Shape
from pricing_pipeline.api.parameters import Day, SymbolName, TypeName, require_instrument, type_of_prices
from pricing_pipeline.api.tags import TaggedRoute
from pricing_pipeline.demand import instruments
from pricing_pipeline.domain.windows import Window, last_of
from pricing_pipeline.registry import calendars
from pricing_pipeline.registry.calendars import GapKind

router = APIRouter(tags=["history"], route_class=TaggedRoute)


class Gap(Shape):
    """Trading days in a row without a value, for one reason, both days included."""

    from_: date = Field(alias="from")
    to: date
    sessions: int
    kind: GapKind
    detail: str | None
    """For people."""


class Gaps(Shape):
    """The gaps of a symbol between two days, oldest first."""

    symbol: str
    data_type: str
    from_: date = Field(alias="from")
    to: date
    gaps: list[Gap]
    market_closed: list[date]
    """Holidays: of these no value is missing."""
    sessions_known_to: date | None
    """The last day on which the market's sessions are known; null without a calendar."""


@router.get("/gaps/{data_type}/{symbol:path}")
def read_gaps(
    database: Database,
    caller: Reader,
    data_type: TypeName,
    symbol: SymbolName,
    first: Annotated[Day | None, Query(alias="from", description="Default: where history begins.")] = None,
    last: Annotated[Day | None, Query(alias="to", description="Else today.")] = None,
) -> Gaps:
    """The trading days of a symbol without a value, and why.

    A backfill can fetch those of the kinds `not_asked` and `failed`.
    """
    with database.connect() as connection:
        type_ = type_of_prices(connection, data_type)
        symbol = instruments.spelled_anywhere(connection, symbol)
        require_instrument(connection, type_, symbol)
        last_day = last_of(first, last, calendars.today(connection))
        days = Window(first or min(type_.history_from or last_day, last_day), last_day)
        gaps = calendars.gaps(connection, data_type, symbol, days.start, days.end)
        closed = calendars.closed_days(connection, data_type, symbol, days.start, days.end)
        known_to = calendars.known_to(connection, data_type, symbol)
    return Gaps.model_validate(
        {
            "symbol": symbol,
            "data_type": data_type,
            "from": days.start,
            "to": days.end,
            "gaps": [
                {
                    "from": gap.first_day,
                    "to": gap.last_day,
                    "sessions": gap.sessions,
                    "kind": gap.kind,
                    "detail": gap.detail,
                }
                for gap in gaps
            ],
            "market_closed": closed,
            "sessions_known_to": known_to and known_to[1],
        }
    )
