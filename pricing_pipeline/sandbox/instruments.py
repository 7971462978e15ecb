"""Which instruments the sandbox has, by the names that Twelve Data gives them. How others spell them: `spellings`."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from zoneinfo import ZoneInfo

from pricing_pipeline.sandbox.recorded import SYMBOLS, recorded_bars
from pricing_pipeline.sandbox.units import CENT, UNITS, decimal_text, units_of
from pricing_pipeline.sandbox.venues import ABROAD, COINS, FOREX, FUNDS, NASDAQ, NYSE, Venue

UNKNOWN_PREFIX = "NOPE"
"""Symbols that start so are unknown to every provider."""

EQUITIES_FROM = date(2000, 1, 3)
ABROAD_FROM = date(2000, 1, 4)
"""London and Sydney were closed on the day before."""
FUNDS_FROM = date(2013, 1, 2)
FIRST_SCHEME, UNKNOWN_SCHEMES_FROM = 100_000, 900_000
"""Scheme codes from the first up to, not including, the second exist."""

_TICKER = re.compile(r"[A-Z][A-Z0-9]{0,19}(\.[A-C])?")
"""A share of the United States; a letter behind the dot is its class."""
_TICKER_ABROAD = re.compile(r"(?=.{1,20}$)[A-Z0-9]+([&' .-][A-Z0-9]+)*")
_PAIR = re.compile(r"([A-Z0-9]{2,10})/([A-Z]{3,4})")


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

# By exchange and ticker: name, and about what a share cost in 2024, in the unit of its market (pence in London). What
# any other ticker costs is invented.
_ABROAD = {
    "LSE": {"BARC": ("Barclays PLC", "240.5"), "VOD": ("Vodafone Group Public Limited Company", "72.5")},
    "XETR": {"SAP": ("SAP SE", "210.35"), "SIE": ("Siemens Aktiengesellschaft", "176.2")},
    "ASX": {"ALL": ("Aristocrat Leisure Limited", "54.3"), "BHP": ("BHP Group Limited", "41.8")},
    "JSE": {"NPN": ("Naspers Limited", "3950"), "SOL": ("Sasol Limited", "131.4")},
}

# Name and about what one unit was worth in US dollars in 2024: enough for plausible rates of all pairs.
_CURRENCIES = {
    "AED": ("UAE Dirham", "0.2723"),
    "ARS": ("Argentinian Peso", "0.0011"),
    "AUD": ("Australian Dollar", "0.66"),
    "BRL": ("Brazil Real", "0.19"),
    "CAD": ("Canadian Dollar", "0.73"),
    "CHF": ("Swiss Franc", "1.13"),
    "CLP": ("Chilean Peso", "0.00106"),
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
    "KWD": ("Kuwaiti Dinar", "3.26"),
    "MXN": ("Mexican Peso", "0.055"),
    "MYR": ("Malaysian Ringgit", "0.213"),
    "NOK": ("Norwegian Krone", "0.093"),
    "NZD": ("New Zealand Dollar", "0.605"),
    "PKR": ("Pakistani Rupee", "0.0036"),
    "PLN": ("Polish Zloty", "0.251"),
    "SAR": ("Saudi Riyal", "0.2666"),
    "SEK": ("Swedish Krona", "0.0946"),
    "SGD": ("Singapore Dollar", "0.748"),
    "THB": ("Thai Baht", "0.0284"),
    "TRY": ("Turkish Lira", "0.0305"),
    "TWD": ("Taiwan Dollar", "0.031"),
    "USD": ("US Dollar", "1"),
    "ZAR": ("South African Rand", "0.0546"),
}
_PARTS = {"GBp": ("GBP", 100), "ILA": ("ILS", 100), "KWF": ("KWD", 1000), "ZAc": ("ZAR", 100)}
"""Parts of a currency that some markets count in."""
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

# By Yahoo's symbol: name, about what it was in 2024, the suffix of its exchange, currency. London's indices are told in
# pounds, though its shares are told in pence.
_INDICES = {
    "^AEX": ("AEX-Index", "920", "AS", "EUR"), "^AXJO": ("S&P/ASX 200", "7800", "AX", "AUD"),
    "^BSESN": ("S&P BSE SENSEX", "79000", "BO", "INR"), "^BVSP": ("IBOVESPA", "124000", "SA", "BRL"),
    "^DJI": ("Dow Jones Industrial Average", "39000", "", "USD"), "^FCHI": ("CAC 40", "7600", "PA", "EUR"),
    "^FTMC": ("FTSE 250", "20500", "L", "GBP"), "^FTSE": ("FTSE 100", "8200", "L", "GBP"),
    "^GDAXI": ("DAX", "18300", "DE", "EUR"), "^GSPC": ("S&P 500", "5400", "", "USD"),
    "^GSPTSE": ("S&P/TSX Composite", "21900", "TO", "CAD"), "^HSI": ("Hang Seng Index", "18000", "HK", "HKD"),
    "^IBEX": ("IBEX 35", "11000", "MC", "EUR"), "^IXIC": ("NASDAQ Composite", "17500", "", "USD"),
    "^KS11": ("KOSPI Composite", "2800", "KS", "KRW"), "^MXX": ("IPC Mexico", "52000", "MX", "MXN"),
    "^N225": ("Nikkei 225", "38500", "T", "JPY"), "^NDX": ("NASDAQ 100", "19000", "", "USD"),
    "^NSEI": ("NIFTY 50", "24000", "NS", "INR"), "^NYA": ("NYSE Composite", "18000", "", "USD"),
    "^OMX": ("OMX Stockholm 30", "2570", "ST", "SEK"), "^RUT": ("Russell 2000", "2050", "", "USD"),
    "^SSMI": ("Swiss Market Index", "12000", "SW", "CHF"), "^STOXX50E": ("EURO STOXX 50", "4950", "DE", "EUR"),
    "^TWII": ("TSEC Weighted Index", "23000", "TW", "TWD"), "^VIX": ("CBOE Volatility Index", "15", "", "USD"),
}  # fmt: skip
# By Yahoo's symbol: name, about what it was in 2024, currency; USX are cents.
_FUTURES = {
    "BZ=F": ("Brent Crude Oil", "84", "USD"), "CC=F": ("Cocoa", "8000", "USD"), "CL=F": ("Crude Oil", "80", "USD"),
    "CT=F": ("Cotton", "75", "USX"), "ES=F": ("E-Mini S&P 500", "5400", "USD"), "GC=F": ("Gold", "2400", "USD"),
    "HG=F": ("Copper", "4.5", "USD"), "KC=F": ("Coffee", "230", "USX"), "NG=F": ("Natural Gas", "2.6", "USD"),
    "NQ=F": ("E-Mini Nasdaq 100", "19000", "USD"), "PA=F": ("Palladium", "950", "USD"),
    "PL=F": ("Platinum", "980", "USD"), "RTY=F": ("E-Mini Russell 2000", "2050", "USD"),
    "SB=F": ("Sugar", "19.5", "USX"), "SI=F": ("Silver", "29", "USD"), "YM=F": ("Mini Dow Jones", "39000", "USD"),
    "ZC=F": ("Corn", "440", "USX"), "ZS=F": ("Soybeans", "1150", "USX"), "ZW=F": ("Wheat", "590", "USX"),
}  # fmt: skip


@lru_cache(maxsize=50_000)
def find_instrument(symbol: str) -> Instrument | None:
    """The share of the United States, currency pair or coin of this symbol, or None if there is none.

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
    name, price = _ABROAD.get(venue.exchange, {}).get(ticker, (f"{ticker} Corp", None))
    dollars = pick(f"anchor:{key}", 10 * 100, 500 * 100) * CENT
    anchor = _in_currency(dollars, venue.currency) if price is None else units_of(price)
    return _share(ticker, name, venue, ABROAD_FROM, anchor, pick(f"volume:{key}", 10**5, 10**7))


def find_index(symbol: str) -> Instrument | None:
    """The index that Yahoo calls so."""
    if symbol not in _INDICES:
        return None
    name, level, suffix, currency = _INDICES[symbol]
    venue = next((venue for venue in ABROAD if venue.suffix == suffix), NYSE)
    index = _share(symbol, name, venue, ABROAD_FROM, units_of(level), 0)
    return replace(index, kind=Kind.INDEX, currency=currency)


def find_future(symbol: str) -> Instrument | None:
    """The future that Yahoo calls so: the contract that ends next."""
    if symbol not in _FUTURES:
        return None
    name, price, currency = _FUTURES[symbol]
    future = _share(symbol, name, NYSE, EQUITIES_FROM, units_of(price), 10**5)
    return replace(future, kind=Kind.FUTURE, currency=currency)


def _key_abroad(ticker: str, venue: Venue) -> str:
    """Without the signs by which providers part a ticker. By MIC, because exchanges share names at Twelve Data."""
    return f"{re.sub('[ .]', '-', ticker)}:{venue.mic_code}"


def _in_currency(dollars: int, code: str) -> int:
    """About the same money in another currency, or in the parts of one that a market counts in."""
    currency, parts = _PARTS.get(code, (code, 1))
    units = int(dollars / Decimal(_CURRENCIES[currency][1])) * parts
    return units - units % CENT


def known_instruments() -> list[Instrument]:
    """Instruments with a name of their own, which a search can list. Pairs with the dollar stand for all pairs."""
    shares = [_equity(symbol) for symbol in SYMBOLS]
    shares += [_equity(ticker) for tickers in _ABROAD.values() for ticker in tickers]
    abroad = [find_abroad(ticker, venue) for venue in ABROAD for ticker in _ABROAD.get(venue.exchange, ())]
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


def _coin(code: str) -> tuple[str, str]:
    """The name of a coin that is not listed, and about what it is worth: there are thousands."""
    return f"{code} Coin", decimal_text(pick(f"coin:{code}", UNITS // 100, 100 * UNITS))


def _pair(symbol: str, base: str, quote: str) -> Instrument | None:
    known = _COINS.get(base) or _CURRENCIES.get(base) or _METALS.get(base)
    left = known or (_coin(base) if "/" in symbol else None)
    coin = None if base in _CURRENCIES or base in _METALS else left
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
