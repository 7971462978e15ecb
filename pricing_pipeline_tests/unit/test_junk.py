"""Junk in an answer is counted, costs no good row beside it, and takes neither minutes nor gigabytes.

Invariant: of any list of rows every one that is like its schema is read, in its order; all others are counted, and at
most a hundred are told of, however many there are.
"""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pricing_pipeline.domain.answers import Answer, RejectedValue
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import SchemaDrift
from pricing_pipeline.judging import answers
from pricing_pipeline.providers import PROVIDERS, base
from pricing_pipeline.providers.base import Question, Schema, validate_rows
from pricing_pipeline_tests.support.examples import examples

NOW = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)
SPAN = Window(date(2020, 1, 1), date(2020, 12, 31))
MOST = 100


class Row(Schema):
    day: str
    close: int | None = None


JUNK = [1, None, "x", [], {}, {"close": 1}, {"day": 5}, {"day": None, "close": "x"}]
rows = st.lists(st.one_of(st.builds(lambda n: {"day": str(n)}, st.integers()), st.sampled_from(JUNK)), max_size=12)


@settings(max_examples=examples(200), deadline=None)
@given(parts=rows, times=st.sampled_from((1, 7, 40)))
def test_b18_every_good_row_is_read_and_every_other_counted(parts: list[Any], times: int) -> None:
    given_rows = parts * times
    good = [row["day"] for row in given_rows if isinstance(row, dict) and isinstance(row.get("day"), str)]
    if given_rows and not good:
        with pytest.raises(SchemaDrift, match=r"rows\.0"):
            validate_rows(Row, given_rows, "A", "an answer", place="rows")
        return
    found = validate_rows(Row, given_rows, "A", "an answer", place="rows")
    assert [row.day for row in found if isinstance(row, Row)] == good
    refused = [row for row in found if isinstance(row, RejectedValue)]
    assert sum(row.count for row in refused) == len(given_rows) - len(good)
    assert len(refused) <= MOST + 1


BAR = {"datetime": "2020-01-02", "open": "1", "high": "2", "low": "1", "close": "1", "volume": "1"}
SERIES = {"meta": {"symbol": "A", "interval": "1day", "currency": "USD"}, "status": "ok"}
SCHEME = {"meta": {"scheme_code": 1, "scheme_name": "x"}, "status": "SUCCESS"}
REPORT = {"symbol": "A", "date": "2026-01-02"} | dict.fromkeys(
    ("epsActual", "epsEstimated", "revenueActual", "revenueEstimated")
)


@pytest.mark.parametrize("junk", [1, {}])
@pytest.mark.parametrize(
    ("provider", "fetcher", "symbol", "good"),
    [
        ("twelvedata", Fetcher.DAILY_BARS, "A", BAR),
        ("mfapi", Fetcher.NAV, "1", {"date": "02-01-2020", "nav": "1.5"}),
        (
            "fmp",
            Fetcher.DAILY_BARS,
            "A",
            {"symbol": "A", "date": "2020-01-02", "open": 1, "high": 1, "low": 1, "close": 1},
        ),
        ("fmp", Fetcher.EARNINGS, "A", REPORT),
    ],
)
def test_b18_a_page_of_junk_is_explained_a_hundred_times_and_not_a_million(
    provider: str,
    fetcher: Fetcher,
    symbol: str,
    good: dict[str, Any],
    junk: object,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    explained = []
    monkeypatch.setattr(base, "_faults", lambda *given_: explained.append(given_) or ["a fault"])
    many = 1999 if fetcher is Fetcher.EARNINGS else 20_000  # more documents than that are refused
    listed: Any = [junk] * many + [good]
    body = {"twelvedata": SERIES | {"values": listed}, "mfapi": SCHEME | {"data": listed}}.get(provider, listed)
    raw = json.dumps(body).encode()
    window = None if fetcher is Fetcher.EARNINGS else SPAN
    answer = PROVIDERS[provider].parse(Question(fetcher, [symbol], window, NOW), Response(200, {}, raw, len(raw)))
    assert len(answer.observations) + len(answer.records) == 1
    assert sum(one.count for one in answer.rejected) == many
    assert len(explained) <= MOST


def test_b18_of_a_batch_of_yahoo_no_more_members_are_looked_at_than_can_be_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    explained = []
    monkeypatch.setattr(base, "_faults", lambda *given_: explained.append(given_) or ["a fault"])
    for junk in (1, {"symbol": "A"}, {"symbol": []}, {"symbol": "X"}):
        raw = json.dumps({"spark": {"result": [junk] * 20_000}}).encode()
        answer = PROVIDERS["yahoo"].parse(
            Question(Fetcher.QUOTE, ["A", "B"], None, NOW), Response(200, {}, raw, len(raw))
        )
        assert {one.kind.value for one in answer.failures} == {"schema_drift"}, "nobody is unknown for that"
    assert len(explained) <= 4


def test_f6_refused_values_and_actions_of_an_answer_are_capped_together() -> None:
    values = [RejectedValue("A", NOW - timedelta(days=n), "no price", "x") for n in range(60)]
    values += [RejectedValue("B", None, "no price", "x"), RejectedValue("A", None, "junk", "more rows", 5000)]
    dividends = [RejectedValue("A", NOW - timedelta(days=n), "too large", "1000") for n in range(5000)]
    shown = answers.doubts(Answer(rejected=tuple(values)), {}, dividends)
    of_a = [one for one in shown if isinstance(one, RejectedValue) and one.symbol == "A"]
    assert (len(of_a), len(shown)) == (MOST + 1, MOST + 2)
    assert sum(one.count for one in of_a) == 60 + 5000 + 5000
    assert of_a[-1].reason == f"{5000 - 39} more values cannot be true; the first: too large"
