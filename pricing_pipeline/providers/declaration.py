"""What a declaration of a provider may say, as models: the one place for its keys, their types and their bounds.

The JSON Schema that editors use is made from these models. What a single text must look like is in
declaration_texts.py, and what several parts must say together in declaration_faults.py. declaration_file.py reads
files and names lines; declared.py makes calls and reads answers as a declaration says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.providers.declaration_texts import (
    SAFE_SYMBOL,
    AnswerPath,
    BaseUrl,
    CurrencyCode,
    HeaderName,
    Name,
    Pattern,
    PlainPath,
    Query,
    ShortText,
    SymbolTemplate,
    Template,
    UrlPath,
    ZoneName,
    placeholders_of,
)

FETCHERS = (Fetcher.QUOTE, Fetcher.DAILY_BARS, Fetcher.NAV)
"""What a declared provider can be asked for."""


class Part(BaseModel):
    """Base of all parts of a declaration: every key is known, and nothing is converted."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class Key(Part):
    """How the provider's own key travels. Without this part, calls carry none."""

    header: HeaderName = Field(description="The header that carries the key.")
    scheme: Annotated[str, Field(pattern=r"^(Bearer|Token|ApiKey|Apikey|Key)$")] | None = Field(
        None, description="A word before the key, such as Bearer."
    )


class DeclaredLimit(Part):
    """Units that the provider allows to a key: in so many seconds, or in a calendar day of a time zone."""

    units: int = Field(ge=1, le=2_000_000_000, description="Units allowed in the window.")
    seconds: int | None = Field(None, ge=1, le=100_000_000, description="Length of a sliding window.")
    day: ZoneName | None = Field(None, description="Time zone whose midnight ends the day, such as UTC.")

    @model_validator(mode="after")
    def _has_one_window(self) -> DeclaredLimit:
        if (self.seconds is None) == (self.day is None):
            raise ValueError("a limit has either `seconds` or `day`")
        return self


class Spelling(Part):
    """How the provider spells the symbols of an asset class."""

    spelling: SymbolTemplate = Field(
        "{symbol}", description="Of {symbol}; of a pair also of {base} and {quote}, such as {base}{quote}."
    )
    pattern: Pattern = Field(
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
    where: PlainPath | None = Field(
        None, description="A path that leads to something true in such an answer."
    )

    @model_validator(mode="after")
    def _says_when(self) -> ErrorRule:
        if self.status is None and self.where is None:
            raise ValueError("a rule has `status`, `where` or both")
        if any(status in (408, 429) or 300 <= status < 400 for status in self.status or ()):
            raise ValueError("3xx, 408, 429 and 5xx have their meaning already")
        return self


class Errors(Part):
    """How errors look. What no rule fits is told by its HTTP status."""

    message: AnswerPath | None = Field(None, description="Path to the provider's own words, for people.")
    rules: list[ErrorRule] = Field(default_factory=list, max_length=20)


class Time(Part):
    """When a value was true."""

    path: AnswerPath
    format: Literal["iso_date", "DD-MM-YYYY", "iso_time", "epoch_seconds", "epoch_milliseconds"]
    zone: ZoneName | None = Field(
        None,
        description="Whose days the times of daily values are of. Without it an iso_time is of the day "
        "that it names, and an epoch time of its day in UTC.",
    )


class Currency(Part):
    """What prices are in: exactly one of these."""

    code: CurrencyCode | None = Field(
        None, description="Always this one, such as EUR; {quote} is the second of a pair."
    )
    row: AnswerPath | None = Field(None, description="Path in the row.")
    answer: AnswerPath | None = Field(None, description="Path in the whole answer.")
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

    rows: AnswerPath | None = Field(
        None,
        description="Path to the list of rows. An object's members are rows {key, value}. Else: one row, the whole.",
    )
    symbol: AnswerPath | None = Field(None, description="Path in a row to the symbol that it is about.")
    expect: dict[AnswerPath, Template] = Field(
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

    price: AnswerPath
    high: AnswerPath | None = None
    low: AnswerPath | None = None


class NavReading(Reading):
    """One value of a day."""

    price: AnswerPath


class BarsReading(Reading):
    """A day's bar, of which only the close is needed."""

    close: AnswerPath
    open: AnswerPath | None = None
    high: AnswerPath | None = None
    low: AnswerPath | None = None
    volume: AnswerPath | None = None
    adjustment: Literal["raw", "splits"] = Field("raw", description="splits: divided by every later split.")


AnyReading = QuoteReading | NavReading | BarsReading


class Paging(Part):
    """How one page of an answer leads to the next: exactly one of `cursor`, `next`, `more` and `total`."""

    cursor: PlainPath | None = Field(
        None, description="Path to {cursor} of the next request; the last page has none."
    )
    next: PlainPath | None = Field(
        None, description="Path to the URL of the next page, below `base_url`; the last page has none."
    )
    more: PlainPath | None = Field(
        None, description="Path to something true while another {page} or {offset} follows."
    )
    total: PlainPath | None = Field(
        None, description="Path to the number of rows of all pages, each asked for by {page} or {offset}."
    )
    first: int = Field(1, ge=0, le=1, description="The first {page}.")

    @model_validator(mode="after")
    def _is_one(self) -> Paging:
        if len(self._given) != 1:
            raise ValueError("pages have one of `cursor`, `next`, `more` and `total`")
        return self

    @property
    def _given(self) -> dict[str, str]:
        paths = {"cursor": self.cursor, "next": self.next, "more": self.more, "total": self.total}
        return {kind: path for kind, path in paths.items() if path is not None}

    @property
    def kind(self) -> str:
        """Which of the four it is."""
        return next(iter(self._given))

    @property
    def path(self) -> str:
        """Its path."""
        return next(iter(self._given.values()))


class Endpoint(Part):
    """A request: a path below the base URL, its query, and for a POST its body."""

    path: UrlPath
    query: Query = Field(default_factory=dict, max_length=20)
    post: dict[str, JsonValue] | None = Field(
        None, description="JSON that is sent by POST. Without it the request is a GET."
    )
    pages: Paging | None = Field(None, description="If the rows come on several pages.")
    most: int = Field(1, ge=1, le=5000, description="Symbols in one call, for {symbols}.")
    separator: Literal[",", ";", "|"] = Field(",", description="Between the symbols of {symbols}.")

    @property
    def placeholders(self) -> frozenset[str]:
        """The names of all placeholders of path, query and body."""
        return frozenset[str]().union(*map(placeholders_of, self.templates))

    @property
    def templates(self) -> list[str]:
        """All texts that may have placeholders."""
        texts = [text for _, text in texts_of(self.post) if isinstance(text, str)]
        return [self.path, *self.query.values(), *texts]


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
        description="Without `latest`: how many days back `span` reaches for the latest value. It asks for tomorrow "
        "as well.",
    )

    @model_validator(mode="after")
    def _reaches_the_latest(self) -> AskingForDays:
        days = self.latest_days + 2  # with today and tomorrow
        if getattr(self, "latest", None) is None and days > self.max_window_days:
            raise ValueError(
                f"without `latest` a call spans {days} days (`latest_days`, today and tomorrow), and `max_window_days` "
                f"allows {self.max_window_days}: make `latest_days` smaller"
            )
        return self


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

    name: Name = Field(description="Its name in `provider list`; small letters, digits and _.")
    description: ShortText = ""
    base_url: BaseUrl = Field(description="https://HOST/PATH, below which all requests go.")
    key: Key | None = None
    sandbox: Name | None = Field(
        None, description="Whose dialect of the sandbox stands in for it; without one it is not asked there."
    )
    limits: dict[Name, DeclaredLimit] = Field(min_length=1, max_length=10)
    quota_bytes: int = Field(21_474_836_480, ge=1, le=10**15, description="Bytes in any 720 hours.")
    in_flight: int = Field(4, ge=1, le=10, description="Calls at once, of all workers together.")
    delay_ms: int = Field(0, ge=0, le=3_600_000, description="Least time between two calls.")
    pause_seconds: int = Field(
        5, ge=1, le=3600, description="First pause after a refusal that names no time."
    )
    symbols: dict[Name, Spelling] = Field(min_length=1, max_length=10, description="By asset class.")
    errors: Errors = Errors()
    fetchers: Fetchers


Place = tuple[str | int, ...]
"""Where something stands in a declaration: its keys, and its numbers in lists."""


def texts_of(node: JsonValue, place: Place = ()) -> Iterator[tuple[Place, JsonValue]]:
    """Everything in a body that holds nothing else, with its place in it."""
    match node:
        case dict():
            for key, value in node.items():
                yield from texts_of(value, (*place, key))
        case list():
            for number, value in enumerate(node):
                yield from texts_of(value, (*place, number))
        case _:
            yield place, node


def endpoints_of(asked: Quotes | Navs | DailyBars) -> dict[str, QuoteEndpoint | NavEndpoint | BarsEndpoint]:
    """The requests that are declared, by `latest`, `batch` and `span`."""
    span = None if isinstance(asked, Quotes) else asked.span
    ways = {"latest": asked.latest, "batch": asked.batch, "span": span}
    return {way: endpoint for way, endpoint in ways.items() if endpoint is not None}


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
