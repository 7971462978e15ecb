"""mfapi.in: net asset values of Indian mutual funds, one scheme a call or all of them, without a key.

This module knows only its URLs and answers. Dates come as DD-MM-YYYY, newest first; unknown schemes come as a success;
real histories hold single zeros. The list of all schemes has their latest values, those of dead schemes, too, and may
lack some that can be asked for alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field

from pricing_pipeline.domain.answers import Answer, FailureKind, RejectedValue
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Observation
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import SchemaDrift
from pricing_pipeline.providers.base import (
    Question,
    Request,
    Schema,
    check_status,
    decode_if_json,
    decode_json,
    failed,
    read_rows,
    safe_words,
    validate,
    words_of,
)
from pricing_pipeline.providers.values import (
    check_day,
    decimal_of,
    is_to_come,
    merge_found,
    midnight,
    of_day,
    only,
    price_of,
    settle_days,
    spelling,
)

MAX_SCHEMES = 5000
"""How many schemes one call asks for. Its answer has all schemes; this limits how many are stored at once."""

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


class _Listed(_Row):
    scheme_code: Annotated[int, Field(alias="schemeCode")]
    scheme_name: Annotated[object, Field(alias="schemeName")] = None


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

    def spell(self, symbol: str, asset_class: str) -> str:
        """The number of the scheme is its name everywhere."""
        return symbol

    def batch_limit(self, fetcher: Fetcher, window: Window | None) -> int:
        """5000 latest values, which come in a list; the history of one scheme."""
        return MAX_SCHEMES if window is None else 1

    def max_window_days(self, fetcher: Fetcher) -> int | None:
        """None: an answer holds the whole history if asked."""
        return None

    def build(self, question: Question) -> Request:
        """The latest value without a window, of several by the list of all; else all values of the window's days."""
        if len(question.symbols) > 1:
            return Request("/mf/latest")
        code, window = question.symbol, question.window
        if window is None:
            return Request(f"/mf/{code}/latest")
        return Request(f"/mf/{code}", (("startDate", window.start.isoformat()), ("endDate", window.end.isoformat())))

    def authorize(self, key: str) -> Mapping[str, str]:
        """There is no key."""
        return {}

    def parse(self, question: Question, response: Response) -> Answer:
        """Values at midnight UTC of their day, in INR. See OneRequest.parse."""
        symbols, now = question.symbols, question.now
        if not 200 <= response.status < 300:
            return self._refused(symbols, response, now)
        if len(symbols) > 1:
            return self._from_list(symbols, response, now)
        (code,) = symbols
        history = validate(_History, decode_json(self.name, response), f"mfapi's answer for {code}")
        if history.meta.scheme_code == 0 and not history.data:
            # Unknown schemes come as HTTP 200, SUCCESS, with a blank meta.
            return _unknown(code, "it answers with a blank scheme")
        if history.meta.scheme_code != int(code):
            message = (
                f"mfapi answered with scheme {history.meta.scheme_code} "
                f"({safe_words(history.meta.scheme_name)}) when asked for {code}; nothing was stored."
            )
            return failed(code, FailureKind.IMPLAUSIBLE, message)
        name, what = history.meta.scheme_name, f"mfapi's answer for {code}"
        values = read_rows(_Row, lambda row: _value(code, row, name, now), history.data, code, what, "data")
        return settle_days(code, values, question.window)

    def _from_list(self, codes: Sequence[str], response: Response, now: datetime) -> Answer:
        """The list's rows of the requested schemes; faults of other rows do not matter."""
        body = decode_json(self.name, response)
        if not isinstance(body, list):
            raise SchemaDrift(
                "mfapi answered with something else than its list of all schemes "
                f"({words_of(response)!r}); nothing was stored. Each scheme is asked for alone next."
            )
        rows: dict[object, list[object]] = {code: [] for code in codes}
        for row in body:
            code = row.get("schemeCode") if isinstance(row, dict) else None
            if isinstance(code, int | str) and (rows_of_scheme := rows.get(str(code))) is not None:
                rows_of_scheme.append(row)
        return merge_found([_listed(code, rows[code], now) for code in codes])

    def _refused(self, codes: Sequence[str], response: Response, now: datetime) -> Answer:
        body = decode_if_json(self.name, response)
        words = ""
        if isinstance(body, dict):
            words = safe_words(str(body.get("error") or body.get("message") or ""))
            # 400 for a code of wrong spelling; a JSON 404 comes from the API, an HTML one from before it.
            is_unknown = response.status == 404 or (response.status == 400 and "scheme" in words.lower())
            if is_unknown and len(codes) == 1:
                return _unknown(codes[0], f"it answers HTTP {response.status}: {words or 'no explanation'}")
        check_status(self.name, response, now=now, detail=words)
        raise AssertionError("a refusal has a status of its own")


def _listed(code: str, listed: Sequence[object], now: datetime) -> Answer:
    """The answer about one scheme from its rows in the list."""
    if not listed:
        message = "mfapi's list of all schemes does not name it. Nothing was stored; it is asked for alone next."
        return failed(code, FailureKind.SCHEMA_DRIFT, message)
    what = f"mfapi's list of all schemes, at {code},"
    try:
        values = read_rows(_Listed, lambda row: _value(code, row, row.scheme_name, now), listed, code, what)
    except SchemaDrift as drift:
        return failed(code, FailureKind.SCHEMA_DRIFT, str(drift))
    return settle_days(code, only(code, [value for value in values if value is not None]))


def _value(code: str, row: _Row, name: object, now: datetime) -> Observation | RejectedValue | None:
    def read(on: date) -> Observation | None:
        if is_to_come(on, (row.nav,), now):
            return None
        check_day(on, now)
        what = f"NAV of {on}"
        # A segregated portfolio holds defaulted bonds, and may be written off to 0. A zero of another scheme, as on a
        # Sunday, is an oddity of this source.
        is_written_off = "segregated" in str(name).lower() and decimal_of(row.nav, what) == 0
        nav = Decimal(0) if is_written_off else price_of(row.nav, what)
        return Observation(code, midnight(on), nav, spelling(row.nav), _CURRENCY)

    # 23-11-2026 is 2026-11-23.
    return of_day(code, "-".join(reversed(row.date.split("-"))), row.nav, read)


def _unknown(code: str, why: str) -> Answer:
    message = f"mfapi knows no scheme {code}: {why}. Look the code up at its /mf/search, or correct it."
    return failed(code, FailureKind.UNKNOWN_SYMBOL, message)
