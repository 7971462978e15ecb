"""A provider that is declared, not coded: it builds requests as its declaration says, and hands answers on.

What a declaration may say is in declaration.py. Here is which request brings what. How symbols are spelled is in
declared_symbols.py, what an answer without data means in declared_refusals.py, how one with data is read in
declared_answers.py, and which page follows in declared_pages.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import ClassVar, NamedTuple

from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import InvalidRange, SchemaDrift
from pricing_pipeline.providers.base import (
    Dialogue,
    Known,
    Request,
    check_window,
    decode_if_json,
    refusal,
    require_fetcher,
)
from pricing_pipeline.providers.declaration import Declaration, Place, Quotes, endpoints_of
from pricing_pipeline.providers.declaration_file import Declared
from pricing_pipeline.providers.declared_answers import Answers
from pricing_pipeline.providers.declared_calls import Asked, Line, Way
from pricing_pipeline.providers.declared_pages import At, PageOrder
from pricing_pipeline.providers.declared_refusals import Refusals
from pricing_pipeline.providers.declared_symbols import Symbols, escaped, filled, filled_body, lacks
from pricing_pipeline.providers.json_paths import Steps


class Sizes(NamedTuple):
    """How large the calls of a fetcher are, by the columns of `provider_capabilities`."""

    batch_size: int
    batch_from: int
    window_batch_size: int
    max_window_days: int
    bytes_per_day: int


class DeclaredProvider:
    """A provider by declaration. Stateless and thread-safe as every `Provider`."""

    needs_key: bool
    latest_day_ahead: ClassVar[timedelta] = timedelta(days=1)
    """A day more than today is asked for, because Sydney's day begins before UTC's."""

    def __init__(self, declared: Declared) -> None:
        self.declared = declared
        self.needs_key = self._about.key is not None
        self._ways = {fetcher: self._ways_of(fetcher) for fetcher in self._about.fetchers.named}
        self._symbols = Symbols(self._about.symbols)
        self._refusals = Refusals(declared)
        readings = [way.reading for ways in self._ways.values() for way in ways.values()]
        self._answers = Answers(declared, self._symbols, readings)

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
        return self._symbols.accepts(symbol)

    def spell(self, symbol: str, asset_class: str) -> str:
        """By the template of the asset class; a class that is not declared leaves the symbol as it is."""
        return self._symbols.spell(symbol, asset_class)

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

    def ask(
        self,
        fetcher: Fetcher,
        symbols: Sequence[str],
        window: Window | None,
        known: Known,
        *,
        now: datetime,
    ) -> Dialogue:
        """See SeveralRequests.ask: one request, or one for each page. Also raises Misconfigured for too many steps."""
        require_fetcher(self, fetcher)
        way, days = self._way(fetcher, len(symbols), window, now)
        asked = Asked(fetcher, symbols, window, now, Steps())
        paging = way.endpoint.pages
        order = None if paging is None else PageOrder(self.declared, asked, way, paging)
        lines: list[Line] = []
        at: At | None = At()
        while at is not None:
            request = at.link or self._request(way, symbols, days, at)
            response = yield request
            body, answer = self._read(asked, response)
            page = self._answers.lines(asked, way, body) if answer is None else answer
            if isinstance(page, Answer):
                return self._ended(page, at)
            lines += page
            at = None if order is None else order.after(at, request, body, len(page))
        return self._answers.read(asked, way, lines)

    def _request(self, way: Way, symbols: Sequence[str], days: Window | None, at: At) -> Request:
        """The declared request, with each placeholder filled; in the path everything is escaped."""
        endpoint = way.endpoint
        parts: dict[str, str | int] = {}
        if len(symbols) == 1:
            parts |= self._symbols.parts_of(symbols[0])
        parts |= {"symbols": endpoint.separator.join(symbols), **at.parts(endpoint)}
        if days is not None:
            parts |= {"start": days.start.isoformat(), "end": days.end.isoformat()}
        path = filled(endpoint.path, {name: escaped(str(text)) for name, text in parts.items()})
        query = tuple(
            (name, filled(text, parts)) for name, text in endpoint.query.items() if not lacks(text, parts)
        )
        if endpoint.post is None:
            return Request(path, query)
        return Request(path, query, "POST", filled_body(endpoint.post, parts, symbols))

    def authorize(self, key: str) -> Mapping[str, str]:
        """The one declared header, with nothing in it but the key and the word before it."""
        declared = self._about.key
        if declared is None:
            return {}
        return {declared.header: key if declared.scheme is None else f"{declared.scheme} {key}"}

    def _read(self, asked: Asked, response: Response) -> tuple[object, Answer | None]:
        """The decoded body, and what the rules for errors say of it. Raises ProviderError for a refusal."""
        failed = refusal(self.name, response, now=asked.now)
        body = decode_if_json(self.name, response)
        answer = self._refusals.meaning(asked, response, body, failed)
        if answer is None and failed is not None:
            words = self._refusals.words(asked, body)
            raise refusal(self.name, response, now=asked.now, detail=words) or failed
        return body, answer

    def _ended(self, answer: Answer, at: At) -> Answer:
        """An answer without data. Raises SchemaDrift if pages with data came before it."""
        if at.page:
            raise SchemaDrift(
                f"page {at.page + 1} contradicts those before it: {answer.failures[0].message} Nothing was stored."
            )
        return answer

    def _ways_of(self, fetcher: Fetcher) -> dict[str, Way]:
        asked = self._about.fetchers.named[fetcher]
        ways = {}
        for name, endpoint in endpoints_of(asked).items():
            own = endpoint.answer
            reading = own or asked.answer
            assert reading is not None  # noqa: S101 - declaration_faults.py has refused one without
            here: Place = ("fetchers", fetcher.value)
            place = (*here, name, "answer") if own else (*here, "answer")
            ways[name] = Way(endpoint, (*here, name), reading, place)
        return ways

    def _way(
        self, fetcher: Fetcher, count: int, window: Window | None, now: datetime
    ) -> tuple[Way, Window | None]:
        """The request for so many symbols, and the days that it asks for. Raises as `OneRequest.build`."""
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
        if "span" not in self._ways[fetcher]:
            raise InvalidRange(f"{self.name} has no history of {fetcher!s}: its declaration has no `span`.")
        check_window(self.name, window, self.max_window_days(fetcher))
