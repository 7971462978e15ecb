"""What a search finds among the sandbox's instruments. How a provider lists it is its dialect's affair."""

from __future__ import annotations

import re
from functools import cache

from pricing_pipeline.sandbox.instruments import Instrument, find_abroad, find_instrument, known_instruments
from pricing_pipeline.sandbox.venues import ABROAD

_NUMBER = re.compile(r"[A-Z]{2}[A-Z0-9]{9}[0-9]")
"""An ISIN or a FIGI."""
_ISINS = {
    "": "AAPL US0378331005 BRK.B US0846707026 GOOG US02079K1079 IBM US4592001014 KO US1912161007 META US30303M1027 "
    "MSFT US5949181045 NVDA US67066G1040 SPY US78462F1030 TSLA US88160R1014 VTI US9229087690",
    "LSE": "AZN GB0009895292 BARC GB0031348658 BT.A GB0030913577 HSBA GB0005405286 SHEL GB00BP6MXD84 VOD GB00BH4HKS39 "
    "VUSA IE00B3XXRP09",
    "NSE": "HDFCBANK INE040A01034 INFY INE009A01021 M&M INE101A01026 RELIANCE INE002A01018 TCS INE467B01029",
    "XETR": "ALV DE0008404005 BAS DE000BASF111 EUNL IE00B4L5Y983 SAP DE0007164600 SIE DE0007236101 VWCE IE00BK5BQT80",
}
"""By exchange, '' being those of the United States: tickers, each with its ISIN."""


def matching_instruments(query: str) -> list[Instrument]:
    """Those whose symbol begins with the query, or whose name has it; the case of letters does not count.

    A ticker that nobody named is a made-up share, and is found by its whole symbol only, in capitals. An ISIN is that
    of a well-known share, or nobody's.
    """
    if _NUMBER.fullmatch(query.upper()):
        instrument = _by_isin().get(query.upper())
        return [] if instrument is None else [instrument]
    made_up = find_instrument(query)
    known = _known()
    matches = [instrument for instrument in known if instrument.symbol.startswith(query.upper())]
    matches += [instrument for instrument in known if query.lower() in instrument.name.lower()]
    return list(dict.fromkeys([*([] if made_up is None else [made_up]), *matches]))


def has_words(query: str, text: str) -> bool:
    """Whether the text has all words of the query, as names of funds are searched."""
    return all(word in text.lower() for word in query.lower().split())


@cache
def _known() -> tuple[Instrument, ...]:
    return tuple(known_instruments())


@cache
def _by_isin() -> dict[str, Instrument]:
    venues = {venue.exchange: venue for venue in ABROAD}
    found = dict[str, Instrument]()
    for exchange, pairs in _ISINS.items():
        words = pairs.split()
        for ticker, isin in zip(words[::2], words[1::2], strict=True):
            instrument = find_abroad(ticker, venues[exchange]) if exchange else find_instrument(ticker)
            if instrument is not None:
                found[isin] = instrument
    return found
