"""mfapi.in: schemes, NAV histories and the list of the latest. It has no keys and names no limit.

The NAV of a business day is published at midnight UTC after it: on Tuesday from 00:00 UTC Monday's is the
latest, over a weekend Friday's. Any code from 100000 to 899999 is a scheme; the list holds only some of
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

from pricing_pipeline.sandbox.calls import Dialect, Invalid, ProviderCall, Reply, json_reply
from pricing_pipeline.sandbox.instruments import Instrument, find_scheme, pick
from pricing_pipeline.sandbox.prices import Market
from pricing_pipeline.sandbox.series import Bar
from pricing_pipeline.sandbox.units import decimal_text
from pricing_pipeline.sandbox.venues import WORLD

_NAMED = {int(code): told for code, told in WORLD["schemes"].items()}
"""The schemes of the recordings. All others are named after their code."""
_LISTED = sorted({*_NAMED, *range(118_000, 120_000)})
_HOUSES = ("Sandbox", "Monsoon", "Banyan", "Deccan", "Malabar")
_CATEGORIES = (
    "Equity Scheme - Large Cap Fund",
    "Equity Scheme - Mid Cap Fund",
    "Debt Scheme - Banking and PSU Fund",
    "Hybrid Scheme - Balanced Advantage Fund",
)
_CAMEL = {
    "scheme_code": "schemeCode",
    "scheme_name": "schemeName",
    "fund_house": "fundHouse",
    "scheme_type": "schemeType",
    "scheme_category": "schemeCategory",
    "isin_growth": "isinGrowth",
    "isin_div_reinvestment": "isinDivReinvestment",
}
"""Names of a scheme's fields, and what lists call them."""


class MfApi(Dialect):
    name = "mfapi"

    def __init__(self, market: Market) -> None:
        super().__init__()
        self._market = market
        self._histories = lru_cache(64)(self._whole_history)
        self._newest = lru_cache(20_000)(self._newest_row)

    def symbols(self, endpoint: str, params: Mapping[str, str]) -> tuple[str, ...]:
        code = endpoint.removeprefix("mf").strip("/").split("/")[0]
        return (code,) if code and code not in ("latest", "search") else ()

    def invalid(self, name: str, given: str) -> Reply:
        return json_reply({"error": f"invalid {name}"}, 400)

    def answered(self, call: ProviderCall) -> Reply:
        match call.endpoint.split("/"):
            case ["mf", "search"]:
                return json_reply(_found(call.params.get("q", "")))
            case ["mf", "latest"]:
                return json_reply(self._latest_of_all(call))
            case ["mf", asked] | ["mf", asked, "latest"] as parts:
                return json_reply(self._scheme(call, asked, only_latest=len(parts) == 3))
        return json_reply({"error": "not found"}, 404)

    def _scheme(self, call: ProviderCall, asked: str, *, only_latest: bool) -> dict[str, object]:
        code = call.answers.get(asked, asked)
        if not code.isascii() or not code.isdecimal():
            raise Invalid("scheme_code")
        scheme = find_scheme(int(code))
        if scheme is None:
            blank = dict.fromkeys(_meta(0), "") | {"scheme_code": 0}
            return {
                "meta": blank | {"isin_growth": None, "isin_div_reinvestment": None},
                "data": [],
                "status": "SUCCESS",
            }
        published = _published(call.now)
        if only_latest:
            newest = self._newest(scheme, published)
            rows = [] if newest is None else [newest]
        else:
            first, last = call.day("startDate") or date.min, call.day("endDate") or date.max
            rows = [row for day, row in self._histories(scheme, published) if first <= day <= last]
        return {"meta": _meta(int(code)), "data": rows, "status": "SUCCESS"}

    def _latest_of_all(self, call: ProviderCall) -> list[dict[str, object]]:
        published = _published(call.now)
        rows = []
        for code in _page(call):
            scheme = find_scheme(code)
            newest = None if scheme is None else self._newest(scheme, published)
            if newest is not None:
                rows.append(_listed(code, _CAMEL) | {"nav": newest["nav"], "date": newest["date"]})
        return rows

    def _newest_row(self, scheme: Instrument, published: date) -> dict[str, str] | None:
        return next((_row(bar) for bar in self._market.final_bars(scheme, published, published)), None)

    def _whole_history(self, scheme: Instrument, published: date) -> list[tuple[date, dict[str, str]]]:
        """Days and rows, newest first."""
        bars = self._market.final_bars(scheme, scheme.first_day, published)
        return [(bar.day, _row(bar)) for bar in reversed(bars)]


def _found(query: str) -> list[dict[str, object]]:
    """Schemes whose name has all words asked for, among those of the list."""
    words = query.lower().split()
    if not words:
        raise Invalid("q")
    codes = [code for code in _LISTED if all(word in str(_meta(code)["scheme_name"]).lower() for word in words)]
    return [_listed(code, ("scheme_code", "scheme_name")) for code in codes]


def _published(now: datetime) -> date:
    """The newest business day whose NAV is out."""
    day = now.astimezone(UTC).date() - timedelta(days=1)
    return day - timedelta(days=max(day.weekday() - 4, 0))


def _row(bar: Bar) -> dict[str, str]:
    return {"date": f"{bar.day:%d-%m-%Y}", "nav": decimal_text(bar.prices.close)}


def _meta(code: int) -> dict[str, object]:
    house, category, name, growth, *reinvested = _NAMED.get(code) or _invented(code)
    return {
        "fund_house": house,
        "scheme_type": "Open Ended Schemes",
        "scheme_category": category,
        "scheme_code": code,
        "scheme_name": name,
        "isin_growth": growth,
        "isin_div_reinvestment": next(iter(reinvested), None),
    }


def _invented(code: int) -> tuple[str, str, str, str]:
    house = _HOUSES[pick(f"house:{code}", 0, len(_HOUSES))]
    category = _CATEGORIES[pick(f"category:{code}", 0, len(_CATEGORIES))]
    name = f"{house} {category.partition(' - ')[2]} {code} - Direct Plan - Growth"
    isin = f"INF{pick(f'isin:{code}', 100, 1000)}K01{code % 1000:03d}"
    return f"{house} Mutual Fund", category, name, isin


def _listed(code: int, names: Iterable[str]) -> dict[str, object]:
    """A scheme as lists have it."""
    meta = _meta(code)
    return {_CAMEL[name]: meta[name] for name in names}


def _page(call: ProviderCall) -> list[int]:
    """The codes of a page, 10,000 at most."""
    offset, limit = call.whole("offset", 0, 10**6), call.whole("limit", 10_000, 10**6)
    return _LISTED[offset : offset + min(limit, 10_000)]
