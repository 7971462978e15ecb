"""A provider whose prices come on several pages, asked for by POST, and a real server of it.

Page by page it answers about each symbol in the order asked, `per_page` of them. What a page does instead is said by
`PagedServer.instead`: page -> status, headers and body.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal

from pricing_pipeline.domain.answers import Answer, SymbolFailure
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Observation, Rows
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.providers.base import (
    Dialogue,
    Known,
    Question,
    Request,
    Schema,
    decode_json,
    refusal,
    validate,
    words_of,
)
from pricing_pipeline_tests.support.json_server import Asked, JsonServer, Reply, serving

NAME = "paged"


class _Row(Schema):
    symbol: str
    close: str
    at: str


class _Page(Schema):
    rows: list[_Row]
    next: int | None = None


class Paged:
    """Quotes in pages. `known` may say under "currency" what a symbol is quoted in."""

    name = NAME
    base_url = "https://paged.example"
    needs_key = True
    fetchers = frozenset({Fetcher.QUOTE})

    def accepts(self, symbol: str) -> bool:
        return symbol.isalnum()

    def spell(self, symbol: str, asset_class: str) -> str:
        return symbol.lower()

    def batch_limit(self, fetcher: Fetcher, window: Window | None) -> int:
        return 100

    def max_window_days(self, fetcher: Fetcher) -> int | None:
        return None

    def authorize(self, key: str) -> Mapping[str, str]:
        return {"X-Key": key}

    def ask(self, question: Question) -> Dialogue:
        symbols = question.symbols
        rows: list[_Row] = []
        page: int | None = 1
        while page is not None:
            response = yield Request("/prices", method="POST", json={"symbols": list(symbols), "page": page})
            answered = self._page(response, question.now)
            rows += answered.rows
            page = answered.next
        return _answer(symbols, rows, question.known)

    def _page(self, response: Response, now: datetime) -> _Page:
        error = refusal(self.name, response, now=now, detail=words_of(response))
        if error is not None:
            raise error
        return validate(_Page, decode_json(self.name, response), "a page of prices")


def _answer(symbols: Sequence[str], rows: Sequence[_Row], known: Known) -> Answer:
    found = {row.symbol: row for row in rows if row.symbol in symbols}
    return Answer(
        observations=Rows(_observation(row, known) for row in found.values()),
        failures=tuple(
            SymbolFailure(symbol, "unknown_symbol", "it is on no page")  # type: ignore[arg-type]
            for symbol in symbols
            if symbol not in found
        ),
    )


def _observation(row: _Row, known: Known) -> Observation:
    currency = str(known.get(row.symbol, {}).get("currency", "USD"))
    return Observation(row.symbol, datetime.fromisoformat(row.at), Decimal(row.close), row.close, currency)


Instead = Callable[[], Reply]


@dataclass
class PagedServer(JsonServer):
    """The server, and what some pages do instead of answering."""

    per_page: int = 1
    instead: dict[int, Instead] = field(default_factory=dict)
    at: datetime = datetime(2026, 11, 20, 15, tzinfo=UTC)

    @property
    def pages(self) -> list[int]:
        """The numbers of the pages that it was asked for."""
        return [one.body["page"] for one in self.asked]

    def answer(self, asked: Asked) -> Reply:
        page, symbols = asked.body["page"], asked.body["symbols"]
        if page in self.instead:
            return self.instead[page]()
        mine = symbols[(page - 1) * self.per_page : page * self.per_page]
        rows = [{"symbol": symbol, "close": "10.50", "at": self.at.isoformat()} for symbol in mine]
        more = page + 1 if page * self.per_page < len(symbols) else None
        return 200, {}, json.dumps({"rows": rows, "next": more}).encode()


def status(code: int, **headers: str) -> Instead:
    """A refusal."""
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda: (code, fields, b"no")


@contextmanager
def paged_server(per_page: int = 1) -> Iterator[PagedServer]:
    """A server on a free port of 127.0.0.1 until the end of the block."""
    state = PagedServer(per_page=per_page)
    with serving(state):
        yield state
