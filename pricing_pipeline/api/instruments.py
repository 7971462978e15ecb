"""`/v1/instruments/pause` and `resume`: have instruments not fetched for a while."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel, Field

from pricing_pipeline.api.access import Database, Operator
from pricing_pipeline.api.bodies import Body
from pricing_pipeline.api.parameters import LONGEST_NAME, SymbolList
from pricing_pipeline.demand import instruments
from pricing_pipeline.errors import UnknownSymbol

router = APIRouter(prefix="/instruments", tags=["instruments"])


class PauseSymbols(Body):
    """The instruments that a request is about: those of these symbols, of one class or of all."""

    symbols: SymbolList
    asset_class: str | None = Field(None, max_length=LONGEST_NAME, examples=["equity"])


class PausedInstrument(BaseModel):
    """An instrument that is paused, or is not any more; `changed` is false if it was so already."""

    asset_class: str
    symbol: str
    changed: bool


class PausedInstruments(BaseModel):
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
        states = instruments.pause_instruments(
            connection, symbols, paused=paused, asset_class=body.asset_class
        )
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
