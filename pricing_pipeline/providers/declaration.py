"""What a declaration of a provider may say, as models: the one place for its keys, their types and their bounds.

The JSON Schema that editors use is made from these models. declaration_file.py reads files and names lines;
declared.py makes calls and reads answers as a declaration says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, available_timezones

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.providers.currencies import CURRENCIES, PARTS
from pricing_pipeline.providers.json_paths import PLACEHOLDER as PLACEHOLDER
from pricing_pipeline.providers.json_paths import JsonPath, UnreadablePath

FETCHERS = (Fetcher.QUOTE, Fetcher.DAILY_BARS, Fetcher.NAV)
"""What a declared provider can be asked for."""
SAFE_SYMBOL = r"[A-Za-z0-9^][A-Za-z0-9^.:/=_-]{0,63}"
"""What any spelling must look like: nothing that a URL or a list of symbols reads as its own."""
_OF_SYMBOL = frozenset({"symbol", "base", "quote"})
_OF_QUERY = frozenset({"symbols", "start", "end"}) | _OF_SYMBOL

_HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]*[a-z0-9]", re.I)
_URL = re.compile(rf"https://({_HOST.pattern})(:[0-9]{{1,5}})?((?:/[A-Za-z0-9._~-]+)*)/?", re.I)
_LOCAL = re.compile(r"(^|\.)(localhost|local|internal|localdomain|home\.arpa|lan|intranet|corp)$", re.I)
_PATH = re.compile(r"(/[A-Za-z0-9._~@:,{}-]+)+/?")
_HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,63}")
_OF_HTTP = re.compile(
    r"accept.*|connection|content-.*|cookie2?|date|expect|forwarded|from|host|keep-alive|origin|proxy-.*|range|referer"
    r"|sec-.*|te|trailer|transfer-encoding|upgrade|user-agent|via|x-forwarded-.*|x-http-.*|x-original-.*|x-real-ip"
    r"|x-rewrite-.*",
    re.I,
)
_KEY_IN_QUERY = re.compile(
    r"(.*[._-])?(api|access|auth|subscription|private|secret)?[._-]?(key|token|secret|password)|appid|app_id|signature",
    re.I,
)


def _url(text: str) -> str:
    match = _URL.fullmatch(text)
    if match is None:
        raise ValueError(
            "write https://HOST or https://HOST/PATH with the name of a host: no address, user, query"
        )
    if _LOCAL.search(match[1]):
        raise ValueError("this host is not on the public internet")
    if any(part in (".", "..") for part in match[3].split("/")):
        raise ValueError("a path has no parts `.` and `..`")
    return text.rstrip("/")


def host_of(base_url: str) -> str:
    """The host of a base URL, in small letters."""
    return re.sub(r"^[a-z]+://", "", base_url.lower()).partition("/")[0].partition(":")[0].rstrip(".")


def _header(text: str) -> str:
    if _OF_HTTP.fullmatch(text):
        raise ValueError(
            "this header belongs to HTTP itself and carries no key; name the provider's header for keys"
        )
    return text


def _path(text: str) -> str:
    if not _PATH.fullmatch(_without_placeholders(text, _OF_QUERY)):
        raise ValueError(
            "write /PART/PART, of letters, digits and ._~@:,- with placeholders; `query` has parameters"
        )
    if any(re.fullmatch(r"\.+", part) for part in text.split("/")):
        raise ValueError("a path has no parts `.` and `..`")
    return text


def _parameter(text: str) -> str:
    _without_placeholders(text, _OF_QUERY)
    return text


def _query(parameters: dict[str, str]) -> dict[str, str]:
    for name in parameters:
        if _KEY_IN_QUERY.fullmatch(name):
            raise ValueError(
                f"`{name}` looks like a key, and URLs end up in logs. Name its header under `key`, and store it with "
                "`pricing-pipeline key set`"
            )
    return parameters


def _spelling(text: str) -> str:
    bare = _without_placeholders(text, _OF_SYMBOL)
    if bare == text or not re.fullmatch(SAFE_SYMBOL, bare):
        raise ValueError(
            "write the placeholders {symbol}, or {base} and {quote}, with letters, digits and ^.:/=_-"
        )
    return text


def _without_placeholders(text: str, allowed: frozenset[str]) -> str:
    for name in PLACEHOLDER.findall(text):
        if name[1:-1] not in allowed:
            raise ValueError(f"{name} is no placeholder here; there are {_names(allowed)}")
    bare = PLACEHOLDER.sub("x", text)
    if "{" in bare or "}" in bare:
        raise ValueError(f"braces stand for placeholders only: {_names(allowed)}")
    return bare


def _names(names: frozenset[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in sorted(names))


def _pattern(text: str) -> str:
    matcher(text)
    return text


def matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a whole text is of this pattern, told in a time linear in its length. Raises ValueError.

    Python's own expressions may take for ever on sixty characters; pydantic's do not.
    """
    try:
        checker = TypeAdapter(Annotated[str, Field(pattern=f"^(?:{pattern})$", strict=True)])
    except Exception as error:  # a SchemaError, which pydantic does not export
        words = " ".join(str(error).split())
        raise ValueError(
            f"it is no regular expression without look-around and back references: {words[-80:]}"
        ) from None

    def matches(text: str) -> bool:
        try:
            checker.validate_python(text)
        except ValidationError:
            return False
        return True

    return matches


def _json_path(text: str) -> str:
    try:
        path = JsonPath(text)
    except UnreadablePath as fault:
        raise ValueError(str(fault)) from None
    for name in sorted(path.placeholders - _OF_SYMBOL):
        raise ValueError(f"{{{name}}} is no placeholder here; there are {_names(_OF_SYMBOL)}")
    return text


def _zone(name: str) -> str:
    if name not in available_timezones():
        raise ValueError("it is no time zone; write UTC or a name such as America/New_York")
    ZoneInfo(name)
    return name


def _currency(code: str) -> str:
    if code != "{quote}" and code not in CURRENCIES and code not in PARTS:
        raise ValueError(
            "it is no ISO 4217 code, coin or part of a currency; {quote} is the second of a pair"
        )
    return code


_Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,47}$")]
_Text = Annotated[str, Field(max_length=200)]
_Path = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_json_path)]
_Template = Annotated[str, Field(max_length=200), AfterValidator(_parameter)]
_Zone = Annotated[str, AfterValidator(_zone)]


class Part(BaseModel):
    """Base of all parts of a declaration: every key is known, and nothing is converted."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class Key(Part):
    """How the provider's own key travels. Without this part, calls carry none."""

    header: Annotated[str, Field(pattern=f"^{_HEADER.pattern}$"), AfterValidator(_header)] = Field(
        description="The header that carries the key."
    )
    scheme: Annotated[str, Field(pattern=r"^(Bearer|Token|ApiKey|Apikey|Key)$")] | None = Field(
        None, description="A word before the key, such as Bearer."
    )


class DeclaredLimit(Part):
    """Units that the provider allows to a key: in so many seconds, or in a calendar day of a time zone."""

    units: int = Field(ge=1, le=2_000_000_000, description="Units allowed in the window.")
    seconds: int | None = Field(None, ge=1, le=100_000_000, description="Length of a sliding window.")
    day: _Zone | None = Field(None, description="Time zone whose midnight ends the day, such as UTC.")

    @model_validator(mode="after")
    def _has_one_window(self) -> DeclaredLimit:
        if (self.seconds is None) == (self.day is None):
            raise ValueError("a limit has either `seconds` or `day`")
        return self


class Spelling(Part):
    """How the provider spells the symbols of an asset class."""

    spelling: Annotated[str, Field(max_length=64), AfterValidator(_spelling)] = Field(
        "{symbol}", description="Of {symbol}; of a pair also of {base} and {quote}, such as {base}{quote}."
    )
    pattern: Annotated[str, Field(max_length=200), AfterValidator(_pattern)] = Field(
        SAFE_SYMBOL, description="What each whole spelling looks like; others are never sent."
    )


class ErrorRule(Part):
    """What an answer means that brings no data. Rules are tried in their order; the first that fits counts."""

    means: Literal["unknown_symbol", "throttled", "plan_restricted", "key_refused"] = Field(
        description="What has happened."
    )
    status: list[Annotated[int, Field(ge=200, le=499)]] | None = Field(
        None,
        min_length=1,
        description="HTTP statuses that it is about; else any of 200 to 499 but 3xx, 408 and 429.",
    )
    where: _Path | None = Field(None, description="A path that leads to something true in such an answer.")

    @model_validator(mode="after")
    def _says_when(self) -> ErrorRule:
        if self.status is None and self.where is None:
            raise ValueError("a rule has `status`, `where` or both")
        if any(status in (408, 429) or 300 <= status < 400 for status in self.status or ()):
            raise ValueError("3xx, 408, 429 and 5xx have their meaning already")
        if self.where is not None and JsonPath(self.where).placeholders:
            raise ValueError("`where` has no placeholders")
        return self


class Errors(Part):
    """How errors look. What no rule fits is told by its HTTP status."""

    message: _Path | None = Field(None, description="Path to the provider's own words, for people.")
    rules: list[ErrorRule] = Field(default_factory=list, max_length=20)


class Time(Part):
    """When a value was true."""

    path: _Path
    format: Literal["iso_date", "DD-MM-YYYY", "iso_time", "epoch_seconds", "epoch_milliseconds"]
    zone: _Zone = Field("UTC", description="Whose days epoch times of daily values are of.")


class Currency(Part):
    """What prices are in: exactly one of these."""

    code: Annotated[str, AfterValidator(_currency)] | None = Field(
        None, description="Always this one, such as EUR; {quote} is the second of a pair."
    )
    row: _Path | None = Field(None, description="Path in the row.")
    answer: _Path | None = Field(None, description="Path in the whole answer.")
    unnamed: Literal[True] | None = Field(
        None, description="The provider does not say: the instrument's own."
    )

    @model_validator(mode="after")
    def _is_one(self) -> Currency:
        if sum(value is not None for value in (self.code, self.row, self.answer, self.unnamed)) != 1:
            raise ValueError("a currency is one of `code`, `row`, `answer` and `unnamed: true`")
        return self


class Reading(Part):
    """How an answer is read: which rows it has, and what of a row is what."""

    rows: _Path | None = Field(
        None,
        description="Path to the list of rows. An object's members are rows {key, value}. Else: one row, the whole.",
    )
    symbol: _Path | None = Field(None, description="Path in a row to the symbol that it is about.")
    expect: dict[_Path, _Template] = Field(
        default_factory=dict,
        max_length=10,
        description="Paths in the answer, and the text that each must lead to.",
    )
    time: Time
    currency: Currency
    if_missing: Literal["empty", "unknown_symbol", "schema_drift"] | None = Field(
        None, description="What it means if a symbol has no row."
    )


class QuoteReading(Reading):
    """The latest price."""

    price: _Path
    high: _Path | None = None
    low: _Path | None = None


class NavReading(Reading):
    """One value of a day."""

    price: _Path


class BarsReading(Reading):
    """A day's bar, of which only the close is needed."""

    close: _Path
    open: _Path | None = None
    high: _Path | None = None
    low: _Path | None = None
    volume: _Path | None = None
    adjustment: Literal["raw", "splits"] = Field("raw", description="splits: divided by every later split.")


class Endpoint(Part):
    """A request: a path below the base URL, and its query."""

    path: Annotated[str, Field(max_length=200), AfterValidator(_path)]
    query: Annotated[
        dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9._\[\]-]{1,64}$")], _Template], AfterValidator(_query)
    ] = Field(default_factory=dict, max_length=20)
    most: int = Field(1, ge=1, le=5000, description="Symbols in one call, for {symbols}.")
    separator: Literal[",", ";", "|"] = Field(",", description="Between the symbols of {symbols}.")

    @property
    def placeholders(self) -> frozenset[str]:
        """The names of all placeholders of path and query."""
        return frozenset[str]().union(*map(_placeholders, (self.path, *self.query.values())))


class QuoteEndpoint(Endpoint):
    answer: QuoteReading | None = Field(None, description="How its answer is read, if not as the others.")


class NavEndpoint(Endpoint):
    answer: NavReading | None = Field(None, description="How its answer is read, if not as the others.")


class BarsEndpoint(Endpoint):
    answer: BarsReading | None = Field(None, description="How its answer is read, if not as the others.")


class Asking(Part):
    """How the provider is asked for one kind of data, and what that costs."""

    units_per_call: int = Field(1, ge=0, le=1_000_000, description="Cost of a call, in units of the limits.")
    units_per_symbol: int = Field(0, ge=0, le=1_000_000, description="Cost of each symbol of a call.")
    batch_from: int = Field(1, ge=1, le=5000, description="The fewest symbols that `batch` is used for.")

    @model_validator(mode="after")
    def _costs_something(self) -> Asking:
        if not self.units_per_call + self.units_per_symbol:
            raise ValueError("a call costs something: `units_per_call` and `units_per_symbol` are not both 0")
        return self


class AskingForDays(Asking):
    max_window_days: int = Field(365, ge=1, le=50_000, description="The longest span of one call, in days.")
    bytes_per_day: int = Field(
        150, ge=0, le=1_000_000, description="Bytes of a day of history, as an estimate."
    )
    latest_days: int = Field(
        10,
        ge=1,
        le=60,
        description="Without `latest`: how many days `span` is asked for to get the latest value.",
    )


class Quotes(Asking):
    """Latest prices, stamped by the source."""

    latest: QuoteEndpoint = Field(description="One symbol, or several.")
    batch: QuoteEndpoint | None = Field(
        None, description="Several symbols, where they have a path of their own."
    )
    answer: QuoteReading | None = None


class Navs(AskingForDays):
    """One value per day."""

    latest: NavEndpoint | None = Field(None, description="The latest value of a symbol.")
    batch: NavEndpoint | None = Field(None, description="The latest values of several symbols.")
    span: NavEndpoint | None = Field(None, description="The values from {start} to {end}.")
    answer: NavReading | None = None


class DailyBars(AskingForDays):
    """Open, high, low, close and volume per trading day."""

    latest: BarsEndpoint | None = Field(None, description="The latest bars of a symbol.")
    batch: BarsEndpoint | None = Field(None, description="The latest bars of several symbols.")
    span: BarsEndpoint | None = Field(None, description="The bars from {start} to {end}.")
    answer: BarsReading | None = None


class Fetchers(Part):
    """What it can be asked for: at least one."""

    quote: Quotes | None = None
    daily_bars: DailyBars | None = None
    nav: Navs | None = None

    @model_validator(mode="after")
    def _has_one(self) -> Fetchers:
        if not self.named:
            raise ValueError(f"a provider has at least one of {', '.join(FETCHERS)}")
        return self

    @property
    def named(self) -> dict[Fetcher, Quotes | Navs | DailyBars]:
        """Those that are declared."""
        asked = {Fetcher.QUOTE: self.quote, Fetcher.DAILY_BARS: self.daily_bars, Fetcher.NAV: self.nav}
        return {fetcher: one for fetcher, one in asked.items() if one is not None}


class Declaration(Part):
    """A provider of prices: where it is, what it allows, and how it is asked and read."""

    name: _Name = Field(description="Its name in `provider list`; small letters, digits and _.")
    description: _Text = ""
    base_url: Annotated[str, Field(max_length=200), AfterValidator(_url)] = Field(
        description="https://HOST/PATH, below which all requests go."
    )
    key: Key | None = None
    sandbox: _Name | None = Field(
        None, description="Whose dialect of the sandbox stands in for it; without one it is not asked there."
    )
    limits: dict[_Name, DeclaredLimit] = Field(min_length=1, max_length=10)
    quota_bytes: int = Field(21_474_836_480, ge=1, le=10**15, description="Bytes in any 720 hours.")
    in_flight: int = Field(4, ge=1, le=10, description="Calls of one process at once.")
    delay_ms: int = Field(0, ge=0, le=3_600_000, description="Least time between two calls.")
    pause_seconds: int = Field(
        5, ge=1, le=3600, description="First pause after a refusal that names no time."
    )
    symbols: dict[_Name, Spelling] = Field(min_length=1, max_length=10, description="By asset class.")
    errors: Errors = Errors()
    fetchers: Fetchers


Place = tuple[str | int, ...]
"""Where something stands in a declaration: its keys, and its numbers in lists."""


def faults(declaration: Declaration) -> Iterator[tuple[Place, str]]:
    """What parts of a declaration say that does not fit together, each with its place."""
    used: set[str] = set()
    for fetcher, asked in declaration.fetchers.named.items():
        here: Place = ("fetchers", fetcher.value)
        endpoints = endpoints_of(asked)
        if not endpoints.keys() & {"latest", "span"}:
            yield here, "it has neither `latest` nor `span`"
        for way, endpoint in endpoints.items():
            used |= endpoint.placeholders
            yield from _faults_of_endpoint((*here, way), way, endpoint)
            reading = endpoint.answer or asked.answer
            if reading is None:
                yield (
                    (*here, way),
                    "nothing says how its answer is read: it has no `answer`, nor has the fetcher",
                )
                continue
            used |= _used_by(reading)
            at = (*here, way, "answer") if endpoint.answer is not None else (*here, "answer")
            yield from _faults_of_reading(at, way, reading, endpoint)
    if used & {"base", "quote"}:
        for name, symbols in declaration.symbols.items():
            if not is_parted(symbols.spelling):
                yield (
                    ("symbols", name, "spelling"),
                    "{base} and {quote} are used below and cannot be told from it; write one such as {base}/{quote}",
                )


def _used_by(reading: Reading) -> set[str]:
    """The names of all placeholders of a reading."""
    used = set(_placeholders(reading.currency.code or ""))
    for _, path in paths_of(reading):
        used |= JsonPath(path).placeholders
    return used.union(*(_placeholders(text) for text in reading.expect.values()))


def _placeholders(text: str) -> frozenset[str]:
    return frozenset(name[1:-1] for name in PLACEHOLDER.findall(text))


def endpoints_of(asked: Quotes | Navs | DailyBars) -> dict[str, QuoteEndpoint | NavEndpoint | BarsEndpoint]:
    """The requests that are declared, by `latest`, `batch` and `span`."""
    span = None if isinstance(asked, Quotes) else asked.span
    ways = {"latest": asked.latest, "batch": asked.batch, "span": span}
    return {way: endpoint for way, endpoint in ways.items() if endpoint is not None}


def is_parted(spelling: str) -> bool:
    """Whether base and quote can be told from such a spelling."""
    return re.fullmatch(r"[^{}]*\{base\}[^{}A-Za-z0-9]+\{quote\}[^{}]*", spelling) is not None


def _faults_of_endpoint(at: Place, way: str, endpoint: Endpoint) -> Iterator[tuple[Place, str]]:
    used = endpoint.placeholders
    if way == "span" and not {"start", "end"} <= used:
        yield at, "a span needs {start} and {end}"
    if way != "span" and used & {"start", "end"}:
        yield at, "{start} and {end} belong to `span`"
    if way == "batch" and endpoint.most < 2:
        yield at, "a batch has `most` of 2 or more"
    names_symbol = bool(used & {"symbol", "symbols"}) or {"base", "quote"} <= used
    if endpoint.most == 1 and not names_symbol:
        yield at, "nothing in path and query names the symbol: {symbol}, or {base} and {quote}"
    if endpoint.most > 1 and used & _OF_SYMBOL:
        yield at, "a call for several symbols has {symbols}, or all symbols in one list"


def _faults_of_reading(
    at: Place, way: str, reading: Reading, endpoint: Endpoint
) -> Iterator[tuple[Place, str]]:
    if endpoint.most > 1 and reading.symbol is None:
        yield (
            at,
            f"`{way}` asks for several symbols, and nothing says which a row is about: `symbol` is missing",
        )
    for place, path in paths_of(reading):
        if JsonPath(path).placeholders and endpoint.most > 1 and place[0] in ("rows", "symbol", "expect"):
            yield (*at, *place), "it is read once for all symbols of a call, so it has no placeholder"
    for path, text in reading.expect.items():
        used = _placeholders(text)
        if used - _OF_SYMBOL or (used and endpoint.most > 1):
            yield (
                (*at, "expect", path),
                "a text that is expected has {symbol}, {base} and {quote} of one symbol only",
            )


def paths_of(reading: Reading) -> Iterator[tuple[Place, str]]:
    """Every path of a reading, with its place in it."""
    for name in type(reading).model_fields:
        value = getattr(reading, name)
        match value:
            case str() if name not in ("if_missing", "adjustment"):
                yield (name,), value
            case Time():
                yield ("time", "path"), value.path
            case Currency():
                yield from (
                    (("currency", kind), path) for kind in ("row", "answer") if (path := getattr(value, kind))
                )
            case dict():
                yield from (((name, path), path) for path in value)
