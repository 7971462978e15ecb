"""The sandbox's evidence: what a call cost, and when it came."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from pricing_pipeline.errors import SettingsError
from pricing_pipeline.sandbox.calls import ProviderCall
from pricing_pipeline.sandbox.limits import Charge
from pricing_pipeline.sandbox.log import CallLog
from pricing_pipeline.sandbox.settings import SandboxSettings

NOON = datetime(2026, 11, 18, 12, 0, 0, 250_000, tzinfo=UTC)


def a_call(*symbols: str, key: str | None = "canary-key") -> ProviderCall:
    return ProviderCall("quote", {}, symbols, key, NOON)


def test_a6_a_call_is_in_the_log_from_its_arrival():
    log = CallLog(10)
    record = log.begin("twelvedata", a_call("AAPL", "IBM"), Charge("default", 2, 2, 2, None))
    (running,) = log.calls()
    assert running["status"] is None
    log.end(record, 200, 1234)
    (ended,) = log.calls()
    assert (ended["seq"], ended["epoch"], ended["provider"]) == (1, NOON.timestamp(), "twelvedata")
    assert (ended["path"], ended["symbols"], ended["units"]) == ("/quote", ("AAPL", "IBM"), 2)
    assert (ended["status"], ended["bytes"], ended["refused"]) == (200, 1234, False)


@pytest.mark.parametrize(
    ("params", "days"),
    [
        (
            {"start_date": "2013-03-01", "end_date": "2013-06-27", "apikey": "canary-key"},
            ("2013-03-01", "2013-06-27"),
        ),
        ({"from": "2013-03-01", "to": "2013-06-27"}, ("2013-03-01", "2013-06-27")),
        ({"period1": "1362096000", "period2": "1372291200"}, ("1362096000", "1372291200")),
        ({"start_date": "2013-03-01", "outputsize": "30"}, None),
        ({}, None),
    ],
)
def test_g6_the_log_tells_which_days_were_asked_for(params, days):
    log = CallLog(10)
    log.begin("any", ProviderCall("history", params, ("AAPL",), None, NOON), None)
    (call,) = log.calls()
    assert call["days"] == days


def test_the_log_never_holds_a_key():
    log = CallLog(10)
    log.end(log.begin("twelvedata", a_call("AAPL"), None), 200, 10)
    (call,) = log.calls()
    assert "canary-key" not in json.dumps(call)
    assert "canary-key" not in repr(SandboxSettings(key="canary-key"))


def test_memory_is_bounded():
    log = CallLog(5)
    for _ in range(12):
        log.end(log.begin("twelvedata", a_call("AAPL"), None), 200, 100)
    assert [call["seq"] for call in log.calls()] == [8, 9, 10, 11, 12]


def test_calls_can_be_read_on_from_where_one_stopped():
    log = CallLog(100)
    for number in range(10):
        log.begin("mfapi" if number % 2 else "twelvedata", a_call("X"), None)
    assert [call["seq"] for call in log.calls(since=7)] == [8, 9, 10]
    assert [call["seq"] for call in log.calls("mfapi", since=5)] == [6, 8, 10]
    assert [call["seq"] for call in log.calls(since=3, limit=2)] == [4, 5]
    assert log.calls(limit=0) == []


@pytest.mark.parametrize("host", ["0.0.0.0", "example.org"])
def test_the_sandbox_stays_on_this_machine(host):
    with pytest.raises(SettingsError, match=host):
        SandboxSettings(host=host)
