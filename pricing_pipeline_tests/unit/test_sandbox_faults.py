"""The sandbox's faults: each does what it says, to the calls it names, as often as it is told."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from pricing_pipeline.sandbox.calls import ProviderCall, Reply
from pricing_pipeline.sandbox.faults import Behaviour, Behaviours, distorted, swapped
from pricing_pipeline_tests.support.sandbox_server import Asked

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)


def a_call(*symbols: str, endpoint: str = "quote") -> ProviderCall:
    return ProviderCall(endpoint, {}, symbols, None, NOON)


def after(reply: Reply, call: ProviderCall, **fault: Any) -> Any:
    return json.loads(distorted(reply, [Behaviour(**fault)], call).body)


@pytest.fixture(scope="module")
def asked() -> Asked:
    return Asked(NOON)


@pytest.mark.parametrize("value", ["NaN", "-1.0", "0", "1e400"])
def test_prices_are_replaced_where_they_are_meant(asked, value):
    batch = asked.twelvedata("quote", symbol="AAPL,IBM")
    before, changed = (
        json.loads(batch.body),
        after(batch, a_call("AAPL", "IBM"), kind="price", value=value, symbols="AA"),
    )
    assert {changed["AAPL"][name] for name in ("open", "high", "low", "close", "previous_close")} == {value}
    assert changed["AAPL"]["volume"] == before["AAPL"]["volume"]
    assert changed["IBM"] == before["IBM"]


def test_yahoos_prices_and_stamps_are_reached_in_batches_and_columns(asked):
    batch = asked.yahoo("v7/finance/spark", symbols="AAPL,IBM")
    changed = after(batch, a_call("AAPL", "IBM"), kind="times", factor=100, symbols="AA")
    for before, now in zip(*(body["spark"]["result"] for body in (json.loads(batch.body), changed)), strict=True):
        times = 100 if now["symbol"] == "AAPL" else 1
        there, here = (member["response"][0]["meta"]["regularMarketPrice"] for member in (before, now))
        assert here == there * times
    chart = asked.yahoo("v8/finance/chart/AAPL", range="5d")
    for name, fault in (
        ("close", {"kind": "price", "value": "0"}),
        ("timestamp", {"kind": "stale", "seconds": 60}),
    ):
        (before,), (now,) = (
            body["chart"]["result"] for body in (json.loads(chart.body), after(chart, a_call("AAPL"), **fault))
        )
        if name == "close":
            assert set(now["indicators"]["quote"][0]["close"]) == {0.0}
        else:
            assert now["timestamp"] == [at - 60 for at in before["timestamp"]]
            assert now["meta"]["regularMarketTime"] == before["meta"]["regularMarketTime"] - 60


def test_times_100_multiplies_the_text_exactly(asked):
    reply = Reply(200, b'{"close":"0.07","open":"12.345","nav":"186.70090","rate":1.5,"volume":"7","high":"3"}')
    changed = after(reply, a_call("X"), kind="times", factor=100)
    assert changed == {
        "close": "7.00",
        "open": "1234.500",
        "nav": "18670.09000",
        "rate": 150.0,
        "volume": "7",
        "high": "300",
    }


def test_stale_moves_stamps_back(asked):
    quote = asked.twelvedata("quote", symbol="AAPL")
    changed = after(quote, a_call("AAPL"), kind="stale", seconds=90)
    assert changed["last_quote_at"] == changed["timestamp"] == int(NOON.timestamp()) - 90
    assert changed["close"] == json.loads(quote.body)["close"]
    nav = after(asked.mfapi("mf/118632/latest"), a_call("118632"), kind="stale", seconds=2 * 86_400)
    assert nav["data"][0]["date"] == "15-11-2026"


def test_another_symbols_data_comes_under_the_name_asked_for():
    asked = Asked(NOON)
    provider = asked.sandbox.providers["twelvedata"]
    call = provider.read("quote", {"symbol": "AAPL,IBM"}, {}, NOON)
    answers = swapped([Behaviour(kind="other_symbol", answer="MSFT", symbols="AAPL")], call.symbols)
    body = json.loads(provider.answer(ProviderCall("quote", call.params, call.symbols, None, NOON, answers)).body)
    assert (body["AAPL"]["symbol"], body["IBM"]["symbol"]) == ("MSFT", "IBM")


def test_whole_answers_are_replaced():
    reply = Reply(200, b'{"close":"1.00"}')
    call = a_call("X")
    refused = distorted(reply, [Behaviour(kind="throttle", retry_after="-5")], call)
    assert (refused.status, refused.headers) == (429, {"Retry-After": "-5"})
    assert distorted(reply, [Behaviour(kind="throttle")], call).headers == {}
    failed = distorted(reply, [Behaviour(kind="status", status=520, body="error code: 520")], call)
    assert (failed.status, failed.body, failed.content_type[:10]) == (520, b"error code: 520", "text/plain")
    page = distorted(reply, [Behaviour(kind="html")], call)
    assert (page.status, page.content_type[:9], page.body[:9]) == (200, "text/html", b"<!DOCTYPE")
    assert distorted(reply, [Behaviour(kind="truncate")], call).body == reply.body[:8]


def test_faults_choose_their_calls():
    behaviours = Behaviours()
    behaviours.add(Behaviour(kind="html", provider="twelvedata", symbols="AA", path="quote"))
    assert behaviours.drawn("twelvedata", a_call("IBM", "AAPL"))
    assert not behaviours.drawn("mfapi", a_call("AAPL"))
    assert not behaviours.drawn("twelvedata", a_call("IBM"))
    assert not behaviours.drawn("twelvedata", a_call("AAPL", endpoint="price"))
    behaviours.clear()
    assert not behaviours.drawn("twelvedata", a_call("AAPL"))


def test_a_count_ends_a_fault_and_hits_are_shown():
    behaviours = Behaviours()
    behaviours.add(Behaviour(kind="html", count=2))
    behaviours.add(Behaviour(kind="delay", seconds=0.1))
    assert [len(behaviours.drawn("mfapi", a_call("1"))) for _ in range(4)] == [2, 2, 1, 1]
    assert [(one["kind"], one["hits"]) for one in behaviours.listed()] == [("delay", 4)]


def test_a_probability_is_drawn_the_same_way_for_the_same_seed():
    def hits(seed: int) -> list[int]:
        behaviours = Behaviours()
        behaviours.add(Behaviour(kind="html", probability=0.3, seed=seed))
        return [len(behaviours.drawn("mfapi", a_call("1"))) for _ in range(200)]

    assert hits(1) == hits(1) != hits(2)
    assert 30 < sum(hits(1)) < 90


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "explode"},
        {"kind": "delay"},
        {"kind": "status"},
        {"kind": "price"},
        {"kind": "other_symbol"},
        {"kind": "html", "probability": 1.5},
        {"kind": "html", "probabilty": 0.5},
        {"kind": "html", "count": 0},
        {"kind": "status", "status": 99},
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(ValidationError):
        Behaviour(**wrong)
