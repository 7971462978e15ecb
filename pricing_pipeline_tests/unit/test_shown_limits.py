"""A6: the limits that providers show, in headers and in the words of refusals."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pricing_pipeline.domain.answers import Answer, FailureKind, SymbolFailure
from pricing_pipeline.domain.calls import Response, ShownLimit
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.errors import Throttled
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.base import Question, shown_limit
from pricing_pipeline.providers.fetched import Fetched

NOW = datetime(2026, 3, 10, 14, tzinfo=UTC)
WORDS = (
    "You have run out of API credits for {}. 9 API credits were used, with the current limit being {}. "
    "Wait for the next minute or consider switching to a higher tier plan at https://twelvedata.com/pricing"
)


@pytest.mark.parametrize(
    ("headers", "shown"),
    [
        ({"api-credits-used": "2", "api-credits-left": "6"}, (8, 60)),
        ({"api-credits-used": "8", "api-credits-left": "0"}, (8, 60)),
        ({"api-credits-left": "6"}, None),
        ({"x-ratelimit-limit": "60"}, (60, None)),
        ({"ratelimit-limit": "100, 100;w=60"}, (100, 60)),
        ({"ratelimit-limit": "10, 100;w=3600"}, (10, None)),
        ({}, None),
    ],
)
def test_a6_headers_show_a_limit(headers: dict[str, str], shown: ShownLimit | None) -> None:
    assert shown_limit(headers) == shown


@pytest.mark.parametrize(
    "text", ["0", "-8", "+8", "1000000000", "8; DROP", "8.5", "٨", "", " ", "1e3", "NaN", "8, 8", "0, 0;w=60"]
)
def test_a6_a_broken_header_shows_no_limit(text: str) -> None:
    assert shown_limit({"x-ratelimit-limit": text}) is None
    assert shown_limit({"ratelimit-limit": text}) is None
    assert shown_limit({"api-credits-used": "0", "api-credits-left": text}) is None


def test_a6_credits_of_a_refused_call_show_no_limit() -> None:
    """It is counted as used, beyond the limit."""
    headers = {"api-credits-used": "9", "api-credits-left": "0"}
    assert shown_limit(headers, is_refused=True) is None
    refused = Answer(failures=(SymbolFailure("AAPL", FailureKind.THROTTLED, "too fast"),))
    assert Fetched(refused, 200, headers=headers).receipt.shown is None
    assert Fetched(Answer(empty=frozenset({"AAPL"})), 200, headers=headers).receipt.shown == (9, 60)


@pytest.mark.parametrize("status", [200, 429])
@pytest.mark.parametrize(
    ("when", "units", "shown"),
    [
        ("the current minute", "8", (8, 60)),
        ("the day", "800", (800, 86_400)),
        ("the current day", "800", (800, 86_400)),
        ("the current minute", "0", None),
        ("the current minute", "1000000000", None),
        ("the current minute", "-8", None),
        ("the current hour", "8", None),
    ],
)
def test_a6_the_words_of_a_refusal_show_a_limit(status: int, when: str, units: str, shown: ShownLimit | None) -> None:
    body = f'{{"status": "error", "code": 429, "message": "{WORDS.format(when, units)}"}}'.encode()
    headers = {"api-credits-used": "9", "api-credits-left": "0"}
    response = Response(status, headers, body, len(body))
    with pytest.raises(Throttled) as caught:
        PROVIDERS["twelvedata"].parse(Question(Fetcher.QUOTE, ["AAPL"], None, NOW), response)
    assert caught.value.shown == shown


def test_a6_a_refusal_shows_the_limit_that_its_header_names() -> None:
    response = Response(429, {"x-ratelimit-limit": "60"}, b"too fast", 8)
    with pytest.raises(Throttled) as caught:
        PROVIDERS["fmp"].parse(Question(Fetcher.QUOTE, ["AAPL"], None, NOW), response)
    assert caught.value.shown == (60, None)
