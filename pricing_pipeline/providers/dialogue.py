"""How a call is made: by one request or several, and how further ones are permitted.

The client makes each request (client.py). queue/pages.py decides whether limits allow it, because providers and clients
do not know the database.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, runtime_checkable

from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.calls import Receipt, Response
from pricing_pipeline.errors import SchemaDrift, Unfinished
from pricing_pipeline.providers.base import (
    MAX_VALUES,
    Dialogue,
    Provider,
    Question,
    Request,
    Token,
    check_window,
    require_fetcher,
    values_in,
)

MAX_REQUESTS = 50
"""The most requests of one call. Whatever needs more must be asked in smaller parts."""
MAX_OF_ALL_PAGES = 4
"""How many times as much as one answer all answers of one call may have together."""
HOPELESS_SECONDS = 3600.0
"""When a call is tried again that needs more requests than one call may make. Sooner, it would end alike."""


@dataclass(slots=True)
class Spent:
    """The requests of one call so far: their bytes on the wire, and their answers."""

    wire_bytes: list[int] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    values: int = 0
    """About how many values and names came."""
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    is_unannounced: bool = False

    def count(self, response: Response, *, is_unannounced: bool) -> None:
        if not self.wire_bytes:
            self.is_unannounced = is_unannounced
        self.wire_bytes.append(response.wire_bytes)
        self.status, self.headers = response.status, response.headers

    @property
    def first(self) -> int:
        """The bytes that are booked to the call itself; the rest is booked to its pages."""
        return self.wire_bytes[0] if self.wire_bytes else 0

    def check_requests(self, provider: str) -> None:
        """Raise Unfinished if the call may not make another request."""
        if len(self.wire_bytes) >= MAX_REQUESTS:
            raise Unfinished(
                f"{provider} needs more than the {MAX_REQUESTS} requests that one call may make. Nothing of it is "
                "stored. Ask for fewer symbols (`pricing-pipeline provider change`) or days (`type change`) in a call.",
                retry_after=HOPELESS_SECONDS,
            )

    def keep(self, provider: str, body: bytes, max_bytes: int) -> None:
        """Keep what came as evidence. Raises SchemaDrift if all answers are too much together."""
        self.bodies.append(body)
        self.values += values_in(body)
        most = max_bytes * MAX_OF_ALL_PAGES
        too_much = ""
        if sum(map(len, self.bodies)) > most:
            too_much = f"{most} bytes"
        elif self.values > MAX_VALUES:
            too_much = f"{MAX_VALUES} values"
        if too_much and len(self.bodies) > 1:
            raise SchemaDrift(
                f"{provider} sent more than the {too_much} that all answers of one call may have. Nothing was stored.",
                http_status=self.status,
                wire_bytes=self.first,
            )


class Pages(Protocol):
    """Permits the requests of one call after its first: each is a call of its own in the call log."""

    def begin(self, spent: Sequence[int]) -> None:
        """Have the next request allowed and logged; this may take minutes.

        `spent` are the bytes on the wire of each request of the call so far. Raises Unfinished if it may not be made.
        """

    def end(self, receipt: Receipt) -> None:
        """Settle the request that has been begun."""


class Uncounted:
    """Lets all requests through: for a caller that books the call afterwards (`Fetched.page_bytes`), and for tests."""

    def begin(self, spent: Sequence[int]) -> None:
        """Allow it."""

    def end(self, receipt: Receipt) -> None:
        """Nothing is booked."""


class LogIn(Protocol):
    """How a provider gives a token for a key, which then travels in the key's place."""

    def request(self, key: str) -> Request:
        """The login, with the key; only the client gets it."""

    def token(self, response: Response, now: datetime) -> Token:
        """The token in the answer. Raises ProviderError: KeyRefused for a refused login."""


@runtime_checkable
class OwnKeys(Protocol):
    """A provider whose key travels in the query, in parts, or for a token, or whose headers about limits have names
    of their own.
    """

    @property
    def log_in(self) -> LogIn | None:
        """How it gives tokens; None if calls carry the key itself."""

    def authorize_query(self, key: str) -> tuple[tuple[str, str], ...]:
        """The parameters that carry the key. The client adds them last, after everything that is shown."""

    def secrets(self, key: str) -> list[str]:
        """The parts of a key. Each is hidden wherever it comes back. Raises SettingsError."""

    @property
    def limit_headers(self) -> Mapping[str, str]:
        """The names of its headers about limits, in lower case, by the usual names."""


@runtime_checkable
class OneRequest(Provider, Protocol):
    """A provider whose calls are one request each."""

    def build(self, question: Question) -> Request:
        """The request for a question that `dialogue_of` has checked."""

    def parse(self, question: Question, response: Response) -> Answer:
        """Read an answer.

        Raises a ProviderError if the whole call failed. Otherwise every requested symbol is in exactly one of values
        (observations or records), failures and empty. One bad symbol or day never affects another.
        """


@runtime_checkable
class SeveralRequests(Provider, Protocol):
    """A provider that may need several requests for one call: further pages, or one request for each product."""

    def ask(self, question: Question) -> Dialogue:
        """Yield the requests for a question that `dialogue_of` has checked, and return the answer.

        Each request after the first is made when limits allow, which may take minutes; nothing is made if one of them
        brings an error. Raises InvalidRange before its first request for days that it has nothing of, and later a
        ProviderError if the whole call failed.
        """


def dialogue_of(provider: Provider, question: Question) -> Dialogue:
    """How a provider is asked, whether that takes one request or several.

    Raises SettingsError for a fetcher that it does not serve, ValueError for no symbol or too many, and InvalidRange
    for days in the wrong order or too many.
    """
    require_fetcher(provider, question.fetcher)
    limit, count = provider.batch_limit(question.fetcher, question.window), len(question.symbols)
    if not 0 < count <= limit:
        raise ValueError(f"{provider.name} takes 1 to {limit} symbols in such a call, not {count}")
    if question.window is not None:
        check_window(provider.name, question.window, provider.max_window_days(question.fetcher))
    if isinstance(provider, SeveralRequests):
        return provider.ask(question)
    if isinstance(provider, OneRequest):
        return _one_request(provider, question)
    raise TypeError(f"{provider.name} can neither build a request nor ask; see docs/adding-a-provider.md")


def _one_request(provider: OneRequest, question: Question) -> Dialogue:
    response = yield provider.build(question)
    return provider.parse(question, response)
