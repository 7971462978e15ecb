"""The answers of a declared provider that bring data: which rows they have, and which symbol each row is about.

Every message names the line of the declaration that has read the answer, because that is what a person can change.
What a row is worth is told by declared_values.py, and an answer without data by declared_refusals.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

from pricing_pipeline.domain.answers import Answer, FailureKind, RejectedValue
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.errors import SchemaDrift
from pricing_pipeline.providers.base import safe_words, validate_rows
from pricing_pipeline.providers.declaration import BarsReading, QuoteReading, Reading, paths_of
from pricing_pipeline.providers.declaration_file import Declared
from pricing_pipeline.providers.declared_calls import Asked, Line, Way, failed, line_of
from pricing_pipeline.providers.declared_symbols import Symbols, filled
from pricing_pipeline.providers.declared_values import Row, only, value_of
from pricing_pipeline.providers.json_paths import JsonPath
from pricing_pipeline.providers.values import merge, settle_days, spelling


class Answers:
    """How a declaration reads answers, by the paths of its readings."""

    def __init__(self, declared: Declared, symbols: Symbols, readings: Iterable[Reading]) -> None:
        self._declared = declared
        self._name = declared.declaration.name
        self._symbols = symbols
        self._paths = {path: JsonPath(path) for reading in readings for _, path in paths_of(reading)}

    def lines(self, asked: Asked, way: Way, body: object) -> list[Line] | Answer:
        """The rows of a decoded body, one page of an answer; or the answer that it is about another symbol.

        Raises SchemaDrift if it is not as the declaration says.
        """
        parts = self._symbols.parts_of(asked.symbols[0]) if len(asked.symbols) == 1 else {}
        wrong = self._unlike_expected(asked, way, body, parts)
        if wrong is not None and len(asked.symbols) == 1:
            return failed(asked.symbols[0], FailureKind.IMPLAUSIBLE, wrong)
        if wrong is not None:
            raise SchemaDrift(wrong)
        currency = self._found(asked, way.reading.currency.answer, body, {})
        return [Line(row, currency) for row in self._rows(asked, way, body, parts)]

    def read(self, asked: Asked, way: Way, lines: Sequence[Line]) -> Answer:
        """The values of all rows. Raises SchemaDrift if they are not as the declaration says."""
        if len(asked.symbols) == 1:
            return self._one(asked, way, lines)
        return self._several(asked, way, lines)

    def _one(self, asked: Asked, way: Way, rows: Sequence[Line]) -> Answer:
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

    def _several(self, asked: Asked, way: Way, lines: Sequence[Line]) -> Answer:
        """The answer about several symbols. Raises SchemaDrift if it holds none of them."""
        rows: dict[str, list[Line]] = {symbol: [] for symbol in asked.symbols}
        for line in lines:
            named = self._symbol(asked, way, line.row)
            if named in rows:
                rows[named].append(line)
        answers = []
        for symbol, own in rows.items():
            try:
                answers.append(
                    self._settled(asked, way, symbol, own, []) if own else self._missing(asked, way, symbol)
                )
            except SchemaDrift as drift:
                answers.append(failed(symbol, FailureKind.SCHEMA_DRIFT, str(drift)))
        if all(_is_drift(answer) for answer in answers):
            raise SchemaDrift(
                f"of {len(answers)} symbols none was found; of the first: {answers[0].failures[0].message}"
            )
        return merge(answers)

    def _unlike_expected(self, asked: Asked, way: Way, body: object, parts: Mapping[str, str]) -> str | None:
        """Why the answer is about another symbol; None if it is not. Raises SchemaDrift for one of another kind."""
        for path, text in way.reading.expect.items():
            expected = filled(text, parts)
            found = self._paths[path].search(body, asked.steps, parts)
            if _is_scalar(found) and spelling(found) == expected:
                continue
            at = line_of(self._declared, (*way.place, "expect", path))
            words = f"{self._name} answered `{path}` = {safe_words(spelling(found))!r}, and {at} expects {expected!r}"
            if expected == text or not _is_scalar(found):
                raise SchemaDrift(f"{words}. It may have changed its API; nothing was stored.")
            return f"{words}; nothing was stored."
        return None

    def _rows(self, asked: Asked, way: Way, body: object, parts: Mapping[str, str]) -> list[object]:
        path = way.reading.rows
        if path is None:
            return [body]
        match self._paths[path].search(body, asked.steps, parts):
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

    def _symbol(self, asked: Asked, way: Way, row: object) -> str:
        found = self._found(asked, way.reading.symbol, row, {})
        return spelling(found) if _is_scalar(found) else ""

    def _told_apart(
        self, asked: Asked, way: Way, symbol: str, rows: Sequence[Line]
    ) -> tuple[list[Line], list[RejectedValue]]:
        """The rows of the symbol, and those of others, each refused for itself."""
        own: list[Line] = []
        unasked = []
        for line in rows:
            named = self._symbol(asked, way, line.row)
            if named == symbol:
                own.append(line)
            else:
                reason = f"{self._name} answered about {safe_words(named) or 'no symbol'}"
                unasked.append(RejectedValue(symbol, None, reason, spelling(line.row)))
        return own, unasked

    def _missing(self, asked: Asked, way: Way, symbol: str) -> Answer:
        is_daily_of_one = asked.fetcher is not Fetcher.QUOTE and len(asked.symbols) == 1
        meaning = way.reading.if_missing or ("empty" if is_daily_of_one else "schema_drift")
        if meaning == "empty":
            return Answer(empty=frozenset({symbol}))
        message = f"{self._name}'s answer has no row of {symbol} ({line_of(self._declared, way.place)})."
        if meaning == "unknown_symbol":
            message = f"{message} Correct the symbol, or route it to another provider."
            return failed(symbol, FailureKind.UNKNOWN_SYMBOL, message)
        return failed(symbol, FailureKind.SCHEMA_DRIFT, f"{message} Nothing was stored.")

    def _settled(
        self,
        asked: Asked,
        way: Way,
        symbol: str,
        rows: Sequence[Line],
        unasked: Sequence[RejectedValue],
    ) -> Answer:
        """The values of one symbol's rows. Raises SchemaDrift if none is as the declaration says."""
        fields = [self._fields(asked, way, symbol, line) for line in rows]
        what = f"{self._name}'s {asked.fetcher!s} of {symbol}, read by {line_of(self._declared, way.place)},"
        read = validate_rows(Row, fields, symbol, what, place="rows")
        values = [
            value
            for row in read
            if (value := row if isinstance(row, RejectedValue) else value_of(asked, way.reading, symbol, row))
            is not None
        ]
        if asked.fetcher is not Fetcher.QUOTE and len(asked.symbols) == 1:
            return settle_days(symbol, [*values, *unasked], asked.window)
        if asked.window is not None:
            return settle_days(symbol, values, asked.window)
        return settle_days(symbol, [*only(symbol, values), *unasked])

    def _fields(self, asked: Asked, way: Way, symbol: str, line: Line) -> dict[str, object]:
        """What the paths lead to in a row, by the names of Row."""
        reading, parts = way.reading, self._symbols.parts_of(symbol)
        paths = {"time": reading.time.path}
        match reading:
            case BarsReading():
                paths["price"] = reading.close
                parts_of_bar = {"open": reading.open, "high": reading.high, "low": reading.low}
                paths |= {name: path for name, path in parts_of_bar.items() if path is not None}
                paths |= {} if reading.volume is None else {"volume": reading.volume}
            case QuoteReading():
                paths |= {"price": reading.price} | {
                    name: path
                    for name, path in (("high", reading.high), ("low", reading.low))
                    if path is not None
                }
            case _:
                paths["price"] = reading.price
        found = dict.fromkeys(Row.model_fields) | {
            name: self._found(asked, path, line.row, parts) for name, path in paths.items()
        }
        if reading.currency.code is not None:
            found["currency"] = filled(reading.currency.code, parts)
        elif reading.currency.row is not None:
            found["currency"] = self._found(asked, reading.currency.row, line.row, parts)
        else:
            found["currency"] = line.currency
        return found

    def _found(self, asked: Asked, path: str | None, data: object, parts: Mapping[str, str]) -> object:
        return None if path is None else self._paths[path].search(data, asked.steps, parts)


def _is_drift(answer: Answer) -> bool:
    return [failure.kind for failure in answer.failures] == [FailureKind.SCHEMA_DRIFT]


def _is_scalar(value: object) -> bool:
    return isinstance(value, str | int | Decimal) and not isinstance(value, bool)
