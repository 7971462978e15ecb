"""What a provider is, and what all providers' parsers share: decoding, schemas, HTTP refusals.

A provider builds requests and reads answers, and nothing else: no network (client.py), no database,
no clock of its own. Exact values and their sanity are in values.py.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from pricing_pipeline.domain.answers import Answer, RejectedValue
from pricing_pipeline.domain.bars import symbols_of
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import (
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
from pricing_pipeline.providers.flat import Rows
from pricing_pipeline.providers.values import json_number, spelling

MAX_RETRY_AFTER = 3600.0
"""The longest wait in seconds that a provider can impose; what it asks beyond that is not believed."""
MAX_VALUES = 1_200_000
"""Values that one answer may have, and names of them; mfapi's list of all schemes, of 45,000 rows, has 860,000."""
MAX_ROWS = 100_000
"""Rows that one answer may have: twice as many as are asked for with any call."""
MAX_DAYS = 50_000
"""Days of one symbol: two hundred years of trading."""
MAX_DOCUMENTS = 2000
"""Documents of one symbol and kind, or dividends: one a week for forty years."""


@dataclass(frozen=True, slots=True)
class Request:
    """A GET to a provider: a path below its base URL and its query. It never holds a key."""

    path: str
    params: tuple[tuple[str, str], ...] = ()


class Provider(Protocol):
    """One provider's dialect: how to ask it and how to read what it says. Stateless and thread-safe."""

    @property
    def name(self) -> str:
        """The name in `data_collectors`; its keys are the settings `PRICING_<NAME>_API_KEY` and `..._KEYS`."""

    @property
    def base_url(self) -> str:
        """Where the real service answers."""

    @property
    def needs_key(self) -> bool:
        """True if every call must carry an API key."""

    @property
    def fetchers(self) -> frozenset[Fetcher]:
        """What can be asked of it."""

    def accepts(self, symbol: str) -> bool:
        """Whether the provider could know a symbol of this spelling; others are never sent to it."""

    def batch_limit(self, fetcher: Fetcher, window: Window | None) -> int:
        """The most symbols that one call may ask for."""

    def max_window_days(self, fetcher: Fetcher) -> int | None:
        """The longest window in days that one call answers completely; None without such a limit."""

    def build(
        self, fetcher: Fetcher, symbols: Sequence[str], window: Window | None, *, now: datetime
    ) -> Request:
        """The request for accepted symbols; `now` (UTC) is for APIs whose latest days must be asked by date.

        Raises SettingsError for a fetcher that it does not have, InvalidRange for a window upside down
        or too long, ValueError for too many symbols.
        """

    def authorize(self, key: str) -> Mapping[str, str]:
        """The headers that carry the key. A header, never the query: URLs end up in logs."""

    def parse(
        self,
        fetcher: Fetcher,
        symbols: Sequence[str],
        window: Window | None,
        response: Response,
        *,
        now: datetime,
    ) -> Answer:
        """Read an answer; `now` (UTC) is the time against which future stamps are judged.

        Raises a ProviderError when the whole call failed. Otherwise every asked symbol is in exactly
        one of values (observations or documents), failures and empty; one bad symbol or day never costs
        another.
        """


class Schema(BaseModel):
    """Base of all response models: known fields strictly typed, unknown ones allowed.

    Providers add fields without notice, which is no drift; a known field that changes type is.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


SchemaT = TypeVar("SchemaT", bound=Schema)


def decode_json(provider: str, response: Response) -> object:
    """The JSON body with exact numbers (int or Decimal, never float). Raises SchemaDrift if it is none, or too much."""
    try:
        return _read_json(provider, response.body)
    except (ValueError, RecursionError):
        raise SchemaDrift(
            f"{provider} answered HTTP {response.status} with a body that is not JSON "
            f"(it begins {safe_words(response.body[:80])!r}). Check its status page and the base URL."
        ) from None


def _read_json(provider: str, body: bytes) -> object:
    _check_amount(provider, body)
    return json.loads(body, parse_float=json_number, parse_int=json_number, parse_constant=json_number)


def _check_amount(provider: str, body: bytes) -> None:
    # Sixteen kilobytes that unpack to millions of empty lists, or of names, would take half a gigabyte.
    if sum(body.count(sign) for sign in (b",", b"[", b"{", b":")) > MAX_VALUES:
        raise SchemaDrift(
            f"{provider} sent more than the {MAX_VALUES} values that one answer may have. Nothing of it was read."
        )
    if body.count(b"{") > MAX_ROWS:
        raise SchemaDrift(
            f"{provider} sent more than the {MAX_ROWS} rows that one answer may have. Nothing of it was read."
        )


def decode_rows(provider: str, response: Response, name: str) -> tuple[dict[str, object], Rows] | None:
    """The body with its long list under a name left empty, and that list by columns, where it is one of plain figures.

    None where it is not: `decode_json` reads every body. Raises SchemaDrift, as that does, if it is too much.
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
    if not isinstance(body, dict) or body.get(name) != name:  # it was another list, of this name elsewhere
        return None
    return body | {name: []}, rows


def validate(model: type[SchemaT], data: object, what: str, *, place: str = "") -> SchemaT:
    """`data` as `model`. Raises SchemaDrift that names `what` and the first fields that are wrong.

    `place` is where the data stands in the answer, in front of the names of its fields.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise _drift(error, data, what, place) from None


def _drift(error: ValidationError, data: object, what: str, place: str) -> SchemaDrift:
    faults = _faults(error, data, place)
    return SchemaDrift(
        f"{what} has {len(faults)} field(s) unlike its schema ({safe_words('; '.join(faults[:3]))}). "
        "The provider may have changed its API; nothing was stored."
    )


def check_count(count: int, what: str, most: int = MAX_DOCUMENTS) -> None:
    """Raise SchemaDrift for more documents, dividends or days than anything has."""
    if count > most:
        raise SchemaDrift(f"{what} has {count} entries, more than {most}; nothing was stored.")


def validate_rows(
    model: type[SchemaT], rows: Sequence[object], symbol: str, what: str, *, place: str
) -> list[SchemaT | RejectedValue]:
    """Each row as `model`, or refused alone. Raises SchemaDrift when every one is unlike it.

    What is wrong with a row is told of the first hundred faulty ones; the others are counted, for a page of junk has
    millions, and those that have not the fields of a row cost no look at what they have.
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
                drift = _drift(error, row, what, f"{place}.{number}")
                validated.append(RejectedValue(symbol, None, str(drift), spelling(row)))
    refused = [row for row in validated if isinstance(row, RejectedValue)]
    if refused and len(refused) == len(validated):
        raise SchemaDrift(refused[0].reason)
    if uncounted:
        reason = f"{uncounted} more rows are unlike their schema"
        validated.append(RejectedValue(symbol, None, reason, "more rows", uncounted))
    return validated


_MOST_FAULTS = 100
"""Rows of one list of which it is told what is wrong with them."""


def _faults(error: ValidationError, data: object, place: str) -> list[str]:
    """What is wrong with each field, in words for people: by the names of the answer, never by those of our models."""
    words: dict[str, str] = {}
    for fault in error.errors(include_url=False, include_context=False, include_input=False):
        path = [place] if place else []
        at = data
        *_, last = fault["loc"] or ("",)
        for part in fault["loc"]:
            # A union adds the names of its members, which are not of the answer.
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
"""Faults of which pydantic speaks in names of Python, or of our models, by its names of them."""


def refusal(provider: str, response: Response, *, now: datetime, detail: str = "") -> ProviderError | None:
    """What an HTTP status outside 2xx says about the whole call; None for 2xx.

    `detail` is the provider's own explanation, if its body held one. An HTML page never comes from
    these APIs but from what stands before them, so it convicts neither the key nor the plan.
    """
    status = response.status
    if 200 <= status < 300:
        return None
    words = safe_words(detail) or safe_words(response.body[:200]) or "no explanation"
    message = f"{provider} answered {status}: {words.rstrip('.')}."
    if status == 429:
        return throttled(message, response, now=now)
    if status >= 500 or status == 408:
        return ProviderDown(f"{message} It is asked again later.")
    if 300 <= status < 400:
        return ProviderDown(f"{message} Redirects are never followed; check the base URL.")
    if response.body[:200].lstrip()[:1] == b"<":
        return ProviderDown(f"{message} This is no answer of its API; check the base URL and proxies.")
    if status == 401:
        return KeyRefused(f"{message} Check the API key {key_setting(provider)}.")
    if status in (402, 403):
        return PlanRestricted(f"{message} Change the plan, or route the data elsewhere.")
    if status in (404, 405, 410):
        return SchemaDrift(f"{message} The endpoint may have moved; check the base URL.")
    return RequestRefused(f"{message} The request must change; asking again will not help.")


def throttled(message: str, response: Response, *, now: datetime) -> Throttled:
    """A Throttled with the wait that the response's Retry-After asks for.

    A date in it is compared with the response's own Date, so that our clock's error does not count.
    """
    sent = _http_date(header(response, "date"))
    wait = parse_retry_after(header(response, "retry-after"), sent or now)
    return Throttled(f"{message} It is asked again when its limit allows.", retry_after=wait)


def parse_retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds to wait by a Retry-After header (RFC 9110, 10.2.3: seconds or an HTTP date).

    Clamped to 0..3600: past dates and negative numbers mean 0. None if absent or neither form.
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
    return min(max(seconds, 0.0), MAX_RETRY_AFTER)


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
    """How many units the provider says are left of its limit; None if it does not, or not in digits.

    `headers` have names in lower case. Read are `api-credits-left` (Twelve Data), `x-ratelimit-remaining` (common
    use) and `ratelimit-remaining` (the IETF draft of 2019).
    """
    for name in _LEFT_HEADERS:
        value = headers.get(name, "").strip()
        if re.fullmatch("[0-9]{1,9}", value):
            return int(value)
    return None


_LEFT_HEADERS = ("api-credits-left", "x-ratelimit-remaining", "ratelimit-remaining")


def safe_words(text: str | bytes) -> str:
    """A provider's words made safe for messages, logs and the database: one line, printable, short."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    printable = "".join(char if char.isprintable() else " " for char in text[:1000])
    words = " ".join(printable.split())
    return words if len(words) <= 300 else f"{words[:297]}..."


def words_of(response: Response) -> str:
    """The beginning of a body that is text for people and no data, made safe."""
    return safe_words(response.body[:1000])


def key_setting(provider: str) -> str:
    """The name of the setting that holds the provider's API key."""
    return f"PRICING_{provider.upper()}_API_KEY"


def require_fetcher(provider: Provider, fetcher: Fetcher) -> None:
    """Raise SettingsError if the provider cannot fetch this kind of data (requirement B18)."""
    if fetcher not in provider.fetchers:
        able = ", ".join(sorted(provider.fetchers))
        raise SettingsError(
            f"provider {provider.name} cannot fetch {fetcher!s}, only {able}. "
            "Route the data type to a provider that can."
        )


def check_answer(provider: str, symbols: Sequence[str], answer: Answer) -> Answer:
    """`answer`, proven to account for each asked symbol exactly once and for no other.

    Raises SchemaDrift otherwise: a symbol that is lost without a word would stay claimed for ever.
    """
    places: dict[str, int] = dict.fromkeys(symbols, 0)
    observed = symbols_of(answer.observations) | {document.symbol for document in answer.documents}
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
"""Refused values of one symbol and answer that are kept one by one; of more, the number is kept."""


def capped(rejected: Sequence[RejectedValue]) -> list[RejectedValue]:
    """A hundred of each symbol; of more, how many there are, and the first."""
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
