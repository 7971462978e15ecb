"""The short way of `GET /v1/prices`, which applications send hundreds of times a second.

FastAPI takes longer to find the route and its parameters than all the rest takes. What a read is stands in prices.py.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import parse_qsl

from starlette.types import ASGIApp, Receive, Scope, Send

from pricing_pipeline.api import prices
from pricing_pipeline.api.access import LONGEST_USER, caller_with
from pricing_pipeline.api.limits import Shares
from pricing_pipeline.api.parameters import LONGEST_NAME, LONGEST_SYMBOLS, MOST_SYMBOLS
from pricing_pipeline.db.loop_sessions import LoopSessions
from pricing_pipeline.domain.scopes import Scope as TokenScope
from pricing_pipeline.keys.api_tokens import ApiToken

_LONGEST = {"symbols": LONGEST_SYMBOLS, "data_type": LONGEST_NAME, "user": LONGEST_USER}


class PriceReads:
    """An ASGI application that answers reads of prices ahead of `app`, which is FastAPI.

    Whatever is unusual about a request is left to `app`: it alone refuses parameters.
    """

    def __init__(self, app: ASGIApp, *, sessions: LoopSessions, shares: Shares) -> None:
        self._app, self._sessions, self._shares = app, sessions, shares
        (self._route,) = [
            route for route in prices.router.routes if getattr(route, "endpoint", None) is prices.read_prices
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or have the application do so."""
        parameters = _usual_read(scope)
        if parameters is None:
            await self._app(scope, receive, send)
            return
        scope["route"] = self._route  # as the times of requests are counted by it
        token: ApiToken = scope["state"]["token"]
        async with self._shares.of(token.token_id).threads:
            caller = caller_with(token, TokenScope.READ, parameters.user)
            response = await prices.stored(self._sessions, caller, parameters.symbols, parameters.data_type)
        await response(scope, receive, send)


class _Read(NamedTuple):
    symbols: list[str]
    data_type: str | None
    user: str | None


def _usual_read(scope: Scope) -> _Read | None:
    """The parameters of a read of prices, if nothing about them needs a second look."""
    if scope["type"] != "http" or scope["method"] != "GET" or scope["path"] != "/v1/prices":
        return None
    pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    symbols = [value for name, value in pairs if name == "symbols"]
    once = {name: value for name, value in pairs if name != "symbols"}
    is_usual = (
        0 < len(symbols) <= MOST_SYMBOLS
        and len(symbols) + len(once) == len(pairs)
        and once.keys() <= _LONGEST.keys()
        and all(0 < len(value) <= _LONGEST[name] for name, value in pairs)
    )
    return _Read(symbols, once.get("data_type"), once.get("user")) if is_usual else None
