"""Which instruments the sandbox has, by the names that Twelve Data gives them. How others spell them: `spellings`."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from enum import StrEnum
from functools import cache, lru_cache
from zoneinfo import ZoneInfo

from pricing_pipeline.sandbox.recorded import SYMBOLS, recorded_bars
from pricing_pipeline.sandbox.units import CENT, UNITS, decimal_text, units_of
from pricing_pipeline.sandbox.venues import ABROAD, COINS, FOREX, FUNDS, NASDAQ, NYSE, WORLD, Venue

UNKNOWN_PREFIX = "NOPE"
"""Symbols that start so are unknown to every provider."""

EQUITIES_FROM = date(2000, 1, 3)
ABROAD_FROM = date(2000, 1, 4)
"""London and Sydney were closed on the day before."""
FUNDS_FROM = date(2013, 1, 2)
FIRST_SCHEME, UNKNOWN_SCHEMES_FROM = 100_000, 900_000
"""Scheme codes from the first up to, not including, the second exist."""

_CURRENCIES, _METALS, _STABLE_COINS = WORLD["currencies"], WORLD["metals"], WORLD["stable_coins"]
_COINS = _STABLE_COINS | WORLD["coins"]

_TICKER = re.compile(r"[A-Z][A-Z0-9]{0,19}(\.[A-C])?")
"""A share of the United States; a letter behind the dot is its class."""
_TICKER_ABROAD = re.compile(r"(?=.{1,20}$)[A-Z0-9]+([&' .-][A-Z0-9]+)*")
_PAIR = re.compile(r"([A-Z0-9]{2,10})/([A-Z]{3,4})")
_NUMBER = re.compile(r"[A-Z]{2}[A-Z0-9]{9}[0-9]")
"""An ISIN or a FIGI."""


class Kind(StrEnum):
    EQUITY = "equity"
    FOREX = "forex"
    CRYPTO = "crypto"
    FUND = "fund"
    INDEX = "index"
    FUTURE = "future"


@dataclass(frozen=True, slots=True)
class Instrument:
    """One thing with a price. `anchor` and `tick` are in units of 10^-5, `swing` and `bound` in steps."""

    symbol: str
    kind: Kind
    name: str
    venue: Venue
    currency: str
    first_day: date
    anchor: int
    volume: int = 0
    tick: int = CENT
    swing: int = 2_000
    bound: int = 131_072
    base: str = ""
    """Name of a pair's first side; empty for other kinds."""
    quote: str = ""
    """Name of the currency a pair's price is in; empty for other kinds."""

    @property
    def key(self) -> str:
        """Its own among all markets: several have the same symbol."""
        return _key_abroad(self.symbol, self.venue) if self.venue.suffix else self.symbol

    @property
    def exchange(self) -> str:
        return self.venue.exchange

    @property
    def mic_code(self) -> str:
        return self.venue.mic_code

    @property
    def zone(self) -> ZoneInfo:
        return self.venue.zone

    @property
    def week_days(self) -> int:
        """Trading days in a week, Monday first."""
        return 7 if self.kind is Kind.CRYPTO or self.venue.suffix else 5


_LISTED = {
    "AAPL": ("Apple Inc.", NASDAQ),
    "META": ("Meta Platforms, Inc.", NASDAQ),
    "GOOG": ("Google Inc.", NASDAQ),
    "IBM": ("International Business Machines Corp", NYSE),
    "MSFT": ("Microsoft Corporation", NASDAQ),
}


@lru_cache(maxsize=50_000)
def find_instrument(symbol: str) -> Instrument | None:
    """The share of the United States, currency pair or coin of this symbol, or None if it is unknown.

    Any ticker is a share, unless it is made of the codes of two currencies. Any code is a coin, unless it is a
    currency's.
    """
    if symbol.startswith(UNKNOWN_PREFIX):
        return None
    if pair := _PAIR.fullmatch(symbol):
        return _pair(symbol, pair[1], pair[2])
    return _equity(symbol) if _TICKER.fullmatch(symbol) and not _is_pair(symbol) else None


@lru_cache(maxsize=50_000)
def find_abroad(ticker: str, venue: Venue) -> Instrument | None:
    """The share of this ticker on a market outside the United States. Any ticker is one that is well formed."""
    if ticker.startswith(UNKNOWN_PREFIX) or not _TICKER_ABROAD.fullmatch(ticker):
        return None
    key = _key_abroad(ticker, venue)
    name, price = WORLD["abroad"].get(venue.exchange, {}).get(ticker, (f"{ticker} Corp", None))
    dollars = pick(f"anchor:{key}", 10 * 100, 500 * 100) * CENT
    anchor = _in_currency(dollars, venue.currency) if price is None else units_of(price)
    volume = pick(f"volume:{key}", 10**5, 10**7)
    return Instrument(ticker, Kind.EQUITY, name, venue, venue.currency, ABROAD_FROM, anchor, volume)


def find_index(symbol: str) -> Instrument | None:
    """The index that Yahoo calls so."""
    if symbol not in WORLD["indices"]:
        return None
    name, level, suffix, currency = WORLD["indices"][symbol]
    venue = next((venue for venue in ABROAD if venue.suffix == suffix), NYSE)
    return Instrument(symbol, Kind.INDEX, name, venue, currency, ABROAD_FROM, units_of(level))


def find_future(symbol: str) -> Instrument | None:
    """The future that Yahoo calls so: the contract that ends next."""
    if symbol not in WORLD["futures"]:
        return None
    name, price, currency = WORLD["futures"][symbol]
    return Instrument(symbol, Kind.FUTURE, name, NYSE, currency, EQUITIES_FROM, units_of(price), 10**5)


@lru_cache(maxsize=50_000)
def find_scheme(code: int) -> Instrument | None:
    """The Indian mutual fund of this AMFI scheme code, or None for another number. The dialect knows its name."""
    if not FIRST_SCHEME <= code < UNKNOWN_SCHEMES_FROM:
        return None
    anchor = pick(f"nav:{code}", 10 * UNITS, 250 * UNITS)
    fund = Instrument(str(code), Kind.FUND, "", FUNDS, "INR", FUNDS_FROM, anchor, swing=1_400, bound=78_000)
    return replace(fund, tick=10)  # NAVs are published with 4 decimals; mfapi.in writes a fifth, always 0


def _key_abroad(ticker: str, venue: Venue) -> str:
    """Without the signs by which providers part a ticker. By MIC, because exchanges share names at Twelve Data."""
    return f"{re.sub('[ .]', '-', ticker)}:{venue.mic_code}"


def _in_currency(dollars: int, code: str) -> int:
    """About the same money in another currency, or in the parts of one that a market counts in."""
    currency, parts = WORLD["parts"].get(code, (code, 1))
    units: int = int(dollars / Decimal(_CURRENCIES[currency][1])) * parts
    return units - units % CENT


def pick(key: str, least: int, below: int) -> int:
    """A number from `least` up to `below` that depends on `key` alone, in every process."""
    digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
    return least + int.from_bytes(digest, "big") % (below - least)


def _equity(symbol: str) -> Instrument:
    if symbol in SYMBOLS:
        name, venue = _LISTED[symbol]
        first, *_, last = recorded_bars()[symbol]
        return Instrument(
            symbol, Kind.EQUITY, name, venue, venue.currency, first.day, units_of(last.close), last.volume
        )
    venue = (NASDAQ, NYSE)[pick(f"exchange:{symbol}", 0, 2)]
    anchor = pick(f"anchor:{symbol}", 10 * 100, 500 * 100) * CENT
    volume = pick(f"volume:{symbol}", 10**5, 10**7)
    name = f"{symbol} Corp"
    return Instrument(symbol, Kind.EQUITY, name, venue, venue.currency, EQUITIES_FROM, anchor, volume)


def _is_pair(text: str) -> bool:
    """Whether the text is two codes without a slash, such as EURUSD: nowhere the symbol of a share."""
    return any(_pair(text, text[:at], text[at:]) is not None for at in range(2, len(text) - 2))


def _coin(code: str) -> tuple[str, str]:
    """The name of a coin that is not listed, and about what it is worth: there are thousands."""
    return f"{code} Coin", decimal_text(pick(f"coin:{code}", UNITS // 100, 100 * UNITS))


def _pair(symbol: str, base: str, quote: str) -> Instrument | None:
    known = _COINS.get(base) or _CURRENCIES.get(base) or _METALS.get(base)
    left = known or (_coin(base) if "/" in symbol else None)
    is_coin = left is not None and base not in _CURRENCIES and base not in _METALS
    right = _CURRENCIES.get(quote) or (_STABLE_COINS.get(quote) if is_coin else None)
    if left is None or right is None or base == quote:
        return None
    anchor = int(Decimal(left[1]) / Decimal(right[1]) * UNITS)
    return Instrument(
        symbol=symbol,
        kind=Kind.CRYPTO if is_coin else Kind.FOREX,
        name=f"{left[0]} {right[0]}",
        venue=COINS if is_coin else FOREX,
        currency=quote,
        first_day=date(2014, 1, 1) if is_coin else EQUITIES_FROM,
        anchor=max(anchor, 1),
        tick=CENT if anchor >= 10 * UNITS and is_coin else 1,
        swing=4_700 if is_coin else 660,
        bound=100_000 if is_coin else 13_000,
        base=left[0],
        quote=right[0],
    )


@cache
def known_instruments() -> tuple[Instrument, ...]:
    """Instruments with a name of their own, which a search can list. Pairs with the dollar stand for all pairs."""
    abroad = WORLD["abroad"]
    shares = [_equity(ticker) for ticker in (*SYMBOLS, *(ticker for own in abroad.values() for ticker in own))]
    foreign = [find_abroad(ticker, venue) for venue in ABROAD for ticker in abroad.get(venue.exchange, ())]
    pairs = [find_instrument(f"{code}/USD") for code in (*_CURRENCIES, *_METALS, *_COINS)]
    return (*shares, *(one for one in (*foreign, *pairs) if one is not None))


@cache
def _by_isin() -> dict[str, Instrument]:
    venues = {venue.exchange: venue for venue in ABROAD}
    found = {
        isin: find_abroad(ticker, venues[exchange]) if exchange in venues else find_instrument(ticker)
        for exchange, tickers in WORLD["isins"].items()
        for ticker, isin in tickers.items()
    }
    return {isin: one for isin, one in found.items() if one is not None}


def matching_instruments(query: str) -> list[Instrument]:
    """Those whose symbol begins with the query, or whose name has it; the case of letters does not count.

    A ticker that nobody named is a made-up share, and is found by its whole symbol only, in capitals. An ISIN is that
    of a well-known share, or nobody's.
    """
    if _NUMBER.fullmatch(query.upper()):
        found = _by_isin().get(query.upper())
        return [] if found is None else [found]
    made_up, known = find_instrument(query), known_instruments()
    matches = [one for one in known if one.symbol.startswith(query.upper())]
    matches += [one for one in known if query.lower() in one.name.lower()]
    return list(dict.fromkeys([*([] if made_up is None else [made_up]), *matches]))
