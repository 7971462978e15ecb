"""Which instruments the sandbox has, by the names that Twelve Data gives them. How others spell them: `spellings`."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from zoneinfo import ZoneInfo

from pricing_pipeline.sandbox.recorded import SYMBOLS, recorded_bars
from pricing_pipeline.sandbox.units import CENT, UNITS, units_of
from pricing_pipeline.sandbox.venues import ABROAD, COINS, FOREX, FUNDS, NASDAQ, NYSE, Venue

UNKNOWN_PREFIX = "NOPE"
"""Symbols that start so are unknown to every provider."""

EQUITIES_FROM = date(2000, 1, 3)
ABROAD_FROM = date(2000, 1, 4)
"""London and Sydney were closed on the day before."""
FUNDS_FROM = date(2013, 1, 2)
FIRST_SCHEME, UNKNOWN_SCHEMES_FROM = 100_000, 900_000
"""Scheme codes from the first up to, not including, the second exist."""

_TICKER = re.compile(r"[A-Z][A-Z0-9]{0,19}(\.[AB])?")
"""A share of the United States; a letter behind the dot is its class."""
_PAIR = re.compile(r"([A-Z]{2,5})/([A-Z]{3,4})")


class Kind(StrEnum):
    EQUITY = "equity"
    FOREX = "forex"
    CRYPTO = "crypto"
    FUND = "fund"


@dataclass(frozen=True, slots=True)
class Instrument:
    """One thing with a price. `anchor` and `tick` are in units of 10^-5, `swing` and `bound` in steps."""

    symbol: str
    kind: Kind
    name: str
    venue: Venue
    currency: str
    base: str
    """Name of what a pair's price is for; empty for other kinds."""
    quote: str
    """Name of the currency a pair's price is in; empty for other kinds."""
    first_day: date
    anchor: int
    tick: int
    swing: int
    bound: int
    volume: int

    @property
    def key(self) -> str:
        """Its own among all markets: several have the same symbol."""
        return f"{self.symbol}:{self.venue.exchange}" if self.venue.suffix else self.symbol

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
        return 7 if self.kind is Kind.CRYPTO else 5


_LISTED = {
    "AAPL": ("Apple Inc.", NASDAQ),
    "META": ("Meta Platforms, Inc.", NASDAQ),
    "GOOG": ("Google Inc.", NASDAQ),
    "IBM": ("International Business Machines Corp", NYSE),
    "MSFT": ("Microsoft Corporation", NASDAQ),
}

# By exchange and ticker: name, and about what a share cost in 2024, in the unit of its market (pence in London).
_ABROAD = {
    "LSE": {"BARC": ("Barclays PLC", "240.5"), "VOD": ("Vodafone Group Public Limited Company", "72.5")},
    "XETR": {"SAP": ("SAP SE", "210.35"), "SIE": ("Siemens Aktiengesellschaft", "176.2")},
    "ASX": {"ALL": ("Aristocrat Leisure Limited", "54.3"), "BHP": ("BHP Group Limited", "41.8")},
    "JSE": {"NPN": ("Naspers Limited", "3950"), "SOL": ("Sasol Limited", "131.4")},
}

# Name and about what one unit was worth in US dollars in 2024: enough for plausible rates of all pairs.
_CURRENCIES = {
    "AED": ("UAE Dirham", "0.2723"),
    "AUD": ("Australian Dollar", "0.66"),
    "BRL": ("Brazil Real", "0.19"),
    "CAD": ("Canadian Dollar", "0.73"),
    "CHF": ("Swiss Franc", "1.13"),
    "CNY": ("Chinese Yuan", "0.139"),
    "CZK": ("Czech Koruna", "0.043"),
    "DKK": ("Danish Krone", "0.145"),
    "EUR": ("Euro", "1.082"),
    "GBP": ("British Pound", "1.278"),
    "HKD": ("Hong Kong Dollar", "0.128"),
    "HUF": ("Hungarian Forint", "0.00274"),
    "IDR": ("Indonesian Rupiah", "0.000063"),
    "ILS": ("Israeli Shekel", "0.27"),
    "INR": ("Indian Rupee", "0.01195"),
    "JPY": ("Japanese Yen", "0.0066"),
    "KRW": ("South Korean Won", "0.00073"),
    "MXN": ("Mexican Peso", "0.055"),
    "NOK": ("Norwegian Krone", "0.093"),
    "NZD": ("New Zealand Dollar", "0.605"),
    "PLN": ("Polish Zloty", "0.251"),
    "SEK": ("Swedish Krona", "0.0946"),
    "SGD": ("Singapore Dollar", "0.748"),
    "THB": ("Thai Baht", "0.0284"),
    "TRY": ("Turkish Lira", "0.0305"),
    "USD": ("US Dollar", "1"),
    "ZAR": ("South African Rand", "0.0546"),
}
_METALS = {
    "XAG": ("Silver Spot", "28"),
    "XAU": ("Gold Spot", "2400"),
    "XPD": ("Palladium Spot", "950"),
    "XPT": ("Platinum Spot", "960"),
}
_STABLE_COINS = {"USDC": ("USD Coin", "1"), "USDT": ("Tether", "1")}
"""Other coins are quoted in them."""
_COINS = {
    **_STABLE_COINS,
    "ADA": ("Cardano", "0.45"),
    "BNB": ("Binance Coin", "580"),
    "BTC": ("Bitcoin", "62000"),
    "DOGE": ("Dogecoin", "0.12"),
    "DOT": ("Polkadot", "6.2"),
    "ETH": ("Ethereum", "3100"),
    "LINK": ("Chainlink", "14"),
    "LTC": ("Litecoin", "78"),
    "SOL": ("Solana", "148"),
    "XRP": ("XRP", "0.55"),
}


@lru_cache(maxsize=50_000)
def find_instrument(symbol: str) -> Instrument | None:
    """The share of the United States, currency pair or coin of this symbol, or None if there is none.

    Any ticker is a share, unless it is made of the codes of two currencies.
    """
    if symbol.startswith(UNKNOWN_PREFIX):
        return None
    if pair := _PAIR.fullmatch(symbol):
        return _pair(symbol, pair[1], pair[2])
    return _equity(symbol) if _TICKER.fullmatch(symbol) and not _is_pair(symbol) else None


@lru_cache(maxsize=1000)
def find_abroad(ticker: str, venue: Venue) -> Instrument | None:
    """The share of this ticker on a market outside the United States, or None if there is none."""
    listing = _ABROAD.get(venue.exchange, {}).get(ticker)
    if listing is None:
        return None
    name, price = listing
    key = f"{ticker}:{venue.exchange}"
    return _share(ticker, name, venue, ABROAD_FROM, units_of(price), pick(f"volume:{key}", 10**5, 10**7))


def known_instruments() -> list[Instrument]:
    """Instruments with a name of their own, which a search can list. Pairs with the dollar stand for all pairs."""
    shares = [_equity(symbol) for symbol in SYMBOLS]
    shares += [_equity(ticker) for venue in ABROAD for ticker in _ABROAD[venue.exchange]]
    abroad = [find_abroad(ticker, venue) for venue in ABROAD for ticker in _ABROAD[venue.exchange]]
    pairs = [find_instrument(f"{code}/USD") for code in (*_CURRENCIES, *_METALS, *_COINS)]
    return [*shares, *(instrument for instrument in (*abroad, *pairs) if instrument is not None)]


@lru_cache(maxsize=50_000)
def find_scheme(code: int) -> Instrument | None:
    """The Indian mutual fund of this AMFI scheme code, or None if there is none."""
    if not FIRST_SCHEME <= code < UNKNOWN_SCHEMES_FROM:
        return None
    return Instrument(
        symbol=str(code),
        kind=Kind.FUND,
        name="",  # schemes carry more than a name; the dialect of mfapi.in gives it
        venue=FUNDS,
        currency="INR",
        base="",
        quote="",
        first_day=FUNDS_FROM,
        anchor=pick(f"nav:{code}", 10 * UNITS, 250 * UNITS),
        tick=10,  # NAVs are published with 4 decimals; mfapi.in writes a fifth, always 0
        swing=1_400,
        bound=78_000,
        volume=0,
    )


def pick(key: str, least: int, below: int) -> int:
    """A number from `least` up to `below` that depends on `key` alone, in every process."""
    digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
    return least + int.from_bytes(digest, "big") % (below - least)


def _equity(symbol: str) -> Instrument:
    if symbol in SYMBOLS:
        name, venue = _LISTED[symbol]
        recorded = recorded_bars()[symbol]
        return _share(symbol, name, venue, recorded[0].day, units_of(recorded[-1].close), recorded[-1].volume)
    venue = (NASDAQ, NYSE)[pick(f"exchange:{symbol}", 0, 2)]
    anchor = pick(f"anchor:{symbol}", 10 * 100, 500 * 100) * CENT
    volume = pick(f"volume:{symbol}", 10**5, 10**7)
    return _share(symbol, f"{symbol} Corp", venue, EQUITIES_FROM, anchor, volume)


def _share(symbol: str, name: str, venue: Venue, first_day: date, anchor: int, volume: int) -> Instrument:
    return Instrument(
        symbol=symbol,
        kind=Kind.EQUITY,
        name=name,
        venue=venue,
        currency=venue.currency,
        base="",
        quote="",
        first_day=first_day,
        anchor=anchor,
        tick=CENT,
        swing=2_000,
        bound=131_072,
        volume=volume,
    )


def _is_pair(text: str) -> bool:
    """Whether the text is two codes without a slash, such as EURUSD: nowhere the symbol of a share."""
    return any(_pair(text, text[:at], text[at:]) is not None for at in range(2, len(text) - 2))


def _pair(symbol: str, base: str, quote: str) -> Instrument | None:
    coin = _COINS.get(base)
    left = coin or _CURRENCIES.get(base) or _METALS.get(base)
    right = _CURRENCIES.get(quote) or (_STABLE_COINS.get(quote) if coin else None)
    if left is None or right is None or base == quote:
        return None
    anchor = int(Decimal(left[1]) / Decimal(right[1]) * UNITS)
    return Instrument(
        symbol=symbol,
        kind=Kind.CRYPTO if coin else Kind.FOREX,
        name=f"{left[0]} {right[0]}",
        venue=COINS if coin else FOREX,
        currency=quote,
        base=left[0],
        quote=right[0],
        first_day=date(2014, 1, 1) if coin else EQUITIES_FROM,
        anchor=max(anchor, 1),
        tick=CENT if anchor >= 10 * UNITS and coin else 1,
        swing=4_700 if coin else 660,
        bound=100_000 if coin else 13_000,
        volume=0,
    )
