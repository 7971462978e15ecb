"""The lists of UEX: game versions, terminals, commodities and all prices; and the rows of prices, for uex.py, too.

Every answer is an envelope of status, code, message and data. Amounts are whole numbers; prices mostly are, and had
fractions in early versions. 0 means none. Times are epoch seconds, and 0 means never. Some rows name a
quality: a commodity then has a row for each.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from operator import attrgetter
from typing import Generic, TypeVar

from pricing_pipeline.domain.answers import FailureKind, RejectedValue, SymbolFailure
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.commodities import (
    Commodity,
    CommodityPrice,
    Listed,
    Terminal,
    TerminalPrices,
    symbol_of,
)
from pricing_pipeline.errors import KeyRefused, ProviderError, RequestRefused, SchemaDrift
from pricing_pipeline.providers.base import (
    Request,
    Schema,
    SchemaT,
    check_key,
    check_status,
    decode_unless_refused,
    name_of,
    refusal,
    safe_words,
    throttled,
    validate,
)
from pricing_pipeline.providers.values import Implausible, Number, decimal_of, instant_of, spelling

NAME = "uex"
_LARGEST = 10**15
_LONGEST_VERSION = 40
_MOST_NAMED = 200
_NOTHING = re.compile(r"(?:^|_)(?:not_found|nothing_found|no_[a-z_]*found|empty)$")
"""The words of a refusal that only means that there is nothing to list."""
_OUT_OF_STOCK, _FULL = 1, 7
"""The states of a stock in which an amount of 0 is a fact. In the other five states nobody has counted."""


class _Envelope(Schema):
    status: str
    data: object
    http_code: int | None = None
    message: str | None = None


class PriceRow(Schema):
    """One commodity at one terminal. The list of all prices lacks codes, slugs and the version of the game."""

    id_terminal: int
    id_commodity: int
    commodity_name: str
    price_buy: Number
    price_sell: Number
    scu_buy: Number
    scu_sell: Number
    date_modified: int
    commodity_code: str | None = None
    commodity_slug: str | None = None
    terminal_name: str | None = None
    terminal_code: str | None = None
    status_buy: Number | None = None
    status_sell: Number | None = None
    game_version: str | None = None
    quality: Number | None = None


class _TerminalRow(Schema):
    id: int
    name: str
    type: str
    is_available: int
    date_modified: int
    code: str | None = None
    star_system_name: str | None = None
    planet_name: str | None = None
    moon_name: str | None = None
    space_station_name: str | None = None
    outpost_name: str | None = None
    city_name: str | None = None


class _CommodityRow(Schema):
    id: int
    name: str
    code: str | None = None
    slug: str | None = None
    kind: str | None = None
    is_available: int = 1


class GameVersions(Schema):
    """The version that people play, and the one for tests (`ptu`), if there is one."""

    live: str
    ptu: str | None = None


def content_of(response: Response, now: datetime) -> object:
    """The data of an answer; an empty list where it says that it has found nothing. Raises ProviderError."""
    body = decode_unless_refused(NAME, response, now)
    if not isinstance(body, dict) or "data" not in body:
        raise refusal(NAME, response, now=now) or SchemaDrift(
            "uex answered without the envelope that it promises (status, data). Nothing was stored."
        )
    if not 200 <= response.status < 300:
        return _refused(body, response, now)
    envelope = validate(_Envelope, body, "uex's answer")
    if envelope.status != "ok" or envelope.http_code not in (None, 200):
        if envelope.data is None and _NOTHING.search(envelope.status):
            return []
        raise _error(envelope.status, envelope.message, response, now)
    return envelope.data


def _refused(body: dict[object, object], response: Response, now: datetime) -> object:
    status, message = (str(body.get(name) or "") for name in ("status", "message"))
    is_empty = body["data"] is None and _NOTHING.search(status) is not None
    if response.status == 400 and is_empty:
        return []
    if response.status == 400 and body["data"] is None:
        raise _error(status, message, response, now)
    check_status(NAME, response, now=now, detail=f"{status} {message}".strip())
    raise AssertionError("a refusal has a status of its own")


def _error(status: str, message: str | None, response: Response, now: datetime) -> ProviderError:
    """The error of a refusal whose reason is in the envelope."""
    words = safe_words(f"{status} {message or ''}") or "no reason"
    told = f"uex answered {response.status}: {words.rstrip('.')}."
    if re.search("token|key|auth", status):
        return KeyRefused(f"{told} {check_key(NAME)}")
    if re.search("limit|too_many", status):
        return throttled(told, response, now=now)
    return RequestRefused(f"{told} The request must change; asking again will not help.")


def text_of(words: str | None) -> str | None:
    """A name as one printable line; None without one."""
    return name_of(words or "")[:_MOST_NAMED].strip() or None


def time_of(seconds: int, now: datetime) -> datetime | None:
    """The source's time; None if it says never. Raises Implausible for a time that lies ahead."""
    return None if seconds == 0 else instant_of(seconds, now)


def whole(raw: object, what: str) -> int:
    """A whole number of 0 or more. Raises Implausible."""
    value = decimal_of(raw, what)
    if value < 0 or value != value.to_integral_value() or value > _LARGEST:
        raise Implausible(f"{what} {spelling(raw)!r} is not a whole number from 0 to {_LARGEST}")
    return int(value)


def _money(raw: object, what: str) -> Decimal | None:
    """A price at the scale that it has; None for 0. Raises Implausible."""
    value = decimal_of(raw, what)
    if not 0 <= value <= _LARGEST:
        raise Implausible(f"{what} {spelling(raw)!r} is not a price from 0 to {_LARGEST}")
    return value or None


def _quality(raw: object) -> str:
    """The quality as the source spells it, without needless zeros; empty if it names none. Raises Implausible."""
    if raw is None:
        return ""
    if isinstance(raw, str) and not re.fullmatch(r"\s*[0-9.]+\s*", raw):
        return text_of(raw) or ""
    return f"{decimal_of(raw, 'quality').normalize():f}"


def _amount(raw: object, status: object, real_zero: int, what: str) -> int | None:
    amount = whole(raw, what)
    return amount if amount or status == real_zero else None


def _price(row: PriceRow, now: datetime) -> CommodityPrice:
    """The price in a row. Raises Implausible."""
    name = text_of(row.commodity_name)
    if name is None or row.id_commodity <= 0:
        raise Implausible(f"commodity {row.id_commodity} has no name or number")
    buy, sell = _money(row.price_buy, "price_buy"), _money(row.price_sell, "price_sell")
    stock = _amount(row.scu_buy, row.status_buy, _OUT_OF_STOCK, "scu_buy")
    demand = _amount(row.scu_sell, row.status_sell, _FULL, "scu_sell")
    return CommodityPrice(
        row.id_commodity,
        name,
        text_of(row.commodity_code),
        text_of(row.commodity_slug),
        buy,
        sell,
        stock if buy else None,
        demand if sell else None,
        text_of(row.game_version),
        time_of(row.date_modified, now),
        _quality(row.quality),
    )


@dataclass(frozen=True, slots=True)
class ReadTerminal:
    """The rows of one terminal as read: its prices, or why there are none, and the rows that could not be read."""

    prices: TerminalPrices | None
    failure: SymbolFailure | None
    rejected: tuple[RejectedValue, ...]


def terminal_of(symbol: str, rows: Sequence[object], now: datetime) -> ReadTerminal:
    """The rows of one terminal, which are one or more. A bad row costs no other."""
    read: dict[tuple[int, str], list[CommodityPrice]] = defaultdict(list)
    rejected: list[RejectedValue] = []
    drifts = 0
    good: list[PriceRow] = []
    for row in rows:
        try:
            valid = validate(PriceRow, row, f"uex's price at terminal {symbol}")
            price = _price(valid, now)
            read[price.commodity_id, price.quality].append(price)
            good.append(valid)
        except SchemaDrift as drift:
            drifts += 1
            rejected.append(RejectedValue(symbol, None, str(drift), spelling(row)))
        except Implausible as fault:
            text = f"{row.get('commodity_name')}" if isinstance(row, dict) else ""
            rejected.append(RejectedValue(symbol, None, f"{safe_words(text)}: {fault}", spelling(row)))
    prices = []
    for number, quality in sorted(read):
        first, *others = read[number, quality]
        if all(other == first for other in others):
            prices.append(first)
        else:
            named = f"{number} of quality {quality}" if quality else f"{number}"
            reason = f"commodity {named} is listed {len(others) + 1} times, with different values"
            rejected.append(RejectedValue(symbol, None, reason, named, len(others) + 1))
    if not prices:
        kind = FailureKind.SCHEMA_DRIFT if drifts == len(rows) else FailureKind.IMPLAUSIBLE
        reason = rejected[0].reason.rstrip(".")
        message = f"none of the {len(rows)} prices at {symbol} can be true; the first: {reason}. Nothing was stored."
        return ReadTerminal(None, SymbolFailure(symbol, kind, message), tuple(rejected))
    its = good[0]
    terminal = TerminalPrices(
        symbol, tuple(prices), text_of(its.terminal_name), text_of(its.terminal_code), not rejected
    )
    return ReadTerminal(terminal, None, tuple(rejected))


def by_terminal(rows: Sequence[object]) -> tuple[dict[str, list[object]], list[object]]:
    """Rows by the number of their terminal, and those that name none."""
    grouped: dict[str, list[object]] = defaultdict(list)
    nameless: list[object] = []
    for row in rows:
        number = row.get("id_terminal") if isinstance(row, dict) else None
        is_number = isinstance(number, int) and not isinstance(number, bool) and number > 0
        (grouped[str(number)] if is_number else nameless).append(row)
    return grouped, nameless


def rows_of(content: object, what: str) -> list[object]:
    """The content as the list that it must be. Raises SchemaDrift."""
    if not isinstance(content, list):
        raise SchemaDrift(f"uex's {what} is not the list that it promises. Nothing was stored.")
    return content


RowT = TypeVar("RowT")


@dataclass(frozen=True, slots=True)
class List(Generic[RowT]):
    """One list: how it is asked for, and how its answer is read. `read` raises ProviderError."""

    name: str
    request: Request
    read: Callable[[Response, datetime], RowT]


def _read_versions(response: Response, now: datetime) -> GameVersions:
    read = validate(GameVersions, content_of(response, now), "uex's list of game versions", place="data")
    live, ptu = text_of(read.live), text_of(read.ptu)
    if live is None or len(live) > _LONGEST_VERSION:
        raise SchemaDrift("uex names no live version of the game. Nothing was stored.")
    return GameVersions(live=live, ptu=ptu if ptu and len(ptu) <= _LONGEST_VERSION else None)


def _read_rows(
    response: Response,
    now: datetime,
    what: str,
    model: type[SchemaT],
    make: Callable[[SchemaT, datetime], RowT | None],
    number_of: Callable[[RowT], int],
) -> Listed[RowT]:
    """Each row of a list separately, equal ones once. Different rows with one number are not believed.

    Raises SchemaDrift if none can be read, and for an empty list.
    """
    rows = rows_of(content_of(response, now), what)
    made: dict[int, set[RowT]] = {}
    faults: list[str] = []
    for row in rows:
        try:
            value = make(validate(model, row, f"a row of uex's {what}"), now)
        except (SchemaDrift, Implausible) as fault:
            faults.append(str(fault))
            continue
        if value is not None:
            made.setdefault(number_of(value), set()).add(value)
    good = [next(iter(values)) for values in made.values() if len(values) == 1]
    faults += [
        f"{len(values)} different rows have the number {number}" for number, values in made.items() if len(values) > 1
    ]
    if not good:
        reason = faults[0] if faults else "it is empty"
        raise SchemaDrift(f"uex's {what} has nothing that can be stored: {reason}")
    return Listed(good, faults)


def _terminal(row: _TerminalRow, now: datetime) -> Terminal | None:
    if not row.type.startswith("commodity"):
        return None  # shops, hangars and refineries have no prices of commodities
    name = text_of(row.name)
    if name is None or row.id <= 0:
        raise Implausible(f"terminal {row.id} has no name or number")
    return Terminal(
        row.id,
        name,
        text_of(row.code),
        text_of(row.star_system_name),
        text_of(row.planet_name),
        text_of(row.moon_name),
        text_of(row.space_station_name) or text_of(row.outpost_name) or text_of(row.city_name),
        row.is_available == 1,
        time_of(row.date_modified, now),
    )


def _commodity(row: _CommodityRow, now: datetime) -> Commodity:
    name = text_of(row.name)
    if name is None or row.id <= 0:
        raise Implausible(f"commodity {row.id} has no name or number")
    return Commodity(row.id, name, text_of(row.code), text_of(row.slug), text_of(row.kind), row.is_available == 1)


def _read_terminals(response: Response, now: datetime) -> Listed[Terminal]:
    number_of: Callable[[Terminal], int] = attrgetter("terminal_id")
    return _read_rows(response, now, "list of terminals", _TerminalRow, _terminal, number_of)


def _read_commodities(response: Response, now: datetime) -> Listed[Commodity]:
    number_of: Callable[[Commodity], int] = attrgetter("commodity_id")
    return _read_rows(response, now, "list of commodities", _CommodityRow, _commodity, number_of)


def _read_prices(response: Response, now: datetime) -> Listed[TerminalPrices]:
    """All prices, by terminals with their canonical symbols."""
    grouped, nameless = by_terminal(rows_of(content_of(response, now), "list of all prices"))
    read = [terminal_of(symbol_of(int(number)), rows, now) for number, rows in grouped.items()]
    terminals = [row.prices for row in read if row.prices is not None]
    if nameless:  # each terminal may lack one of them
        terminals = [replace(terminal, is_whole=False) for terminal in terminals]
    faults = [value.reason for row in read for value in row.rejected]
    faults += ["a price names no terminal"] * len(nameless)
    if not terminals:
        raise SchemaDrift(
            f"uex's list of all prices has nothing that can be stored: {faults[0] if faults else 'it is empty'}"
        )
    return Listed(terminals, faults)


GAME_VERSIONS = List("game versions", Request("/game_versions"), _read_versions)
TERMINALS = List("terminals", Request("/terminals"), _read_terminals)
COMMODITIES = List("commodities", Request("/commodities"), _read_commodities)
ALL_PRICES = List("prices", Request("/commodities_prices_all"), _read_prices)
