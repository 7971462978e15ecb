"""The client that programs call: prices, why they are old, history, slots, commodities, watching and a live stream."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from datetime import date, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self
from urllib.parse import quote

import httpx

from pricing_pipeline.client.events import as_update, lines_of, read_events
from pricing_pipeline.client.problems import HistoryWarning, TooMuch, Unavailable, problem_of
from pricing_pipeline.client.shapes import (
    AvailableDay,
    Bar,
    CommodityPrice,
    Notice,
    Prices,
    TradeRoute,
    Update,
    Why,
    shaped,
)
from pricing_pipeline.client.transport import Transport, lost, wait_seconds, without_none

if TYPE_CHECKING:
    from pandas import DataFrame

Pair = tuple[str, str]
"""A data type and a symbol."""

Day = date | str
"""A date, or its text, such as 2026-11-27."""

Adjust = Literal["raw", "splits", "total"]
"""The basis of prices of history."""

_SILENCE_SECONDS = 45.0
"""A stream in which nothing comes for so long, not even a comment, is lost."""


class PricingClient:
    """The API at `url`, with a token. `user` is the user of its requests, if the token acts for any user.

    A request that meets a cap, an outage or a lost connection is sent again for up to `patience` seconds; the API's
    Retry-After is obeyed. Each method raises ApiError or one of its kinds. A client may be used by several threads.
    """

    def __init__(
        self,
        url: str,
        token: str,
        user: str | None = None,
        *,
        timeout: float = 10.0,
        patience: float = 30.0,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._transport = Transport(url, token, timeout, patience, pause)
        self._user, self._pause = user, pause

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._transport.client.close()

    def prices(self, *wanted: str | Pair, data_type: str | None = None) -> Prices:
        """The stored prices of symbols, or of pairs of any data types, at once.

        Missing and stale prices are queued: ask again in a moment. Of symbols without a data type, only what is watched
        or held is.
        """
        return shaped(Prices, self._get("/prices", **_wanted(wanted, data_type)))

    def why(self, *wanted: str | Pair, data_type: str | None = None) -> list[Why]:
        """Why the prices of symbols, or of pairs, are as old as they are, and which symbols are no instruments."""
        content = self._get("/why", **_wanted(wanted, data_type))
        unknown = [
            {**pair, **pair["why"], "observed_at": None, "fetched_at": None} for pair in content["missing"]
        ]
        return [shaped(Why, reason) for reason in [*content["reasons"], *unknown]]

    def history(
        self,
        data_type: str,
        symbol: str,
        first: Day | None = None,
        last: Day | None = None,
        *,
        as_of: datetime | None = None,
        adjust: Adjust | None = None,
    ) -> list[Bar]:
        """Values of a symbol between two UTC days, both included, oldest first; without days, from thirty days ago.

        A day is a date or its text, such as 2026-11-27. With `as_of` (an aware time) as they were believed then.
        Without `adjust` each is as it is stored. With `splits` or `total`, and without `as_of`, a HistoryWarning names
        each step of daily bars that looks like a split that is not known.
        """
        return self._bars(data_type, symbol, first, last, as_of, adjust)

    def history_frame(
        self,
        data_type: str,
        symbol: str,
        first: Day | None = None,
        last: Day | None = None,
        *,
        as_of: datetime | None = None,
        adjust: Adjust | None = None,
    ) -> DataFrame:
        """The history as a pandas frame with the index `observed_at` and exact Decimals. It needs pandas."""
        from pandas import DataFrame  # optional: only this method needs it

        bars = self._bars(data_type, symbol, first, last, as_of, adjust)
        names = [field.name for field in fields(Bar)]
        rows = [[getattr(bar, name) for name in names] for bar in bars]
        return DataFrame(rows, columns=names).set_index("observed_at")

    def availability(
        self,
        symbol: str,
        first: Day | None = None,
        last: Day | None = None,
        *,
        pax: int = 1,
        currency: str | None = None,
        sellable: bool = False,
        as_of: datetime | None = None,
    ) -> list[AvailableDay]:
        """The slots of a product on local days, both included, at once; without days, a week from today.

        Missing and stale days are queued, unless `as_of` (an aware time) asks for the past. `sellable` leaves out what
        `pax` people cannot book, `currency` what has no price in it.
        """
        params = {**_days(first, last), "pax": pax, "currency": currency, "as_of": _time(as_of)}
        content = self._get(f"/products/{quote(symbol)}/availability", sellable=sellable or None, **params)
        return [shaped(AvailableDay, day) for day in content["days"]]

    def commodity_prices(self, name: str, *, as_of: datetime | None = None) -> list[CommodityPrice]:
        """Where a commodity (its slug, code, name or number) is traded. Nothing is queued: watch a terminal."""
        content = self._get(f"/commodities/{quote(name)}/prices", as_of=_time(as_of))
        return [shaped(CommodityPrice, price) for price in content["prices"]]

    def terminal_prices(self, name: str, *, as_of: datetime | None = None) -> list[CommodityPrice]:
        """What a terminal (its symbol, code or name) trades. Nothing is queued: watch the terminal."""
        content = self._get(f"/terminals/{quote(name)}/prices", as_of=_time(as_of))
        return [shaped(CommodityPrice, price) for price in content["prices"]]

    def trade_routes(self, from_terminal: str | None = None, *, limit: int = 20) -> list[TradeRoute]:
        """The routes that earn most, or those from one terminal (its symbol, code or name)."""
        content = self._get("/trade-routes", **{"from": from_terminal, "limit": limit})
        return [shaped(TradeRoute, route) for route in content["routes"]]

    def heartbeat(self, *pairs: Pair) -> int:
        """Say that the user looks at these pairs now; returns how many are new. Send it once a minute."""
        return self._post("/heartbeat", pairs)

    def leave(self, *pairs: Pair) -> int:
        """Say that the user has left these pairs; returns how many subscriptions ended."""
        return self._post("/unsubscribe", pairs)

    def hold(self, *pairs: Pair) -> int:
        """Say that the user holds these pairs from now on; returns how many holdings are new."""
        return self._post("/hold", pairs)

    def release(self, *pairs: Pair) -> int:
        """Say that the user no longer holds these pairs; returns how many holdings ended."""
        return self._post("/release", pairs)

    def watch(self, *pairs: Pair) -> Iterator[Update | Notice]:
        """New prices and changes of freshness, as they come; without pairs, of what the user watches.

        The state of each pair comes first, and then a Notice `ready`. From then on, also after a lost connection, no
        update is lost or comes twice, unless a Notice says so. The user watches the pairs as long as this is read.
        Close the iterator to end it. Raises ApiError when the API refuses the stream. If that is because too many
        streams are open (TooMuch), or if nothing has ever answered (Unavailable), it tries again for `patience` seconds
        first. Once it has begun, it waits as long as the API is away, after a Notice `lost`.
        """
        params = without_none(
            {
                "pairs": _pairs(pairs) or None,
                "user": self._user,
            }
        )
        last: str | None = None
        failures = 0
        has_begun, is_lost, refused_since = False, False, None
        while True:
            retry_after: float | None = None  # also if the server ends the stream without an error
            try:
                for event_id, update in self._stream(params, last):
                    has_begun, is_lost, failures = True, False, 0
                    if event_id is not None:
                        last = event_id or None
                    if update is not None:
                        yield update
                refused_since = None
            except (TooMuch, Unavailable) as error:
                retry_after = error.retry_after
                if has_begun and isinstance(error, Unavailable):
                    refused_since = None
                    if not is_lost:
                        is_lost = True
                        yield Notice("lost", detail=str(error))
                else:
                    refused_since = refused_since or time.monotonic()
                    left = refused_since + self._transport.patience - time.monotonic()
                    if left <= 0:
                        raise
                    retry_after = min(wait_seconds(retry_after, failures), left)
            self._pause(wait_seconds(retry_after, failures))
            failures += 1

    def _stream(
        self, params: dict[str, Any], last: str | None
    ) -> Iterator[tuple[str | None, Update | Notice | None]]:
        client = self._transport.client
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last} if last is not None else {})
        timeout = httpx.Timeout(client.timeout.connect, read=_SILENCE_SECONDS)
        try:
            with client.stream("GET", "/stream", params=params, headers=headers, timeout=timeout) as response:
                if not response.is_success:
                    response.read()
                    raise problem_of(response)
                for event in read_events(lines_of(response.iter_text())):
                    yield event.id, as_update(event)
        except httpx.TransportError as error:
            raise lost(error, str(client.base_url)) from error

    def _bars(
        self,
        data_type: str,
        symbol: str,
        first: Day | None,
        last: Day | None,
        as_of: datetime | None,
        adjust: Adjust | None,
    ) -> list[Bar]:
        params = {**_days(first, last), "as_of": _time(as_of), "adjust": adjust}
        content = self._get(f"/history/{quote(data_type)}/{quote(symbol)}", **params)
        for warning in content.get("warnings", ()):
            warnings.warn(warning, HistoryWarning, stacklevel=3)
        return [shaped(Bar, row) for row in content["rows"]]

    def _get(self, path: str, **params: Any) -> Any:
        return self._transport.ask("GET", path, {**params, "user": self._user})

    def _post(self, path: str, pairs: Iterable[Pair]) -> int:
        content = {
            "pairs": [{"data_type": data_type, "symbol": symbol} for data_type, symbol in _each(pairs)]
        }
        return int(self._transport.ask("POST", path, {"user": self._user}, content)["changed"])


def _wanted(wanted: Sequence[str | Pair], data_type: str | None) -> dict[str, str | None]:
    """Symbols, or pairs, as parameters of a request."""
    symbols = [symbol for symbol in wanted if isinstance(symbol, str)]
    if len(symbols) == len(wanted):
        return {"symbols": ",".join(symbols), "data_type": data_type}
    pairs = [pair for pair in wanted if isinstance(pair, tuple)]
    if len(pairs) < len(wanted) or data_type is not None:
        raise TypeError(
            "a symbol is a text. Name several like this: 'AAPL', 'MSFT'; or pairs alone, without data_type, like this: "
            "('equity_quote', 'AAPL'), ('fx_rate', 'EUR/USD')"
        )
    return {"pairs": _pairs(pairs)}


def _pairs(pairs: Iterable[Any]) -> str:
    return ",".join(f"{data_type}:{symbol}" for data_type, symbol in _each(pairs))


def _each(pairs: Iterable[Pair]) -> Iterator[Pair]:
    for pair in pairs:
        if isinstance(pair, str) or len(pair) != 2:
            raise TypeError(
                f"a pair has a data type and a symbol, such as ('equity_quote', 'AAPL'), not {pair!r}"
            )
        yield pair


def _days(first: Day | None, last: Day | None) -> dict[str, str | None]:
    return {"from": _day(first), "to": _day(last)}


def _day(day: Day | None) -> str | None:
    return str(day) if day is not None else None


def _time(at: datetime | None) -> str | None:
    return at.isoformat() if at else None
