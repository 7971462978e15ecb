"""The answers of a declared provider that bring data: which rows they have, and which symbol each row is about.

Every message names the line of the declaration that has read the answer, because that is what a person can change.
declared_values.py reads the values of a row, declared_refusals.py answers without data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC
from decimal import Decimal

from pricing_pipeline.domain.answers import Answer, FailureKind, RejectedValue
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Adjustment, Observation
from pricing_pipeline.errors import SchemaDrift
from pricing_pipeline.providers.base import Question, Schema, decode_rows, failed, read_rows, safe_words, validate
from pricing_pipeline.providers.bodies import Table, decode, flat_csv
from pricing_pipeline.providers.declaration import BarsReading, Reading, paths_of
from pricing_pipeline.providers.declaration_file import Declared
from pricing_pipeline.providers.declared_calls import Line, Way, csv_form, line_of
from pricing_pipeline.providers.declared_refusals import Refusals
from pricing_pipeline.providers.declared_symbols import Symbols, filled
from pricing_pipeline.providers.declared_values import Amounts, Row, value_of
from pricing_pipeline.providers.flat import FlatRows
from pricing_pipeline.providers.json_paths import JsonPath
from pricing_pipeline.providers.values import (
    LATEST_REACH,
    Implausible,
    major_unit,
    merge_found,
    midnight,
    only,
    plain_bars,
    settle_days,
    spelling,
)


class _Unit(Schema):
    """The currency of all prices of an answer."""

    currency: str


class Answers:
    """How a declaration reads answers, by the paths of its readings."""

    def __init__(self, declared: Declared, symbols: Symbols, readings: Iterable[Reading]) -> None:
        self._declared = declared
        self._name = declared.declaration.name
        self._symbols = symbols
        readings = list(readings)
        self._paths = {path: JsonPath(path) for reading in readings for _, path in paths_of(reading)}
        self._amounts = {id(reading): Amounts(reading.numbers) for reading in readings}

    def decode(self, way: Way, response: Response) -> object:
        """The body as the kind of text that is declared. Raises SchemaDrift."""
        body = way.reading.form
        at = line_of(self._declared, (*way.place, "body", "format"))
        return decode(self._name, response, body.format, csv_form(body), at)

    def plain(self, asked: Question, way: Way, response: Response, refusals: Refusals) -> Answer | None:
        """The bars of a past span, read by columns; None if anything is unusual: then rows are read one by one.

        Reading value by value takes ten times as long, and gives the authoritative result.
        """
        names = self._plain_names(asked, way)
        if names is None or response.status != 200:
            return None
        rest: object = []
        if way.reading.form.format == "csv":
            rows = flat_csv(response, csv_form(way.reading.form))
        else:
            name = None if way.reading.rows is None else self._paths[way.reading.rows].name
            parts = None if name is None else decode_rows(self._name, response, name)
            rest, rows = parts or (None, None)
        if rows is None or refusals.fit(way, response, rest):
            return None
        (symbol,) = asked.symbols
        line = Line(None, self._found(way.reading.currency.answer, rest, {}))
        try:
            # A path to what is expected may lead into the rows, which `rest` does not have.
            if self._unlike_expected(way, rest, self._parts(asked, symbol)) is not None:
                return None
            unit = validate(_Unit, {"currency": self._currency(asked, way, line, symbol)}, "a currency")
        except SchemaDrift:
            return None
        return self._by_columns(asked, way, unit, rows.renamed(names))

    def _plain_names(self, asked: Question, way: Way) -> dict[str, str] | None:
        """Our names of the columns of bars by those of the answer, if the declaration changes no figure."""
        reading, numbers = way.reading, way.reading.numbers
        names = {self._paths[path].name: name for name, path in reading.prices.items()}
        names |= {} if reading.time.path is None else {self._paths[reading.time.path].name: "date"}
        is_plain = (
            isinstance(reading, BarsReading)
            and reading.form.format != "xml"
            and (reading.rows is None or reading.form.format == "json")
            and way.endpoint.pages is None
            and len(asked.symbols) == 1
            and asked.window is not None
            and asked.window.end < asked.now.astimezone(UTC).date()
            and len(names) == _PARTS_OF_BAR
            and reading.time.format == "iso_date"
            and not (numbers.changes_prices or numbers.blank or numbers.thousands or numbers.decimal == ",")
            and reading.symbol is reading.currency.row is None
        )
        found = {own: name for own, name in names.items() if own is not None}
        return found if is_plain and len(found) == len(names) else None

    def _by_columns(self, asked: Question, way: Way, unit: _Unit, rows: FlatRows) -> Answer | None:
        try:
            code, power = major_unit(unit.currency)
        except Implausible:
            return None
        if power or asked.window is None or not isinstance(way.reading, BarsReading):
            return None
        basis = Adjustment(way.reading.adjustment)
        bars = plain_bars(asked.symbols[0], code, rows, asked.window, close="price", adjustment=basis)
        return None if bars is None else Answer(observations=bars)

    def lines(self, asked: Question, way: Way, body: object) -> list[Line] | Answer:
        """The rows of a decoded body, one page of an answer; or the answer that it is about another symbol.

        Raises SchemaDrift if it is not as the declaration says.
        """
        parts = self._parts(asked, asked.symbols[0]) if len(asked.symbols) == 1 else {}
        wrong = self._unlike_expected(way, body, parts)
        if wrong is not None and len(asked.symbols) == 1:
            return failed(asked.symbols[0], FailureKind.IMPLAUSIBLE, wrong)
        if wrong is not None:
            raise SchemaDrift(wrong)
        currency = self._found(way.reading.currency.answer, body, {}, is_xml=way.is_xml)
        return [Line(row, currency) for row in _alike(self._rows(way, body, parts))]

    def read(self, asked: Question, way: Way, lines: Sequence[Line]) -> Answer:
        """The values of all rows. Raises SchemaDrift if they are not as the declaration says."""
        if len(asked.symbols) == 1:
            return self._one(asked, way, lines)
        return self._several(asked, way, lines)

    def _one(self, asked: Question, way: Way, rows: Sequence[Line]) -> Answer:
        """The answer about one symbol."""
        (symbol,) = asked.symbols
        unasked: list[RejectedValue] = []
        if way.reading.symbol is not None:
            rows, unasked = self._told_apart(asked, way, symbol, rows)
        if unasked and not rows:
            words = f"{unasked[0].reason}, and not about {symbol}. Nothing was stored."
            return failed(symbol, FailureKind.IMPLAUSIBLE, words)
        if not rows:
            return self._missing(asked, way, symbol)
        return self._settled(asked, way, symbol, rows, unasked)

    def _several(self, asked: Question, way: Way, lines: Sequence[Line]) -> Answer:
        """The answer about several symbols. Raises SchemaDrift if it holds none of them."""
        rows: dict[str, list[Line]] = {symbol: [] for symbol in asked.symbols}
        for line in lines:
            named = self._symbol(way, line.row)
            if named in rows:
                rows[named].append(line)
        answers = []
        for symbol, own in rows.items():
            try:
                answers.append(self._settled(asked, way, symbol, own, []) if own else self._missing(asked, way, symbol))
            except SchemaDrift as drift:
                answers.append(failed(symbol, FailureKind.SCHEMA_DRIFT, str(drift)))
        return merge_found(answers)

    def _unlike_expected(self, way: Way, body: object, parts: Mapping[str, str]) -> str | None:
        """Why the answer is about another symbol; None if it is not. Raises SchemaDrift for one of another kind."""
        for path, text in way.reading.expect.items():
            expected = filled(text, parts)
            found = self._found(path, body, parts, is_xml=way.is_xml)
            if _is_scalar(found) and spelling(found) == expected:
                continue
            at = line_of(self._declared, (*way.place, "expect", path))
            words = f"{self._name} answered `{path}` = {safe_words(spelling(found))!r}, and {at} expects {expected!r}"
            if expected == text or not _is_scalar(found):
                raise SchemaDrift(f"{words}. It may have changed its API; nothing was stored.")
            return f"{words}; nothing was stored."
        return None

    def _rows(self, way: Way, body: object, parts: Mapping[str, str]) -> list[object]:
        if way.reading.columns is not None:
            return self._beside(way, way.reading.columns, body, parts)
        if isinstance(body, Table):
            self._check_columns(way, body)
        path = way.reading.rows
        if path is None:
            return list(body) if isinstance(body, Table) else [body]
        match self._paths[path].search(body, parts):
            case list() as rows:
                return rows
            case dict() as members:
                return [{"key": key, "value": value} for key, value in members.items()]
            case found:
                at = line_of(self._declared, (*way.place, "rows"))
                raise SchemaDrift(
                    f"{self._name} answered without rows: `{path}` ({at}) leads to {safe_words(spelling(found))!r}, "
                    "not to a list or object. Correct the path, or the provider has changed its API; nothing was "
                    "stored."
                )

    def _beside(self, way: Way, path: str, body: object, parts: Mapping[str, str]) -> list[object]:
        """Rows of columns that stand beside each other."""
        found = self._paths[path].search(body, parts)
        columns = {name: one for name, one in found.items() if isinstance(one, list)} if isinstance(found, dict) else {}
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) != 1:
            at = line_of(self._declared, (*way.place, "columns"))
            told = ", ".join(f"{name}: {length}" for name, length in lengths.items()) or spelling(found)
            words = "lists of different lengths" if lengths else "no object of lists"
            raise SchemaDrift(
                f"{self._name} answered without columns: `{path}` ({at}) leads to {words} ({safe_words(told)}). "
                "Correct the path, or the provider has changed its API; nothing was stored."
            )
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def _check_columns(self, way: Way, table: Table) -> None:
        """Raise SchemaDrift for a table without a column that is read, even if it has no rows: it is another one."""
        if not way.reading.form.header:
            return
        for place, path in paths_of(way.reading):
            name = self._paths[path].name
            of_row = place[0] not in ("rows", "expect") and place != ("currency", "answer")
            if of_row and name is not None and name not in table.names:
                at = line_of(self._declared, (*way.place, *place))
                raise SchemaDrift(
                    f"{self._name} answered with CSV that has no column {name!r} ({at}); its columns are "
                    f"{safe_words(', '.join(table.names))}. Nothing was stored."
                )

    def _symbol(self, way: Way, row: object) -> str:
        found = self._found(way.reading.symbol, row, {}, is_xml=way.is_xml)
        return spelling(found) if _is_scalar(found) else ""

    def _told_apart(
        self, asked: Question, way: Way, symbol: str, rows: Sequence[Line]
    ) -> tuple[list[Line], list[RejectedValue]]:
        """The rows of the symbol, and those of others, each rejected separately."""
        own: list[Line] = []
        unasked = []
        for line in rows:
            named = self._symbol(way, line.row)
            if named == symbol:
                own.append(line)
            else:
                reason = f"{self._name} answered about {safe_words(named) or 'no symbol'}"
                unasked.append(RejectedValue(symbol, None, reason, spelling(line.row)))
        return own, unasked

    def _missing(self, asked: Question, way: Way, symbol: str, nothing_at: str | None = None) -> Answer:
        """The answer about a symbol that has no row, or whose price is in none of its rows."""
        is_daily_of_one = asked.fetcher is not Fetcher.QUOTE and len(asked.symbols) == 1
        usual = "unknown" if nothing_at else "empty" if is_daily_of_one else "refused"
        meaning = way.reading.if_missing or usual
        if meaning == "empty":
            return Answer(empty=frozenset({symbol}))
        at = line_of(self._declared, way.place)
        message = f"{self._name}'s answer has no row of {symbol} ({at})."
        if nothing_at:
            name = "close" if isinstance(way.reading, BarsReading) else "price"
            at = line_of(self._declared, (*way.place, name))
            message = f"{self._name}'s answer has no price of {symbol}: `{nothing_at}` ({at}) finds nothing."
        if meaning == "unknown":
            message = f"{message} Correct the symbol, or route it to another provider."
            return failed(symbol, FailureKind.UNKNOWN_SYMBOL, message)
        return failed(symbol, FailureKind.SCHEMA_DRIFT, f"{message} Nothing was stored.")

    def _settled(
        self,
        asked: Question,
        way: Way,
        symbol: str,
        rows: Sequence[Line],
        unasked: Sequence[RejectedValue],
    ) -> Answer:
        """The values of one symbol's rows. Raises SchemaDrift if none is as the declaration says."""
        fields = [self._fields(asked, way, symbol, line) for line in rows]
        path = self._paths[way.reading.prices["price"]]
        if path.is_projection:
            fields = [one for one in fields if one["price"] != []]
        is_of_symbol = path.placeholders and not way.reading.is_table
        if not fields or (is_of_symbol and fields[0]["price"] is None):
            return self._missing(asked, way, symbol, nothing_at=path.text)
        what = f"{self._name}'s {asked.fetcher!s} of {symbol}, read by {line_of(self._declared, way.place)},"
        reading, amounts = way.reading, self._amounts[id(way.reading)]
        found = read_rows(Row, lambda row: value_of(asked, reading, amounts, symbol, row), fields, symbol, what)
        values, left_out = _cut([value for value in found if value is not None], asked, way)
        return replace(self._judged(asked, symbol, values, unasked), left_out=left_out)

    def _judged(
        self,
        asked: Question,
        symbol: str,
        values: Sequence[Observation | RejectedValue],
        unasked: Sequence[RejectedValue],
    ) -> Answer:
        if asked.fetcher is not Fetcher.QUOTE and len(asked.symbols) == 1:
            return settle_days(symbol, [*values, *unasked], asked.window)
        if asked.window is not None:
            return settle_days(symbol, values, asked.window)
        return settle_days(symbol, [*only(symbol, values), *unasked])

    def _fields(self, asked: Question, way: Way, symbol: str, line: Line) -> dict[str, object]:
        """The values at the paths in a row, by the names of Row."""
        reading, parts = way.reading, self._parts(asked, symbol)
        found = dict.fromkeys(Row.model_fields) | {
            name: self._found(path, line.row, parts, is_xml=way.is_xml) for name, path in reading.prices.items()
        }
        found["time"] = (
            "" if reading.time.path is None else self._found(reading.time.path, line.row, parts, is_xml=way.is_xml)
        )
        found["per"] = self._found(reading.numbers.per, line.row, parts, is_xml=way.is_xml)
        found["currency"] = self._currency(asked, way, line, symbol)
        return found

    def _parts(self, asked: Question, symbol: str) -> dict[str, str]:
        return self._symbols.parts_of(symbol, asked.fact(symbol, "asset_class"))

    def _currency(self, asked: Question, way: Way, line: Line, symbol: str) -> object:
        about, parts = way.reading.currency, self._parts(asked, symbol)
        if about.code is not None:
            return filled(about.code, self._symbols.own_names(parts, asked.fact(symbol, "asset_class")))
        return line.currency if about.row is None else self._found(about.row, line.row, parts, is_xml=way.is_xml)

    def _found(self, path: str | None, data: object, parts: Mapping[str, str], *, is_xml: bool = False) -> object:
        """The value at a path. From a list of matches, or of children in XML, that has only one, that one."""
        return None if path is None else self._paths[path].one(data, parts, is_xml=is_xml)


_PARTS_OF_BAR = 6
"""Day, open, high, low, close and volume."""


def _alike(rows: list[object]) -> list[object]:
    """Rows by index: one with fewer or more entries than the others is skipped, because its entries may be shifted."""
    lengths = Counter(len(row) for row in rows if isinstance(row, list))
    if len(lengths) < 2:
        return rows
    usual = max(lengths, key=lambda length: (lengths[length], length))
    return [
        f"a row of {len(row)} entries, and others have {usual}" if isinstance(row, list) and len(row) != usual else row
        for row in rows
    ]


def _cut(
    values: Sequence[Observation | RejectedValue], asked: Question, way: Way
) -> tuple[list[Observation | RejectedValue], int]:
    """The values without unrequested ones, and the number of those.

    A service may begin earlier than requested, such as on the Friday before, or end later; it may send its whole
    history if the request names no days, and repeat rows. If all values are after the requested end, or long before the
    requested start, the service has ignored the days: the values stay, and become faults, so that the span does not
    count as empty. A future day always stays as a fault.
    """
    days = [value.observed_at for value in values if isinstance(value, Observation)]
    if asked.fetcher is Fetcher.QUOTE or not days:
        return list(values), 0
    first, last = (
        max(days) - LATEST_REACH,
        max(one.observed_at for one in values if one.observed_at is not None),
    )
    if asked.window is not None:
        first, last = midnight(asked.window.start), midnight(asked.window.end)
        if way.endpoint.has_end and min(days) > last:
            last = max(days)
        if way.endpoint.has_start and max(days) < first - LATEST_REACH:
            first = min(days)
    kept: list[Observation | RejectedValue] = []
    seen: set[tuple[object, ...]] = set()
    for value in values:
        at = value.observed_at
        is_to_come = isinstance(value, RejectedValue) and at is not None and at > asked.now
        if at is not None and not first <= at <= last and not is_to_come:
            continue
        if isinstance(value, Observation):
            bar = (
                value.observed_at,
                value.close,
                value.open,
                value.high,
                value.low,
                value.volume,
                value.currency,
            )
            if bar in seen:
                continue
            seen.add(bar)
        kept.append(value)
    return kept, len(values) - len(kept)


def _is_scalar(value: object) -> bool:
    return isinstance(value, str | int | Decimal) and not isinstance(value, bool)
