"""Exchanges by their MIC (ISO 10383), from exchanges.toml: how providers name them, and their currency."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

_FILE = Path(__file__).with_name("exchanges.toml")


class Exchange(NamedTuple):
    """The names of an exchange at providers; `currency` is None where its shares have several."""

    mic: str
    twelvedata: str
    yahoo: str
    fmp: str
    currency: str | None = None


@cache
def exchanges() -> Mapping[str, Exchange]:
    """Exchange by its MIC."""
    return {
        mic: Exchange(mic, **names) for mic, names in tomllib.loads(_FILE.read_text(encoding="utf-8")).items()
    }


def currency_of(asset_class: str, symbol: str) -> str | None:
    """The currency that the prices of a canonical symbol must have, if the symbol tells it."""
    if asset_class in ("fx", "crypto"):
        return symbol.partition("/")[2] or None
    if asset_class == "equity" and ":" in symbol:
        exchange = exchanges().get(symbol.partition(":")[2])
        return None if exchange is None else exchange.currency
    return None
