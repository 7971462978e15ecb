"""Codes of currencies for prices. Another code is a misspelling, or a fault of the source.

pycountry has the current codes of ISO 4217. Withdrawn codes, and codes that it never had, are here.
"""

from __future__ import annotations

import pycountry

_ACTIVE = {currency.alpha_3 for currency in pycountry.currencies} - {"XXX", "XTS"}
"""ISO 4217 without its codes for no currency and for tests."""
_WITHDRAWN = "ANG BGN BYR CUC EEK HRK LTL LVL MRO SLL STD TMM VEB VEF ZMK ZWL"
"""Since 2009, that is within the reach of histories."""
_COINS = """
    ADA BCH BNB BTC DOT EOS ETC ETH LTC SOL TON TRX UNI XLM XMR XRP
    BUSD DAI FDUSD TUSD USDC USDT
"""
"""Coins in which prices are quoted, by the names at exchanges; none of their codes is in ISO 4217. Those of the second
line stand for a dollar. BUSD is no longer issued, but histories are in it."""
_OF_MARKETS = "CNH"
"""The yuan as it trades outside China: a rate of its own, which every market calls so."""

COINS = tuple(_COINS.split())
CURRENCIES = frozenset(_ACTIVE.union(_WITHDRAWN.split(), COINS, _OF_MARKETS.split()))

PARTS = {
    **dict.fromkeys(("GBp", "GBX"), ("GBP", -2)),
    **dict.fromkeys(("ZAc", "ZAC"), ("ZAR", -2)),
    "ILA": ("ILS", -2),
    "USX": ("USD", -2),
    "KWF": ("KWD", -3),
}
"""Codes, not in ISO 4217, for parts of a currency in which prices are quoted: the currency's code, and a power of ten.

Pence, cents of South Africa, agorot, cents of the United States (for grain and coffee), fils of Kuwait.
"""

_WITHOUT_DECIMALS = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"
_THREE_DECIMALS = "BHD IQD JOD KWD LYD OMR TND"
_FOUR_DECIMALS = "CLF UYW"
_DIGITS = {
    **dict.fromkeys(_WITHOUT_DECIMALS.split(), 0),
    **dict.fromkeys(_THREE_DECIMALS.split(), 3),
    **dict.fromkeys(_FOUR_DECIMALS.split(), 4),
}
"""Decimals of the currencies of ISO 4217 that do not have two. pycountry does not have them."""


def digits_of(currency: str) -> int:
    """How many decimals an amount of a currency has: 2 of USD, 0 of JPY, 3 of KWD."""
    return _DIGITS.get(currency, 2)
