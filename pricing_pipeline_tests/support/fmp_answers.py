"""Answers as FMP sends them, made for a test, and what is read of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime

import pytest

from pricing_pipeline.domain.answers import Answer, FailureKind
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import (
    PlanRestricted,
    ProviderError,
)
from pricing_pipeline.providers.base import Question, check_answer
from pricing_pipeline.providers.fmp import Fmp

NOW = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)
PROVIDER = Fmp()
QUOTE, BARS = Fetcher.QUOTE, Fetcher.DAILY_BARS
PROFILE, EARNINGS, INCOME = Fetcher.PROFILE, Fetcher.EARNINGS, Fetcher.INCOME_STATEMENT
DIVIDENDS, SPLITS = Fetcher.DIVIDENDS, Fetcher.SPLITS
JANUARY = Window(date(2023, 1, 1), date(2023, 1, 10))


def read(
    response: Response,
    symbols: list[str],
    fetcher: Fetcher = QUOTE,
    window: Window | None = None,
) -> Answer:
    answer = PROVIDER.parse(Question(fetcher, symbols, window, NOW), response)
    return check_answer("fmp", symbols, answer)


Check = Callable[[Callable[[], Answer]], None]


def raises(kind: type[ProviderError], words: str, *, whole: bool | None = None) -> Check:
    def check(call: Callable[[], Answer]) -> None:
        with pytest.raises(kind, match=words) as caught:
            call()
        assert type(caught.value) is kind
        if isinstance(caught.value, PlanRestricted):
            assert caught.value.is_whole_endpoint is whole

    return check


def fails(kind: FailureKind) -> Check:
    def check(call: Callable[[], Answer]) -> None:
        answer = call()
        assert [failure.kind for failure in answer.failures] == [kind]
        assert not any((answer.observations, answer.records, answer.empty))

    return check
