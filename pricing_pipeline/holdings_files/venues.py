"""Where an instrument of a file trades: by the broker's name of the exchange, or by ISIN and currency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pricing_pipeline.domain.exchanges import exchanges
from pricing_pipeline.holdings_files.positions import Kind, Names

_OF_THE_US = "XNYS"
"""Stands for all exchanges of the United States: a symbol there names none."""
_US = frozenset({"XNYS", "XNAS"})

_HOMES: Mapping[str, str] = {
    "AT": "XWBO",
    "AU": "XASX",
    "BE": "XBRU",
    "BR": "BVMF",
    "CA": "XTSE",
    "CH": "XSWX",
    "CZ": "XPRA",
    "DE": "XETR",
    "DK": "XCSE",
    "ES": "XMAD",
    "FI": "XHEL",
    "FR": "XPAR",
    "GB": "XLON",
    "GG": "XLON",
    "HK": "XHKG",
    "HU": "XBUD",
    "ID": "XIDX",
    "IL": "XTAE",
    "IN": "XNSE",
    "IT": "XMIL",
    "JE": "XLON",
    "JP": "XTKS",
    "KR": "XKRX",
    "MX": "XMEX",
    "MY": "XKLS",
    "NO": "XOSL",
    "NZ": "XNZE",
    "PK": "XKAR",
    "PL": "XWAR",
    "PT": "XLIS",
    "SA": "XSAU",
    "SE": "XSTO",
    "SG": "XSES",
    "TH": "XBKK",
    "TR": "XIST",
    "TW": "XTAI",
    "US": _OF_THE_US,
    "ZA": "XJSE",
}
"""The exchange of nearly all shares of a country, by the first two letters of an ISIN. Funds of Ireland and Luxembourg
trade all over Europe, and so do companies of the Netherlands.
"""

_OF_XTB = ("BE", "CH", "CZ", "DE", "DK", "ES", "FI", "FR", "IT", "NO", "PL", "PT", "SE", "US")
"""Countries that stand for their exchange in its symbols."""

_NAMES: Mapping[str, Mapping[str, str]] = {
    "degiro": {
        "ASX": "XASX",
        "EAM": "XAMS",
        "EBR": "XBRU",
        "ELI": "XLIS",
        "EPA": "XPAR",
        "FRA": "XFRA",
        "HKS": "XHKG",
        "HSE": "XHEL",
        "LSE": "XLON",
        "MAD": "XMAD",
        "MIL": "XMIL",
        "NDQ": "XNAS",
        "NSY": "XNYS",
        "OMK": "XCSE",
        "OMX": "XSTO",
        "OSL": "XOSL",
        "SGX": "XSES",
        "SWX": "XSWX",
        "TOR": "XTSE",
        "TSE": "XTKS",
        "WSE": "XWAR",
        "XET": "XETR",
    },
    "interactive_brokers": {
        "AEB": "XAMS",
        "AMEX": _OF_THE_US,
        "ARCA": _OF_THE_US,
        "ASX": "XASX",
        "BATS": _OF_THE_US,
        "BM": "XMAD",
        "BSE": "XBOM",
        "BVL": "XLIS",
        "BVME": "XMIL",
        "BVME.ETF": "XMIL",
        "CPH": "XCSE",
        "EBS": "XSWX",
        "ENEXT.BE": "XBRU",
        "FWB": "XFRA",
        "FWB2": "XFRA",
        "HEX": "XHEL",
        "IBIS": "XETR",
        "IBIS2": "XETR",
        "JSE": "XJSE",
        "KSE": "XKRX",
        "LSE": "XLON",
        "LSEETF": "XLON",
        "MEXI": "XMEX",
        "NASDAQ": "XNAS",
        "NSE": "XNSE",
        "NYSE": "XNYS",
        "OSE": "XOSL",
        "PINK": _OF_THE_US,
        "PRA": "XPRA",
        "SBF": "XPAR",
        "SEHK": "XHKG",
        "SFB": "XSTO",
        "SGX": "XSES",
        "TASE": "XTAE",
        "TSE": "XTSE",
        "TSEJ": "XTKS",
        "VSE": "XWBO",
        "WSE": "XWAR",
    },
    "xtb": {country: _HOMES[country] for country in _OF_XTB} | {"NL": "XAMS", "UK": "XLON"},
}
"""MIC by the broker, and what it calls the exchange."""

_LIKELIEST = {"NL": "XAMS"}
"""The likeliest of several exchanges."""
_WITH_FUNDS_IN_LONDON = ("IE", "JE", "LU")
_PARTS = {"GBX": "GBp", "GBp": "GBp", "ZAC": "ZAc", "ZAc": "ZAc", "ILA": "ILA"}
"""Currencies in parts, as brokers and as exchanges.toml write them."""
_MONEY = {"XAMS": "EUR", "XHKG": "HKD", "XLON": "GBP", "XSES": "SGD", "XTAE": "ILS"}
"""What most shares are priced in, on exchanges where not all are."""
_FUND_OF_INDIA = "INF"


@dataclass(frozen=True, slots=True)
class Meant:
    """What symbols a position could have, the likeliest first. Several mean that the file does not say which."""

    symbols: Sequence[str]
    classes: Sequence[str] | None
    """The asset classes that it can be of; None = any."""
    doubt: str = ""
    """Why even a single symbol is a guess."""


def mic_at(broker: str, name: str) -> str:
    """The MIC of an exchange by a broker's name for it; the name itself if it is unknown."""
    return _NAMES[broker].get(name.strip().upper(), name.strip())


def meant_by(names: Names, *, bare_is_american: bool = False) -> Meant:
    """The symbols that the instrument of a file could have here, none if the file has no ticker.

    `bare_is_american`: tickers of the file follow Yahoo's custom, by which one without a suffix is American.
    """
    ticker = names.ticker.strip()
    if names.kind is Kind.COIN:
        symbol = ticker if "/" in ticker or not names.currency else f"{ticker}/{names.currency}"
        return Meant([symbol.replace(".", "/")] if ticker else [], ["crypto"])
    classes = {Kind.SHARE: ["equity"], Kind.FUND: ["fund", "equity"]}.get(names.kind) if names.kind else None
    # Morningstar's number of a fund, which Yahoo has and nobody else.
    if not ticker or (names.isin.startswith(_FUND_OF_INDIA) and ticker.startswith("0P")):
        return Meant([], ["fund"] if names.isin.startswith(_FUND_OF_INDIA) else classes)
    if names.exchange in exchanges():
        return Meant([_at(ticker, names.exchange)], classes or ["equity"])
    if _says_where(ticker):
        return Meant([ticker], classes)
    if names.isin.startswith(_FUND_OF_INDIA) and ticker.isdigit():
        return Meant([ticker], ["fund"])
    symbols = [_at(ticker, mic) for mic in _where(names, bare_is_american=bare_is_american)]
    doubt = f"its exchange {names.exchange} is not in our table of exchanges" if names.exchange else ""
    return Meant(symbols or [ticker], classes, doubt)


def _where(names: Names, *, bare_is_american: bool) -> Sequence[str]:
    """The exchanges at which it may trade, by its ISIN and its currency; none where both are silent."""
    parts = _PARTS.get(names.currency)
    if parts is not None:
        return [mic for mic, exchange in exchanges().items() if exchange.minor_unit == parts]
    home = _HOMES.get(names.isin[:2])
    if not names.currency:
        return [home] if home else []
    if home and names.currency == _money(home):
        return [home]
    if bare_is_american and names.isin and home is None:
        return [_OF_THE_US]
    likeliest = _LIKELIEST.get(names.isin[:2], "")
    # The shares of Frankfurt's floor have the tickers of Xetra.
    with_currency = [mic for mic in exchanges() if _money(mic) == names.currency and mic != "XFRA"]
    with_currency.sort(key=lambda mic: mic != likeliest)
    if names.currency == "USD":
        # Many companies of other countries trade in New York alone, and funds of these countries also in London.
        return [_OF_THE_US, "XLON"] if names.isin[:2] in _WITH_FUNDS_IN_LONDON else [_OF_THE_US]
    if bare_is_american and home:  # the currency may be that of the account
        return [home, *(mic for mic in with_currency if mic != home)]
    # Yahoo's ending names the exchange, and funds of India have numbers instead of tickers.
    return [] if not names.isin and (bare_is_american or names.ticker.isdigit()) else with_currency


def _money(mic: str) -> str | None:
    return exchanges()[mic].currency or _MONEY.get(mic)


def _at(ticker: str, mic: str) -> str:
    """The symbol of a ticker at an exchange. How its class and its zeros are spelled is the judge's affair."""
    return ticker if mic in _US else f"{ticker}:{mic}"


def _says_where(ticker: str) -> bool:
    """Whether a ticker names its exchange, or is a pair: VOD.L, VOD:LSE, VOD LN, EURUSD=X, BTC-USD."""
    _, _, suffix = ticker.rpartition(".")
    return (
        any(sign in ticker for sign in ":=/^")
        or (suffix not in ("", ticker) and any(suffix.upper() == exchange.suffix for exchange in exchanges().values()))
        or (len(ticker.split()) == 2 and len(ticker.split()[1]) == 2)
        or ticker.upper().endswith(("-USD", "-EUR", "-GBP", "-USDT"))
    )
