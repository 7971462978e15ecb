"""Twelve Data's refusals: which kind each is, and whom it concerns in a batch (A11, B8)."""

from __future__ import annotations

from typing import Any

import pytest

from pricing_pipeline.domain.answers import Answer, FailureKind
from pricing_pipeline.errors import (
    KeyRefused,
    PlanRestricted,
    ProviderDown,
    ProviderError,
    RequestRefused,
    SchemaDrift,
    Throttled,
)
from pricing_pipeline_tests.support.twelvedata_answers import BARS, NOVEMBER, bar, parse, series


def error(code: int, message: str) -> dict[str, Any]:
    return {"code": code, "message": message, "status": "error"}


PLAN_404 = "This symbol is available starting with Grow or Venture plan. Consider upgrading your API Key"
UNKNOWN_404 = "**symbol** or **figi** parameter is missing or invalid. Please provide a valid symbol"


@pytest.mark.parametrize("as_status", [True, False], ids=["true status", "HTTP 200"])
@pytest.mark.parametrize(
    ("code", "message", "outcome"),
    [
        (404, UNKNOWN_404, FailureKind.UNKNOWN_SYMBOL),
        (400, "**symbol** not found: AAPL. Please specify it correctly", FailureKind.UNKNOWN_SYMBOL),
        (404, PLAN_404, FailureKind.PLAN_RESTRICTED),
        (403, PLAN_404, FailureKind.PLAN_RESTRICTED),
        (400, "No data is available on the specified dates. Try other dates.", None),
        (401, "**apikey** parameter is incorrect", KeyRefused),
        (403, "/quote is available exclusively with ultra", PlanRestricted),
        (404, "/quote is available starting with the Pro plan", PlanRestricted),
        (429, "You have run out of API credits for the day.", Throttled),
        (400, "Invalid **start_date** provided", RequestRefused),
        (500, "Internal server error", ProviderDown),
    ],
)
def test_errors_mean_the_same_with_either_status(
    code: int, message: str, outcome: FailureKind | type[ProviderError] | None, as_status: bool
) -> None:
    status = code if as_status else 200
    if isinstance(outcome, type):
        with pytest.raises(outcome) as caught:
            parse(error(code, message), ["AAPL"], BARS, NOVEMBER, status=status)
        assert message.split(".")[0] in str(caught.value)
        return
    answer = parse(error(code, message), ["AAPL"], BARS, NOVEMBER, status=status)
    if outcome is None:
        assert answer == Answer(empty=frozenset({"AAPL"}))
    else:
        assert [(f.symbol, f.kind) for f in answer.failures] == [("AAPL", outcome)]
        # Our words for what it does not know; its own where they say more.
        said = (
            "twelvedata does not know AAPL." if outcome is FailureKind.UNKNOWN_SYMBOL else "has no value for AAPL: This"
        )
        assert said in answer.failures[0].message


def test_b8_errors_of_members_leave_the_others_whole() -> None:
    body = {
        "GOOD": series(bar(), symbol="GOOD"),
        "GONE": error(404, UNKNOWN_404),
        "GATED": error(403, PLAN_404),
        "QUIET": error(400, "No data is available on the specified dates."),
        "LATE": error(429, "You have run out of API credits for the current minute."),
        "SICK": error(500, "Internal error"),
        "ODD": [],
        "SURPLUS": series(bar(), symbol="SURPLUS"),
    }
    asked = ["GOOD", "GONE", "GATED", "QUIET", "LATE", "SICK", "ODD", "MISSING"]
    answer = parse(body, asked, BARS, NOVEMBER)
    assert [o.symbol for o in answer.observations] == ["GOOD"]
    assert answer.empty == {"QUIET"}
    assert {f.symbol: f.kind for f in answer.failures} == {
        "GONE": FailureKind.UNKNOWN_SYMBOL,
        "GATED": FailureKind.PLAN_RESTRICTED,
        "LATE": FailureKind.THROTTLED,
        "SICK": FailureKind.PROVIDER_DOWN,
        "ODD": FailureKind.SCHEMA_DRIFT,
        "MISSING": FailureKind.SCHEMA_DRIFT,
    }


@pytest.mark.parametrize(("code", "kind"), [(401, KeyRefused), (429, Throttled), (503, ProviderDown)])
def test_the_same_refusal_of_all_members_is_one_of_the_call(code: int, kind: type[ProviderError]) -> None:
    refused = error(code, "no")
    with pytest.raises(kind):
        parse({"A": refused, "B": refused}, ["A", "B"])


def test_b8_a_batch_refused_for_one_symbol_condemns_none_for_good() -> None:
    for message in (UNKNOWN_404, PLAN_404):
        with pytest.raises(SchemaDrift, match="one by one"):
            parse(error(404, message), ["A", "B"], status=404)


def test_an_empty_window_of_a_whole_batch_is_empty_for_each() -> None:
    body = error(400, "No data is available on the specified dates.")
    assert parse(body, ["A", "B"], BARS, NOVEMBER, status=400).empty == {"A", "B"}


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        (b"null", 200, SchemaDrift),
        (b"<html>404</html>", 404, ProviderDown),
        (b"<html>Attention Required!</html>", 403, ProviderDown),
        (b"nope", 404, SchemaDrift),
    ],
)
def test_fault_11_bodies_that_are_no_answer(body: bytes, status: int, kind: type[ProviderError]) -> None:
    for symbols in (["AAPL"], ["AAPL", "IBM"]):
        with pytest.raises(kind):
            parse(body, symbols, status=status)


def test_messages_are_one_printable_line() -> None:
    answer = parse(error(404, "not\x00 found\r\n\ud800 " + "x" * 5000), ["AAPL"])
    (failure,) = answer.failures
    assert failure.message.isprintable()
    assert len(failure.message) < 500
