"""mfapi.in's requests and answers: every recorded body has one right outcome (A11, B18, A9)."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from pricing_pipeline.domain import Answer, FailureKind, Fetcher, Response, Window
from pricing_pipeline.errors import (
    InvalidRange,
    ProviderDown,
    ProviderError,
    RequestRefused,
    SchemaDrift,
    SettingsError,
    Throttled,
)
from pricing_pipeline.providers.base import check_answer
from pricing_pipeline.providers.mfapi import MfApi
from pricing_pipeline_tests.recordings import recorded, recorded_files

NOW = datetime(2026, 6, 2, 4, 0, tzinfo=UTC)
ALL_DAYS = Window(date(2006, 1, 1), date(2026, 6, 2))
PROVIDER = MfApi()


def read(response: Response, code: str = "125497", window: Window | None = None) -> Answer:
    answer = PROVIDER.parse(Fetcher.NAV, [code], window, response, now=NOW)
    return check_answer("mfapi", [code], answer)


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

HISTORIES = {
    # file -> scheme, rows, first day and NAV, last day and NAV
    "mf_118632_full_history.json": ("118632", 3298, "2013-01-02", "14.69670", "2026-06-01", "97.19440"),
    "mf_119551_full_history.json": ("119551", 3236, "2013-01-02", "103.00590", "2026-06-01", "104.70250"),
    "mf_120841_full_history.json": ("120841", 3301, "2013-01-07", "30.60760", "2026-06-01", "246.98140"),
    "mf_125497_full_history.json": ("125497", 3091, "2013-11-18", "13.08940", "2026-06-01", "192.31950"),
}
SINGLE = {"mf_125497_latest.json", "mf_invalid_code_400.json", "mf_unknown_scheme_200_empty.json"}
NOT_AN_ENDPOINT_WE_CALL = {
    "mf_latest_bulk_dead_scheme.json",
    "mf_latest_bulk_item_docs.json",
    "mf_search_parag.json",
}


def test_every_recording_has_an_expected_outcome() -> None:
    assert recorded_files("mfapi") == HISTORIES.keys() | SINGLE | NOT_AN_ENDPOINT_WE_CALL


@pytest.mark.parametrize("file", sorted(HISTORIES))
def test_a9_recorded_histories_are_read_to_the_last_digit(file: str) -> None:
    code, rows, first_day, first, last_day, last = HISTORIES[file]
    response = recorded("mfapi", file)
    answer = read(response, code, ALL_DAYS)
    assert len(answer.observations) == rows
    assert (answer.failures, answer.empty, answer.rejected) == ((), frozenset(), ())
    ends = [(o.observed_at.isoformat(), o.text) for o in (answer.observations[0], answer.observations[-1])]
    assert ends == [(f"{first_day}T00:00:00+00:00", first), (f"{last_day}T00:00:00+00:00", last)]
    source = {row["date"]: row["nav"] for row in json.loads(response.body)["data"]}
    for observation in answer.observations:
        text = source[observation.observed_at.strftime("%d-%m-%Y")]
        assert (observation.text, str(observation.close), observation.currency) == (text, text, "INR")


def test_the_recorded_latest_value() -> None:
    (observation,) = read(recorded("mfapi", "mf_125497_latest.json")).observations
    assert observation.symbol == "125497"
    assert observation.observed_at == datetime(2026, 2, 3, tzinfo=UTC)
    assert (observation.close, observation.text) == (Decimal("186.70090"), "186.70090")


def test_the_recorded_unknown_schemes() -> None:
    for file, code in (("mf_unknown_scheme_200_empty.json", "99999999"), ("mf_invalid_code_400.json", "1")):
        (failure,) = read(recorded("mfapi", file), code).failures
        assert (failure.symbol, failure.kind) == (code, FailureKind.UNKNOWN_SYMBOL)


@pytest.mark.parametrize("file", sorted(NOT_AN_ENDPOINT_WE_CALL))
def test_b18_answers_of_other_endpoints_are_never_taken_for_prices(file: str) -> None:
    with pytest.raises(SchemaDrift):
        read(recorded("mfapi", file))


# --- requests -----------------------------------------------------------------------------------


def test_the_latest_value_and_a_window_are_asked_at_their_own_paths() -> None:
    assert PROVIDER.build(Fetcher.NAV, ["125497"], None).path == "/mf/125497/latest"
    request = PROVIDER.build(Fetcher.NAV, ["125497"], Window(date(2024, 1, 1), date(2024, 3, 31)))
    assert request.path == "/mf/125497"
    assert dict(request.params) == {"startDate": "2024-01-01", "endDate": "2024-03-31"}
    with pytest.raises(InvalidRange):
        PROVIDER.build(Fetcher.NAV, ["125497"], Window(date(2024, 3, 31), date(2024, 1, 1)))


def test_one_scheme_a_call() -> None:
    assert PROVIDER.batch_limit(Fetcher.NAV, None) == 1
    with pytest.raises(ValueError, match="too many values"):
        PROVIDER.build(Fetcher.NAV, ["1", "2"], None)


@pytest.mark.parametrize("symbol", ["", "AAPL", "12/../latest", "0123", "-1", "1" * 11, "١٢٣", "1 ", "1\n"])
def test_only_scheme_codes_reach_the_path(symbol: str) -> None:
    assert not PROVIDER.accepts(symbol)


def test_b18_the_data_type_must_match_the_fetcher() -> None:
    with pytest.raises(SettingsError, match="mfapi cannot fetch quote"):
        PROVIDER.build(Fetcher.QUOTE, ["125497"], None)


# --- answers ------------------------------------------------------------------------------------


def test_b18_a_zero_on_a_sunday_costs_no_good_day() -> None:
    answer = parse(history(("11-05-2026", "10.10000"), ("10-05-2026", "0.00000"), ("08-05-2026", "10.00000")))
    assert [o.observed_at.day for o in answer.observations] == [8, 11]
    (rejected,) = answer.rejected
    assert (rejected.symbol, rejected.text) == ("125497", "0.00000")
    assert rejected.observed_at == datetime(2026, 5, 10, tzinfo=UTC)
    assert "above zero" in rejected.reason


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (("10-05-2026", "N.A."), "finite"),
        (("10-05-2026", None), "finite"),
        (("10-05-2026", "-1.5"), "above zero"),
        (("10-05-2026", "Infinity"), "finite"),
        (("31-02-2026", "10.0"), "calendar"),
        (("04-06-2026", "10.0"), "future"),
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


def test_b18_an_answer_about_another_scheme_is_refused() -> None:
    (failure,) = parse(history(("08-05-2026", "10.0"), scheme_code=118632)).failures
    assert failure.kind is FailureKind.IMPLAUSIBLE
    assert "118632" in failure.message


def test_a_known_scheme_without_values_in_the_window_is_empty() -> None:
    assert parse(history()) == Answer(empty=frozenset({"125497"}))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (history(("2026-05-08", "10.0")), r"data\.0\.date"),
        (history(("8-5-2026", "10.0")), r"data\.0\.date"),
        (history(("08-05-2026", 10.5)), r"data\.0\.nav"),
        (history(("08-05-2026", "10.0"), scheme_code="125497"), "scheme_code"),
        (history() | {"status": "ERROR"}, "status"),
        ({"meta": history()["meta"], "status": "SUCCESS"}, "data"),
        ([], "schema"),
    ],
)
def test_b18_an_answer_unlike_its_schema_is_drift(body: object, words: str) -> None:
    with pytest.raises(SchemaDrift, match=words):
        parse(body)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (200, b"<html>", SchemaDrift),
        (400, b'{"error":"invalid startDate"}', RequestRefused),
        (404, b"<html>nginx</html>", ProviderDown),
        (429, b"slow down", Throttled),
        (502, b"<html>bad gateway</html>", ProviderDown),
    ],
)
def test_refusals_of_the_whole_call(status: int, body: bytes, kind: type[ProviderError]) -> None:
    with pytest.raises(kind):
        parse(body, status=status)


def test_a_404_of_the_api_itself_means_an_unknown_scheme() -> None:
    (failure,) = parse({"message": "Scheme not found"}, status=404).failures
    assert failure.kind is FailureKind.UNKNOWN_SYMBOL
