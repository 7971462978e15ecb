"""mfapi.in: net asset values of Indian mutual funds, one scheme a call, without a key.

Only its URLs and its answers are known here. Dates come as DD-MM-YYYY, newest first; unknown schemes
come as a success; real histories hold single zeros.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from pricing_pipeline.domain import (
    Answer,
    FailureKind,
    Fetcher,
    Observation,
    RejectedValue,
    Response,
    SymbolFailure,
    Window,
)
from pricing_pipeline.errors import InvalidRange, SchemaDrift
from pricing_pipeline.providers.base import (
    Request,
    Schema,
    decode_json,
    refusal,
    require_fetcher,
    said,
    validate,
    validate_rows,
)
from pricing_pipeline.providers.values import (
    Implausible,
    calendar_day,
    check_day,
    midnight,
    price_of,
    settle_days,
    spelling,
)

_SCHEME_CODE = re.compile(r"[1-9][0-9]{0,9}")
# Funds publish in rupees; the API names no currency.
_CURRENCY = "INR"


class _Meta(Schema):
    scheme_code: int
    scheme_name: str
    fund_house: str | None = None
    scheme_type: str | None = None
    scheme_category: str | None = None
    isin_growth: str | None = None
    isin_div_reinvestment: str | None = None


class _Row(Schema):
    date: Annotated[str, Field(pattern=r"^[0-9]{2}-[0-9]{2}-[0-9]{4}$")]
    nav: str | None


class _History(Schema):
    meta: _Meta
    data: list[object]
    status: Literal["SUCCESS"]


class MfApi:
    """Provider `mfapi`. A symbol is an AMFI scheme code, such as 125497."""

    name = "mfapi"
    base_url = "https://api.mfapi.in"
    needs_key = False
    fetchers = frozenset({Fetcher.NAV})

    def accepts(self, symbol: str) -> bool:
        """Digits only: the code becomes part of the path, where `../` would lead elsewhere."""
        return _SCHEME_CODE.fullmatch(symbol) is not None

    def batch_limit(self, fetcher: Fetcher, window: Window | None) -> int:
        """One scheme a call."""
        return 1

    def max_window_days(self, fetcher: Fetcher) -> int | None:
        """None: an answer holds the whole history if asked."""
        return None

    def build(
        self,
        fetcher: Fetcher,
        symbols: Sequence[str],
        window: Window | None,
        *,
        now: datetime | None = None,
    ) -> Request:
        """The latest value without a window, else all values of its days."""
        require_fetcher(self, fetcher)
        (code,) = symbols
        if window is None:
            return Request(f"/mf/{code}/latest")
        if window.start > window.end:
            raise InvalidRange(f"{window.start}..{window.end} ends before it starts. Swap the two dates.")
        return Request(
            f"/mf/{code}", (("startDate", window.start.isoformat()), ("endDate", window.end.isoformat()))
        )

    def authorize(self, key: str) -> Mapping[str, str]:
        """There is no key."""
        return {}

    def parse(
        self,
        fetcher: Fetcher,
        symbols: Sequence[str],
        window: Window | None,
        response: Response,
        *,
        now: datetime,
    ) -> Answer:
        """Values at midnight UTC of their day, in INR. See Provider.parse."""
        require_fetcher(self, fetcher)
        (code,) = symbols
        if not 200 <= response.status < 300:
            return self._refused(code, response, now)
        history = validate(_History, decode_json(self.name, response), f"mfapi's answer for {code}")
        if history.meta.scheme_code == 0 and not history.data:
            # Unknown schemes come as HTTP 200, SUCCESS, with a blank meta.
            return _unknown(code, "it answers with a blank scheme")
        if history.meta.scheme_code != int(code):
            message = (
                f"mfapi answered with scheme {history.meta.scheme_code} "
                f"({said(history.meta.scheme_name)}) when asked for {code}; nothing was stored."
            )
            return Answer(failures=(SymbolFailure(code, FailureKind.IMPLAUSIBLE, message),))
        rows = validate_rows(_Row, history.data, code, f"mfapi's answer for {code}", place="data")
        return settle_days(
            code, (row if isinstance(row, RejectedValue) else _value(code, row, now) for row in rows), window
        )

    def _refused(self, code: str, response: Response, now: datetime) -> Answer:
        try:
            body = decode_json(self.name, response)
        except SchemaDrift:
            body = None
        words = ""
        if isinstance(body, dict):
            words = said(str(body.get("error") or body.get("message") or ""))
            # 400 for a code of wrong spelling; a JSON 404 comes from the API, an HTML one from before it.
            if response.status == 404 or (response.status == 400 and "scheme" in words.lower()):
                return _unknown(code, f"it answers HTTP {response.status}: {words or 'no explanation'}")
        error = refusal(self.name, response, now=now, detail=words)
        assert error is not None  # noqa: S101 - for the type checker
        raise error


def _value(code: str, row: _Row, now: datetime) -> Observation | RejectedValue:
    text, at = spelling(row.nav), None
    try:
        # 23-11-2026 is 2026-11-23.
        on = calendar_day("-".join(reversed(row.date.split("-"))))
        at = midnight(on)
        check_day(on, now)
        # A zero on a Sunday is a real oddity of this source.
        return Observation(code, at, price_of(row.nav, f"NAV of {on}"), text, _CURRENCY)
    except Implausible as fault:
        return RejectedValue(code, at, str(fault), text)


def _unknown(code: str, why: str) -> Answer:
    message = f"mfapi knows no scheme {code}: {why}. Look the code up at its /mf/search, or correct it."
    return Answer(failures=(SymbolFailure(code, FailureKind.UNKNOWN_SYMBOL, message),))
