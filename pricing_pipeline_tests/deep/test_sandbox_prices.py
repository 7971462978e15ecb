"""Bars and sessions of every instrument of the sandbox."""

from __future__ import annotations

from datetime import date

import pytest

from pricing_pipeline.domain.exchanges import corrections
from pricing_pipeline.registry.calendars import exchange_sessions
from pricing_pipeline.sandbox.instruments import find_abroad, find_instrument
from pricing_pipeline.sandbox.prices import Market
from pricing_pipeline.sandbox.venues import ABROAD

pytestmark = pytest.mark.xdist_group("calendars")  # a process takes seconds to work them out


@pytest.mark.parametrize(("symbol", "calendar"), [("NVDA", "XNYS"), ("VOD", "XLON")])
def test_f6_every_bar_is_of_a_session_and_every_session_has_one(symbol, calendar):
    """Else the pipeline would doubt bars of holidays, or open these days for all by two such bars."""
    known = exchange_sessions(calendar, date(2000, 1, 1), date(2035, 12, 31))  # as the sandbox: it is worked out once
    first, last = max(known.start, date(2013, 3, 4)), date(2030, 12, 31)
    sessions = {day for day in known.days if first <= day <= last}
    for correction in corrections():
        if correction.calendar == calendar and first <= correction.day <= last:
            (sessions.add if correction.is_open else sessions.discard)(correction.day)
    abroad = {venue.mic_code: venue for venue in ABROAD}
    market = abroad.get(calendar)
    instrument = find_instrument(symbol) if market is None else find_abroad(symbol, market)
    assert instrument is not None
    bars = Market(seed=1).final_bars(instrument, first, last)
    assert [bar.day for bar in bars] == sorted(sessions)
