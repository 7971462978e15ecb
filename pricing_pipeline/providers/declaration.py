"""The keys of a provider's declaration, their types and their bounds, as models.

The JSON Schema that editors use is made from these models. What a single text must look like is in
declaration_texts.py, and what several parts must say together in declaration_faults.py. declaration_file.py reads
files and names lines; declared.py makes calls and reads answers as a declaration says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.providers.declaration_texts import (
    SAFE_SYMBOL,
    AnswerHeader,
    AnswerPath,
    BaseUrl,
    CurrencyCode,
    DateFormat,
    Day,
    Factor,
    FixedHeaders,
    HeaderName,
    Name,
    Parameter,
    Pattern,
    PlainPath,
    Query,
    ShortText,
    SymbolTemplate,
    Template,
    TimeFormat,
    UrlPath,
    ZoneName,
    placeholders_of,
)

FETCHERS = (Fetcher.QUOTE, Fetcher.DAILY_BARS, Fetcher.NAV)
"""The fetchers that a declaration can have."""


class Part(BaseModel):
    """Base of all parts of a declaration: every key is known, and nothing is converted."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class Key(Part):
    """How the provider's own key travels: exactly one of these ways. Without this part, calls carry none."""

    header: HeaderName | None = Field(None, description="The header that carries the key.")
    scheme: Annotated[str, Field(pattern=r"^(Bearer|Token|ApiKey|Apikey|Key)$")] | None = Field(
        None, description="A word before the key in `header`, such as Bearer."
    )
    headers: list[HeaderName] | None = Field(
        None,
        min_length=2,
        max_length=4,
        description="Headers of a key in several parts; it is stored as PART:PART.",
    )
    query: Parameter | None = Field(
        None, description="The parameter that carries the key, where no header does. It is shown nowhere."
    )

    @model_validator(mode="after")
    def _is_one(self) -> Key:
        if sum(way is not None for way in (self.header, self.headers, self.query)) != 1:
            raise ValueError("a key travels in one of `header`, `headers` and `query`")
        if self.scheme is not None and self.header is None:
            raise ValueError("a `scheme` stands before the key in a `header`")
        return self


class Login(Part):
    """A call that brings a token for the stored key. The token then travels as `key` says."""

    path: UrlPath = Field(description="Where the login is, below `base_url`. It is a POST.")
    post: dict[str, JsonValue] | None = Field(None, description="JSON to send, without the secrets.")
    form: dict[Parameter, ShortText] | None = Field(None, description="A form to send, without the secrets.")
    parts: list[Parameter] | None = Field(
        None,
        min_length=1,
        max_length=4,
        description="Names in what is sent of the parts of the key, such as client_id; it is stored as PART:PART.",
    )
    basic: Literal[True] | None = Field(
        None, description="Instead of `parts`: the key is NAME:PASSWORD, sent as HTTP Basic."
    )
    token: PlainPath = Field(description="Path to the token in the answer.")
    seconds: Annotated[int, Field(ge=60, le=2_592_000)] | None = Field(
        None, description="How long a token is good, if the answer does not say."
    )
    lifetime: PlainPath | None = Field(None, description="Path in the answer to these seconds.")

    @model_validator(mode="after")
    def _is_whole(self) -> Login:
        if (self.post is None) == (self.form is None):
            raise ValueError("a login sends one of `post` and `form`, which may be {}")
        if (self.parts is None) == (self.basic is None):
            raise ValueError("a login has one of `parts` and `basic: true`")
        if (self.seconds is None) == (self.lifetime is None):
            raise ValueError("a login has one of `seconds` and `lifetime`")
        return self


class DeclaredLimit(Part):
    """Units that the provider allows a key: in a number of seconds, or in a calendar day of a time zone."""

    units: int = Field(ge=1, le=2_000_000_000, description="Units allowed in the window.")
    seconds: int | None = Field(None, ge=1, le=100_000_000, description="Length of a sliding window.")
    day: ZoneName | None = Field(None, description="Time zone whose midnight ends the day, such as UTC.")

    @model_validator(mode="after")
    def _has_one_window(self) -> DeclaredLimit:
        if (self.seconds is None) == (self.day is None):
            raise ValueError("a limit has either `seconds` or `day`")
        return self


class DeclaredType(Part):
    """A data type that a plan serves; it is added if the name is new."""

    asset_class: Name = Field(description="One of `symbols`.")
    fetcher: Literal["quote", "daily_bars", "nav"] = Field(description="One of `fetchers`.")
    at_least: int = Field(
        ge=1, le=1_000_000, description="The shortest TTL in minutes; that of quotes follows from the limits."
    )
    description: ShortText = ""
    history_from: Day | None = Field(None, description="The first day of its history, such as 2000-01-01.")

    @model_validator(mode="after")
    def _has_days_to_backfill(self) -> DeclaredType:
        if self.fetcher == "quote" and self.history_from is not None:
            raise ValueError("a quote is the current price, so it has no `history_from`")
        return self


class PlanCheck(Part):
    """The one call that tries the key."""

    type: Name
    symbol: Annotated[str, Field(min_length=1, max_length=64)]


class DeclaredPlan(Part):
    """The limits of an account, and what it serves; `provider use` writes them."""

    title: ShortText
    limits: dict[Name, DeclaredLimit] = Field(min_length=1, max_length=10)
    batch: dict[Literal["quote", "daily_bars", "nav"], Annotated[int, Field(ge=1, le=5000)]] = Field(
        default_factory=dict, description="Symbols in one call, by fetcher, if fewer than the requests take."
    )
    types: dict[Name, DeclaredType] = Field(min_length=1, max_length=20)
    check: PlanCheck | None = None


class LimitHeaders(Part):
    """Headers in which answers tell limits, where their names are not the usual ones."""

    left: AnswerHeader | None = Field(None, description="Units that are left.")
    limit: AnswerHeader | None = Field(None, description="Units that are allowed.")
    wait: AnswerHeader | None = Field(None, description="Seconds to wait, or a date, as in Retry-After.")

    @property
    def usual(self) -> dict[str, str]:
        """The usual name of each."""
        names = {
            "x-ratelimit-remaining": self.left,
            "x-ratelimit-limit": self.limit,
            "retry-after": self.wait,
        }
        return {usual: own for usual, own in names.items() if own is not None}


class Body(Part):
    """What kind of text an answer is."""

    format: Literal["json", "csv", "xml"] = "json"
    delimiter: Literal[",", ";", "|", "tab"] = Field(",", description="For csv: the sign between two cells.")
    header: bool = Field(
        True, description="For csv: the first line names the columns. Without it a path is [0], [1] and so on."
    )
    skip: int = Field(0, ge=0, le=1000, description="For csv: the number of lines to skip at the start.")
    comments: list[Annotated[str, Field(min_length=1, max_length=40)]] = Field(
        default_factory=list, max_length=20, description="For csv: how lines begin that are skipped."
    )
    encoding: Literal["utf-8", "utf-16", "iso-8859-1", "windows-1250", "windows-1251", "windows-1252"] = Field(
        "utf-8", description="For csv: the character encoding."
    )

    @model_validator(mode="after")
    def _fits(self) -> Body:
        if self.format != "csv" and self.model_fields_set - {"format"}:
            raise ValueError(f"{', '.join(sorted(self.model_fields_set - {'format'}))} belongs to `format: csv`")
        return self


class SymbolList(Part):
    """A request for the provider's own names of symbols; `provider symbols` asks it."""

    path: UrlPath
    query: Query = Field(default_factory=dict, max_length=20)
    form: Body = Field(Body(), alias="body", description="What kind of text the answer is.")
    rows: PlainPath | None = Field(None, description="Path to the list of rows; without it the lines of csv.")
    ours: PlainPath = Field(description="Path in a row to our symbol, or to the base of a pair, in any case.")
    theirs: PlainPath = Field(description="Path in a row to the provider's name of it.")

    @model_validator(mode="after")
    def _has_rows(self) -> SymbolList:
        if self.rows is None and self.form.format != "csv":
            raise ValueError("`rows` is missing: the path to the list")
        if any("{" in text for text in (self.path, *self.query.values())):
            raise ValueError("a list is about all symbols, so its request has no placeholder")
        return self


class Spelling(Part):
    """How the provider spells the symbols of an asset class."""

    spelling: SymbolTemplate = Field(
        "{symbol}", description="Of {symbol}; of a pair also of {base} and {quote}, such as {base}{quote}."
    )
    names: dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(pattern=f"^{SAFE_SYMBOL}$")]] = Field(
        default_factory=dict,
        max_length=1000,
        description="The provider's own names of symbols, bases or quotes, such as BTC: bitcoin.",
    )
    pattern: Pattern = Field(SAFE_SYMBOL, description="What each whole spelling looks like; others are never sent.")
    listed: SymbolList | None = Field(None, alias="list", description="Where the provider lists its names.")

    @model_validator(mode="after")
    def _is_one_to_one(self) -> Spelling:
        if len(set(self.names.values())) < len(self.names):
            raise ValueError("two of `names` are the same: an answer could be about either")
        return self


Meaning = Literal["empty", "unknown", "limit", "plan", "key", "refused"]


class ErrorRule(Part):
    """The meaning of an answer without data. Rules are tried in order; the first that fits counts."""

    means: Meaning = Field(
        description="empty: nothing in this span; unknown: no such symbol; limit: asked too often; plan: not paid for; "
        "key: no such key; refused: anything else."
    )
    status: list[Annotated[int, Field(ge=200, le=499)]] | None = Field(
        None,
        min_length=1,
        description="HTTP statuses that it is about; else any of 200 to 499 but 3xx, 408 and 429.",
    )
    where: PlainPath | None = Field(None, description="A path that leads to something true in such an answer.")
    text: Annotated[str, Field(min_length=2, max_length=200)] | None = Field(
        None, description="Words in such an answer, whatever its kind."
    )
    request: Literal["latest", "batch", "span"] | None = Field(
        None, description="The one kind of request that it is about; else all."
    )
    wait: PlainPath | None = Field(None, description="For a limit: path to the seconds to wait.")

    @model_validator(mode="after")
    def _says_when(self) -> ErrorRule:
        if self.status is None and self.where is None and self.text is None:
            raise ValueError("a rule has `status`, `where`, `text` or several of them")
        if any(status in (408, 429) or 300 <= status < 400 for status in self.status or ()):
            raise ValueError("3xx, 408, 429 and 5xx already have a meaning")
        if self.wait is not None and self.means != "limit":
            raise ValueError("`wait` belongs to a rule that means a limit")
        return self


class Errors(Part):
    """What errors look like. If no rule fits, the HTTP status decides."""

    message: AnswerPath | None = Field(None, description="Path to the provider's own words, for people.")
    rules: list[ErrorRule] = Field(default_factory=list, max_length=20)


class Time(Part):
    """When a value was true: `path` and `format`, or `at: fetch`."""

    path: AnswerPath | None = None
    format: TimeFormat | None = Field(
        None,
        description="iso_date, iso_time, epoch_seconds, epoch_milliseconds, dotnet, or a pattern such as %d.%m.%Y.",
    )
    zone: ZoneName | None = Field(
        None,
        description="Whose clock times without an offset show, and whose days the times of daily values are of.",
    )
    at: Literal["fetch"] | None = Field(None, description="Answers have no time: that of the call.")

    @model_validator(mode="after")
    def _is_one(self) -> Time:
        if (self.path is None) != (self.format is None) or (self.path is None) == (self.at is None):
            raise ValueError("a time has `path` and `format`, or `at: fetch`")
        return self


class Numbers(Part):
    """How prices are written, and what they are multiplied by."""

    decimal: Literal[".", ","] = Field(".", description="The decimal sign.")
    thousands: Literal[",", ".", "'", " "] | None = Field(None, description="The sign between groups of digits.")
    blank: list[Annotated[str, Field(max_length=20)]] = Field(
        default_factory=list, max_length=10, description="Texts that stand for no price: the row is left out."
    )
    factor: Factor = Field(1, description="Prices are multiplied by it, such as 0.01 for percent.")
    per: AnswerPath | None = Field(None, description="Path in the row to the number of units that the price buys.")
    inverse: bool = Field(False, description="The price is 1 divided by what the answer has, to 15 digits.")

    @model_validator(mode="after")
    def _differ(self) -> Numbers:
        if self.thousands == self.decimal:
            raise ValueError("`thousands` and `decimal` are the same sign")
        return self

    @property
    def changes_prices(self) -> bool:
        """Whether a price is stored as another number than the answer has."""
        return self.inverse or self.per is not None or str(self.factor) != "1"


class Currency(Part):
    """The currency of prices: exactly one of these."""

    code: CurrencyCode | None = Field(
        None, description="Always this one, such as EUR; {quote} is the second of a pair."
    )
    row: AnswerPath | None = Field(None, description="Path in the row.")
    answer: AnswerPath | None = Field(None, description="Path in the whole answer.")
    unnamed: Literal[True] | None = Field(None, description="The provider does not say: the instrument's own.")

    @model_validator(mode="after")
    def _is_one(self) -> Currency:
        if sum(value is not None for value in (self.code, self.row, self.answer, self.unnamed)) != 1:
            raise ValueError("a currency is one of `code`, `row`, `answer` and `unnamed: true`")
        return self


class Reading(Part):
    """How an answer is read: where its rows are, and which part of a row means what."""

    form: Body = Field(Body(), alias="body", description="What kind of text the answer is.")
    rows: AnswerPath | None = Field(
        None,
        description="Path to the list of rows. An object's members are rows {key, value}. Else: one row, the whole.",
    )
    columns: AnswerPath | None = Field(
        None,
        description="Instead of `rows`: path to an object of lists of one length, whose n-th entries are a row.",
    )
    symbol: AnswerPath | None = Field(None, description="Path in a row to the symbol that it is about.")
    expect: dict[AnswerPath, Template] = Field(
        default_factory=dict,
        max_length=10,
        description="Paths in the answer, and the text that each must lead to.",
    )
    time: Time
    currency: Currency
    numbers: Numbers = Numbers()
    if_missing: Literal["empty", "unknown", "refused"] | None = Field(
        None, description="What it means if a symbol has no row."
    )

    @model_validator(mode="after")
    def _has_one_kind_of_rows(self) -> Self:
        if self.rows is not None and self.columns is not None:
            raise ValueError("an answer has `rows` or `columns`")
        if self.form.format == "csv" and self.columns is not None:
            raise ValueError("the lines of csv are its rows")
        return self

    @property
    def is_table(self) -> bool:
        """Whether it has many rows."""
        return self.rows is not None or self.columns is not None or self.form.format == "csv"

    @property
    def prices(self) -> dict[str, str]:
        """The paths of a row's values beside its time, by the names of a bar's parts."""
        raise NotImplementedError


class QuoteReading(Reading):
    """The latest price."""

    price: AnswerPath
    high: AnswerPath | None = None
    low: AnswerPath | None = None

    @property
    def prices(self) -> dict[str, str]:
        return _given(price=self.price, high=self.high, low=self.low)


class NavReading(Reading):
    """One value of a day."""

    price: AnswerPath

    @property
    def prices(self) -> dict[str, str]:
        return _given(price=self.price)


class BarsReading(Reading):
    """A day's bar; only the close is required."""

    close: AnswerPath
    open: AnswerPath | None = None
    high: AnswerPath | None = None
    low: AnswerPath | None = None
    volume: AnswerPath | None = None
    adjustment: Literal["raw", "splits"] = Field("raw", description="splits: divided by every later split.")

    @property
    def prices(self) -> dict[str, str]:
        return _given(price=self.close, open=self.open, high=self.high, low=self.low, volume=self.volume)


def _given(**paths: str | None) -> dict[str, str]:
    return {name: path for name, path in paths.items() if path is not None}


AnyReading = QuoteReading | NavReading | BarsReading


class Paging(Part):
    """How one page of an answer leads to the next: exactly one of `cursor`, `next`, `more` and `total`."""

    cursor: PlainPath | None = Field(None, description="Path to {cursor} of the next request; the last page has none.")
    next: PlainPath | None = Field(
        None, description="Path to the URL of the next page, below `base_url`; the last page has none."
    )
    more: PlainPath | None = Field(None, description="Path to something true while another {page} or {offset} follows.")
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
    dates: DateFormat = Field(
        "iso_date",
        description="How {start} and {end} are written: iso_date, iso_time, epoch_seconds and so on.",
    )
    pages: Paging | None = Field(None, description="If the rows come on several pages.")
    most: int = Field(1, ge=1, le=5000, description="Symbols in one call, for {symbols}.")
    separator: Literal[",", ";", "|"] = Field(",", description="Between the symbols of {symbols}.")

    @property
    def placeholders(self) -> frozenset[str]:
        """The names of all placeholders of path, query and body."""
        return frozenset[str]().union(*map(placeholders_of, self.templates))

    @property
    def has_start(self) -> bool:
        """Whether it asks for no day before the first one."""
        return bool(self.placeholders & {"start", "days"})

    @property
    def has_end(self) -> bool:
        """Whether it asks for no day after the last one."""
        return "end" in self.placeholders

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
    bytes_per_day: int = Field(150, ge=0, le=1_000_000, description="Bytes of a day of history, as an estimate.")
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
    batch: QuoteEndpoint | None = Field(None, description="Several symbols, where they have a path of their own.")
    answer: QuoteReading | None = None


class Navs(AskingForDays):
    """One value per day."""

    latest: NavEndpoint | None = Field(None, description="The latest value of a symbol.")
    batch: NavEndpoint | None = Field(None, description="The latest values of several symbols.")
    span: NavEndpoint | None = Field(None, description="The values from {start} to {end}, or all there are.")
    answer: NavReading | None = None


class DailyBars(AskingForDays):
    """Open, high, low, close and volume per trading day."""

    latest: BarsEndpoint | None = Field(None, description="The latest bars of a symbol.")
    batch: BarsEndpoint | None = Field(None, description="The latest bars of several symbols.")
    span: BarsEndpoint | None = Field(None, description="The bars from {start} to {end}, or all there are.")
    answer: BarsReading | None = None


class Fetchers(Part):
    """The kinds of requests that it serves: at least one."""

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
    login: Login | None = None
    headers: FixedHeaders = Field(
        default_factory=dict, max_length=10, description="Headers of every request, none of them secret."
    )
    limit_headers: LimitHeaders = LimitHeaders()
    sandbox: Name | None = Field(
        None,
        description="The provider whose sandbox dialect answers in its place; without one its tasks wait.",
    )
    limits: dict[Name, DeclaredLimit] = Field(min_length=1, max_length=10)
    plans: dict[Name, DeclaredPlan] = Field(
        default_factory=dict, max_length=10, description="By name, for `provider use NAME --plan PLAN`."
    )
    quota_bytes: int = Field(21_474_836_480, ge=1, le=10**15, description="Bytes in any 720 hours.")
    in_flight: int = Field(4, ge=1, le=10, description="Calls at once, of all workers together.")
    delay_ms: int = Field(0, ge=0, le=3_600_000, description="Least time between two calls.")
    pause_seconds: int = Field(5, ge=1, le=3600, description="First pause after a refusal that names no time.")
    symbols: dict[Name, Spelling] = Field(min_length=1, max_length=10, description="By asset class.")
    errors: Errors = Errors()
    fetchers: Fetchers


Place = tuple[str | int, ...]
"""A place in a declaration: its keys, and its indexes in lists."""


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
    named = {"rows": reading.rows, "columns": reading.columns, "symbol": reading.symbol, **reading.prices}
    if isinstance(reading, BarsReading):
        named["close"] = named.pop("price")
    found: dict[Place, str | None] = {(name,): path for name, path in named.items()}
    found |= {("expect", path): path for path in reading.expect}
    found |= {("time", "path"): reading.time.path, ("numbers", "per"): reading.numbers.per}
    found |= {("currency", "row"): reading.currency.row, ("currency", "answer"): reading.currency.answer}
    yield from ((place, path) for place, path in found.items() if path is not None)
