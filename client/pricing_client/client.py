"""The client that programs call: prices and their history, slots, commodities, watching, holdings and price alerts."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar
from urllib.parse import quote

import httpx

from pricing_client.events import as_update, lines_of, read_events
from pricing_client.prices import Bar, Prices, shaped
from pricing_client.problems import (
    ApiError,
    HistoryWarning,
    TooMuch,
    Unavailable,
    problem_of,
    understood,
)
from pricing_client.shapes import (
    Answer,
    AvailableDay,
    CommodityPrice,
    Holding,
    Imported,
    Notice,
    PriceAlert,
    Subscription,
    TradeRoute,
    Update,
    Why,
)
from pricing_client.transport import Transport, lost, wait_seconds, without_none

if TYPE_CHECKING:
    from pandas import DataFrame

T = TypeVar("T")

Pair = tuple[str, str]
"""A data type and a symbol."""

Day = date | str
"""A date, or its text, such as 2026-11-27."""

Adjust = Literal["raw", "splits", "total"]
"""The basis of prices of history."""

Condition = Literal["above", "below", "moved", "stale", "each"]
"""When a price alert tells."""

_ROWS_OF_A_PAGE = 1000
_SILENCE_SECONDS = 45.0
"""A stream in which nothing comes for this long, not even a comment, is lost."""


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

    def prices(self, *wanted: str | Pair, data_type: str | None = None, currency: str | None = None) -> Prices:
        """The stored prices of symbols, or of pairs of any data types, at once.

        Missing and stale prices are queued: ask again in a moment. Of symbols without a data type, only what is watched
        or held is. `currency` converts by the latest stored rates; a price without a rate is missing (`no_rate`).
        """
        return self._get(partial(shaped, Prices), "/prices", currency=currency, **_wanted(wanted, data_type))

    def why(self, *wanted: str | Pair, data_type: str | None = None) -> list[Why]:
        """Why the prices of symbols, or of pairs, are as old as they are, and which symbols are unknown."""
        return self._get(_reasons, "/why", **_wanted(wanted, data_type))

    def history(
        self,
        data_type: str,
        symbol: str,
        first: Day | None = None,
        last: Day | None = None,
        *,
        as_of: datetime | None = None,
        adjust: Adjust | None = None,
        currency: str | None = None,
    ) -> list[Bar]:
        """Values of a symbol between two UTC days, both included, oldest first; by default of the last thirty days.

        A day is a date or its text, such as 2026-11-27. `as_of` (an aware time) reads what was believed then.
        Without `adjust` each value is as stored. With `splits` or `total`, and without `as_of`, a HistoryWarning names
        each step of daily bars that looks like a split that is not known. `currency` converts by the rates of their
        time, which each bar names as `rate`; a bar without a rate has no prices.
        """
        return self._bars(data_type, symbol, first, last, as_of, adjust, currency)

    def histories(
        self,
        data_type: str,
        *symbols: str,
        first: Day | None = None,
        last: Day | None = None,
        as_of: datetime | None = None,
        adjust: Adjust | None = None,
        currency: str | None = None,
    ) -> dict[str, list[Bar]]:
        """The histories of up to 50 symbols in one answer, by symbol as its instrument is spelled; as `history`."""
        params = {**_days(first, last), "as_of": _time(as_of), "adjust": adjust, "currency": currency}
        path = f"/history/{_in_path(data_type)}"
        found = self._get(_histories, path, symbols=",".join(symbols), **params)
        for told, _ in found.values():
            for warning in told:
                warnings.warn(warning, HistoryWarning, stacklevel=2)
        return {symbol: bars for symbol, (_, bars) in found.items()}

    def history_frame(
        self,
        data_type: str,
        symbol: str,
        first: Day | None = None,
        last: Day | None = None,
        *,
        as_of: datetime | None = None,
        adjust: Adjust | None = None,
        currency: str | None = None,
    ) -> DataFrame:
        """The history as a pandas frame with the index `observed_at` and exact Decimals. It needs pandas.

        With `currency` it has the column `rate`.
        """
        from pandas import DataFrame  # optional: only this method needs it

        bars = self._bars(data_type, symbol, first, last, as_of, adjust, currency)
        names = [field.name for field in fields(Bar) if currency is not None or field.name != "rate"]
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
        path = f"/products/{_in_path(symbol)}/availability"
        return self._get(_rows("days", AvailableDay), path, sellable=sellable or None, **params)

    def commodity_prices(self, name: str, *, as_of: datetime | None = None) -> list[CommodityPrice]:
        """Where a commodity (its slug, code, name or number) is traded. Nothing is queued: watch a terminal."""
        path = f"/commodities/{_in_path(name)}/prices"
        return self._get(_rows("prices", CommodityPrice), path, as_of=_time(as_of))

    def terminal_prices(self, name: str, *, as_of: datetime | None = None) -> list[CommodityPrice]:
        """What a terminal (its symbol, code or name) trades. Nothing is queued: watch the terminal."""
        path = f"/terminals/{_in_path(name)}/prices"
        return self._get(_rows("prices", CommodityPrice), path, as_of=_time(as_of))

    def trade_routes(self, from_terminal: str | None = None, *, limit: int = 20) -> list[TradeRoute]:
        """The routes that earn most, or those from one terminal (its symbol, code or name)."""
        params = {"from": from_terminal, "limit": limit}
        return self._get(_rows("routes", TradeRoute), "/trade-routes", **params)

    def heartbeat(self, *pairs: Pair, all_or_nothing: bool = False) -> Answer:
        """Report once a minute which pairs the user is viewing. Each pair is accepted or refused separately.

        With `all_or_nothing` a refused pair raises RequestRefused, or TooMuch if it is above a cap, and nothing
        changes.
        """
        return self._post(partial(shaped, Answer), "/heartbeat", pairs, all_or_nothing=all_or_nothing)

    def leave(self, *pairs: Pair) -> int:
        """Stop watching these pairs; returns how many subscriptions ended."""
        return self._post(_changed, "/unsubscribe", pairs)

    def hold(
        self, *pairs: Pair, quantities: Sequence[Decimal | str | None] = (), all_or_nothing: bool = False
    ) -> Answer:
        """Open holdings of these pairs; returns and raises the same as `heartbeat`.

        `quantities`, one for each pair, replace the stored ones; None keeps the stored one.
        """
        content = _content(pairs)
        if quantities and len(quantities) != len(content):
            raise ValueError(f"there are {len(quantities)} quantities for {len(content)} pairs")
        for pair, quantity in zip(content, quantities, strict=False):
            pair["quantity"] = None if quantity is None else str(quantity)
        return self._send(partial(shaped, Answer), "/hold", {"pairs": content, "all_or_nothing": all_or_nothing})

    def release(self, *pairs: Pair) -> int:
        """Close the user's holdings of these pairs; returns how many were closed."""
        return self._post(_changed, "/release", pairs)

    def subscriptions(self) -> list[Subscription]:
        """The pairs that the user watches, by data type and symbol."""
        return self._all("/subscriptions", Subscription)

    def holdings(self, *, closed_too: bool = False) -> list[Holding]:
        """What the user holds, by data type and symbol; with `closed_too` also what the user has released."""
        return self._all("/holdings", Holding, closed_too=closed_too or None)

    def import_holdings(
        self,
        content: bytes,
        *,
        dry_run: bool = True,
        format: str | None = None,
        columns: Mapping[str, str] | None = None,
        own_names: Mapping[str, str] | None = None,
        data_types: Sequence[str] = (),
        decimal: Literal["point", "comma"] | None = None,
        list_name: str | None = None,
    ) -> Imported:
        """Preview the holdings in a broker's file. Without `dry_run`, open the new ones as well.

        The file's header shows its format. For any other table, name the `columns`: {"symbol": "Ticker"}.
        `own_names` maps an ISIN, ticker or title of the file to a symbol: {"IE00B4L5Y983": "EUNL:XETR"}. If
        none of `data_types` fits an asset class, its type with the freshest prices is held. All that is held or new is
        put on the list `list_name`, too.
        """
        params = {
            "user": self._user,
            "dry_run": dry_run,
            "format": format,
            "column": _assigned(columns),
            "as": _assigned(own_names),
            "data_type": list(data_types) or None,
            "decimal": decimal,
            "list": list_name,
        }
        read = partial(shaped, Imported)
        return self._transport.ask(read, "POST", "/holdings/import", params, content)

    def price_alerts(self) -> list[PriceAlert]:
        """The price alerts of the user, in the order in which they were added."""
        return self._all("/price-alerts", PriceAlert)

    def add_price_alert(
        self,
        recipient: str,
        data_type: str,
        symbol: str,
        condition: Condition,
        threshold: Decimal | str | None = None,
        *,
        lasts_seconds: int | None = None,
        pace_seconds: int | None = None,
        hysteresis: Decimal | str | None = None,
        hysteresis_in: Literal["amount", "percent"] | None = None,
    ) -> PriceAlert:
        """Add a price alert: a condition, and the recipient to tell. The pipeline's owner adds recipients.

        `threshold` is the price of `above` and `below` and the percentage of `moved`; `lasts_seconds` belongs to
        `stale`, `pace_seconds` to `each`. Raises RequestRefused if the same price alert already exists, which it
        also is if the answer to this request was lost, and it was sent again.
        """
        wanted = {
            "recipient": recipient,
            "data_type": data_type,
            "symbol": symbol,
            "condition": condition,
            "threshold": None if threshold is None else str(threshold),
            "lasts_seconds": lasts_seconds,
            "pace_seconds": pace_seconds,
            "hysteresis": None if hysteresis is None else str(hysteresis),
            "hysteresis_in": hysteresis_in,
        }
        return self._send(partial(shaped, PriceAlert), "/price-alerts", without_none(wanted))

    def remove_price_alerts(self, *price_alert_ids: int) -> list[int]:
        """Remove price alerts of the user: all of them, or none if one does not exist. Returns their ids."""
        ids = {"ids": price_alert_ids}
        return self._send(lambda content: list(map(int, content["removed"])), "/price-alerts/remove", ids)

    def watch(self, *pairs: Pair, currency: str | None = None) -> Iterator[Update | Notice]:
        """New prices and changes of freshness, as they come; without pairs, for those that the user watches.

        The state of each pair comes first, and then a Notice `ready`. From then on, also after a lost connection, no
        update is lost or comes twice, unless a Notice says so. The user watches the pairs while this is read.
        Close the iterator to end it. Raises ApiError when the API refuses the stream. If that is because too many
        streams are open (TooMuch), or if nothing has ever answered (Unavailable), it tries again for `patience` seconds
        first. Once it has begun, it waits while the API is away, after a Notice `lost`.

        `currency` converts each price by the latest stored rates of its time; without one, the pair is `missing`
        (`no_rate`) until one comes. The user watches these rates, too; when one changes, the prices that it converts
        come again.
        """
        params = without_none(
            {
                "pairs": _pairs(pairs) or None,
                "user": self._user,
                "currency": currency,
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

    def _stream(self, params: dict[str, Any], last: str | None) -> Iterator[tuple[str | None, Update | Notice | None]]:
        client = self._transport.client
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last} if last is not None else {})
        timeout = httpx.Timeout(client.timeout.connect, read=_SILENCE_SECONDS)
        try:
            with client.stream("GET", "/stream", params=params, headers=headers, timeout=timeout) as response:
                if not response.is_success:
                    response.read()
                    raise problem_of(response)
                if response.headers.get("Content-Type", "").partition(";")[0] != "text/event-stream":
                    words = f"{response.url} answered no stream of events. Is that the address of the API?"
                    raise ApiError(words, response.status_code, "no-stream")
                events = read_events(lines_of(response.iter_text()))
                while True:
                    with understood(response):
                        event = next(events, None)
                        update = None if event is None else as_update(event)
                    if event is None:
                        return
                    yield event.id, update
        except httpx.RequestError as error:
            raise lost(error, str(client.base_url)) from error

    def _bars(
        self,
        data_type: str,
        symbol: str,
        first: Day | None,
        last: Day | None,
        as_of: datetime | None,
        adjust: Adjust | None,
        currency: str | None,
    ) -> list[Bar]:
        params = {**_days(first, last), "as_of": _time(as_of), "adjust": adjust, "currency": currency}
        told, bars = self._get(_history, f"/history/{_in_path(data_type)}/{_in_path(symbol)}", **params)
        for warning in told:
            warnings.warn(warning, HistoryWarning, stacklevel=3)
        return bars

    def _get(self, read: Callable[[Any], T], path: str, **params: Any) -> T:
        return self._transport.ask(read, "GET", path, {**params, "user": self._user})

    def _post(self, read: Callable[[Any], T], path: str, pairs: Iterable[Pair], **options: bool) -> T:
        return self._send(read, path, {"pairs": _content(pairs), **options})

    def _send(self, read: Callable[[Any], T], path: str, content: object) -> T:
        return self._transport.ask(read, "POST", path, {"user": self._user}, content)

    def _all(self, path: str, shape: Callable[..., T], **params: Any) -> list[T]:
        """The rows of all pages of a list."""
        read = _rows(path.removeprefix("/").replace("-", "_"), shape)
        rows: list[T] = []
        cursor: str | None = None
        while True:
            page, cursor = self._get(
                lambda content: (read(content), content["next"]),
                path,
                **params,
                limit=_ROWS_OF_A_PAGE,
                cursor=cursor,
            )
            rows += page
            if cursor is None:
                return rows


def _rows(name: str, shape: Callable[..., T]) -> Callable[[Any], list[T]]:
    return lambda content: [shaped(shape, row) for row in content[name]]


def _reasons(content: Any) -> list[Why]:
    unknown = [{**pair, **pair["why"], "observed_at": None, "fetched_at": None} for pair in content["missing"]]
    return [shaped(Why, reason) for reason in [*content["reasons"], *unknown]]


def _history(content: Any) -> tuple[list[str], list[Bar]]:
    return content.get("warnings", []), _rows("rows", Bar)(content)


def _histories(content: Any) -> dict[str, tuple[list[str], list[Bar]]]:
    return {one["symbol"]: _history(one) for one in content["histories"]}


def _changed(content: Any) -> int:
    return int(content["changed"])


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


def _in_path(name: str) -> str:
    """A name as a path has it. Raises ValueError for one that would lead to another path, as ../x does."""
    if {".", ".."} & set(name.split("/")):
        raise ValueError(f"nothing is called {name!r}")
    return quote(name)


def _assigned(pairs: Mapping[str, str] | None) -> list[str] | None:
    return [f"{name}={value}" for name, value in (pairs or {}).items()] or None


def _each(pairs: Iterable[Pair]) -> Iterator[Pair]:
    for pair in pairs:
        if isinstance(pair, str) or len(pair) != 2:
            raise TypeError(f"a pair has a data type and a symbol, such as ('equity_quote', 'AAPL'), not {pair!r}")
        yield pair


def _content(pairs: Iterable[Pair]) -> list[dict[str, str | None]]:
    return [{"data_type": data_type, "symbol": symbol} for data_type, symbol in _each(pairs)]


def _days(first: Day | None, last: Day | None) -> dict[str, str | None]:
    return {"from": _day(first), "to": _day(last)}


def _day(day: Day | None) -> str | None:
    return str(day) if day is not None else None


def _time(at: datetime | None) -> str | None:
    return at.isoformat() if at else None
