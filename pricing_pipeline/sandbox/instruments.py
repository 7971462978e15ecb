"""Which symbols the sandbox knows, and what each one is. Prices and spellings are not decided here."""

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

UNKNOWN_PREFIX = "NOPE"
"""Symbols that start so are unknown to every provider."""

EQUITIES_FROM = date(2000, 1, 3)
FUNDS_FROM = date(2013, 1, 2)
FIRST_SCHEME, UNKNOWN_SCHEMES_FROM = 100_000, 900_000
"""Scheme codes from the first up to, not including, the second exist."""

_NEW_YORK, _UTC, _KOLKATA = ZoneInfo("America/New_York"), ZoneInfo("UTC"), ZoneInfo("Asia/Kolkata")
_EQUITY_SYMBOL = re.compile(r"[A-Z][A-Z0-9._-]{0,19}")
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
    exchange: str
    mic_code: str
    currency: str
    base: str
    """Name of what a pair's price is for; empty for other kinds."""
    quote: str
    """Name of the currency a pair's price is in; empty for other kinds."""
    zone: ZoneInfo
    """Its trading days are days of this zone."""
    first_day: date
    anchor: int
    tick: int
    swing: int
    bound: int
    volume: int

    @property
    def week_days(self) -> int:
        """Trading days in a week, Monday first."""
        return 7 if self.kind is Kind.CRYPTO else 5


_LISTED = {
    "AAPL": ("Apple Inc.", "NASDAQ", "XNGS"),
    "FB": ("Facebook, Inc.", "NASDAQ", "XNGS"),
    "GOOG": ("Google Inc.", "NASDAQ", "XNGS"),
    "IBM": ("International Business Machines Corp", "NYSE", "XNYS"),
    "MSFT": ("Microsoft Corporation", "NASDAQ", "XNGS"),
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
    """The equity, currency pair or coin of this symbol as Twelve Data spells it, or None if there is none."""
    symbol = symbol.upper()
    if symbol.startswith(UNKNOWN_PREFIX):
        return None
    if pair := _PAIR.fullmatch(symbol):
        return _pair(symbol, pair[1], pair[2])
    return _equity(symbol) if _EQUITY_SYMBOL.fullmatch(symbol) else None


@lru_cache(maxsize=50_000)
def find_scheme(code: int) -> Instrument | None:
    """The Indian mutual fund of this AMFI scheme code, or None if there is none."""
    if not FIRST_SCHEME <= code < UNKNOWN_SCHEMES_FROM:
        return None
    return Instrument(
        symbol=str(code),
        kind=Kind.FUND,
        name="",  # schemes carry more than a name; the dialect of mfapi.in gives it
        exchange="",
        mic_code="",
        currency="INR",
        base="",
        quote="",
        zone=_KOLKATA,
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
        name, exchange, mic_code = _LISTED[symbol]
        recorded = recorded_bars()[symbol]
        first_day, volume = recorded[0].day, recorded[-1].volume
        anchor = units_of(recorded[-1].close)
    else:
        exchange, mic_code = (("NASDAQ", "XNGS"), ("NYSE", "XNYS"))[pick(f"exchange:{symbol}", 0, 2)]
        name, first_day, volume = f"{symbol} Corp", EQUITIES_FROM, pick(f"volume:{symbol}", 10**5, 10**7)
        anchor = pick(f"anchor:{symbol}", 10 * 100, 500 * 100) * CENT
    return Instrument(
        symbol=symbol,
        kind=Kind.EQUITY,
        name=name,
        exchange=exchange,
        mic_code=mic_code,
        currency="USD",
        base="",
        quote="",
        zone=_NEW_YORK,
        first_day=first_day,
        anchor=anchor,
        tick=CENT,
        swing=2_000,
        bound=131_072,
        volume=volume,
    )


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
        exchange="Coinbase Pro" if coin else "Forex",
        mic_code="",
        currency=quote,
        base=left[0],
        quote=right[0],
        zone=_UTC,
        first_day=date(2014, 1, 1) if coin else EQUITIES_FROM,
        anchor=max(anchor, 1),
        tick=CENT if anchor >= 10 * UNITS and coin else 1,
        swing=4_700 if coin else 660,
        bound=100_000 if coin else 13_000,
        volume=0,
    )
