"""The interface of a provider, and the shared parts of parsers: decoding, schemas, HTTP refusals.

A provider only builds requests and reads answers: it has no network (client.py), no database and no clock. values.py
reads exact values and checks them.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import groupby
from typing import Literal, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, SecretStr, ValidationError

from pricing_pipeline.domain.answers import Answer, FailureKind, RejectedValue, SymbolFailure
from pricing_pipeline.domain.calls import Response, ShownLimit
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import (
    InvalidRange,
    KeyRefused,
    PlanRestricted,
    ProviderDown,
    ProviderError,
    RequestRefused,
    SchemaDrift,
    SettingsError,
    Throttled,
)
from pricing_pipeline.providers import flat
from pricing_pipeline.providers.flat import FlatRows
from pricing_pipeline.providers.values import json_number, spelling
from pricing_pipeline.settings import Settings

MAX_RETRY_AFTER = 3600.0
"""The longest wait in seconds that a provider can impose; a longer one is cut."""
MAX_VALUES = 1_200_000
"""The most values and names in all answers of a call; mfapi's list of all schemes, with 45,000 rows, has 860,000."""
MAX_ROWS = 100_000
"""The most rows in one answer: twice as many as any call asks for."""
MAX_DAYS = 50_000
"""The most days of one symbol: two hundred years of trading."""
MAX_DOCUMENTS = 2000
"""The most documents of one symbol and kind, or dividends: one a week for forty years."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request to a provider: a path below its base URL, its query, and for a POST a body. It never has a key.

    `json` is what JSON can say, and is sent with a POST; `form` is sent as a form; without either no body is sent.
    `headers` are those that the API needs beside the client's own.
    """

    path: str
    params: tuple[tuple[str, str], ...] = ()
    method: Literal["GET", "POST"] = "GET"
    json: object = None
    headers: tuple[tuple[str, str], ...] = ()
    form: tuple[tuple[str, str], ...] | None = None

    def __post_init__(self) -> None:
        if (self.json is not None or self.form is not None) and self.method != "POST":
            raise ValueError(f"a {self.method} has no body. Ask by POST, or leave `json` and `form` out.")


@dataclass(frozen=True, slots=True)
class Token:
    """The token of a login, and the time, by the clock of calls, from which on it is not used."""

    secret: SecretStr
    ends_at: datetime


Known = Mapping[str, Mapping[str, object]]
"""The known facts of each symbol, by name: its `asset_class`, the `exchange_zone` of a share whose symbol names its
exchange, and what storage knows that a request needs, such as its `time_zone`. Symbols and facts may be missing."""
NOTHING_KNOWN: Known = {}


@dataclass(frozen=True, slots=True)
class Question:
    """The symbols of one call, in the provider's spelling and each once, and perhaps days.

    `now` (UTC) is the time against which future stamps are judged. `known` is what storage knows of each symbol.
    """

    fetcher: Fetcher
    symbols: Sequence[str]
    window: Window | None
    now: datetime
    known: Known = field(default_factory=dict)

    @property
    def symbol(self) -> str:
        """The symbol, if the question is about only one."""
        (symbol,) = self.symbols
        return symbol

    def fact(self, symbol: str, name: str) -> str | None:
        """A known fact about a symbol, such as its `asset_class`; None if it is unknown."""
        found = self.known.get(symbol, {}).get(name)
        return None if found is None else str(found)


Dialogue = Generator[Request, Response, Answer]
"""The requests of one call, one after the other: each gets its response. The end is the answer of the whole call."""
Witness = Callable[[Request, Response], object]
"""Sees what was asked and answered, without keys."""


class Provider(Protocol):
    """One provider's dialect: builds requests and reads answers. Stateless and thread-safe.

    How it is asked is either of OneRequest and SeveralRequests (dialogue.py).
    """

    @property
    def name(self) -> str:
        """The name in `data_collectors`, and in settings of its keys, if there are any: `PRICING_<NAME>_API_KEY`."""

    @property
    def base_url(self) -> str:
        """The URL of the real service."""

    @property
    def needs_key(self) -> bool:
        """True if every call must carry an API key."""

    @property
    def fetchers(self) -> frozenset[Fetcher]:
        """The kinds of requests that it serves."""

    def accepts(self, symbol: str) -> bool:
        """Whether the provider can know a symbol of this spelling; others are never sent to it."""

    def spell(self, symbol: str, asset_class: str) -> str:
        """The provider's spelling of a canonical symbol (canonical.py); one that no rule changes stays as it is."""

    def batch_limit(self, fetcher: Fetcher, window: Window | None) -> int:
        """The most symbols that one call may ask for."""

    def max_window_days(self, fetcher: Fetcher) -> int | None:
        """The longest window in days that one call answers completely; None without such a limit."""

    def authorize(self, key: str) -> Mapping[str, str]:
        """The headers that carry the key. A header, never the query: URLs end up in logs."""


class Schema(BaseModel):
    """Base of all response models: known fields are strictly typed, unknown ones are allowed.

    Providers add fields without notice, which is not drift; a known field with another type is.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


SchemaT = TypeVar("SchemaT", bound=Schema)
T = TypeVar("T")


def decode_json(provider: str, response: Response) -> object:
    """The JSON body with exact numbers (int or Decimal, never float).

    Raises SchemaDrift for other bodies, and for an object that names a value twice.
    """
    try:
        return _read_json(provider, response.body)
    except _NamedTwice as fault:
        raise SchemaDrift(
            f"{provider} answered HTTP {response.status} with an object that has the name {safe_words(fault.name)!r} "
            "twice, and does not say which value is meant. Nothing was stored."
        ) from None
    except (ValueError, RecursionError):
        raise SchemaDrift(
            f"{provider} answered HTTP {response.status} with a body that is not JSON "
            f"(it begins {safe_words(response.body[:80])!r}). Check its status page and the base URL."
        ) from None


def decode_if_json(provider: str, response: Response) -> object:
    """The JSON body like `decode_json`; None for a refusal by its status whose body is not JSON."""
    try:
        return decode_json(provider, response)
    except SchemaDrift:
        if 200 <= response.status < 300:
            raise
        return None


def decode_unless_refused(provider: str, response: Response, now: datetime) -> object:
    """The JSON body like `decode_json`; for another body the error of its status, if that is one."""
    try:
        return decode_json(provider, response)
    except SchemaDrift as drift:
        raise (refusal(provider, response, now=now, detail=words_of(response)) or drift) from None


def _read_json(provider: str, body: bytes) -> object:
    _check_amount(provider, body)
    return json.loads(
        body,
        object_pairs_hook=_object,
        parse_float=json_number,
        parse_int=json_number,
        parse_constant=json_number,
    )


class _NamedTwice(ValueError):
    """A JSON object has two values under one name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    read = dict(pairs)
    if len(read) < len(pairs):
        names = Counter(name for name, _ in pairs)
        raise _NamedTwice(next(name for name, count in names.items() if count > 1))
    return read


def values_in(body: bytes) -> int:
    """About how many values and names a body has, or more."""
    return sum(body.count(sign) for sign in (b",", b"[", b"{", b":"))


def _check_amount(provider: str, body: bytes) -> None:
    # Sixteen kilobytes may unpack to millions of empty lists or names, which would take half a gigabyte of memory.
    if values_in(body) > MAX_VALUES:
        raise SchemaDrift(
            f"{provider} sent more than the {MAX_VALUES} values that one answer may have. Nothing of it was read."
        )
    if body.count(b"{") > MAX_ROWS:
        raise SchemaDrift(
            f"{provider} sent more than the {MAX_ROWS} rows that one answer may have. Nothing of it was read."
        )


def decode_rows(provider: str, response: Response, name: str) -> tuple[dict[str, object], FlatRows] | None:
    """The body without its long list under `name`, and that list in columns, if it has plain figures only.

    Otherwise None: `decode_json` reads every body. Raises SchemaDrift like `decode_json` if the body is too long.
    """
    _check_amount(provider, response.body)
    parts = flat.read(response.body, name)
    if parts is None:
        return None
    rest, rows = parts
    try:
        body = _read_json(provider, rest)
    except (ValueError, RecursionError):
        return None
    if not isinstance(body, dict) or body.get(name) != name:  # the list had this name at another place
        return None
    return body | {name: []}, rows


def validate(model: type[SchemaT], data: object, what: str, *, place: str = "") -> SchemaT:
    """`data` as `model`. Raises SchemaDrift that names `what` and the first wrong fields.

    `place` is the path of the data in the answer, which the message puts before the names of fields.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise _drift(error, data, what, place) from None


def _drift(error: ValidationError, data: object, what: str, place: str) -> SchemaDrift:
    return SchemaDrift(_unlike(error, data, what, place) + _CHANGED)


def _unlike(error: ValidationError, data: object, what: str, place: str) -> str:
    return f"{what} has {unlike_schema(error, data, place)}."


_CHANGED = " The provider may have changed its API; nothing was stored."
"""Ends the message about a useless answer. A bad row among good ones does not have it."""


def unlike_schema(error: ValidationError, data: object, place: str = "") -> str:
    """How many fields are unlike the schema, and the first of them, in words that follow `it has`."""
    faults = _faults(error, data, place)
    return f"{len(faults)} field(s) unlike its schema ({safe_words('; '.join(faults[:3]))})"


def check_window(provider: str, window: Window, most_days: int | None = None) -> None:
    """Raise InvalidRange for days in the wrong order, or for more than one call answers completely."""
    if window.start > window.end:
        raise InvalidRange(f"{window.start}..{window.end} ends before it starts. Swap the two dates.")
    if most_days is not None and (window.end - window.start).days >= most_days:
        raise InvalidRange(
            f"{window.start}..{window.end} has more than the {most_days} days that one call to {provider} answers "
            "completely. Ask for it in parts."
        )


def check_count(count: int, what: str, most: int = MAX_DOCUMENTS) -> None:
    """Raise SchemaDrift for more documents, dividends or days than any symbol has."""
    if count > most:
        raise SchemaDrift(f"{what} has {count} entries, more than {most}; nothing was stored.")


def validate_rows(
    model: type[SchemaT], rows: Sequence[object], symbol: str, what: str, *, place: str
) -> list[SchemaT | RejectedValue]:
    """Each row as `model`, or as a RejectedValue. Raises SchemaDrift if every row is unlike the model.

    The first hundred faulty rows are described, the others are only counted: a page of junk has millions. After these,
    rows without the needed fields are counted without validation.
    """
    validated: list[SchemaT | RejectedValue] = []
    faulty, uncounted = 0, 0
    needed = {field.alias or name for name, field in model.model_fields.items() if field.is_required()}
    for number, row in enumerate(rows):
        if faulty >= _MOST_FAULTS and not (isinstance(row, dict) and needed <= row.keys()):
            uncounted += 1
            continue
        try:
            validated.append(model.model_validate(row))
        except ValidationError as error:
            faulty += 1
            if faulty > _MOST_FAULTS:
                uncounted += 1
            else:
                reason = _unlike(error, row, what, f"{place}.{number}")
                validated.append(RejectedValue(symbol, None, reason, spelling(row)))
    refused = [row for row in validated if isinstance(row, RejectedValue)]
    if refused and len(refused) == len(validated):
        raise SchemaDrift(refused[0].reason + _CHANGED)
    if uncounted:
        reason = f"{uncounted} more rows are unlike their schema"
        validated.append(RejectedValue(symbol, None, reason, "more rows", uncounted))
    return validated


def read_rows(
    model: type[SchemaT],
    make: Callable[[SchemaT], T | RejectedValue],
    rows: Sequence[object],
    symbol: str,
    what: str,
    place: str = "rows",
) -> list[T | RejectedValue]:
    """Each row as `make` reads it, or as a RejectedValue. Raises SchemaDrift as `validate_rows` does."""
    validated = validate_rows(model, rows, symbol, what, place=place)
    return [row if isinstance(row, RejectedValue) else make(row) for row in validated]


_MOST_FAULTS = 100
"""How many faulty rows of one list are described."""


def _faults(error: ValidationError, data: object, place: str) -> list[str]:
    """The fault of each field, in words for people, by the answer's names, never by those of our models."""
    words: dict[str, str] = {}
    for fault in error.errors(include_url=False, include_context=False, include_input=False):
        path = [place] if place else []
        at = data
        *_, last = fault["loc"] or ("",)
        for part in fault["loc"]:
            # A union adds the names of its members, which are not in the answer.
            if isinstance(at, dict) and (part in at or (part == last and fault["type"] == "missing")):
                at = at.get(part)
            elif isinstance(at, list) and isinstance(part, int):
                at = at[part]
            else:
                continue
            path.append(str(part))
        words.setdefault(".".join(path) or "the whole", _FAULTS.get(fault["type"], fault["msg"]))
    return [f"{name}: {message}" for name, message in words.items()]


_FAULTS = {
    **dict.fromkeys(("model_type", "model_attributes_type", "dict_type"), "Input should be an object"),
    "decimal_type": "Input should be a number",
}
"""Our words for faults that pydantic describes with names of Python or of our models, by pydantic's kind of fault."""


def refusal(provider: str, response: Response, *, now: datetime, detail: str = "") -> ProviderError | None:
    """The error of an HTTP status outside 2xx; None for 2xx.

    `detail` is the provider's own explanation, if its body had one. An HTML page never comes from these APIs but from a
    proxy before them, so it says nothing about the key or the plan.
    """
    status = response.status
    if 200 <= status < 300:
        return None
    words = safe_words(detail) or safe_words(response.body[:200]) or "no explanation"
    message = f"{provider} answered {status}: {words.rstrip('.')}."
    if status == 429:
        return throttled(message, response, now=now)
    if status >= 500 or status == 408:
        return ProviderDown(message)
    if 300 <= status < 400:
        return ProviderDown(f"{message} Redirects are never followed; check the base URL.")
    if response.body[:200].lstrip()[:1] == b"<":
        return ProviderDown(f"{message} This is not an answer of its API; check the base URL and proxies.")
    if status == 401:
        return KeyRefused(f"{message} {check_key(provider)}")
    if status in (402, 403):
        return PlanRestricted(f"{message} Change the plan, or route the data elsewhere.")
    if status in (404, 405, 410):
        return SchemaDrift(f"{message} The endpoint may have moved; check the base URL.")
    return RequestRefused(f"{message} The request must change; asking again will not help.")


def check_status(provider: str, response: Response, *, now: datetime, detail: str = "") -> None:
    """Raise the error of an HTTP status outside 2xx."""
    failed = refusal(provider, response, now=now, detail=detail)
    if failed is not None:
        raise failed


def failed(symbol: str, kind: FailureKind, message: str) -> Answer:
    """The answer that a symbol has failed."""
    return Answer(failures=(SymbolFailure(symbol, kind, message),))


def untrue(symbol: str, what: str, fault: object) -> Answer:
    """The answer for a symbol whose values cannot be true."""
    message = f"{what} cannot be true: {safe_words(str(fault))}. Nothing was stored; compare with another source."
    return failed(symbol, FailureKind.IMPLAUSIBLE, message)


def throttled(message: str, response: Response, *, now: datetime) -> Throttled:
    """A Throttled with the wait of the response's Retry-After.

    If it is a date, it is compared with the response's own Date, so that an error of our clock does not matter.
    """
    sent = _http_date(header(response, "date"))
    wait = parse_retry_after(header(response, "retry-after"), sent or now)
    # A provider that counts refused calls has counted more than its limit.
    shown = shown_limit(response.headers, is_refused=True)
    return Throttled(message, retry_after=wait, shown=shown)


def parse_retry_after(value: str | None, now: datetime, *, most: float = MAX_RETRY_AFTER) -> float | None:
    """Seconds to wait by a Retry-After header (RFC 9110, 10.2.3: seconds or an HTTP date).

    Clamped to 0..`most`, an hour: past dates and negative numbers mean 0. None if absent or neither form.
    """
    if value is None:
        return None
    text = value.strip()
    if re.fullmatch(r"[+-]?[0-9]+(\.[0-9]*)?", text):
        seconds = float(text[:20])
    else:
        until = _http_date(text)
        if until is None:
            return None
        seconds = (until - now).total_seconds()
    return min(max(seconds, 0.0), most)


def _http_date(value: str | None) -> datetime | None:
    try:
        at = parsedate_to_datetime(value or "")
    except (ValueError, OverflowError):
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def header(response: Response, name: str) -> str | None:
    """A header of the response, whatever the case of its name."""
    return next((value for key, value in response.headers.items() if key.lower() == name), None)


def answered_at(response: Response) -> datetime | None:
    """The UTC time at which the provider made the answer, by its own clock; None if it does not say."""
    return _http_date(header(response, "date"))


def units_left(headers: Mapping[str, str]) -> int | None:
    """How many units of its limit are left by the provider's headers; None if no header has them in digits.

    `headers` have names in lower case. The names are `api-credits-left` (Twelve Data), `x-ratelimit-remaining` (common
    use) and `ratelimit-remaining` (the IETF draft of 2019).
    """
    for name in _LEFT_HEADERS:
        value = headers.get(name, "").strip()
        if re.fullmatch("[0-9]{1,9}", value):
            return int(value)
    return None


_LEFT_HEADERS = ("api-credits-left", "x-ratelimit-remaining", "ratelimit-remaining")


def shown_limit(headers: Mapping[str, str], *, is_refused: bool = False) -> ShownLimit | None:
    """The limit that the provider's headers show; None if no header has it in digits.

    `headers` have names in lower case. Twelve Data shows the credits of a minute as used and left; of refused calls
    they say nothing, because those are counted as used. Others name the limit (`x-ratelimit-limit`, in common use, and
    `ratelimit-limit`, of the IETF draft of 2019), some with its window: `100, 100;w=60`.
    """
    used, left = (headers.get(f"api-credits-{name}", "").strip() for name in ("used", "left"))
    if re.fullmatch(_DIGITS, used) and re.fullmatch(_DIGITS, left):
        return None if is_refused else _shown(int(used) + int(left), 60)
    for name in _LIMIT_HEADERS:
        if named := re.fullmatch(_NAMED_LIMIT, headers.get(name, "").strip()):
            units, again, seconds = named.groups()
            return _shown(int(units), int(seconds) if seconds and again == units else None)
    return None


def _shown(units: int, seconds: int | None) -> ShownLimit | None:
    return (units, seconds) if units > 0 else None  # 0 means no limit: nobody sells that


_DIGITS = "[0-9]{1,9}"
_NAMED_LIMIT = rf"({_DIGITS})(?:\s*,\s*({_DIGITS})\s*;\s*w=({_DIGITS}))?"
_LIMIT_HEADERS = ("x-ratelimit-limit", "ratelimit-limit")


def safe_words(text: str | bytes) -> str:
    """A provider's words made safe for messages, logs and the database: one line, printable, short."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    printable = "".join(char if char.isprintable() else " " for char in text[:1000])
    words = " ".join(printable.split())
    # Without its final full stop, as our sentences need it. key_echoes.py looks for a key that is cut off at the end.
    return words if len(words) <= 300 and len(text) <= 1000 else f"{words[:295]}[...]"


def name_of(text: str) -> str:
    """A name as its source spells it, on one line and printable: two spaces in a row stay two."""
    runs = groupby(text[:300], str.isprintable)
    return "".join("".join(run) if is_printable else " " for is_printable, run in runs).strip()


def words_of(response: Response) -> str:
    """The beginning of a body with text for people, made safe."""
    return safe_words(response.body[:4001])


def check_key(provider: str) -> str:
    """Advice about a refused key, which is stored or from the environment."""
    setting = key_setting(provider)
    where = "" if setting is None else f", stored or in {setting}"
    return f"Check the API key{where}: `pricing-pipeline key list {provider}` lists all."


def give_key(provider: str, name: str | None = None) -> str:
    """How to give the provider a key, of that name if it has several."""
    setting, option = key_setting(provider), "" if name is None else f" --name {name}"
    or_set = "" if setting is None else f", or set {setting} or {setting}S"
    return f"Store it with `pricing-pipeline key set {provider}{option}`{or_set}."


def key_setting(provider: str) -> str | None:
    """The name of the setting that holds the provider's API key; None for one whose keys can only be stored."""
    field = f"{provider}_api_key"
    return f"PRICING_{field.upper()}" if field in Settings.model_fields else None


def require_fetcher(provider: Provider, fetcher: Fetcher) -> None:
    """Raise SettingsError if the provider cannot fetch this kind of data (requirement B18)."""
    if fetcher not in provider.fetchers:
        able = ", ".join(sorted(provider.fetchers))
        raise SettingsError(
            f"provider {provider.name} cannot fetch {fetcher!s}, only {able}. "
            "Route the data type to a provider that can."
        )


def check_answer(provider: str, symbols: Sequence[str], answer: Answer) -> Answer:
    """`answer`, if it has each requested symbol exactly once and no other symbol.

    Raises SchemaDrift otherwise: a lost symbol would stay claimed for ever.
    """
    places: dict[str, int] = dict.fromkeys(symbols, 0)
    observed = answer.observations.symbols() | {record.symbol for record in answer.records}
    failed = [failure.symbol for failure in answer.failures]
    for symbol in (*observed, *failed, *answer.empty):
        places[symbol] = places.get(symbol, 0) + 1
    unasked = (places.keys() | {value.symbol for value in answer.rejected}) - set(symbols)
    wrong = sorted(unasked | {symbol for symbol, count in places.items() if count != 1})
    if wrong:
        raise SchemaDrift(
            f"the answer of {provider} was read so that {', '.join(wrong[:5])} came out not exactly once. "
            "This is a fault of its parser; please report it with the recorded answer."
        )
    return answer


_MOST_REJECTED = 100
"""How many rejected values of one symbol in one answer are kept one by one; of more, only the number is kept."""


def capped(rejected: Sequence[RejectedValue]) -> list[RejectedValue]:
    """At most a hundred values of each symbol, and one value that counts the others and describes the first of them."""
    by_symbol: defaultdict[str, list[RejectedValue]] = defaultdict(list)
    for value in rejected:
        by_symbol[value.symbol].append(value)
    kept: list[RejectedValue] = []
    for symbol, values in by_symbol.items():
        more = values[_MOST_REJECTED:]
        kept += values[:_MOST_REJECTED]
        if len(more) == 1:
            kept += more
        elif more:
            count = sum(value.count for value in more)
            reason = f"{count} more values cannot be true; the first: {more[0].reason}"
            kept.append(RejectedValue(symbol, None, reason, "more values", count))
    return kept
