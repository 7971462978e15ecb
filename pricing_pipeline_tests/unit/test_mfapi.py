"""mfapi.in's requests and answers: every recorded body has one right outcome (A11, B18, A9)."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing_pipeline.domain.answers import Answer, FailureKind
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import (
    ProviderError,
    RequestRefused,
    SchemaDrift,
)
from pricing_pipeline.providers.base import Question, Request, check_answer
from pricing_pipeline.providers.mfapi import MfApi
from pricing_pipeline_tests.support.recordings import recorded

NOW = datetime(2026, 6, 2, 4, 0, tzinfo=UTC)
ALL_DAYS = Window(date(2006, 1, 1), date(2026, 6, 2))
PROVIDER = MfApi()


def read(response: Response, code: str = "125497", window: Window | None = None) -> Answer:
    answer = PROVIDER.parse(Question(Fetcher.NAV, [code], window, NOW), response)
    return check_answer("mfapi", [code], answer)


def read_list(response: Response, *codes: str) -> Answer:
    return check_answer("mfapi", codes, PROVIDER.parse(Question(Fetcher.NAV, codes, None, NOW), response))


def parse_list(body: object, *codes: str, status: int = 200) -> Answer:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return read_list(Response(status, {}, raw, len(raw)), *codes)


def listed(code: object, nav: object = "48.56700", day: object = "01-06-2026", **more: object) -> dict[str, object]:
    return {
        "schemeCode": code,
        "schemeName": f"Scheme {code}",
        "fundHouse": "A house",
        "schemeType": "Open Ended Schemes",
        "schemeCategory": "Income",
        "isinGrowth": None,
        "isinDivReinvestment": None,
        "nav": nav,
        "date": day,
    } | more


def parse(body: object, window: Window | None = ALL_DAYS, status: int = 200) -> Answer:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return read(Response(status, {}, raw, len(raw)), window=window)


def history(*rows: tuple[str, Any], **meta: Any) -> dict[str, Any]:
    full = {
        "fund_house": "SBI Mutual Fund",
        "scheme_type": "Open Ended Schemes",
        "scheme_category": "Equity Scheme - Small Cap Fund",
        "scheme_code": 125497,
        "scheme_name": "SBI Small Cap Fund - Direct Plan - Growth",
        "isin_growth": "INF200K01T51",
        "isin_div_reinvestment": None,
    }
    return {
        "meta": full | meta,
        "data": [{"date": day, "nav": nav} for day, nav in rows],
        "status": "SUCCESS",
    }


# --- recordings ---------------------------------------------------------------------------------


def test_a9_a_recorded_history_is_read_to_the_last_digit() -> None:
    code = "118632"
    response = recorded("mfapi", f"mf_{code}_full_history.json")
    source = {row["date"]: row["nav"] for row in json.loads(response.body)["data"]}
    answer = read(response, code, ALL_DAYS)
    assert len(answer.observations) > 3000
    for observation in answer.observations:
        text = source[observation.observed_at.strftime("%d-%m-%Y")]
        assert (observation.text, str(observation.close), observation.currency) == (text, text, "INR")


# --- requests -----------------------------------------------------------------------------------


def test_the_latest_value_and_a_window_are_asked_at_their_own_paths() -> None:
    assert PROVIDER.build(Question(Fetcher.NAV, ["125497"], None, NOW)).path == "/mf/125497/latest"
    request = PROVIDER.build(Question(Fetcher.NAV, ["125497"], Window(date(2024, 1, 1), date(2024, 3, 31)), NOW))
    assert request.path == "/mf/125497"
    assert dict(request.params) == {"startDate": "2024-01-01", "endDate": "2024-03-31"}


def test_f1_several_latest_values_are_one_list_and_a_history_is_of_one_scheme() -> None:
    assert PROVIDER.batch_limit(Fetcher.NAV, None) == 5000
    assert PROVIDER.build(Question(Fetcher.NAV, ["1", "2"], None, NOW)) == Request("/mf/latest")
    assert PROVIDER.batch_limit(Fetcher.NAV, ALL_DAYS) == 1


# --- answers ------------------------------------------------------------------------------------


def test_b18_a_zero_on_a_sunday_costs_no_good_day() -> None:
    answer = parse(history(("11-05-2026", "10.10000"), ("10-05-2026", "0.00000"), ("08-05-2026", "10.00000")))
    assert [o.observed_at.day for o in answer.observations] == [8, 11]
    (rejected,) = answer.rejected
    assert (rejected.symbol, rejected.text) == ("125497", "0.00000")
    assert rejected.observed_at == datetime(2026, 5, 10, tzinfo=UTC)
    assert "above zero" in rejected.reason


def test_b18_a_segregated_scheme_may_be_written_off_to_0() -> None:
    name = "A Debt Fund - Segregated Portfolio 1 - Growth"
    rows = (("11-05-2026", "0.00000"), ("10-05-2026", "0.12000"))
    answer = parse(history(*rows, scheme_name=name))
    assert [(o.observed_at.day, o.close, o.text) for o in answer.observations] == [
        (10, Decimal("0.12000"), "0.12000"),
        (11, Decimal(0), "0.00000"),
    ]
    latest = parse_list([listed(1, "0.00000", schemeName=name), listed(2)], "1", "2")
    assert {o.symbol: o.close for o in latest.observations}["1"] == 0
    assert not latest.failures


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (("10-05-2026", "N.A."), "finite"),
        (("31-02-2026", "10.0"), "calendar"),
        (("31-12-2005", "10.0"), "outside"),
    ],
)
def test_b18_one_bad_row_is_rejected_and_named(row: tuple[str, Any], words: str) -> None:
    answer = parse(history(("08-05-2026", "10.00000"), row))
    assert [o.observed_at.day for o in answer.observations] == [8]
    (rejected,) = answer.rejected
    assert re.search(words, rejected.reason)
    alone = parse(history(row))
    assert [f.kind for f in alone.failures] == [FailureKind.IMPLAUSIBLE]
    assert alone.rejected == (rejected,)


def test_a_known_scheme_without_values_in_the_window_is_empty() -> None:
    assert parse(history()) == Answer(empty=frozenset({"125497"}))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (history(("8-5-2026", "10.0")), r"data\.0\.date"),
        (history(("08-05-2026", 10.5)), r"data\.0\.nav"),
        (history(("08-05-2026", "10.0"), scheme_code="125497"), "scheme_code"),
        (history() | {"status": "ERROR"}, "status"),
        ({"meta": history()["meta"], "status": "SUCCESS"}, "data"),
    ],
)
def test_b18_an_answer_unlike_its_schema_is_drift(body: object, words: str) -> None:
    with pytest.raises(SchemaDrift, match=words):
        parse(body)


def test_a_404_of_the_api_itself_means_an_unknown_scheme() -> None:
    (failure,) = parse({"message": "Scheme not found"}, status=404).failures
    assert failure.kind is FailureKind.UNKNOWN_SYMBOL


# --- the list of all schemes --------------------------------------------------------------------


def told(answer: Answer) -> dict[str, str]:
    """What became of each scheme."""
    return {one.symbol: one.text for one in answer.observations} | {
        one.symbol: one.kind.value for one in answer.failures
    }


@pytest.mark.parametrize(
    ("row", "outcome"),
    [
        (listed(2, "10.72050", "29-05-2008"), "10.72050"),  # dead for years, and still listed
        (listed(2, isinGrowth=5, schemeName=None, more="a field more"), "48.56700"),
        (listed(2, 48.567), "schema_drift"),
        (listed(2, day="2026-06-01"), "schema_drift"),
        (listed(2, "N.A."), "implausible"),
        (listed(2, day="04-06-2026"), "implausible"),
        (listed(20), "schema_drift"),
        (listed(True), "schema_drift"),
        (None, "schema_drift"),
    ],
)
def test_b18_one_odd_row_of_the_list_costs_its_own_scheme_alone(row: object, outcome: str) -> None:
    answer = parse_list([listed(1, "1.00000"), row, listed(3, "3.00000")], "3", "2", "1")
    assert told(answer) == {"1": "1.00000", "2": outcome, "3": "3.00000"}
    assert {(one.observed_at, one.currency) for one in answer.observations if one.symbol != "2"} == {
        (datetime(2026, 6, 1, tzinfo=UTC), "INR")
    }
    assert all("mfapi" in one.message or "can be true" in one.message for one in answer.failures)


def test_b8_who_is_missing_is_told_in_one_sentence_for_all() -> None:
    """What many tasks fail of by one reason is one statement to the database."""
    answer = parse_list([listed(1)], *map(str, range(1, 1000)))
    (message,) = {one.message for one in answer.failures}
    assert message == ("mfapi's list of all schemes does not name it. Nothing was stored; it is asked for alone next.")


@pytest.mark.parametrize(
    ("rows", "outcome", "rejected"),
    [
        ([listed(2), listed(2)], "48.56700", []),
        ([listed(2), listed(2, "48.567")], "48.56700", []),
        ([listed(2), listed(2, "48.56800")], "implausible", ["48.56700", "48.56800"]),
        ([listed(2), listed(2, day="29-05-2026")], "implausible", ["48.56700", "48.56700"]),
        ([listed(2), listed(2, "N.A.")], "48.56700", ["N.A."]),
    ],
)
def test_b18_a_scheme_that_the_list_names_twice(rows: list[object], outcome: str, rejected: list[str]) -> None:
    answer = parse_list([listed(1), *rows], "1", "2")
    assert told(answer) == {"1": "48.56700", "2": outcome}
    assert [(one.symbol, one.text) for one in answer.rejected] == [("2", text) for text in rejected]


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (200, [], SchemaDrift),
        (200, [listed(8), listed(9)], SchemaDrift),
        (200, [listed(1, 1.5), listed(2, 1.5)], SchemaDrift),
        (200, {"error": "no list today"}, SchemaDrift),
        (200, {"meta": {}, "data": [listed(1)], "status": "SUCCESS"}, SchemaDrift),
        (400, {"error": "invalid scheme_code"}, RequestRefused),
        (404, {"message": "Scheme not found"}, SchemaDrift),
    ],
)
def test_b18_what_is_no_list_of_schemes_is_no_answer(status: int, body: object, kind: type[ProviderError]) -> None:
    with pytest.raises(kind):
        parse_list(body, "1", "2", status=status)


_ODD = st.sampled_from([None, 0, 1, 1.5, True, "", "x", [], {}, "48.567", "01-06-2026", "1e400", "0"])
_ROWS = st.lists(
    st.one_of(
        st.builds(listed, st.integers(1, 6), _ODD, st.sampled_from(["01-06-2026", "29-05-2008", "x", None])),
        st.builds(listed, st.one_of(st.integers(1, 6), _ODD)),
        _ODD,
    ),
    max_size=12,
)


@given(rows=_ROWS, codes=st.sets(st.integers(1, 6), min_size=2))
def test_b8_whatever_the_list_holds_each_asked_scheme_has_one_outcome(rows: list[object], codes: set[int]) -> None:
    try:
        answer = parse_list(rows, *map(str, sorted(codes)))
    except SchemaDrift:
        return
    outcomes = [one.symbol for one in answer.observations] + [one.symbol for one in answer.failures]
    assert sorted(outcomes) == [str(code) for code in sorted(codes)]
    listed_values = [(row["schemeCode"], row["nav"]) for row in rows if isinstance(row, dict) and row]
    assert all((int(one.symbol), one.text) in listed_values for one in answer.observations)
