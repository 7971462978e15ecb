"""The sandbox's Yahoo Finance: recorded shapes, its noise, splits, holes and refusals."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import Any

import pytest

from pricing_pipeline_tests.support.recordings import recorded
from pricing_pipeline_tests.support.sandbox_server import Asked, parsed

CHART, SPARK = "v8/finance/chart/", "v7/finance/spark"
pytestmark = pytest.mark.xdist_group("calendars")  # a process takes seconds to work them out
IN_SESSION = datetime(2026, 11, 18, 15, 30, 20, tzinfo=UTC)


def epoch(day: str) -> str:
    return str(int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()))


def series(asked: Asked, symbol: str, **params: str) -> dict[str, Any]:
    (found,) = parsed(asked.yahoo(CHART + symbol, interval="1d", **params))["chart"]["result"]
    return found


def bars(asked: Asked, first: str, last: str, symbol: str = "AAPL") -> list[tuple[str, float | None]]:
    found = series(asked, symbol, period1=epoch(first), period2=epoch(last), events="split")
    zone = datetime.fromtimestamp
    days = [str(zone(at, UTC).date()) for at in found.get("timestamp", [])]
    closes = found["indicators"]["quote"][0].get("close", [])
    return list(zip(days, closes, strict=True))


def test_a_chart_has_the_recorded_shape() -> None:
    theirs = json.loads(recorded("yahoo", "chart_AAPL_split_and_dividend_2020.json").body)["chart"]["result"][0]
    ours = series(Asked(), "AAPL", period1=epoch("2005-01-01"), period2=epoch("2006-01-01"), events="split")
    assert ours["meta"].keys() <= theirs["meta"].keys()
    assert next(iter(ours["events"]["splits"].values())).keys() == theirs["events"]["splits"]["1598880600"].keys()
    assert ours["indicators"].keys() == theirs["indicators"].keys()
    assert ours["indicators"]["quote"][0].keys() == theirs["indicators"]["quote"][0].keys()


def test_a_batch_has_the_recorded_shape_and_silence() -> None:
    theirs = json.loads(recorded("yahoo", "spark_batch_trimmed.json").body)["spark"]["result"][0]
    body = parsed(Asked().yahoo(SPARK, symbols="AAPL,NOPE,EURUSD=X,BTC-USD", range="1d", interval="1d"))
    members = {member["symbol"]: member for member in body["spark"]["result"]}
    assert set(members) == {"AAPL", "EURUSD=X", "BTC-USD"}
    for member in members.values():
        assert member.keys() == theirs.keys()
        (ours,) = member["response"]
        assert ours.keys() == theirs["response"][0].keys()
        assert ours["meta"].keys() >= theirs["response"][0]["meta"].keys() - {"gmtoffset"}


def test_prices_are_divided_by_later_splits_and_spelled_as_binary32() -> None:
    """Apple closed at 88.99 on 2005-02-25 and split 2 for 1 on the next trading day."""
    found = bars(Asked(), "2005-02-25", "2005-03-01")
    assert [close for _, close in found] == [44.494998931884766, 44.86000061035156]


def test_a_split_is_named_in_answers_that_hold_its_first_day() -> None:
    asked = Asked()
    for first, is_named in (("2005-02-22", True), ("2005-02-28", True), ("2005-03-01", False)):
        found = series(asked, "AAPL", period1=epoch(first), period2=epoch("2005-03-04"), events="split")
        assert ("events" in found) == is_named
    assert "events" not in series(asked, "AAPL", period1=epoch("2005-02-22"), period2=epoch("2005-03-04"))


def test_a_weekend_has_no_time_stamps_and_days_before_the_first_are_refused() -> None:
    found = series(Asked(), "AAPL", period1=epoch("2010-01-02"), period2=epoch("2010-01-03"))
    assert "timestamp" not in found
    assert found["indicators"]["quote"] == [{}]
    reply = Asked().yahoo(CHART + "AAPL", period1=epoch("1990-01-02"), period2=epoch("1991-01-03"))
    theirs = json.loads(recorded("yahoo", "error_400_no_data_in_range.json").body)["chart"]["error"]
    assert (reply.status, parsed(reply)["chart"]["error"]["code"]) == (400, theirs["code"])
    assert parsed(reply)["chart"]["error"]["description"].startswith(theirs["description"][:20])


def test_the_bar_of_a_session_in_progress_looks_like_all_others() -> None:
    asked = Asked(IN_SESSION, market_hours="exchange")
    found = series(asked, "AAPL", range="5d", events="split")
    assert found["meta"]["regularMarketTime"] == int(IN_SESSION.timestamp())
    assert date.fromtimestamp(found["timestamp"][-1]) == IN_SESSION.date()
    period = found["meta"]["currentTradingPeriod"]["regular"]
    assert period["start"] == found["timestamp"][-1] < found["meta"]["regularMarketTime"] < period["end"]


def test_what_it_answers_for_unknown_symbols() -> None:
    reply = Asked().yahoo(CHART + "NOPE", range="1d", interval="1d")
    theirs = recorded("yahoo", "error_404_symbol_delisted.json")
    assert (reply.status, parsed(reply)) == (theirs.status, json.loads(theirs.body))
    assert Asked().yahoo(SPARK, symbols="NOPE,NOPE2").status == 404


@pytest.mark.parametrize(
    ("path", "params", "status"),
    [
        ("v10/finance/quoteSummary/AAPL", {}, 404),
        (CHART + "AAPL", {"interval": "1m"}, 422),
        (CHART + "AAPL", {"range": "17d"}, 400),
        (CHART + "AAPL", {"period1": "soon"}, 400),
        (CHART + "EUR/USD", {}, 404),
    ],
)
def test_what_the_sandbox_does_not_serve(path: str, params: dict[str, str], status: int) -> None:
    assert Asked().yahoo(path, **params).status == status


def test_f5_dividends_come_with_the_days_asked_for_divided_by_later_splits() -> None:
    asked = Asked(datetime(2026, 11, 18, 15, 30, tzinfo=UTC))
    span = {"period1": epoch("2004-01-01"), "period2": epoch("2005-06-01")}
    told = series(asked, "AAPL", **span, events="div|split")["events"]
    assert len(told["splits"]) == 1
    # Four in 2004 and two in 2005, of which one has no split after it.
    cash = [one["amount"] for one in sorted(told["dividends"].values(), key=lambda one: int(one["date"]))]
    paid = parsed(asked.fmp("dividends", symbol="AAPL"))
    ours = [row for row in reversed(paid) if "2004-01-01" <= row["date"] <= "2005-06-01"]
    assert len(cash) == len(ours) == 6
    assert cash == pytest.approx([row["adjDividend"] for row in ours], abs=1e-5)
    assert "events" not in series(asked, "AAPL", **span)
    assert "dividends" not in series(asked, "AAPL", **span, events="split")["events"]


def test_adjusted_closes_lack_what_later_dividends_paid() -> None:
    """Before each dividend by its part of the close before it; from the last one on they are the closes."""
    asked = Asked(datetime(2026, 11, 18, 15, 30, tzinfo=UTC))
    found = series(asked, "IBM", period1=epoch("2024-01-01"), period2=epoch("2026-11-18"), events="div")
    closes = found["indicators"]["quote"][0]["close"]
    adjusted = found["indicators"]["adjclose"][0]["adjclose"]
    days = [int(at) for at in found["events"]["dividends"]]
    last = found["timestamp"].index(max(days))
    assert adjusted[last:] == closes[last:]
    assert all(one < close for one, close in zip(adjusted[:last], closes[:last], strict=True))
    for at in days:
        here = found["timestamp"].index(at)
        paid = found["events"]["dividends"][str(at)]["amount"]
        ratios = [one / close for one, close in zip(adjusted, closes, strict=True)]
        assert ratios[here - 1] / ratios[here] == pytest.approx(1 - paid / closes[here - 1], rel=1e-6)
    facebook = series(asked, "META", period1=epoch("2024-01-01"), period2=epoch("2026-11-18"))["indicators"]
    assert facebook["adjclose"][0]["adjclose"] == facebook["quote"][0]["close"], "it pays nothing"


@pytest.mark.parametrize("hours", ["always", "exchange"])
def test_stamps_are_openings_of_the_exchange_and_the_window_is_of_stamps(hours: str) -> None:
    asked = Asked(IN_SESSION, market_hours=hours)
    summer, winter = int(epoch("2026-06-15T13:30:00")), int(epoch("2026-11-16T14:30:00"))
    for at in (summer, winter):
        for first, last, found in ((at, at, [at]), (at + 1, at + 60, []), (at - 60, at - 1, [])):
            chart = series(asked, "AAPL", period1=str(first), period2=str(last))
            assert chart.get("timestamp", []) == found
    london = int(epoch("2026-06-14T23:00:00"))
    chart = series(asked, "EURUSD=X", period1=str(london), period2=str(london + 86_399))
    assert chart["timestamp"] == [london], "midnight in London is the day before in UTC"


def test_a_day_before_its_session_has_the_time_of_the_newest_trade() -> None:
    now = datetime(2026, 11, 18, 8, tzinfo=UTC)
    chart = series(Asked(now), "AAPL", range="5d")
    assert chart["timestamp"][-1] == chart["meta"]["regularMarketTime"] == int(now.timestamp())
    assert series(Asked(now, market_hours="exchange"), "AAPL", range="5d")["timestamp"][-1] < now.timestamp() - 3600


def test_sessions_name_their_zone_and_follow_its_clock() -> None:
    for now, offset, name in (
        (IN_SESSION, -18_000, "EST"),
        (datetime(2026, 6, 15, 15, tzinfo=UTC), -14_400, "EDT"),
    ):
        meta = series(Asked(now, market_hours="exchange"), "AAPL", range="1d")["meta"]
        assert (meta["gmtoffset"], meta["timezone"]) == (offset, name)
        periods = meta["currentTradingPeriod"]
        for one in periods.values():
            assert (one["gmtoffset"], one["timezone"]) == (offset, name)
        assert periods["pre"]["end"] == periods["regular"]["start"]
        assert periods["regular"]["end"] == periods["post"]["start"]
        assert periods["regular"]["end"] - periods["regular"]["start"] == 6.5 * 3600


def test_quotes_are_for_those_who_fetched_a_crumb_and_its_cookie() -> None:
    asked = Asked(IN_SESSION)
    reply = asked.yahoo("v1/test/getcrumb")
    assert (reply.status, reply.content_type) == (200, "text/plain;charset=utf-8")
    cookie, crumb = {"cookie": reply.headers["Set-Cookie"].partition(";")[0]}, reply.body.decode()

    def quotes(headers: dict[str, str], **params: str) -> Any:
        return asked.ask("yahoo", "v7/finance/quote", {"symbols": "AAPL,NOPE,VOD.L", **params}, headers)

    assert quotes(cookie).status == quotes({}, crumb=crumb).status == 401
    told = parsed(quotes(cookie, crumb=crumb))["quoteResponse"]["result"]
    assert [(one["symbol"], one["currency"]) for one in told] == [("AAPL", "USD"), ("VOD.L", "GBp")]
    meta = series(asked, "AAPL", range="1d")["meta"]
    assert {name: told[0][name] for name in ("regularMarketPrice", "regularMarketTime", "fiftyTwoWeekHigh")} == {
        name: meta[name] for name in ("regularMarketPrice", "regularMarketTime", "fiftyTwoWeekHigh")
    }
