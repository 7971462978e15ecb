"""How each provider spells an instrument: one spelling each, and anything else is unknown to it."""

from __future__ import annotations

import re
from functools import lru_cache

from pricing_pipeline.sandbox.instruments import (
    Instrument,
    Kind,
    find_abroad,
    find_future,
    find_index,
    find_instrument,
)
from pricing_pipeline.sandbox.venues import ABROAD, Venue

_YAHOO_PAIR = re.compile(r"([A-Z]{3})([A-Z]{3})=X")
_YAHOO_COIN = re.compile(r"([A-Z0-9]{2,10})-([A-Z]{3,4})")
_SHARE = re.compile(r"([A-Z0-9&'-]+?)(?:-([A-Z]))?(?:\.([A-Z]+))?")
"""A ticker, its class, and its market: `BRK-B`, `VOD.L`, `BAJAJ-AUTO.NS`."""
_METALS = ("XAG/", "XAU/", "XPD/", "XPT/")
_BY_SUFFIX = {venue.suffix: venue for venue in ABROAD}
TYPES = {Kind.EQUITY: "Common Stock", Kind.FOREX: "Physical Currency", Kind.CRYPTO: "Digital Currency"}
"""Twelve Data's names of kinds of instruments."""


@lru_cache(50_000)
def of_twelvedata(
    symbol: str, exchange: str = "", mic_code: str = "", country: str = "", type_: str = ""
) -> Instrument | None:
    """`AAPL`, `BRK.B`, `EUR/USD`, `VOD:LSE`, `VOD:XLON`, or `VOD` with the market told beside it.

    Without a market a ticker is that of the United States.
    """
    ticker, colon, market = symbol.partition(":")
    found = find_instrument(ticker)
    if colon and not market:
        return None

    def is_meant(venue: Venue) -> bool:
        return (
            market in ("", *venue.names, venue.mic_code)
            and exchange in ("", *venue.names)
            and mic_code in ("", venue.mic_code)
            and country in ("", venue.country)
        )

    if any((market, exchange, mic_code, country)) and (found is None or not is_meant(found.venue)):
        venue = next((venue for venue in ABROAD if is_meant(venue)), None)
        found = None if venue is None else find_abroad(ticker, venue)
    return found if found is not None and type_ in ("", TYPES[found.kind]) else None


@lru_cache(50_000)
def of_yahoo(symbol: str) -> Instrument | None:
    """`AAPL`, `BRK-B`, `VOD.L`, `^FTSE`, `EURUSD=X`, `BTC-USD`, `GC=F`. Metals are futures there."""
    if found := find_index(symbol) or find_future(symbol):
        return found
    if pair := _YAHOO_PAIR.fullmatch(symbol):
        slashed = f"{pair[1]}/{pair[2]}"
        return None if slashed.startswith(_METALS) else _of_kind(slashed, Kind.FOREX)
    if coin := _YAHOO_COIN.fullmatch(symbol):
        return _of_kind(f"{coin[1]}/{coin[2]}", Kind.CRYPTO)
    return of_fmp(symbol)


def of_fmp(symbol: str) -> Instrument | None:
    """`AAPL`, `BRK-B`, `VOD.L`: it has shares only."""
    parts = _SHARE.fullmatch(symbol)
    if parts is None:
        return None
    ticker, share_class, suffix = parts.groups()
    symbol = f"{ticker}.{share_class}" if share_class else ticker
    if suffix is None:
        return find_instrument(symbol)
    venue = _BY_SUFFIX.get(suffix)
    return None if venue is None else find_abroad(symbol, venue)


def _of_kind(slashed: str, kind: Kind) -> Instrument | None:
    instrument = find_instrument(slashed)
    return instrument if instrument is not None and instrument.kind is kind else None


def for_fmp(instrument: Instrument) -> str:
    """The one spelling by which `of_fmp` finds a share."""
    suffix = f".{instrument.venue.suffix}" if instrument.venue.suffix else ""
    return re.sub("[. ]", "-", instrument.symbol) + suffix
