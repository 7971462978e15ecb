"""What is known of a call to a declared provider when its answer is read, and how a message about it names its line.

What the answer says is read in declared_refusals.py and declared_answers.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from pricing_pipeline.domain.answers import Answer, FailureKind, SymbolFailure
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.providers.base import Known
from pricing_pipeline.providers.bodies import CsvForm
from pricing_pipeline.providers.declaration import AnyReading, Body, Endpoint, Place
from pricing_pipeline.providers.declaration_file import Declared


@dataclass(frozen=True)
class Way:
    """One kind of request of a fetcher, and how its answer is read; both with their place in the declaration."""

    endpoint: Endpoint
    endpoint_place: Place
    reading: AnyReading
    place: Place

    @property
    def is_xml(self) -> bool:
        """Whether each child is in a list."""
        return self.reading.form.format == "xml"


@dataclass(frozen=True)
class Asked:
    """One answer to read: the symbols asked for, and what is known when it is read."""

    fetcher: Fetcher
    symbols: Sequence[str]
    window: Window | None
    now: datetime
    known: Known = field(default_factory=dict)

    def fact(self, symbol: str, name: str) -> str | None:
        """Something that is known of a symbol, such as its `asset_class`; None if it is not."""
        found = self.known.get(symbol, {}).get(name)
        return None if found is None else str(found)


class Line(NamedTuple):
    """A row of an answer, and what else of its page it needs: the currency, where the page names one for all."""

    row: object
    currency: object


def csv_form(body: Body) -> CsvForm:
    """How the lines of a declared body become rows."""
    delimiter = "\t" if body.delimiter == "tab" else body.delimiter
    return CsvForm(delimiter, body.header, body.skip, tuple(body.comments), body.encoding)


def failed(symbol: str, kind: FailureKind, message: str) -> Answer:
    """The answer that a symbol has failed."""
    return Answer(failures=(SymbolFailure(symbol, kind, message),))


def line_of(declared: Declared, place: Place) -> str:
    """How a message names the line of the declaration that has read an answer."""
    return f"line {declared.line(place)} of its declaration"
