"""A provider that is declared, not coded: it builds requests by its declaration, and passes answers on.

declaration.py has the form of a declaration. This module chooses the request; declared_symbols.py spells symbols,
declared_refusals.py reads answers without data, declared_answers.py those with data, and declared_pages.py finds the
next page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, timedelta
from functools import cached_property
from typing import ClassVar, NamedTuple

from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import InvalidRange, RequestRefused, SchemaDrift
from pricing_pipeline.providers.base import Dialogue, Question, Request, refusal
from pricing_pipeline.providers.bodies import decode_hint
from pricing_pipeline.providers.declaration import Declaration, Key, Place, Quotes, endpoints_of
from pricing_pipeline.providers.declaration_file import Declared
from pricing_pipeline.providers.declaration_texts import OF_SPAN
from pricing_pipeline.providers.declared_answers import Answers
from pricing_pipeline.providers.declared_calls import Line, Way
from pricing_pipeline.providers.declared_login import TokenLogin, parts_of_key
from pricing_pipeline.providers.declared_pages import At, PageOrder
from pricing_pipeline.providers.declared_refusals import Refusals
from pricing_pipeline.providers.declared_symbols import NameList, Symbols, escaped, filled, filled_body, lacks
from pricing_pipeline.providers.declared_times import written

WHOLE = 50_000
"""Days of a span whose request names none: the answer is the whole history."""


_RULES = "If this is how it refuses, or has no data, `errors: rules` of its declaration can say so."


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

    def __init__(self, declared: Declared, at: str | None = None) -> None:
        """`provider try` uses `at` instead of the declared base URL: links may lead there, too."""
        self.declared = declared
        self._at = at or declared.declaration.base_url
        self.needs_key = self._about.key is not None
        self._ways = {fetcher: self._ways_of(fetcher) for fetcher in self._about.fetchers.named}
        self._symbols = Symbols(self._about.symbols)
        self._refusals = Refusals(declared)
        login = self._about.login
        self.lists = {
            name: NameList(declared, name, one.listed, self._refusals)
            for name, one in self._about.symbols.items()
            if one.listed is not None
        }
        """Where it lists its own names, by asset class."""
        self.log_in = None if login is None else TokenLogin(declared, login, self._refusals)
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
        """The provider whose sandbox dialect answers in its place, or None."""
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

    def listed_part(self, symbol: str, asset_class: str) -> str | None:
        """The part of a symbol that a list must name: its base, or the whole; None where the declaration names it."""
        return self._symbols.listed_part(symbol, asset_class)

    def spell_listed(self, symbol: str, asset_class: str, listed: str) -> str:
        """The spelling of a symbol by the provider's own name in its list."""
        return self._symbols.spell(symbol, asset_class, listed)

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
        longest = self.max_window_days(fetcher) or 1
        return Sizes(most, min(asked.batch_from, most), in_span, longest, asked.bytes_per_day)

    def max_window_days(self, fetcher: Fetcher) -> int | None:
        """The longest span, as declared; None for quotes."""
        asked = self._about.fetchers.named[fetcher]
        if isinstance(asked, Quotes):
            return None
        is_whole = asked.span is not None and not asked.span.placeholders & OF_SPAN
        return WHOLE if is_whole and "max_window_days" not in asked.model_fields_set else asked.max_window_days

    def ask(self, asked: Question) -> Dialogue:
        """See SeveralRequests.ask: one request, or one for each page."""
        way, days = self._way(asked)
        paging = way.endpoint.pages
        order = None if paging is None else PageOrder(self.declared, self._at, way, paging)
        lines: list[Line] = []
        at: At | None = At()
        while at is not None:
            request = at.link or self._request(way, asked, days, at)
            response = yield request
            plain = self._answers.plain(asked, way, response, self._refusals)
            if plain is not None:
                return plain
            body, answer = self._read(asked, way, response)
            page = self._answers.lines(asked, way, body) if answer is None else answer
            if isinstance(page, Answer):
                return self._ended(page, at)
            if order is None:
                return self._answers.read(asked, way, page)
            lines += order.fresh(page)
            at = order.after(at, request, body, page)
        answer = self._answers.read(asked, way, lines)
        return answer if order is None else replace(answer, left_out=answer.left_out + order.repeated)

    def _request(self, way: Way, asked: Question, days: Window | None, at: At) -> Request:
        """The declared request, with each placeholder filled; in the path everything is escaped."""
        endpoint, symbols = way.endpoint, asked.symbols
        parts: dict[str, str | int] = {}
        if len(symbols) == 1:
            parts |= self._symbols.parts_of(symbols[0], asked.fact(symbols[0], "asset_class"))
        parts |= {"symbols": endpoint.separator.join(symbols), **at.parts(endpoint)}
        if days is not None:
            zone, today = way.reading.time.zone, asked.now.astimezone(UTC).date()
            parts |= {
                "start": written(days.start, endpoint.dates, zone, is_end=False),
                "end": written(days.end, endpoint.dates, zone, is_end=True),
                "days": max(1, (today - days.start).days + 1),
            }
        path = filled(endpoint.path, {name: escaped(str(text)) for name, text in parts.items()})
        query = tuple((name, filled(text, parts)) for name, text in endpoint.query.items() if not lacks(text, parts))
        accept = {} if way.reading.form.format == "json" else {"Accept": "*/*"}
        headers = tuple({**accept, **self._about.headers}.items())
        if endpoint.post is None:
            return Request(path, query, headers=headers)
        return Request(path, query, "POST", filled_body(endpoint.post, parts, symbols), headers)

    def authorize(self, key: str) -> Mapping[str, str]:
        """The declared headers, with nothing in them but the key, its parts, or a word and the key."""
        match self._about.key:
            case Key(headers=list() as names):
                return dict(zip(names, self.secrets(key), strict=True))
            case Key(header=str() as name, scheme=scheme):
                return {name: key if scheme is None else f"{scheme} {key}"}
        return {}

    def authorize_query(self, key: str) -> tuple[tuple[str, str], ...]:
        """The parameter that carries the key, where no header does."""
        name = None if self._about.key is None else self._about.key.query
        return () if name is None else ((name, key),)

    def secrets(self, key: str) -> list[str]:
        """The parts of a stored key. Raises SettingsError for another number than is declared."""
        if self.log_in is not None:
            return self.log_in.secrets(key)
        names = None if self._about.key is None else self._about.key.headers
        if names is None:
            return [key]
        return parts_of_key(self.name, key, names)

    @property
    def limit_headers(self) -> Mapping[str, str]:
        """The names of its headers about limits, by the usual ones."""
        return self._about.limit_headers.usual

    def _read(self, asked: Question, way: Way, response: Response) -> tuple[object, Answer | None]:
        """The decoded body, and what the rules for errors say of it. Raises ProviderError for a refusal."""
        failed = refusal(self.name, response, now=asked.now)
        body, drift = None, None
        try:
            body = self._answers.decode(way, response)
        except SchemaDrift as error:
            body, drift = decode_hint(self.name, response), error
        answer = self._refusals.meaning(asked, way, response, body, failed)
        if answer is not None:
            return body, answer
        if failed is not None:
            words = self._refusals.words(body)
            failed = refusal(self.name, response, now=asked.now, detail=words) or failed
            if isinstance(failed, SchemaDrift | RequestRefused):
                raise type(failed)(f"{failed} {_RULES}")
            raise failed
        if drift is not None:
            raise SchemaDrift(f"{drift} {_RULES}")
        return body, answer

    def _ended(self, answer: Answer, at: At) -> Answer:
        """An answer without data. Raises SchemaDrift if pages with data came before it."""
        if at.page:
            said = answer.failures[0].message if answer.failures else "it says that there is nothing."
            raise SchemaDrift(f"page {at.page + 1} contradicts those before it: {said} Nothing was stored.")
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

    def _way(self, asked: Question) -> tuple[Way, Window | None]:
        """The request for a question, and the days that it asks for. Raises InvalidRange where it has no history."""
        ways = self._ways[asked.fetcher]
        if asked.window is not None:
            if "span" not in ways:
                raise InvalidRange(f"{self.name} has no history of {asked.fetcher!s}: its declaration has no `span`.")
            return ways["span"], asked.window
        if len(asked.symbols) > 1 and "batch" in ways:
            return ways["batch"], None
        if "latest" in ways:
            return ways["latest"], None
        about = self._about.fetchers.named[asked.fetcher]
        days = 1 if isinstance(about, Quotes) else about.latest_days
        today = asked.now.astimezone(UTC).date()
        return ways["span"], Window(today - timedelta(days=days), today + self.latest_day_ahead)
