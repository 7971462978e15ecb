"""Ghostfolio: the export as JSON. Lines are activities here, the first being 1."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pricing_pipeline.errors import HoldingsFileRefused
from pricing_pipeline.holdings_files.numbers import Mark, NotANumber, number
from pricing_pipeline.holdings_files.positions import Entry, Fault, LeftOut, Names, Read

_NO_TEXT = re.compile("[\0\ud800-\udfff]")
"""Characters that JSON can have and the database cannot store."""
_OWN = ("MANUAL", "COINGECKO")
"""Data sources whose symbols are not tickers."""
_PAYMENTS = ("DIVIDEND", "FEE", "INTEREST", "ITEM", "LIABILITY")


def read(text: str) -> Iterator[Read]:
    """Each activity as a change of a quantity, or why it has none. Raises HoldingsFileRefused for other JSON."""
    try:
        # Numbers stay text, so that none is rounded.
        content = json.loads(text, parse_float=str, parse_int=str)
    except (ValueError, RecursionError) as error:
        raise HoldingsFileRefused(f"the file is no valid JSON: {error}.") from error
    activities = content.get("activities") if isinstance(content, dict) else None
    if not isinstance(activities, list) or not all(isinstance(one, dict) for one in activities):
        raise HoldingsFileRefused(
            "the file is JSON and no export of Ghostfolio, the only JSON that is read. Export CSV."
        )
    profiles = {(_text(one, "dataSource"), _text(one, "symbol")): one for one in _profiles(content)}
    meta = content.get("meta")
    exported = _text(meta, "date") if isinstance(meta, dict) else ""
    for line, activity in enumerate(activities, 1):
        source, symbol = _text(activity, "dataSource"), _text(activity, "symbol")
        names = _names(source, symbol, profiles.get((source, symbol), {}))
        yield _change(line, activity, names, exported)


def _change(line: int, activity: Mapping[str, Any], names: Names, exported: str) -> Read:
    kind, at, what = _text(activity, "type"), _text(activity, "date"), names.in_words
    if kind in _PAYMENTS:
        return LeftOut(line, what, "a payment")
    if exported and at[:10] > exported[:10]:
        return LeftOut(line, what, "a draft, whose day is still to come")
    if kind not in ("BUY", "SELL") or not what:
        return Fault(line, what, f"{kind!r} is no kind of activity that is known here")
    try:
        quantity = number(_text(activity, "quantity"), Mark.POINT)
    except NotANumber as error:
        return Fault(line, what, str(error))
    return Entry(line, names, quantity if kind == "BUY" else -quantity, at)


def _names(source: str, symbol: str, profile: Mapping[str, Any]) -> Names:
    # The currency of an activity is that of the payment. The ticker says where it trades.
    return Names(
        isin=_text(profile, "isin").upper(),
        ticker="" if source in _OWN else symbol,
        currency=_text(profile, "currency"),
        title=_text(profile, "name") or (symbol if source in _OWN else ""),
        number=_text(profile, "cusip"),
        figi=_text(profile, "figi").upper(),
    )


def _profiles(content: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = content.get("assetProfiles")
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _text(content: Mapping[str, Any], name: str) -> str:
    value = content.get(name)
    return " ".join(_NO_TEXT.sub("\ufffd", value).split()) if isinstance(value, str) else ""
