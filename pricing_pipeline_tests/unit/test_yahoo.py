"""Yahoo Finance's requests and answers: what is stored, what is dropped, and what is refused (A11, B18, A9, B8)."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from pricing_pipeline.domain.answers import Answer, FailureKind
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Adjustment
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import (
    KeyRefused,
    ProviderDown,
    ProviderError,
    RequestRefused,
    SchemaDrift,
    Throttled,
)
from pricing_pipeline.providers.base import Question
from pricing_pipeline_tests.support.recordings import recorded
from pricing_pipeline_tests.support.yahoo_answers import (
    CALM,
    NOW,
    PROVIDER,
    SYDNEY,
    chart,
    closes,
    kinds,
    meta,
    parse,
    stamp,
)

# --- requests -----------------------------------------------------------------------------------


def test_a11_one_quote_is_asked_as_a_chart_and_several_as_a_batch() -> None:
    assert PROVIDER.build(Question(Fetcher.QUOTE, ["^GSPC"], None, NOW)).path == "/v8/finance/chart/^GSPC"
    request = PROVIDER.build(Question(Fetcher.QUOTE, ["AAPL", "EURUSD=X"], None, NOW))
    assert (request.path, request.params[0]) == ("/v7/finance/spark", ("symbols", "AAPL,EURUSD=X"))
    assert PROVIDER.batch_limit(Fetcher.QUOTE, None) == 20


def test_a11_a_window_is_asked_from_a_day_earlier_until_now() -> None:
    window = Window(date(2020, 8, 31), date(2020, 11, 7))
    params = dict(PROVIDER.build(Question(Fetcher.DAILY_BARS, ["AAPL"], window, NOW)).params)
    assert params == {
        "period1": "1598745600",
        "period2": str(int(NOW.timestamp())),
        "interval": "1d",
        "events": "div|split|capitalGains",
    }
    assert dict(PROVIDER.build(Question(Fetcher.DAILY_BARS, ["AAPL"], Window(date.min, date.max), NOW)).params)


# --- values -------------------------------------------------------------------------------------


def test_a9_noise_is_removed_and_the_spelling_is_kept() -> None:
    (bar,) = parse(chart({"2026-11-19T09:30": 129.0399932861328})).observations
    assert (bar.close, bar.text, bar.currency) == (Decimal("129.04"), "129.0399932861328", "USD")
    assert (bar.open, bar.high, bar.low, bar.volume) == (*[Decimal("129.04")] * 3, 400)
    assert bar.adjustment is Adjustment.RAW


@pytest.mark.parametrize(
    ("said", "currency", "price"),
    [
        ("GBp", "GBP", "3.088"),
        ("ZAc", "ZAR", "3.088"),
        ("ILA", "ILS", "3.088"),
        ("USX", "USD", "3.088"),
        ("KWF", "KWD", "0.3088"),
    ],
)
def test_a9_hundredths_become_their_major_unit(said: str, currency: str, price: str) -> None:
    body = chart({"2026-11-19T09:30": 308.8}, currency=said, regularMarketPrice=308.8)
    for fetcher in PROVIDER.fetchers:
        (value,) = parse(body, fetcher=fetcher).observations
        assert (value.currency, str(value.close)) == (currency, price)


def test_the_trading_day_is_the_exchanges_on_both_sides_of_a_change_of_clocks() -> None:
    """In Sydney clocks went forward on 2026-10-04: opening at 10:00 is midnight UTC before, 23:00 after."""
    days = {"2026-10-02T10:00": 1.5, "2026-10-05T10:00": 2.5}
    session = {"regular": {"start": stamp("2026-11-20T10:00", SYDNEY), "end": stamp("2026-11-20T16:00", SYDNEY)}}
    body = chart(days, SYDNEY, exchangeTimezoneName="Australia/Sydney", currentTradingPeriod=session)
    assert closes(parse(body)) == {"2026-10-02": "1.5", "2026-10-05": "2.5"}
    assert body["chart"]["result"][0]["timestamp"][1] % 86400 == 23 * 3600


def test_holes_are_no_prices() -> None:
    days = {"2026-11-17T09:30": 1.5, "2026-11-18T09:30": None, "2026-11-19T09:30": 2.5}
    answer = parse(chart(days))
    assert closes(answer) == {"2026-11-17": "1.5", "2026-11-19": "2.5"}
    assert not answer.rejected
    assert parse(chart({"2026-11-18T09:30": None})).empty == {"AAPL"}


def test_days_beside_the_window_are_left_out() -> None:
    days = {f"2026-11-{day}T09:30": 1.5 for day in (16, 17, 18, 19)}
    window = Window(date(2026, 11, 17), date(2026, 11, 18))
    assert list(closes(parse(chart(days), window=window))) == ["2026-11-17", "2026-11-18"]
    answer = parse(chart(days), window=Window(date(2026, 11, 14), date(2026, 11, 15)))
    assert answer == Answer(
        empty=frozenset({"AAPL"}),
        actions_since={"AAPL": date(2026, 11, 14)},
        gains_reported=frozenset({"AAPL"}),
    )


# --- sessions -----------------------------------------------------------------------------------

OPEN = {
    "regularMarketTime": stamp("2026-11-20T09:58"),
    "currentTradingPeriod": {"regular": {"start": stamp("2026-11-20T09:30"), "end": stamp("2026-11-20T16:00")}},
}
DAYS = {"2026-11-19T09:30": 1.5, "2026-11-20T09:30": 2.5}


def test_b18_the_bar_of_a_session_in_progress_is_dropped() -> None:
    assert closes(parse(chart(DAYS, **OPEN))) == {"2026-11-19": "1.5"}
    assert parse(chart({"2026-11-20T09:30": 2.5}, **OPEN)).empty == {"AAPL"}


@pytest.mark.parametrize(
    ("traded", "answered", "is_kept"),
    [
        ("16:00:00", None, True),
        ("15:59:59", None, False),
        ("15:30:00", "16:59:59", False),
        ("15:30:00", "17:00:00", True),
    ],
)
def test_b18_a_session_is_over_when_traded_to_its_end_or_answered_an_hour_after(
    traded: str, answered: str | None, is_kept: bool
) -> None:
    body = chart(DAYS, **OPEN | {"regularMarketTime": stamp(f"2026-11-20T{traded}")})
    headers = {}
    if answered:
        at = datetime.fromtimestamp(stamp(f"2026-11-20T{answered}"), UTC)
        headers = {"date": at.strftime("%a, %d %b %Y %H:%M:%S GMT")}
    assert ("2026-11-20" in closes(parse(body, headers=headers))) == is_kept


def test_of_a_days_two_bars_the_one_with_the_newest_trade_is_right() -> None:
    days = DAYS | {"2026-11-20T16:00:01": 2.75}
    body = chart(days, **OPEN | {"regularMarketTime": stamp("2026-11-20T16:00:01")})
    assert closes(parse(body)) == {"2026-11-19": "1.5", "2026-11-20": "2.75"}


@pytest.mark.parametrize("raw", ["abc", True, 10**18, -1, 0, None])
@pytest.mark.parametrize("column", ["open", "high", "low", "close", "volume", "timestamp"])
def test_b18_one_broken_value_costs_itself_and_no_other_day(column: str, raw: Any) -> None:
    """A broken close or time costs its day, any other value itself; the other day is as it would be without it."""
    if (column, raw) == ("timestamp", -1):
        return  # a second before the epoch is a time like any other
    days = {"2026-11-18T09:30": 1.5, "2026-11-19T09:30": 2.5}
    true = {row.observed_at.day: row for row in parse(chart(days)).observations}
    body = chart(days)
    (series,) = body["chart"]["result"]
    place = series if column == "timestamp" else series["indicators"]["quote"][0]
    place[column] = [raw, *place[column][1:]]
    answer = parse(body)
    found = {row.observed_at.day: row for row in answer.observations}
    assert found[19] == true[19]
    if column in ("close", "timestamp"):
        assert set(found) == {19}
        is_hole = column == "close" and raw is None
        assert len(answer.rejected) == (0 if is_hole else 1)
    else:
        is_true = column == "volume" and raw in (0, 10**18) and not isinstance(raw, bool)
        kept = getattr(found[18], column)
        assert (kept is None) == (raw != 0 or column != "volume")
        assert (found[18].quality is None) == (raw is None or raw == "" or (is_true and raw == 0))


@pytest.mark.parametrize("raw", [0, 1, 86_399])
def test_b18_a_stamp_of_a_clock_that_was_never_set_is_no_day(raw: int) -> None:
    body = chart({"2026-11-18T09:30": 1.5, "2026-11-19T09:30": 2.5})
    body["chart"]["result"][0]["timestamp"][0] = raw
    for window in (
        None,
        Window(date(2026, 11, 18), date(2026, 11, 19)),
        Window(date(1960, 1, 1), NOW.date()),
    ):
        answer = parse(body, window=window)
        assert list(closes(answer)) == ["2026-11-19"]
        assert [one.reason for one in answer.rejected] == [f"time stamp {raw} says that there is no time"]


@pytest.mark.parametrize("raw", [-86_400, 946_684_800, stamp("2099-01-04T09:30")])
def test_b18_an_absurd_stamp_among_the_latest_bars_is_no_day_and_covers_none(raw: int) -> None:
    """Seen: 1969-12-31 was stored as history, and since then all splits were said to be known."""
    body = chart({"2026-11-17T09:30": 1.0, "2026-11-18T09:30": 1.5, "2026-11-19T09:30": 2.5})
    body["chart"]["result"][0]["timestamp"][0] = raw
    answer = parse(body)
    assert list(closes(answer)) == ["2026-11-18", "2026-11-19"]
    assert len(answer.rejected) == 1
    assert answer.actions_since == {"AAPL": date(2026, 11, 18)}


def test_b18_an_index_is_older_than_the_epoch() -> None:
    body = chart({"1962-01-02T09:30": 71.55, "1969-12-31T09:30": 92.06, "2026-11-19T09:30": 2.5})
    window = Window(date(1960, 1, 1), NOW.date())
    assert list(closes(parse(body, window=window))) == ["1962-01-02", "1969-12-31", "2026-11-19"]


def test_f6_no_day_vanishes_without_a_word() -> None:
    """Those to come are refused, those that nobody asked for are counted; only days around the window are left out."""
    days = {f"2026-11-{day}T09:30": 1.5 for day in (16, 17, 18, 19, 20, 21, 25)}
    answer = parse(
        chart({"2019-01-02T09:30": 1, "2019-01-03T09:30": 1, **days}),
        window=Window(date(2026, 11, 18), date(2026, 11, 19)),
    )
    assert list(closes(answer)) == ["2026-11-18", "2026-11-19"]
    assert [one.reason for one in answer.rejected] == [
        "day 2026-11-21 lies after the newest session, that of 2026-11-20",
        "day 2026-11-25 lies in the future",
        "2 value(s) lie outside the asked 2026-11-18..2026-11-19; the first: 1 of 2019-01-02, 1 of 2019-01-03",
    ]


# --- batches ------------------------------------------------------------------------------------


def spark(*members: dict[str, Any] | None) -> dict[str, Any]:
    return {"spark": {"result": list(members), "error": None}}


def member(name: str, **changes: Any) -> dict[str, Any]:
    quote = {
        "meta": meta(**{"symbol": name, **changes}),
        "timestamp": [1],
        "indicators": {"quote": [{"close": [1]}]},
    }
    return {"symbol": name, "response": [quote]}


def test_b8_members_stand_in_any_order_and_a_missing_one_is_unknown() -> None:
    body = spark(member("MSFT", regularMarketPrice=3), member("AAPL", regularMarketPrice=2))
    answer = parse(body, ("AAPL", "MSFT", "XXX"), Fetcher.QUOTE)
    assert {one.symbol: one.close for one in answer.observations} == {"AAPL": 2, "MSFT": 3}
    assert kinds(answer) == {"XXX": FailureKind.UNKNOWN_SYMBOL}


@pytest.mark.parametrize(
    ("strange", "kind"),
    [
        (member("ZZZ"), FailureKind.SCHEMA_DRIFT),
        (None, FailureKind.SCHEMA_DRIFT),
        ({"symbol": "MSFT", "response": [{}]}, FailureKind.SCHEMA_DRIFT),
        (member("MSFT", symbol="ZZZ"), FailureKind.IMPLAUSIBLE),
        (member("MSFT", regularMarketTime=stamp("2027-01-01T00:00")), FailureKind.IMPLAUSIBLE),
        (member("MSFT", currency=...), FailureKind.SCHEMA_DRIFT),
        (member("MSFT", currency=None, regularMarketPrice=...), FailureKind.UNKNOWN_SYMBOL),
    ],
)
def test_b8_a_bad_member_costs_the_others_nothing(strange: Any, kind: FailureKind) -> None:
    answer = parse(spark(member("AAPL"), strange), ("AAPL", "MSFT"), Fetcher.QUOTE)
    assert [one.symbol for one in answer.observations] == ["AAPL"]
    assert kinds(answer) == {"MSFT": kind}


def test_a_quote_needs_no_more_than_symbol_price_currency_and_time() -> None:
    least = {
        "symbol": "AAPL",
        "currency": "USD",
        "regularMarketPrice": 3813.7913,
        "regularMarketTime": 1791529224,
    }
    body = {"chart": {"result": [{"meta": least, "indicators": {"quote": [{}]}}], "error": None}}
    (quote,) = parse(body, fetcher=Fetcher.QUOTE).observations
    assert (str(quote.close), quote.observed_at) == ("3813.7913", datetime(2026, 10, 9, 7, 0, 24, tzinfo=UTC))
    for name in least:
        if name != "currency":
            body["chart"]["result"] = [
                {
                    "meta": {key: value for key, value in least.items() if key != name},
                    "indicators": {"quote": [{}]},
                }
            ]
            with pytest.raises(SchemaDrift):
                parse(body, fetcher=Fetcher.QUOTE)


def test_b5_an_answer_about_another_symbol_names_both() -> None:
    """`M&M.NS` that a proxy or a server cuts at its sign is `M`, which is another share."""
    good = chart({"2026-11-19T09:30": 2.5}, symbol="M&M.NS")
    assert [one.symbol for one in parse(good, ("M&M.NS",)).observations] == ["M&M.NS"]
    (failure,) = parse(chart({"2026-11-19T09:30": 2.5}, symbol="M"), ("M&M.NS",)).failures
    assert (failure.symbol, failure.kind) == ("M&M.NS", FailureKind.IMPLAUSIBLE)
    assert "yahoo's daily_bars of M&M.NS cannot be true: it is about M." in failure.message
    (failure,) = parse(spark(member("AAPL"), member("M")), ("AAPL", "M&M.NS"), Fetcher.QUOTE).failures
    assert "no member for M&M.NS, and is about M, which nobody asked for" in failure.message


def test_b18_two_prices_for_one_symbol_are_none() -> None:
    body = spark(member("AAPL"), member("AAPL", regularMarketPrice=1), member("MSFT"))
    assert kinds(parse(body, ("AAPL", "MSFT"), Fetcher.QUOTE)) == {"AAPL": FailureKind.IMPLAUSIBLE}


# --- refusals -----------------------------------------------------------------------------------


def error(code: str, description: str | None, root: str = "chart") -> dict[str, Any]:
    return {root: {"result": None, "error": {"code": code, "description": description}}}


GONE = "No data found, symbol may be delisted"
BEFORE = "Data doesn't exist for startDate = 631152000, endDate = 694223999"


@pytest.mark.parametrize("status", [404, 200])
def test_a_symbol_that_it_does_not_know(status: int) -> None:
    for fetcher in PROVIDER.fetchers:
        assert kinds(parse(error("Not Found", GONE), fetcher=fetcher, status=status)) == {
            "AAPL": FailureKind.UNKNOWN_SYMBOL
        }
    body = error("Not Found", "No data found for spark symbols", "spark")
    answer = parse(body, ("X", "Y"), Fetcher.QUOTE, status=status)
    assert set(kinds(answer).values()) == {FailureKind.UNKNOWN_SYMBOL}


def test_a_shell_is_a_symbol_that_it_does_not_know() -> None:
    shell = {"meta": {"currency": None, "symbol": "AAPL"}, "indicators": {"quote": [{}]}}
    for fetcher in PROVIDER.fetchers:
        answer = parse({"chart": {"result": [shell], "error": None}}, fetcher=fetcher)
        assert kinds(answer) == {"AAPL": FailureKind.UNKNOWN_SYMBOL}


@pytest.mark.parametrize(("status", "code"), [(400, "Bad Request"), (422, "Unprocessable"), (200, "Bad Request")])
def test_a_window_before_its_first_day_is_empty(status: int, code: str) -> None:
    assert parse(error(code, BEFORE), status=status) == Answer(empty=frozenset({"AAPL"}))


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (429, b"Edge: Too Many Requests", Throttled),
        (200, error("Too Many Requests", "Rate limited"), Throttled),
        (401, error("Unauthorized", "Invalid Crumb", "finance"), KeyRefused),
        (403, b"Forbidden", KeyRefused),
        (403, b"<html>blocked</html>", ProviderDown),
        (
            422,
            error("Unprocessable Entity", "1m data not available for startTime=1 and endTime=2."),
            RequestRefused,
        ),
        (404, error("Not Found", "HTTP 404 Not Found", "finance"), SchemaDrift),
        (200, error("Strange", None), SchemaDrift),
        (200, {"chart": {"result": None, "error": None}}, SchemaDrift),
        (200, {"chart": {"result": [], "error": None}}, SchemaDrift),
        (200, spark(member("AAPL")), SchemaDrift),
    ],
)
def test_refusals_of_the_whole_call(status: int, body: object, kind: type[ProviderError]) -> None:
    with pytest.raises(kind) as caught:
        parse(body, status=status)
    assert type(caught.value) is kind


def test_b18_columns_that_do_not_match_their_times_are_drift() -> None:
    body = chart({"2026-11-18T09:30": 1.5, "2026-11-19T09:30": 2.5})
    columns = body["chart"]["result"][0]["indicators"]["quote"][0]
    columns["close"] = columns["close"][:1]
    with pytest.raises(SchemaDrift, match="other lengths"):
        parse(body)
    with pytest.raises(SchemaDrift, match="not one a day"):
        parse(chart({"2026-11-19T09:30": 2.5}, dataGranularity="1mo"))
    with pytest.raises(SchemaDrift, match="time zone"):
        parse(chart({"2026-11-19T09:30": 2.5}, exchangeTimezoneName="Mars/Olympus"))


# --- recordings ---------------------------------------------------------------------------------


def test_a9_recorded_bars_to_the_last_digit() -> None:
    """Two days of Apple after its split of 2020, as traded, against the closes every other source gives."""
    response = recorded("yahoo", "chart_AAPL_split_and_dividend_2020.json")
    window = Window(date(2020, 8, 31), date(2020, 11, 7))
    bars = PROVIDER.parse(Question(Fetcher.DAILY_BARS, ["AAPL"], window, NOW), response).observations
    assert len(bars) == 49
    first, last = bars[0], bars[-1]
    assert [str(value) for value in (first.open, first.high, first.low, first.close, first.volume)] == [
        *("127.58", "131", "126", "129.04", "225702700")
    ]
    assert (last.observed_at, str(last.close)) == (datetime(2020, 11, 6, tzinfo=UTC), "118.69")
    assert all(-Decimal(bar.close).as_tuple().exponent <= 2 for bar in bars)
    assert bars[0].observed_at - bars[-1].observed_at == timedelta(days=-67)


# --- what contradicts itself ----------------------------------------------------------------------


@pytest.mark.parametrize("offset", [-18000, None, ...])
def test_a_time_zone_may_come_with_its_offset(offset: Any) -> None:
    assert set(closes(parse(chart(CALM, gmtoffset=offset)))) == {"2026-11-18", "2026-11-19"}


def test_b18_the_offset_is_that_of_some_moment_of_the_answer() -> None:
    """A share that was last traded in summer is asked for in winter."""
    summer = {"2026-07-15T09:30": 10, "2026-07-16T09:30": 11}
    times = {"regularMarketTime": stamp("2026-07-16T16:00:01"), "currentTradingPeriod": ...}
    for offset in (-14400, -18000):
        assert len(parse(chart(summer, gmtoffset=offset, **times)).observations) == 1


@pytest.mark.parametrize("zone", ["Pacific/Auckland", "UTC"])
def test_b18_a_zone_that_is_not_the_answers_own_moves_no_history_by_a_day(zone: str) -> None:
    answer = parse(chart(CALM, exchangeTimezoneName=zone, gmtoffset=-18000))
    assert not answer.observations
    assert kinds(answer) == {"AAPL": FailureKind.IMPLAUSIBLE}
    assert f"its time zone {zone}" in answer.failures[0].message


def test_g3_a_field_of_another_type_is_the_only_one_that_is_blamed() -> None:
    with pytest.raises(SchemaDrift) as drift:
        parse(chart(CALM, regularMarketTime="x"))
    assert "regularMarketTime" in str(drift.value)
    assert "null" not in str(drift.value)
    assert "1 field(s)" in str(drift.value)
