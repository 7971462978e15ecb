"""Canonical symbols: what people call an instrument, at every provider. Each provider's `spell` starts here.

    BRK.B      equity     the class of shares stands after the dot: A, B or C
    M&M:XNSE   equity     some tickers have signs in them
    VOD:XLON   equity     the exchange stands after the colon, by its MIC; without one it is one of the United States
    EUR/USD    fx
    BTC/USD    crypto
    118632     fund       the number of its scheme

No exchange is known by A, B or C alone, so VOD.L and 7203.T are no classes of shares.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from pricing_pipeline.domain.exchanges import Exchange, exchanges

EQUITY, FX, CRYPTO = "equity", "fx", "crypto"
TICKER = r"[A-Z0-9]+(?:[&' -][A-Z0-9]+)*"
"""A ticker; some exchanges have signs in it: M&M and BAJAJ-AUTO in Mumbai, VOLV B in Stockholm."""
_SHARE = re.compile(rf"({TICKER})(?:\.([ABC]))?(?::([A-Z0-9]{{4}}))?")
PARTS_SUFFIXES = tuple(one.suffix for one in exchanges().values() if one.minor_unit)
"""Suffixes of the exchanges that price shares in parts of a currency, such as pence."""
_PAIR = re.compile(r"([A-Z0-9]+)/([A-Z0-9]+)")


class Share(NamedTuple):
    """A share: its ticker, its class if it has several, and its exchange outside the United States."""

    ticker: str
    share_class: str | None
    exchange: Exchange | None


class Pair(NamedTuple):
    """A currency or a coin, and what it is priced in."""

    base: str
    quote: str


def share_of(symbol: str, asset_class: str) -> Share | None:
    """The share of a canonical symbol; None for anything else, and for an exchange that is not known."""
    parts = _SHARE.fullmatch(symbol) if asset_class == EQUITY else None
    if parts is None:
        return None
    ticker, share_class, mic = parts.groups()
    if mic is None:
        return Share(ticker, share_class, None)
    exchange = exchanges().get(mic)
    return None if exchange is None or not exchange.suffix else Share(ticker, share_class, exchange)


def pair_of(symbol: str, asset_class: str) -> Pair | None:
    """The pair of a canonical symbol; None for anything else."""
    parts = _PAIR.fullmatch(symbol) if asset_class in (FX, CRYPTO) else None
    return None if parts is None else Pair(parts[1], parts[2])


def exchange_named(provider: str, name: str | None) -> Exchange | None:
    """The exchange that a provider calls so, or whose MIC this is."""
    if not name:
        return None
    return next(
        (
            exchange
            for exchange in exchanges().values()
            if name in (exchange.mic, exchange.twelvedata if provider == "twelvedata" else exchange.suffix)
        ),
        None,
    )


def with_suffix(share: Share) -> str:
    """A share as Yahoo and FMP spell it: BRK-B, VOD.L, M&M.NS; VOLV B of Stockholm is VOLV-B.ST."""
    ticker = share.ticker.replace(" ", "-")
    spelled = ticker if share.share_class is None else f"{ticker}-{share.share_class}"
    return spelled if share.exchange is None else f"{spelled}.{share.exchange.suffix}"
