"""A10, F4 over HTTP: a read answers at once with what is stored, says why it is old, and asks for what is missing."""

from __future__ import annotations

import pytest

from pricing_pipeline.keys.api_tokens import Scope
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.api_server import RunningApi

pytestmark = pytest.mark.usefixtures("still")

MINUTE = 60


def asked_for(core: Core) -> set[tuple[str, str]]:
    """What is queued, or waits for a worker to queue it."""
    requests = core.rows("SELECT data_type, symbol FROM pricing.pair_requests WHERE kind = 'read'")
    return {(row.data_type, row.symbol) for row in [*requests, *core.tasks()]}


@pytest.mark.parametrize("user", [None, "ann"])
def test_a10_a_read_says_what_is_missing_and_asks_for_it(
    api: RunningApi, core: Core, user: str | None
) -> None:
    answer = api.caller(Scope.READ, user=user).get("prices", symbols="AAPL,NOSUCH")
    assert answer["prices"] == []
    missing = {(pair["data_type"], pair["symbol"]): pair["why"]["state"] for pair in answer["missing"]}
    assert missing.keys() == {(QUOTE, "AAPL"), (DAILY, "AAPL"), (None, "NOSUCH")}
    assert missing[None, "NOSUCH"] == "unknown_symbol"
    assert asked_for(core) == {(QUOTE, "AAPL"), (DAILY, "AAPL")}


def test_a10_f4_a_price_is_exact_and_says_why_it_is_old(api: RunningApi, core: Core, clock: Clock) -> None:
    caller = api.caller(Scope.READ)
    core.read("AAPL")
    core.refresh(price="146.5500")
    (price,) = caller.get("prices", symbols="aapl", data_type=QUOTE)["prices"]
    assert (price["symbol"], price["price"], price["fresh"], price["why"]) == ("AAPL", "146.55", True, None)
    assert price["observed_at"].endswith("Z")
    clock.advance(2 * MINUTE)
    (price,) = caller.get("prices", symbols="AAPL", data_type=QUOTE)["prices"]
    assert (price["fresh"], price["age_seconds"] >= 2 * MINUTE) == (False, True)
    reason = price["why"]
    assert reason["state"]
    assert reason["sentence"]
    (why,) = caller.get("why", symbols="AAPL", data_type=QUOTE)["reasons"]
    assert why["symbol"] == "AAPL"
    assert asked_for(core) == {(QUOTE, "AAPL"), (DAILY, "AAPL")}


@pytest.mark.parametrize(
    ("params", "status", "words"),
    [
        ({}, 422, "symbols"),
        ({"symbols": ""}, 422, "symbols"),
        ({"symbols": "A,,B"}, 422, "1 to 40 characters"),
        ({"symbols": ",".join(f"S{i}" for i in range(501))}, 422, "at most 500"),
        ({"symbols": "AAPL", "data_type": "nosuch"}, 404, "no active data type 'nosuch'"),
        ({"symbols": "AAPL\x00"}, 422, "NUL"),
        ({"symbols": "'; DROP TABLE x; --"}, 200, ""),
    ],
)
def test_a10_bad_requests_are_refused_in_words(
    api: RunningApi, core: Core, params: dict[str, str], status: int, words: str
) -> None:
    caller = api.caller(Scope.READ)
    if status == 200:
        assert caller.get("prices", **params)["prices"] == []
        return
    problem = caller.refusal("GET", "prices", params=params)
    assert (problem["status"], words in problem["detail"]) == (status, True), problem
    assert asked_for(core) == set()


def test_f4_why_of_a_stranger_is_refused(api: RunningApi) -> None:
    problem = api.caller(Scope.READ).refusal("GET", "why", params={"symbols": "NOSUCH"})
    assert problem["type"] == "urn:pricing-pipeline:unknown-symbol"
    assert problem["status"] == 404
