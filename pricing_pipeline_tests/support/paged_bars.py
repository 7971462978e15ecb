"""The invented API of docs/examples/pages.yaml, and the same bars asked for in other ways, as a real server."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pricing_pipeline_tests.support.declarations import PAGES
from pricing_pipeline_tests.support.json_server import Asked, JsonServer, Reply

FIRST, LAST = date(2026, 11, 2), date(2026, 11, 6)
PER_PAGE = 2
_BODY = PAGES.read_text().partition("      post:\n")[2].partition("      # If pages")[0]
_TIED = f"      post:\n{_BODY}"

WAYS = {
    "cursor": (_TIED, _TIED),
    "number": (
        _TIED,
        '      post: {tickers: ["{symbol}"], from: "{start}", to: "{end}", page: "{page}"}\n'
        '      pages: {more: "meta.page < meta.pages"}\n',
    ),
    "offset": (
        _TIED,
        '      query: {ticker: "{symbol}", from: "{start}", to: "{end}", skip: "{offset}"}\n'
        "      pages: {total: meta.count}\n",
    ),
    "link": (
        _TIED,
        '      query: {ticker: "{symbol}", from: "{start}", to: "{end}"}\n      pages: {next: links.next}\n',
    ),
}
"""Kind of pages -> what of the example's text is replaced, and by what."""


def bars(first: date = FIRST, last: date = LAST) -> list[dict[str, Any]]:
    """A bar for each day."""
    days = [first + timedelta(days=n) for n in range((last - first).days + 1)]
    return [
        {"day": day.isoformat(), "open": 10, "high": 12, "low": 9, "close": f"{10 + n}.50", "volume": 100}
        for n, day in enumerate(days)
    ]


@dataclass
class PagedBars(JsonServer):
    """Answers two bars a page, however it is asked; `instead` may change the answer of a page, counted from 0."""

    rows: Sequence[dict[str, Any]] = field(default_factory=bars)
    instead: dict[int, Callable[[dict[str, Any]], object]] = field(default_factory=dict)

    def answer(self, asked: Asked) -> Reply:
        wanted = {name: values[0] for name, values in parse_qs(urlsplit(asked.path).query).items()}
        wanted |= asked.body or {}
        if "skip" in wanted:
            start = int(wanted["skip"])
        elif "page" in wanted:
            start = (int(wanted["page"]) - 1) * PER_PAGE
        else:
            after = str(wanted.get("after", "x0"))[1:]
            start = int(after) if after.isdecimal() else 0
        page, pages = start // PER_PAGE, -(-len(self.rows) // PER_PAGE)
        following = f"x{start + PER_PAGE}" if page + 1 < pages else None
        content = {
            "ticker": "AAPL",
            "bars": self.rows[start : start + PER_PAGE],
            "meta": {"next": following, "page": page + 1, "pages": pages, "count": len(self.rows)},
            "links": {"next": following and f"?ticker=AAPL&after={following}"},
        }
        answer = self.instead.get(page, dict)(content)
        if isinstance(answer, tuple):
            status, error = answer
            return status, {}, json.dumps(error).encode()
        return 200, {}, json.dumps(answer).encode()
