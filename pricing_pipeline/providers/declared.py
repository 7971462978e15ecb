"""A provider that is declared, not coded: it builds requests and reads answers as its declaration says.

What a declaration may say is in declaration.py. Every message about an answer names the line of the declaration that
read it, because that is what a person can change.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import ClassVar, NamedTuple
from zoneinfo import ZoneInfo

from pricing_pipeline.domain.answers import Answer, FailureKind, RejectedValue, SymbolFailure
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Adjustment, Observation
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import InvalidRange, KeyRefused, PlanRestricted, ProviderError, SchemaDrift
from pricing_pipeline.providers.base import (
    Request,
    Schema,
    check_key,
    decode_json,
    refusal,
    require_fetcher,
    safe_words,
    throttled,
    validate_rows,
    words_of,
)
from pricing_pipeline.providers.canonical import pair_of
from pricing_pipeline.providers.declaration import (
    PLACEHOLDER,
    SAFE_SYMBOL,
    BarsReading,
    Declaration,
    Endpoint,
    ErrorRule,
    NavReading,
    Place,
    QuoteReading,
    Quotes,
    Time,
    endpoints_of,
    is_parted,
    matcher,
    paths_of,
)
from pricing_pipeline.providers.declaration_file import Declared
from pricing_pipeline.providers.exchange_days import day_of
from pricing_pipeline.providers.json_paths import JsonPath, Steps
from pricing_pipeline.providers.values import (
    Implausible,
    bar_of,
    calendar_day,
    check_day,
    check_range,
    in_major_unit,
    instant_of,
    major_unit,
    merge,
    midnight,
    plain_price,
    price_of,
    settle_days,
    spelling,
)

AnyReading = QuoteReading | NavReading | BarsReading
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
_ISO_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:?[0-9]{2})"
)
_DAY_FIRST = re.compile(r"[0-9]{2}-[0-9]{2}-[0-9]{4}")
_DIGITS = re.compile(r"[0-9]{1,15}")


class _Row(Schema):
    """What the paths of a declaration lead to in one row. Prices are read one by one: one may be broken alone."""

    time: str | int
    currency: str | None
    price: object
    open: object
    high: object
    low: object
    volume: object


@dataclass(frozen=True)
class _Way:
    """One request of a fetcher, and how its answer is read; `place` is where in the declaration that stands."""

    endpoint: Endpoint
    reading: AnyReading
    place: Place


class Sizes(NamedTuple):
    """How large the calls of a fetcher are, by the columns of `provider_capabilities`."""

    batch_size: int
    batch_from: int
    window_batch_size: int
    max_window_days: int
    bytes_per_day: int


@dataclass(frozen=True)
class _Asked:
    """One answer to read: the symbols asked for, and what is known when it is read."""

    fetcher: Fetcher
    symbols: Sequence[str]
    window: Window | None
    now: datetime
    steps: Steps


class DeclaredProvider:
    """A provider by declaration. Stateless and thread-safe as every `Provider`."""

    needs_key: bool
    latest_day_ahead: ClassVar[timedelta] = timedelta(days=1)
    """A day more than today is asked for, because Sydney's day begins before UTC's."""

    def __init__(self, declared: Declared) -> None:
        self.declared = declared
        self.needs_key = self._about.key is not None
        self._paths: dict[str, JsonPath] = {}
        self._ways = {fetcher: self._ways_of(fetcher) for fetcher in self._about.fetchers.named}
        self._patterns = [matcher(one.pattern) for one in self._about.symbols.values()]
        spellings = [one.spelling for one in self._about.symbols.values()]
        self._parted = [_parted(spelling) for spelling in spellings if is_parted(spelling)]
        self._are_all_pairs = len(self._parted) == len(spellings)
        self._rules = [(rule, rule.where and JsonPath(rule.where)) for rule in self._about.errors.rules]

    @property
    def _about(self) -> Declaration:
        return self.declared.declaration

    @property
    def name(self) -> str:
        return self._about.name

    @property
    def base_url(self) -> str:
        return self._about.base_url

    @property
    def sandbox(self) -> str | None:
        """Whose dialect of the sandbox stands in for it; None if nobody's does."""
        return self._about.sandbox

    @cached_property
    def fetchers(self) -> frozenset[Fetcher]:
        return frozenset(self._ways)

    def accepts(self, symbol: str) -> bool:
        """Whether an asset class has symbols spelled so; never what a URL would read as its own."""
        if re.fullmatch(SAFE_SYMBOL, symbol) is None or ".." in symbol or "//" in symbol:
            return False
        if self._are_all_pairs and not _parts(symbol, self._parted):
            return False
        return any(matches(symbol) for matches in self._patterns)

    def spell(self, symbol: str, asset_class: str) -> str:
        """By the template of the asset class; a class that is not declared leaves the symbol as it is."""
        declared = self._about.symbols.get(asset_class)
        if declared is None:
            return symbol
        pair = pair_of(symbol, asset_class)
        parts = {"symbol": symbol} | ({} if pair is None else {"base": pair.base, "quote": pair.quote})
        needed = {name[1:-1] for name in PLACEHOLDER.findall(declared.spelling)}
        return _filled(declared.spelling, parts) if needed <= parts.keys() else symbol

    def batch_limit(self, fetcher: Fetcher, window: Window | None) -> int:
        """As many symbols as the largest of its requests takes."""
        ways = self._ways[fetcher]
        if window is not None:
            return ways["span"].endpoint.most if "span" in ways else 1
        return max(way.endpoint.most for name, way in ways.items() if name != "span" or "latest" not in ways)

    def sizes(self, fetcher: Fetcher) -> Sizes:
        """How large the calls of a fetcher are."""
        asked, ways = self._about.fetchers.named[fetcher], self._ways[fetcher]
        most = self.batch_limit(fetcher, None)
        in_span = ways["span"].endpoint.most if "span" in ways else 1
        if isinstance(asked, Quotes):
            return Sizes(most, min(asked.batch_from, most), in_span, 1, 0)
        return Sizes(most, min(asked.batch_from, most), in_span, asked.max_window_days, asked.bytes_per_day)

    def max_window_days(self, fetcher: Fetcher) -> int | None:
        """The longest span, as declared; None for quotes."""
        asked = self._about.fetchers.named[fetcher]
        return None if isinstance(asked, Quotes) else asked.max_window_days

    def build(
        self, fetcher: Fetcher, symbols: Sequence[str], window: Window | None, *, now: datetime
    ) -> Request:
        """The declared request, with each placeholder filled; in the path everything is escaped."""
        require_fetcher(self, fetcher)
        way, days = self._way(fetcher, len(symbols), window, now)
        endpoint = way.endpoint
        parts = self._parts_of(symbols[0]) if len(symbols) == 1 else {}
        parts["symbols"] = endpoint.separator.join(symbols)
        if days is not None:
            parts |= {"start": days.start.isoformat(), "end": days.end.isoformat()}
        path = _filled(endpoint.path, {name: _escaped(text) for name, text in parts.items()})
        return Request(path, tuple((name, _filled(text, parts)) for name, text in endpoint.query.items()))

    def authorize(self, key: str) -> Mapping[str, str]:
        """The one declared header, with nothing in it but the key and the word before it."""
        declared = self._about.key
        if declared is None:
            return {}
        return {declared.header: key if declared.scheme is None else f"{declared.scheme} {key}"}

    def parse(
        self,
        fetcher: Fetcher,
        symbols: Sequence[str],
        window: Window | None,
        response: Response,
        *,
        now: datetime,
    ) -> Answer:
        """See Provider.parse. Also raises Misconfigured if the paths take too many steps."""
        require_fetcher(self, fetcher)
        asked = _Asked(fetcher, symbols, window, now, Steps())
        failed = refusal(self.name, response, now=now)
        body = self._body(response, failed)
        told = self._told(asked, response, body, failed)
        if told is not None:
            return told
        if failed is not None:
            raise refusal(self.name, response, now=now, detail=self._words(body, asked)) or failed
        way, _ = self._way(fetcher, len(symbols), window, now)
        if len(symbols) == 1:
            return self._one(asked, way, body)
        return self._several(asked, way, body)

    # --- which request ---

    def _ways_of(self, fetcher: Fetcher) -> dict[str, _Way]:
        asked = self._about.fetchers.named[fetcher]
        ways = {}
        for name, endpoint in endpoints_of(asked).items():
            own = endpoint.answer
            reading = own or asked.answer
            assert reading is not None  # noqa: S101 - declaration.py:faults has refused one without
            place: Place = ("fetchers", fetcher.value, *((name,) if own else ()), "answer")
            for _, path in paths_of(reading):
                self._paths.setdefault(path, JsonPath(path))
            ways[name] = _Way(endpoint, reading, place)
        if self._about.errors.message is not None:
            self._paths.setdefault(self._about.errors.message, JsonPath(self._about.errors.message))
        return ways

    def _way(
        self, fetcher: Fetcher, count: int, window: Window | None, now: datetime
    ) -> tuple[_Way, Window | None]:
        """The request for so many symbols, and the days that it asks for. Raises as `Provider.build`."""
        ways, limit = self._ways[fetcher], self.batch_limit(fetcher, window)
        if not 0 < count <= limit:
            raise ValueError(f"{self.name} takes 1 to {limit} symbols in such a call, not {count}")
        if window is not None:
            self._check_window(fetcher, window)
            return ways["span"], window
        if count > 1 and "batch" in ways:
            return ways["batch"], None
        if "latest" in ways:
            return ways["latest"], None
        asked = self._about.fetchers.named[fetcher]
        days = 1 if isinstance(asked, Quotes) else asked.latest_days
        today = now.astimezone(UTC).date()
        return ways["span"], Window(today - timedelta(days=days), today + self.latest_day_ahead)

    def _check_window(self, fetcher: Fetcher, window: Window) -> None:
        if window.start > window.end:
            raise InvalidRange(f"{window.start}..{window.end} ends before it starts. Swap the two dates.")
        most = self.max_window_days(fetcher)
        if "span" not in self._ways[fetcher] or most is None:
            raise InvalidRange(f"{self.name} has no history of {fetcher!s}: its declaration has no `span`.")
        if (window.end - window.start).days >= most:
            raise InvalidRange(
                f"{window.start}..{window.end} has more than the {most} days that one call to {self.name} answers "
                "completely. Ask for it in parts."
            )

    def _parts_of(self, symbol: str) -> dict[str, str]:
        return {"symbol": symbol, **_parts(symbol, self._parted)}

    # --- answers without data ---

    def _body(self, response: Response, failed: ProviderError | None) -> object:
        """The decoded body; None for a refusal that is no JSON. Raises SchemaDrift for other answers."""
        try:
            return decode_json(self.name, response)
        except SchemaDrift:
            if failed is None:
                raise
            return None

    def _told(
        self, asked: _Asked, response: Response, body: object, failed: ProviderError | None
    ) -> Answer | None:
        """What the rules of the declaration say about an answer; None if none fits. Raises ProviderError."""
        status = response.status
        if 300 <= status < 400 or status in (408, 429) or status >= 500:
            return None
        if words_of(response).startswith("<"):  # a page of a proxy
            return None
        for number, (rule, where) in enumerate(self._rules):
            if not _fits(rule, status) or (where and not where.search(body, asked.steps, {})):
                continue
            if (
                rule.means == "unknown_symbol" and failed and not isinstance(body, dict)
            ):  # an API would explain it
                continue
            told = self._meant(asked, response, body, rule, number)
            if told is not None:
                return told
        return None

    def _meant(
        self, asked: _Asked, response: Response, body: object, rule: ErrorRule, number: int
    ) -> Answer | None:
        words = self._words(body, asked) or words_of(response) or "no explanation"
        at = self._line(("errors", "rules", number))
        message = f"{self.name} answered {response.status}: {words.rstrip('.')} (by the rule in {at})."
        match rule.means:
            case "throttled":
                raise throttled(message, response, now=asked.now)
            case "key_refused":
                raise KeyRefused(f"{message} {check_key(self.name)}")
            case "plan_restricted" if len(asked.symbols) > 1:
                raise PlanRestricted(
                    f"{message} It does not say which of {len(asked.symbols)} symbols it means."
                )
            case "plan_restricted":
                message = f"{message} Change the plan, or route {asked.symbols[0]} to another provider."
                return _failed(asked.symbols[0], FailureKind.PLAN_RESTRICTED, message)
        if len(asked.symbols) > 1:
            return None
        message = (
            f"{self.name} knows no {asked.symbols[0]}. {message} Correct the symbol, or route it elsewhere."
        )
        return _failed(asked.symbols[0], FailureKind.UNKNOWN_SYMBOL, message)

    def _words(self, body: object, asked: _Asked) -> str:
        path = self._about.errors.message
        words = None if path is None else self._paths[path].search(body, asked.steps, {})
        return safe_words(words) if isinstance(words, str) else ""

    # --- answers with data ---

    def _one(self, asked: _Asked, way: _Way, body: object) -> Answer:
        """The answer about one symbol."""
        (symbol,) = asked.symbols
        parts = self._parts_of(symbol)
        wrong = self._unlike_expected(asked, way, body, parts)
        if wrong is not None:
            return _failed(symbol, FailureKind.IMPLAUSIBLE, wrong)
        rows = self._rows(asked, way, body, parts)
        strangers: list[RejectedValue] = []
        if way.reading.symbol is not None:
            rows, strangers = self._told_apart(asked, way, symbol, rows)
        if strangers and not rows:
            words = f"{strangers[0].reason}, and not about {symbol}. Nothing was stored."
            return _failed(symbol, FailureKind.IMPLAUSIBLE, words)
        if not rows:
            return self._missing(asked, way, symbol)
        return self._settled(asked, way, symbol, body, rows, strangers)

    def _several(self, asked: _Asked, way: _Way, body: object) -> Answer:
        """The answer about several symbols. Raises SchemaDrift if it holds none of them."""
        wrong = self._unlike_expected(asked, way, body, {})
        if wrong is not None:
            raise SchemaDrift(wrong)
        rows: dict[str, list[object]] = {symbol: [] for symbol in asked.symbols}
        for row in self._rows(asked, way, body, {}):
            named = self._symbol(asked, way, row)
            if named in rows:
                rows[named].append(row)
        answers = []
        for symbol, own in rows.items():
            try:
                answers.append(
                    self._settled(asked, way, symbol, body, own, [])
                    if own
                    else self._missing(asked, way, symbol)
                )
            except SchemaDrift as drift:
                answers.append(_failed(symbol, FailureKind.SCHEMA_DRIFT, str(drift)))
        if all(_is_drift(answer) for answer in answers):
            raise SchemaDrift(
                f"of {len(answers)} symbols none was found; of the first: {answers[0].failures[0].message}"
            )
        return merge(answers)

    def _unlike_expected(
        self, asked: _Asked, way: _Way, body: object, parts: Mapping[str, str]
    ) -> str | None:
        """Why the answer is about another symbol; None if it is not. Raises SchemaDrift for one of another kind."""
        for path, text in way.reading.expect.items():
            expected = _filled(text, parts)
            found = self._paths[path].search(body, asked.steps, parts)
            if _is_scalar(found) and spelling(found) == expected:
                continue
            at = self._line((*way.place, "expect", path))
            words = f"{self.name} answered `{path}` = {safe_words(spelling(found))!r}, and {at} expects {expected!r}"
            if expected == text or not _is_scalar(found):
                raise SchemaDrift(f"{words}. It may have changed its API; nothing was stored.")
            return f"{words}; nothing was stored."
        return None

    def _rows(self, asked: _Asked, way: _Way, body: object, parts: Mapping[str, str]) -> list[object]:
        path = way.reading.rows
        if path is None:
            return [body]
        match self._paths[path].search(body, asked.steps, parts):
            case list() as rows:
                return rows
            case dict() as members:
                return [{"key": key, "value": value} for key, value in members.items()]
            case found:
                at = self._line((*way.place, "rows"))
                raise SchemaDrift(
                    f"{self.name} answered without rows: `{path}` ({at}) leads to {safe_words(spelling(found))!r}, not "
                    "to a list or object. Correct the path, or the provider has changed its API; nothing was stored."
                )

    def _symbol(self, asked: _Asked, way: _Way, row: object) -> str:
        found = self._found(asked, way.reading.symbol, row, {})
        return spelling(found) if _is_scalar(found) else ""

    def _told_apart(
        self, asked: _Asked, way: _Way, symbol: str, rows: Sequence[object]
    ) -> tuple[list[object], list[RejectedValue]]:
        """The rows of the symbol, and those of others, each refused for itself."""
        own: list[object] = []
        strangers = []
        for row in rows:
            named = self._symbol(asked, way, row)
            if named == symbol:
                own.append(row)
            else:
                reason = f"{self.name} answered about {safe_words(named) or 'no symbol'}"
                strangers.append(RejectedValue(symbol, None, reason, spelling(row)))
        return own, strangers

    def _missing(self, asked: _Asked, way: _Way, symbol: str) -> Answer:
        is_daily_of_one = asked.fetcher is not Fetcher.QUOTE and len(asked.symbols) == 1
        meaning = way.reading.if_missing or ("empty" if is_daily_of_one else "schema_drift")
        if meaning == "empty":
            return Answer(empty=frozenset({symbol}))
        message = f"{self.name}'s answer has no row of {symbol} ({self._line(way.place)})."
        if meaning == "unknown_symbol":
            message = f"{message} Correct the symbol, or route it to another provider."
            return _failed(symbol, FailureKind.UNKNOWN_SYMBOL, message)
        return _failed(symbol, FailureKind.SCHEMA_DRIFT, f"{message} Nothing was stored; it is asked again.")

    def _settled(
        self,
        asked: _Asked,
        way: _Way,
        symbol: str,
        body: object,
        rows: Sequence[object],
        strangers: Sequence[RejectedValue],
    ) -> Answer:
        """The values of one symbol's rows. Raises SchemaDrift if none is as the declaration says."""
        of_answer = self._found(asked, way.reading.currency.answer, body, {})
        fields = [self._fields(asked, way, symbol, row, of_answer) for row in rows]
        what = f"{self.name}'s {asked.fetcher!s} of {symbol}, read by {self._line(way.place)},"
        read = validate_rows(_Row, fields, symbol, what, place="rows")
        values = [
            row if isinstance(row, RejectedValue) else self._value(asked, way, symbol, row) for row in read
        ]
        if asked.fetcher is not Fetcher.QUOTE and len(asked.symbols) == 1:
            return settle_days(symbol, [*values, *strangers], asked.window)
        if asked.window is not None:
            return settle_days(symbol, values, asked.window)
        return settle_days(symbol, [*_only(symbol, values), *strangers])

    def _fields(
        self, asked: _Asked, way: _Way, symbol: str, row: object, of_answer: object
    ) -> dict[str, object]:
        """What the paths lead to in a row, by the names of _Row."""
        reading, parts = way.reading, self._parts_of(symbol)
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
        found = dict.fromkeys(_Row.model_fields) | {
            name: self._found(asked, path, row, parts) for name, path in paths.items()
        }
        if reading.currency.code is not None:
            found["currency"] = _filled(reading.currency.code, parts)
        elif reading.currency.row is not None:
            found["currency"] = self._found(asked, reading.currency.row, row, parts)
        else:
            found["currency"] = of_answer
        return found

    def _found(self, asked: _Asked, path: str | None, data: object, parts: Mapping[str, str]) -> object:
        return None if path is None else self._paths[path].search(data, asked.steps, parts)

    def _value(self, asked: _Asked, way: _Way, symbol: str, row: _Row) -> Observation | RejectedValue:
        """A row's value, or why it cannot be true."""
        text, at, reading = spelling(row.price), None, way.reading
        try:
            if asked.fetcher is Fetcher.QUOTE:
                at = _moment(row.time, reading.time, asked.now)
            else:
                day = _day(row.time, reading.time)
                at = midnight(day)
                check_day(day, asked.now)
            currency, power = (None, 0) if reading.currency.unnamed else _unit(row.currency)

            def price(raw: object, what: str) -> Decimal:
                return in_major_unit(price_of(raw, what), power)

            if isinstance(reading, BarsReading):
                values = {"close": row.price, **row.model_dump(include={"open", "high", "low", "volume"})}
                basis = Adjustment(reading.adjustment)
                return bar_of(symbol, at, values, currency, price=price, adjustment=basis)
            close = price(row.price, f"price (path `{reading.price}`)")
            check_range(price_of(row.price), plain_price(row.high), plain_price(row.low))
            return Observation(symbol, at, close, text, currency)
        except Implausible as fault:
            return RejectedValue(symbol, at, str(fault), text)

    def _line(self, place: Place) -> str:
        return f"line {self.declared.line(place)} of its declaration"


def _only(symbol: str, values: Sequence[Observation | RejectedValue]) -> list[Observation | RejectedValue]:
    """The one latest value of a symbol. Of several that differ none is believed: nothing tells which is true."""
    good = [value for value in values if isinstance(value, Observation)]
    bad = [value for value in values if isinstance(value, RejectedValue)]
    if len({(value.observed_at, value.close) for value in good}) <= 1:
        return [*good[:1], *bad]
    reason = f"the answer has {len(good)} rows of this symbol, which differ"
    return [*(RejectedValue(symbol, value.observed_at, reason, value.text) for value in good), *bad]


def _failed(symbol: str, kind: FailureKind, message: str) -> Answer:
    return Answer(failures=(SymbolFailure(symbol, kind, message),))


def _is_drift(answer: Answer) -> bool:
    return [failure.kind for failure in answer.failures] == [FailureKind.SCHEMA_DRIFT]


def _fits(rule: ErrorRule, status: int) -> bool:
    return rule.status is None or status in rule.status


def _is_scalar(value: object) -> bool:
    return isinstance(value, str | int | Decimal) and not isinstance(value, bool)


def _filled(template: str, parts: Mapping[str, str]) -> str:
    return PLACEHOLDER.sub(lambda found: parts[found[0][1:-1]], template)


def _escaped(text: str) -> str:
    return "".join(char if _UNRESERVED.fullmatch(char) else f"%{ord(char):02X}" for char in text)


def _parted(template: str) -> re.Pattern[str]:
    """What tells the parts of a spelling: base and quote, where something stands between them."""
    pieces = re.split(f"({PLACEHOLDER.pattern})", template)
    known = {"{base}": "(?P<base>[A-Za-z0-9]+)", "{quote}": "(?P<quote>[A-Za-z0-9]+)"}
    return re.compile("".join(known.get(piece, re.escape(piece)) for piece in pieces))


def _parts(symbol: str, parted: Sequence[re.Pattern[str]]) -> dict[str, str]:
    for pattern in parted:
        match = pattern.fullmatch(symbol)
        if match is not None:
            return match.groupdict()
    return {}


def _unit(currency: str | None) -> tuple[str, int]:
    if not currency:
        raise Implausible("its row names no currency")
    return major_unit(currency)


def _day(raw: str | int, how: Time) -> date:
    """The day of a daily value. Raises Implausible."""
    match how.format:
        case "iso_date":
            return calendar_day(raw)
        case "DD-MM-YYYY":
            if not isinstance(raw, str) or not _DAY_FIRST.fullmatch(raw):
                raise Implausible(f"{spelling(raw)!r} is no day such as 23-11-2026")
            return calendar_day("-".join(reversed(raw.split("-"))))
        case "iso_time":
            return _instant(raw).astimezone(ZoneInfo(how.zone)).date()
        case _:
            return day_of(_seconds(raw, how), ZoneInfo(how.zone))


def _moment(raw: str | int, how: Time, now: datetime) -> datetime:
    """The time of a quote. Raises Implausible."""
    if how.format in ("iso_date", "DD-MM-YYYY"):
        day = _day(raw, how)
        check_day(day, now)
        return midnight(day)
    if how.format == "iso_time":
        at = _instant(raw)
        return instant_of(int(at.timestamp()), now).replace(microsecond=at.microsecond)
    return instant_of(_seconds(raw, how), now)


def _instant(raw: str | int) -> datetime:
    if isinstance(raw, str) and _ISO_TIME.fullmatch(raw):
        try:
            return datetime.fromisoformat(raw).astimezone(UTC)
        except (ValueError, OverflowError):
            pass
    raise Implausible(f"{spelling(raw)!r} is no time such as 2026-11-23T20:00:00Z")


def _seconds(raw: str | int, how: Time) -> int:
    """Epoch seconds, without parts of a second."""
    if isinstance(raw, str) and not _DIGITS.fullmatch(raw):
        raise Implausible(f"time stamp {spelling(raw)!r} is no whole number")
    return int(raw) // (1000 if how.format == "epoch_milliseconds" else 1)
