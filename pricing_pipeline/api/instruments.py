"""`/v1/instruments`: what is known of instruments; `pause` and `resume` stop and restart fetching them."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import Field

from pricing_pipeline.api.access import Database, Operator, Reader
from pricing_pipeline.api.bodies import Body, Shape
from pricing_pipeline.api.paging import Keyset, Page
from pricing_pipeline.api.parameters import LONGEST_NAME, AssetClass, SymbolList, SymbolName
from pricing_pipeline.demand import instruments
from pricing_pipeline.demand.instruments import Bounds, Instrument
from pricing_pipeline.errors import UnknownSymbol
from pricing_pipeline.registry import data_type_registry, spellings
from pricing_pipeline.registry.spellings import Spelled

router = APIRouter(prefix="/instruments", tags=["instruments"])


class Instruments(Shape):
    """Instruments by class and symbol, a page of them."""

    instruments: list[Instrument]
    next: str | None
    """The cursor of the next page; null on the last."""


class InstrumentDetails(Shape):
    """Everything about an instrument."""

    asset_class: str
    symbol: str
    name: str | None
    currency: str | None
    isin: str | None
    """Its ISIN, by which it can be named, too."""
    figi: str | None
    """Its FIGI, by which it can be named, too."""
    scale: int
    """The least number of decimals with which it is stored."""
    exchange: str | None
    """The MIC of the exchange where it trades, as a person gave it; null = its symbol tells."""
    exchange_by_symbol: str | None
    """The exchange that its symbol names, such as XLON for VOD.L or VOD:LSE; null = none, or several."""
    exchanges_by_symbol: list[str]
    """All exchanges whose symbols end like its own."""
    calendar: str | None
    listed_on: date | None
    created_at: datetime
    verified_at: datetime | None
    state: str
    viewers: int
    holders: int
    data_types: list[str]
    bounds: list[Bounds]
    spellings: list[Spelled]
    """Its spelling at each provider."""


class AboutSymbol(Shape):
    """The instruments of a symbol: mostly one, and one for each class that has it."""

    instruments: list[InstrumentDetails]


_INSTRUMENTS: Keyset[Instrument] = Keyset("instruments", (str, str), lambda row: (row.asset_class, row.symbol))


@router.get("")
def list_instruments(
    database: Database,
    caller: Reader,
    page: Annotated[Page, Depends(_INSTRUMENTS)],
    asset_class: AssetClass = None,
) -> Instruments:
    """Instruments, and how many users watch and hold each."""
    with database.connect() as connection:
        rows = instruments.listed(connection, None, asset_class, page.at_most, after=page.after)
    shown, following = page.cut(rows)
    return Instruments(instruments=shown, next=following)


@router.get("/{symbol:path}")
def show_instruments(
    database: Database, caller: Reader, symbol: SymbolName, asset_class: AssetClass = None
) -> AboutSymbol:
    """Everything about the instruments of a symbol."""
    with database.connect() as connection:
        symbol = instruments.spelled_anywhere(connection, symbol)
        stored = instruments.about(connection, symbol, asset_class)
        if not stored:
            raise data_type_registry.unknown_symbol(connection, symbol, asset_class=asset_class)
        listed = {row.asset_class: row for row in instruments.listed(connection, [symbol], asset_class, len(stored))}
        return AboutSymbol(
            instruments=[
                InstrumentDetails.model_validate(
                    {
                        **row,
                        "state": listed[row["asset_class"]].state,
                        "viewers": listed[row["asset_class"]].viewers,
                        "holders": listed[row["asset_class"]].holders,
                        "bounds": instruments.bounds(connection, row["asset_class"], symbol),
                        "spellings": spellings.of(connection, row["asset_class"], symbol),
                    }
                )
                for row in stored
            ]
        )


class PauseSymbols(Body):
    """The instruments that a request is about: those of these symbols, of one class or of all."""

    symbols: SymbolList
    asset_class: str | None = Field(None, max_length=LONGEST_NAME, examples=["equity"])


class PausedInstrument(Shape):
    """An instrument that is paused, or is not any more; `changed` is false if it was so already."""

    asset_class: str
    symbol: str
    changed: bool


class PausedInstruments(Shape):
    """The instruments that are paused, or are not any more."""

    instruments: list[PausedInstrument]


@router.post("/pause")
def pause(database: Database, _: Operator, body: PauseSymbols) -> PausedInstruments:
    """Pause instruments: they are not fetched, and their tasks are cancelled. All of them must be known."""
    return _pause(database, body, paused=True)


@router.post("/resume")
def resume(database: Database, _: Operator, body: PauseSymbols) -> PausedInstruments:
    """Have paused instruments fetched again; their watched pairs are due at once. All of them must be known."""
    return _pause(database, body, paused=False)


def _pause(database: Database, body: PauseSymbols, *, paused: bool) -> PausedInstruments:
    with database.begin() as connection:
        symbols = instruments.all_spelled_anywhere(connection, body.symbols)
        states = instruments.pause_instruments(connection, symbols, paused=paused, asset_class=body.asset_class)
        known = {state.symbol for state in states}
        unknown = [symbol for symbol in dict.fromkeys(symbols) if symbol not in known]
        if unknown:
            of_class = "" if body.asset_class is None else f" of class {body.asset_class!r}"
            raise UnknownSymbol(
                f"no instrument{of_class} is called {', '.join(map(repr, unknown[:5]))}. Nothing has changed."
            )
    return PausedInstruments(
        instruments=[PausedInstrument.model_validate(state, from_attributes=True) for state in states]
    )
