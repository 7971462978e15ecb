"""The sandbox's Twelve Data: the same shapes, wordings, credits and refusals as in the recorded answers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from pricing_pipeline_tests.support.recordings import recorded_json
from pricing_pipeline_tests.support.sandbox_server import Asked, parsed

NOON = datetime(2026, 11, 18, 17, 0, 5, tzinfo=UTC)


def key_set(value: Any) -> Any:
    """Names at every level, without values; of a list, those of its first member."""
    if isinstance(value, dict):
        return {name: key_set(inner) for name, inner in value.items()}
    return [key_set(value[0])] if isinstance(value, list) and value else type(value).__name__


@pytest.mark.parametrize("name", ["quote_AAPL_2022_02_08.json", "quote_IBM_2021_07_01.json"])
def test_a_quotes_fields_are_recorded_ones_or_todays(name):
    quote = parsed(Asked().twelvedata("quote", symbol=recorded_json("twelvedata", name)["symbol"]))
    ours = key_set(quote)
    for since_then in ("timestamp", "last_quote_at", "is_market_open", "mic_code"):
        if since_then not in recorded_json("twelvedata", name):
            ours.pop(since_then)
    assert ours.items() <= key_set(recorded_json("twelvedata", name)).items()


def test_f1_batch_of_quotes_has_the_recorded_shape():
    ours = key_set(parsed(Asked().twelvedata("quote", symbol="AAPL,MSFT")))
    theirs = key_set(recorded_json("twelvedata", "batch_quote_AAPL_MSFT_SYNTH.json"))
    assert ours.keys() == theirs.keys()
    for name, member in ours.items():
        assert member.pop("last_quote_at") == "int"  # added by the provider since the recording
        assert member.items() <= theirs[name].items()


def test_time_series_has_the_recorded_shape_and_default_length():
    ours = parsed(Asked().twelvedata("time_series", symbol="IBM", interval="1day"))
    theirs = recorded_json("twelvedata", "time_series_IBM_1day_default30.json")
    assert len(ours["values"]) == len(theirs["values"]) == 30
    assert ours["meta"].pop("mic_code") == "XNYS"  # added by the provider since the recording
    assert key_set(ours) == key_set(theirs)
    assert ours["meta"] == theirs["meta"]
    assert ours["values"][0]["datetime"] > ours["values"][1]["datetime"]


def test_f1_batch_of_series_mixes_data_and_errors():
    ours = parsed(Asked().twelvedata("time_series", symbol="AAPL,NOPE", interval="1day", outputsize="1"))
    theirs = recorded_json("twelvedata", "batch_time_series_partial_error_SYNTH.json")
    assert key_set(ours["AAPL"]) == key_set(theirs["AAPL"])
    assert key_set(ours["NOPE"]) == key_set(theirs["INVALID"])


def test_a_price_has_the_recorded_shape():
    ours = parsed(Asked().twelvedata("price", symbol="IBM"))
    assert key_set(ours) == key_set(recorded_json("twelvedata", "price_IBM.json"))


def test_an_empty_window_is_an_error_in_these_words():
    reply = Asked().twelvedata(
        "time_series", symbol="AAPL", interval="1day", start_date="2026-11-14", end_date="2026-11-15"
    )
    assert (reply.status, parsed(reply)) == (
        400,
        recorded_json("twelvedata", "error_400_no_data_on_dates.json"),
    )


def test_a6_free_plan_counts_and_refuses_as_recorded():
    """The recording begins with one credit spent, and its eighth call is refused."""
    asked = Asked(NOON, credits_per_minute=8, credits_per_day=800)
    asked.twelvedata("quote", symbol="AAPL")
    for expected in recorded_json("twelvedata", "headers_200_free_key.json")["sequence"]:
        reply = asked.twelvedata("quote", symbol="AAPL")
        told = {name.lower(): value for name, value in reply.headers.items()}
        assert told | {"n": expected["n"], "http_status": reply.status} == expected
    assert parsed(reply) == recorded_json("twelvedata", "error_429_minute_credits_http429.json")
    assert "Retry-After" not in reply.headers


def test_a_key_may_come_as_a_parameter_or_a_header():
    asked = Asked()
    assert asked.twelvedata("quote", symbol="AAPL").status == 200
    assert asked.twelvedata("quote", symbol="AAPL", headers={"authorization": "apikey sandbox-key"}).status == 200


@pytest.mark.parametrize("headers", [{}, {"authorization": "apikey other"}, {"authorization": "Bearer sandbox-key"}])
def test_a_missing_or_wrong_key_is_401_and_costs_nothing(headers):
    asked = Asked()
    reply = asked.twelvedata("quote", symbol="AAPL", headers=headers)
    assert (reply.status, parsed(reply)["code"]) == (401, 401)
    assert asked.twelvedata("quote", symbol="AAPL").headers["Api-Credits-Used"] == "1"


@pytest.mark.parametrize("symbol", ["NOPE", "EUR/XXX", ""])
def test_unknown_symbols_are_404_today(symbol):
    reply = Asked().twelvedata("quote", symbol=symbol)
    assert (reply.status, parsed(reply)["code"], parsed(reply)["status"]) == (404, 404, "error")


def test_f1_one_symbol_is_a_bare_object_and_120_are_a_batch():
    asked = Asked()
    assert parsed(asked.twelvedata("quote", symbol="AAPL,"))["symbol"] == "AAPL"
    many = [f"S{n}" for n in range(120)]
    assert len(parsed(asked.twelvedata("quote", symbol=",".join(many)))) == 120


def test_pairs_have_neither_currency_nor_volume_as_in_recordings():
    """As USD/KZT (2022-12-02) and BTC/USD (2022-08-17) were recorded."""
    asked = Asked()
    euro, coin = (parsed(asked.twelvedata("quote", symbol=symbol)) for symbol in ("EUR/USD", "BTC/USD"))
    for quote in (euro, coin):
        assert not {"currency", "mic_code", "volume"} & set(quote)
    assert (euro["name"], euro["exchange"]) == ("Euro US Dollar", "Forex")
    series = parsed(asked.twelvedata("time_series", symbol="EUR/USD", interval="1day"))
    assert series["meta"] == {
        "symbol": "EUR/USD",
        "interval": "1day",
        "currency_base": "Euro",
        "currency_quote": "US Dollar",
        "type": "Physical Currency",
    }
    assert set(series["values"][0]) == {"datetime", "open", "high", "low", "close"}


def test_windows_include_both_ends_and_order_is_newest_first_unless_asked():
    asked = Asked(NOON)
    params = {"symbol": "TSLA", "interval": "1day", "start_date": "2026-11-09", "end_date": "2026-11-13"}
    days = [row["datetime"] for row in parsed(asked.twelvedata("time_series", **params))["values"]]
    assert days == ["2026-11-13", "2026-11-12", "2026-11-11", "2026-11-10", "2026-11-09"]
    rows = parsed(asked.twelvedata("time_series", order="ASC", **params))["values"]
    assert [row["datetime"] for row in rows] == days[::-1]
    params |= {"start_date": "2026-11-09 00:00:00", "end_date": "2026-11-13T00:00:00"}
    assert [row["datetime"] for row in parsed(asked.twelvedata("time_series", **params))["values"]] == days


def test_a_page_holds_the_newest_rows_of_its_window():
    asked = Asked(NOON)
    rows = asked.bars("IBM", start_date="2000-01-01", end_date="2013-03-01", outputsize="3")
    assert [row["datetime"] for row in rows] == ["2013-02-27", "2013-02-28", "2013-03-01"]
    everything = {"symbol": "IBM", "interval": "1day", "start_date": "2000-01-01"}
    assert len(parsed(asked.twelvedata("time_series", **everything))["values"]) == 5000


@pytest.mark.parametrize(
    "params",
    [
        {"outputsize": "0"},
        {"start_date": "13/02/2020"},
        {"interval": "1min"},
        {"start_date": "2026-11-13", "end_date": "2026-11-09"},
        {"start_date": "2026-11-19"},
    ],
)
def test_what_cannot_be_answered_is_400(params):
    reply = Asked(NOON).twelvedata("time_series", **{"symbol": "TSLA", "interval": "1day"} | params)
    assert (reply.status, parsed(reply)["code"]) == (400, 400)


def test_a6_a_batch_that_does_not_fit_is_refused_whole_and_charged():
    """As probed on 2026-06-24: 12 symbols on a fresh minute of a free key."""
    asked = Asked(NOON, credits_per_minute=8)
    reply = asked.twelvedata("quote", symbol=",".join(f"S{n}" for n in range(12)))
    assert reply.status == 429
    assert "12 API credits were used, with the current limit being 8." in parsed(reply)["message"]
    refused = asked.twelvedata("quote", symbol="AAPL")
    assert (refused.status, refused.headers["Api-Credits-Used"]) == (429, "13")


def test_a6_credits_return_with_the_next_calendar_minute():
    asked = Asked(datetime(2026, 11, 18, 17, 0, 59, tzinfo=UTC), credits_per_minute=2)
    assert asked.twelvedata("quote", symbol="AAPL,IBM").status == 200
    assert asked.twelvedata("quote", symbol="AAPL").status == 429
    asked.now += timedelta(seconds=1)
    assert asked.twelvedata("quote", symbol="AAPL,IBM").status == 200


def test_a6_the_day_ends_at_midnight_utc():
    asked = Asked(datetime(2026, 11, 18, 23, 50, tzinfo=UTC), credits_per_minute=8, credits_per_day=3)
    assert asked.twelvedata("quote", symbol="AAPL,IBM,MSFT").status == 200
    asked.now += timedelta(minutes=5)
    reply = asked.twelvedata("quote", symbol="AAPL")
    assert reply.status == 429
    assert "out of API credits for the day. 4 API credits were used" in parsed(reply)["message"]
    asked.now += timedelta(minutes=5)
    assert asked.twelvedata("quote", symbol="AAPL").status == 200


def test_metals_are_priced_in_currencies_and_price_nothing():
    asked = Asked()
    gold = parsed(asked.twelvedata("quote", symbol="XAU/USD"))
    assert gold["name"] == "Gold Spot US Dollar"
    assert 1000 < Decimal(gold["close"]) < 5000
    assert parsed(asked.twelvedata("quote", symbol="USD/XAU"))["status"] == "error"


def test_a_plan_without_caps_mentions_none():
    assert "Api-Credits-Left" not in Asked(credits_per_minute=None).twelvedata("quote", symbol="AAPL").headers


def test_endpoints_that_are_not_served_say_so():
    reply = Asked().twelvedata("dividends", symbol="AAPL")
    assert reply.status == 404
    assert "/time_series" in parsed(reply)["message"]
