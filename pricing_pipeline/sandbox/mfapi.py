"""mfapi.in: schemes, NAV histories and bulk lists. It has no keys and names no limit.

The NAV of a business day is published at midnight UTC after it: on Tuesday from 00:00 UTC Monday's is the
latest, over a weekend Friday's. Any code from 100000 to 899999 is a scheme; the bulk lists hold only some
of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

from pricing_pipeline.sandbox.calls import JSON, Admission, ProviderCall, Reply
from pricing_pipeline.sandbox.instruments import Instrument, find_scheme, pick
from pricing_pipeline.sandbox.limits import UnitWindow
from pricing_pipeline.sandbox.prices import Market
from pricing_pipeline.sandbox.searching import has_words
from pricing_pipeline.sandbox.series import Bar
from pricing_pipeline.sandbox.settings import SandboxSettings
from pricing_pipeline.sandbox.units import decimal_text

MOST_LISTED, MOST_LATEST = 1000, 10_000

# The schemes of the recordings, under their real names; all others are named after their code.
_NAMED = {
    118632: (
        "Nippon India Mutual Fund",
        "Equity Scheme - Large Cap Fund",
        "Nippon India Large Cap Fund - Direct Plan Growth Plan - Growth Option",
    ),
    119551: (
        "Aditya Birla Sun Life Mutual Fund",
        "Debt Scheme - Banking and PSU Fund",
        "Aditya Birla Sun Life Banking & PSU Debt Fund  - DIRECT - IDCW",
    ),
    120841: (
        "quant Mutual Fund",
        "Equity Scheme - Mid Cap Fund",
        "quant Mid Cap Fund - Growth Option - Direct Plan",
    ),
    122639: (
        "PPFAS Mutual Fund",
        "Equity Scheme - Flexi Cap Fund",
        "Parag Parikh Flexi Cap Fund - Direct Plan - Growth",
    ),
    125497: (
        "SBI Mutual Fund",
        "Equity Scheme - Small Cap Fund",
        "SBI Small Cap Fund - Direct Plan - Growth",
    ),
}
_ISINS: dict[int, tuple[str, str | None]] = {
    118632: ("INF204K01XI3", None),
    119551: ("INF209KA12Z1", "INF209KA13Z9"),
    120841: ("INF966L01887", None),
    125497: ("INF200K01T51", None),
}
"""ISINs of growth and of reinvested payouts; schemes that pay out have the second."""
_LISTED = sorted({*_NAMED, *range(118_000, 120_000)})
_HOUSES = ("Sandbox", "Monsoon", "Banyan", "Deccan", "Malabar")
_CATEGORIES = (
    "Equity Scheme - Large Cap Fund",
    "Equity Scheme - Mid Cap Fund",
    "Debt Scheme - Banking and PSU Fund",
    "Hybrid Scheme - Balanced Advantage Fund",
)
_BLANK: dict[str, object] = {
    "fund_house": "",
    "scheme_type": "",
    "scheme_category": "",
    "scheme_code": 0,
    "scheme_name": "",
    "isin_growth": None,
    "isin_div_reinvestment": None,
}
_TOO_FAST = (
    b"<html>\r\n<head><title>429 Too Many Requests</title></head>\r\n<body>\r\n"
    b"<center><h1>429 Too Many Requests</h1></center>\r\n<hr><center>nginx/1.24.0</center>\r\n"
    b"</body>\r\n</html>\r\n"
)


class MfApi:
    """The provider; every caller shares its limit, since there are no keys."""

    name = "mfapi"

    def __init__(self, settings: SandboxSettings, market: Market) -> None:
        self._market = market
        self._second = UnitWindow(settings.mfapi_calls_per_second, 1, sliding=True)
        self._histories = lru_cache(64)(self._whole_history)
        self._newest = lru_cache(20_000)(self._newest_bar)

    def read(
        self, endpoint: str, params: Mapping[str, str], headers: Mapping[str, str], now: datetime
    ) -> ProviderCall:
        code = endpoint.removeprefix("mf").strip("/").split("/")[0]
        symbols = (code,) if code and code not in ("latest", "search") else ()
        return ProviderCall(endpoint, params, symbols, None, now)

    def admit(self, call: ProviderCall) -> Admission:
        # Unlike credits, a refused call is not counted: a proxy that limits calls lets it pass unseen.
        at = call.now.timestamp()
        if self._second.left(self._second.used(at)) == 0:
            return Admission(0, Reply(429, _TOO_FAST, "text/html"), is_over_limit=True)
        self._second.charge(1, at)
        return Admission(1)

    def answer(self, call: ProviderCall) -> Reply:
        parts = call.endpoint.strip("/").split("/")
        if parts[0] != "mf" or len(parts) > 3 or (len(parts) == 3 and parts[2] != "latest"):
            return _reply({"error": "not found"}, 404)
        try:
            _check(call.params)
            if len(parts) == 1:
                return self._list(call)
            if parts[1:] == ["search"]:
                return self._search(call)
            if parts[1] == "latest":
                return self._latest_of_all(call)
            return self._scheme(call, parts[1], only_latest=len(parts) == 3)
        except ValueError as error:
            return _reply({"error": str(error)}, 400)

    def plan(self) -> dict[str, object]:
        return {"calls_per_second": self._second.limit}

    def reset(self) -> None:
        self._second.reset()

    def _scheme(self, call: ProviderCall, asked: str, *, only_latest: bool) -> Reply:
        code = call.answers.get(asked, asked)
        if not code.isascii() or not code.isdecimal():
            raise ValueError("invalid scheme_code")
        scheme = find_scheme(int(code))
        if scheme is None:
            return _reply({"meta": _BLANK, "data": [], "status": "SUCCESS"})
        published = _published(call.now)
        if only_latest:
            newest = self._newest(scheme, published)
            data = "" if newest is None else _row(newest)
        else:
            first, last = _day(call.params, "startDate"), _day(call.params, "endDate")
            data = ",".join(
                row
                for day, row in self._histories(scheme, published)
                if (first is None or day >= first) and (last is None or day <= last)
            )
        meta = _compact(_meta(int(code)))
        return Reply(200, f'{{"meta":{meta},"data":[{data}],"status":"SUCCESS"}}'.encode(), JSON)

    def _list(self, call: ProviderCall) -> Reply:
        codes = _page(call.params, MOST_LISTED)
        names = ("scheme_code", "scheme_name", "isin_growth", "isin_div_reinvestment")
        return _reply([_camel({name: _meta(code)[name] for name in names}) for code in codes])

    def _search(self, call: ProviderCall) -> Reply:
        """Schemes whose name has all words asked for, among those of the bulk lists."""
        query = call.params.get("q", "").strip()
        if not query:
            raise ValueError("missing q")
        codes = (code for code in _LISTED if has_words(query, str(_meta(code)["scheme_name"])))
        names = ("scheme_code", "scheme_name")
        return _reply([_camel({name: _meta(code)[name] for name in names}) for code in codes])

    def _latest_of_all(self, call: ProviderCall) -> Reply:
        published = _published(call.now)
        order = (
            "scheme_code",
            "scheme_name",
            "fund_house",
            "scheme_type",
            "scheme_category",
            "isin_growth",
            "isin_div_reinvestment",
        )
        rows = []
        for code in _page(call.params, MOST_LATEST):
            scheme, meta = find_scheme(code), _meta(code)
            newest = None if scheme is None else self._newest(scheme, published)
            if newest is not None:
                nav: dict[str, object] = {"nav": decimal_text(newest.prices.close), "date": _day_text(newest)}
                rows.append(_camel({name: meta[name] for name in order}) | nav)
        return _reply(rows)

    def _newest_bar(self, scheme: Instrument, published: date) -> Bar | None:
        return next(iter(self._market.final_bars(scheme, published, published)), None)

    def _whole_history(self, scheme: Instrument, published: date) -> list[tuple[date, str]]:
        """Days and rows, newest first."""
        bars = self._market.final_bars(scheme, scheme.first_day, published)
        return [(bar.day, _row(bar)) for bar in reversed(bars)]


def _check(params: Mapping[str, str]) -> None:
    """Refuse what no recording or page tells of: what the provider does with it is not known."""
    for name in params.keys() - {"startDate", "endDate", "limit", "offset", "q"}:
        raise ValueError(f"{name} is not a parameter that the sandbox serves")


def _published(now: datetime) -> date:
    """The newest business day whose NAV is out."""
    day = now.astimezone(UTC).date() - timedelta(days=1)
    return day - timedelta(days=max(day.weekday() - 4, 0))


def _row(bar: Bar) -> str:
    return f'{{"date":"{_day_text(bar)}","nav":"{decimal_text(bar.prices.close)}"}}'


def _day_text(bar: Bar) -> str:
    return f"{bar.day:%d-%m-%Y}"


def _meta(code: int) -> dict[str, object]:
    made_up = f"INF{pick(f'isin:{code}', 100, 1000)}K01{code % 1000:03d}"
    growth, reinvested = _ISINS.get(code, (made_up, None))
    house, category, name = _NAMED.get(code) or _invented(code)
    return {
        "fund_house": house,
        "scheme_type": "Open Ended Schemes",
        "scheme_category": category,
        "scheme_code": code,
        "scheme_name": name,
        "isin_growth": growth,
        "isin_div_reinvestment": reinvested,
    }


def _invented(code: int) -> tuple[str, str, str]:
    house = _HOUSES[pick(f"house:{code}", 0, len(_HOUSES))]
    category = _CATEGORIES[pick(f"category:{code}", 0, len(_CATEGORIES))]
    kind = category.partition(" - ")[2]
    return f"{house} Mutual Fund", category, f"{house} {kind} {code} - Direct Plan - Growth"


def _camel(fields: dict[str, object]) -> dict[str, object]:
    return {
        first + "".join(word.capitalize() for word in rest): value
        for (first, *rest), value in ((name.split("_"), value) for name, value in fields.items())
    }


def _day(params: Mapping[str, str], name: str) -> date | None:
    text = params.get(name)
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"invalid {name}") from None


def _page(params: Mapping[str, str], most: int) -> list[int]:
    texts = params.get("limit", str(most)), params.get("offset", "0")
    if not all(text.isdecimal() for text in texts):
        raise ValueError("invalid limit or offset")
    limit, offset = (int(text) for text in texts)
    return _LISTED[offset : offset + min(limit, most)]


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _reply(value: object, status: int = 200) -> Reply:
    return Reply(status, _compact(value).encode(), JSON)
