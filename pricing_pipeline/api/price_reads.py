"""The short way of `GET /v1/prices`, which applications send hundreds of times a second.

FastAPI takes longer to find the route and its parameters than the whole read. prices.py defines what a read returns.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import parse_qsl

from starlette.types import ASGIApp, Receive, Scope, Send

from pricing_pipeline.api import prices
from pricing_pipeline.api.access import LONGEST_USER, caller_with
from pricing_pipeline.api.formats import chosen
from pricing_pipeline.api.limits import Shares
from pricing_pipeline.api.parameters import LONGEST_NAME, LONGEST_PAIRS, LONGEST_SYMBOLS, MOST_SYMBOLS
from pricing_pipeline.db.loop_sessions import LoopSessions
from pricing_pipeline.domain.scopes import Scope as TokenScope
from pricing_pipeline.keys.api_tokens import ApiToken

_LONGEST = {
    "symbols": LONGEST_SYMBOLS,
    "pairs": LONGEST_PAIRS,
    "data_type": LONGEST_NAME,
    "user": LONGEST_USER,
}
_LISTS = ("symbols", "pairs")


class PriceReads:
    """An ASGI application that answers reads of prices ahead of `app`, which is FastAPI.

    Unusual requests are left to `app`: it alone refuses parameters.
    """

    def __init__(self, app: ASGIApp, *, sessions: LoopSessions, shares: Shares) -> None:
        self._app, self._sessions, self._shares = app, sessions, shares
        (self._route,) = [
            route for route in prices.router.routes if getattr(route, "endpoint", None) is prices.read_prices
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or have the application do so."""
        parameters = _usual_read(scope)
        token: ApiToken | None = scope.get("state", {}).get("token")
        if parameters is None or token is None or token.is_feed:
            await self._app(scope, receive, send)
            return
        scope["route"] = self._route  # as the times of requests are counted by it
        accept = ",".join(value.decode("latin-1") for name, value in scope["headers"] if name == b"accept")
        async with self._shares.of(token.token_id).threads:
            caller = caller_with(token, TokenScope.READ, parameters.user)
            wanted = prices.wanted_pairs(parameters.symbols, parameters.pairs, parameters.data_type)
            format_ = chosen(accept, None, prices.OFFERED)
            response = await prices.stored(self._sessions, caller, wanted, parameters.data_type, format_)
        await response(scope, receive, send)


class _Read(NamedTuple):
    symbols: list[str] | None
    pairs: list[str] | None
    data_type: str | None
    user: str | None


def _usual_read(scope: Scope) -> _Read | None:
    """The parameters of a read of prices, if nothing about them needs a second look."""
    if scope["type"] != "http" or scope["method"] != "GET" or scope["path"] != "/v1/prices":
        return None
    given = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    lists = [name for name, _ in given if name in _LISTS]
    once = {name: value for name, value in given if name not in _LISTS}
    is_usual = (
        0 < len(lists) <= MOST_SYMBOLS
        and len(lists) == lists.count(lists[0])
        and len(lists) + len(once) == len(given)
        and once.keys() <= _LONGEST.keys()
        and all(0 < len(value) <= _LONGEST[name] for name, value in given)
    )
    if not is_usual:
        return None
    values = [value for name, value in given if name in _LISTS]
    symbols, pairs = (values, None) if lists[0] == "symbols" else (None, values)
    return _Read(symbols, pairs, once.get("data_type"), once.get("user"))
