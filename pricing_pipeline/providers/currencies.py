"""Codes of currencies that a price may be in. A code that is not here is a misspelling, or a fault of the source.

The active codes are those of ISO 4217 as the SIX Financial Information list has them in pycountry 26.2.16 (February
2026), without XXX (no currency) and XTS (for tests). They change about once a year: a new one is added here, one that
goes moves to the withdrawn ones, since histories keep it.
"""

from __future__ import annotations

_ACTIVE = """
    AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW
    CLF CLP CNY COP COU CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL
    HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA
    MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD
    RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD
    USN UYI UYU UYW UZS VED VES VND VUV WST XAD XAF XAG XAU XBA XBB XBC XBD XCD XCG XDR XOF XPD XPF XPT XSU XUA YER ZAR
    ZMW ZWG
"""
_WITHDRAWN = "ANG BGN BYR CUC EEK HRK LTL LVL MRO SLL STD TMM VEB VEF ZMK ZWL"
"""Since 2009, that is within the reach of histories."""
_COINS = "ADA BCH BNB BTC DAI DOT EOS ETC ETH LTC SOL TON TRX UNI XLM XMR XRP"
"""Coins that others are priced in, as exchanges call them; none of their codes is in ISO 4217."""
_OF_MARKETS = "CNH"
"""The yuan as it trades outside China: a rate of its own, which every market calls so."""

CURRENCIES = frozenset(f"{_ACTIVE} {_WITHDRAWN} {_COINS} {_OF_MARKETS}".split())

PARTS = {
    **dict.fromkeys(("GBp", "GBX"), ("GBP", -2)),
    **dict.fromkeys(("ZAc", "ZAC"), ("ZAR", -2)),
    "ILA": ("ILS", -2),
    "USX": ("USD", -2),
    "KWF": ("KWD", -3),
}
"""Codes for parts of a currency in which prices are quoted, none of which is ISO 4217: its code, and a power of ten.

Pence, cents of South Africa, agorot, cents of the United States (for grain and coffee), fils of Kuwait.
"""
