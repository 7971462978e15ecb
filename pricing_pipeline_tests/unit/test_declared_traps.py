"""Answers of declared providers that look good, and where another reading stores what is not true (F11)."""

from __future__ import annotations

import csv
import json
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from pricing_pipeline.domain.answers import Answer, FailureKind
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import SchemaDrift
from pricing_pipeline.providers.base import Request
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.providers.declaration_file import read_text
from pricing_pipeline.providers.declared import DeclaredProvider
from pricing_pipeline.providers.wire import Wire
from pricing_pipeline_tests.support.declarations import answered

NOW = datetime(2026, 11, 30, 5, tzinfo=UTC)
NOVEMBER = Window(date(2026, 11, 1), date(2026, 11, 27))
FRAME = """
name: traps
base_url: https://traps.example.com
limits: {minute: {units: 1, seconds: 60}}
symbols: {equity: {}}
fetchers:
  FETCHER:
    WAY:
      path: /{symbol}
      query: {from: "{start}"}
      answer:
"""
BARS = """
        time: {path: date, format: iso_date}
        open: open
        high: high
        low: low
        close: close
        volume: volume
        currency: {code: EUR}
"""
LINES = b"series,date,open,high,low,close,volume\n1,2026-11-19,9.0,9.0,9.0,9.0,9\n2,2026-11-20,5.0,5.0,5.0,5.0,9\n"


def provider(reading: str, fetcher: str = "daily_bars") -> DeclaredProvider:
    frame = FRAME.replace("FETCHER", fetcher).replace("WAY", "latest" if fetcher == "quote" else "span")
    frame = frame.replace('      query: {from: "{start}"}\n', "") if fetcher == "quote" else frame
    return DeclaredProvider(read_text(frame + reading, "traps.yaml"))


def answer(one: DeclaredProvider, body: object, window: Window | None = NOVEMBER) -> Answer:
    raw = body if isinstance(body, bytes) else json.dumps(body, separators=(",", ":")).encode()
    fetcher = Fetcher.QUOTE if window is None else Fetcher.DAILY_BARS
    return answered(one, fetcher, ["A"], window, Response(200, {}, raw, len(raw)), now=NOW)


def days(found: Answer) -> list[str]:
    return [f"{one.observed_at.date()} {one.close:f}" for one in found.observations]


class Name(str):
    """The name of a column that counts how often it is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        assert Name.compared < 10 * 3000, "each name is compared with all others"
        return super().__eq__(other)

    def strip(self, *_: object) -> Name:
        return self


def test_f11_thousands_of_columns_with_one_name_twice_are_refused_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = ",".join([f"c{number}" for number in range(3000)] + ["c2999"])
    read = csv.reader
    monkeypatch.setattr(csv, "reader", lambda *a, **k: [[Name(cell) for cell in row] for row in read(*a, **k)])
    Name.compared = 0
    with pytest.raises(SchemaDrift, match="has the column 'c2999' twice"):
        answer(provider(f"        body: {{format: csv}}{BARS}"), f"{names}\n1,2\n".encode())
    assert Name.compared


@pytest.mark.parametrize("price", [b"5.0", b"5.00"])
def test_f11_rows_of_csv_that_the_declaration_leaves_out_are_not_stored(price: bytes) -> None:
    one = provider(f"        body: {{format: csv}}\n        rows: \"[?series=='2']\"{BARS}")
    assert days(answer(one, LINES.replace(b"5.0", price, 1))) == ["2026-11-20 5.0"]


@pytest.mark.parametrize("low", ["5.0", "5.00"])
def test_f11_what_is_expected_may_stand_in_the_rows(low: str) -> None:
    """A low with other places has the answer read row by row."""
    bar = {"date": "2026-11-20", **dict.fromkeys(("open", "high", "close"), "5.0"), "low": low, "volume": "9"}
    one = provider(f"        rows: bars\n        expect: {{'bars[0].date': '2026-11-20'}}{BARS}")
    assert days(answer(one, {"bars": [bar]})) == ["2026-11-20 5.0"]
    with pytest.raises(SchemaDrift, match="expects '2026-11-20'"):
        answer(one, {"bars": [bar | {"date": "2026-11-19"}]})


@pytest.mark.parametrize("pattern", ["%Y-%m", "%Y"])
def test_b18_the_last_year_of_the_calendar_spoils_its_own_row_only(pattern: str) -> None:
    reading = f'        rows: "@"\n        time: {{path: t, format: "{pattern}"}}\n        close: c\n'
    one = provider(reading + "        currency: {code: EUR}")
    rows = [("2026-10", "9999-12"), ("2025", "9999")][pattern == "%Y"]
    found = answer(one, [{"t": text, "c": 5} for text in rows], Window(date(2025, 12, 1), date(2026, 11, 1)))
    assert days(found) == [{"%Y-%m": "2026-10-31 5", "%Y": "2025-12-31 5"}[pattern]]
    assert [value.reason for value in found.rejected] == ["day 9999-12-31 lies in the future"]


@pytest.mark.parametrize(
    ("offset", "zone", "day"),
    [
        ("+0200", "", "2026-11-20"),
        ("", "", "2026-11-19"),
        ("-0500", "", "2026-11-19"),
        ("-0500", ", zone: Europe/Berlin", "2026-11-19"),
        ("-0500", ", zone: Europe/Athens", "2026-11-20"),
    ],
)
def test_f11_a_time_of_dotnet_is_of_the_day_where_it_was_written(offset: str, zone: str, day: str) -> None:
    """As of every time with an offset: `zone` says which day is meant, else the offset."""
    reading = f'        rows: "@"\n        time: {{path: t, format: dotnet{zone}}}\n        close: c\n'
    millis = int(datetime(2026, 11, 19, 22, tzinfo=UTC).timestamp()) * 1000
    found = answer(provider(reading + "        currency: {code: EUR}"), [{"t": f"/Date({millis}{offset})/", "c": 5}])
    assert days(found) == [f"{day} 5"]


@pytest.mark.parametrize(("day", "kind"), [("2026-10-30", "empty"), ("2026-09-02", "empty"), ("2026-09-01", "fault")])
def test_f11_nothing_but_days_of_long_before_is_a_fault(day: str, kind: str) -> None:
    one = provider(f'        rows: "@"{BARS}')
    rows = [{"date": one_, "close": 5} for one_ in ("2015-01-02", day)]
    found = answer(one, rows)
    assert bool(found.empty) is (kind == "empty")
    assert [failure.kind for failure in found.failures] == [FailureKind.IMPLAUSIBLE] * (kind == "fault")
    assert not found.observations


def test_f11_a_whole_history_may_end_long_before_the_asked_days() -> None:
    frame = FRAME.replace("FETCHER", "daily_bars").replace("WAY", "span").replace('{from: "{start}"}', "{}")
    one = DeclaredProvider(read_text(f'{frame}        rows: "@"{BARS}', "traps.yaml"))
    assert answer(one, [{"date": "2015-01-02", "close": 5}]).empty


@pytest.mark.parametrize("second", ["EUR", "USD"])
def test_f11_two_prices_in_two_currencies_contradict_each_other(second: str) -> None:
    reading = '        rows: "@"\n        time: {path: t, format: iso_time}\n        price: p\n'
    one = provider(f"{reading}        currency: {{row: c}}", "quote")
    row = {"t": "2026-11-30T04:00:00Z", "p": 5, "c": "EUR"}
    found = answer(one, [row, row | {"c": second}], None)
    assert len(found.observations) == (second == "EUR")
    assert [failure.kind for failure in found.failures] == [FailureKind.IMPLAUSIBLE] * (second == "USD")


PAIRS = """
name: pairs
base_url: https://pairs.example.com
limits: {minute: {units: 1, seconds: 60}}
symbols:
  crypto: {spelling: "{base}/{quote}", names: {EURS: EUR, USD: usd}, pattern: "[A-Za-z]{3,5}/[A-Za-z]{3}"}
  fx: {spelling: "{base}/{quote}", names: {BTC: XBT, CNY: CNH}, pattern: "[A-Z]{3}/[A-Z]{3}"}
fetchers:
  quote:
    latest:
      path: /latest
      query: {of: "{base}", in: "{quote}"}
      answer: {time: {at: fetch}, price: p, currency: {code: "{quote}"}}
"""


def fetched(
    monkeypatch: pytest.MonkeyPatch,
    one: DeclaredProvider,
    symbol: str,
    asset_class: str,
    body: object,
    **more: Any,
) -> tuple[Request, Answer]:
    """What was asked for a canonical symbol, and the answer."""
    sent: list[Request] = []

    def send(self: Wire, request: Request, headers: object, max_bytes: int) -> tuple[Response, bool]:
        sent.append(request)
        raw = json.dumps(body).encode()
        return Response(200, {}, raw, len(raw)), False

    monkeypatch.setattr(Wire, "send", send)
    with ProviderClient(one) as client:
        fetcher = Fetcher.QUOTE if Fetcher.QUOTE in one.fetchers else Fetcher.DAILY_BARS
        found = client.fetch(fetcher, [symbol], asset_class=asset_class, **{"now": NOW, **more})
    return sent[0], found.answer


@pytest.mark.parametrize(
    ("asset_class", "symbol", "query", "currency"),
    [
        ("fx", "USD/EUR", {"of": "USD", "in": "EUR"}, "EUR"),  # crypto calls EURS so
        ("fx", "USD/CNY", {"of": "USD", "in": "CNH"}, "CNY"),
        ("crypto", "EURS/USD", {"of": "EUR", "in": "usd"}, "USD"),
        ("crypto", "BTC/CNH", {"of": "BTC", "in": "CNH"}, "CNH"),  # fx calls CNY so
    ],
)
def test_f11_names_of_one_asset_class_rename_no_currency_of_another(
    monkeypatch: pytest.MonkeyPatch, asset_class: str, symbol: str, query: dict[str, str], currency: str
) -> None:
    one = DeclaredProvider(read_text(PAIRS, "pairs.yaml"))
    request, found = fetched(monkeypatch, one, symbol, asset_class, {"p": 5})
    assert dict(request.params) == query
    assert [(value.symbol, value.currency) for value in found.observations] == [(symbol, currency)]


@pytest.mark.parametrize(
    ("zone", "symbol", "now", "last"),
    [
        ("Pacific/Auckland", "A", "2026-11-29T10:59", "2026-11-29"),
        ("Pacific/Auckland", "A", "2026-11-29T11:00", "2026-11-30"),
        ("America/New_York", "A", "2026-11-30T04:59", "2026-11-29"),
        ("America/New_York", "A", "2026-11-30T05:00", "2026-11-30"),
        ("", "7203:XTKS", "2026-11-29T14:59", "2026-11-29"),
        ("", "7203:XTKS", "2026-11-29T15:00", "2026-11-30"),
        ("America/New_York", "7203:XTKS", "2026-11-29T15:00", "2026-11-29"),  # the file counts more
        ("", "A", "2026-11-29T00:00", "2026-11-30"),  # nobody knows where it is traded
    ],
)
def test_f11_a_day_that_has_not_begun_where_it_is_traded_is_not_believed(
    monkeypatch: pytest.MonkeyPatch, zone: str, symbol: str, now: str, last: str
) -> None:
    at = f", zone: {zone}" if zone else ""
    reading = f'        rows: "@"\n        time: {{path: t, format: iso_date{at}}}\n        close: c\n'
    frame = FRAME.replace("FETCHER", "daily_bars").replace("WAY", "span")
    text = f"{frame}{reading}        currency: {{unnamed: true}}".replace(
        "equity: {}", 'equity: {pattern: "[A-Z0-9:]+"}'
    )
    rows = [{"t": f"2026-11-{day}", "c": 5} for day in (27, 28, 29, 30)] + [{"t": "2026-12-01", "c": 5}]
    one = DeclaredProvider(read_text(text, "zones.yaml"))
    asked_at = datetime.fromisoformat(f"{now}:00+00:00")
    _, found = fetched(monkeypatch, one, symbol, "equity", rows, now=asked_at)
    assert str(max(value.observed_at for value in found.observations).date()) == last
    future = [value.observed_at.date() for value in found.rejected if value.observed_at]
    assert min(future) == date.fromisoformat(last) + timedelta(days=1)
    assert all("lies in the future" in value.reason for value in found.rejected)


@pytest.mark.parametrize(
    ("zone", "symbol", "now", "day"),
    [
        ("", "7203:XTKS", "2026-11-29T15:00", "2026-11-30"),
        ("", "RY:XTSE", "2026-11-30T04:59", "2026-11-29"),
        ("Europe/Berlin", "RY:XTSE", "2026-11-30T04:59", "2026-11-30"),  # the file counts more
        ("", "A", "2026-11-29T23:59", "2026-11-29"),
    ],
)
def test_f11_a_daily_value_without_a_time_is_of_the_day_where_it_is_traded(
    monkeypatch: pytest.MonkeyPatch, zone: str, symbol: str, now: str, day: str
) -> None:
    at = f", zone: {zone}" if zone else ""
    reading = f"        time: {{at: fetch{at}}}\n        close: c\n        currency: {{unnamed: true}}\n"
    frame = FRAME.replace("FETCHER", "daily_bars").replace("WAY", "latest").replace('{from: "{start}"}', "{}")
    text = f"{frame}{reading}".replace("equity: {}", 'equity: {pattern: "[A-Z0-9:]+"}')
    one = DeclaredProvider(read_text(text, "zones.yaml"))
    asked_at = datetime.fromisoformat(f"{now}:00+00:00")
    _, found = fetched(monkeypatch, one, symbol, "equity", {"c": 5}, now=asked_at)
    assert [str(value.observed_at.date()) for value in found.observations] == [day]
