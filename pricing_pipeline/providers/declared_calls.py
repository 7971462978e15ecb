"""A kind of request to a declared provider, the form of its answer, and the line of the declaration in messages.

What the answer says is read in declared_refusals.py and declared_answers.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

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


class Line(NamedTuple):
    """A row of an answer, and the currency of its page, if the page names one for all rows."""

    row: object
    currency: object


def csv_form(body: Body) -> CsvForm:
    """How the lines of a declared body become rows."""
    delimiter = "\t" if body.delimiter == "tab" else body.delimiter
    return CsvForm(delimiter, body.header, body.skip, tuple(body.comments), body.encoding)


def line_of(declared: Declared, place: Place) -> str:
    """How a message names the line of the declaration that has read an answer."""
    return f"line {declared.line(place)} of its declaration"
