"""The samples of all providers as tests take them, and the one outcome of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from itertools import chain, islice, repeat

import pytest

from pricing_pipeline.domain.answers import Answer, Document, Record
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Contents, Fetcher
from pricing_pipeline.domain.inventory import ProductDays
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import ProviderError, Unfinished
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.base import Provider, Question, Request, check_answer
from pricing_pipeline.providers.dialogue import MAX_REQUESTS, OneRequest, dialogue_of
from pricing_pipeline_tests.support.declarations import DECLARED
from pricing_pipeline_tests.support.provider_samples import (
    NOW,
    Sample,
    Value,
)
from pricing_pipeline_tests.support.provider_samples import (
    SAMPLES as CODED,
)
from pricing_pipeline_tests.support.shape_samples import SHAPES

SAMPLES = (*CODED, *SHAPES)
ALL = {name: provider for name, provider in {**PROVIDERS, **DECLARED}.items() if name != "worldbank"}
"""Coded and declared providers by name, but for the one whose values are of years: unit/test_shapes.py has that."""
MONDAY, TUESDAY = date(2026, 11, 16), date(2026, 11, 17)


def named(sample: Sample) -> str:
    return f"{sample.provider}-{sample.fetcher}{'-latest' if sample.is_latest else ''}"


def over(*samples: Sample) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("sample", samples, ids=named)


every = over(*SAMPLES)
priced = over(*(one for one in SAMPLES if one.fetcher.contents is Contents.PRICES))
daily = over(*(one for one in SAMPLES if one.is_daily))
twice_a_day = over(*(one for one in SAMPLES if one.is_daily and not one.is_keyed_by_day))
quotes = over(*(one for one in SAMPLES if one.fetcher is Fetcher.QUOTE))
ranged = over(*(one for one in SAMPLES if one.says_range))
naming = over(*(one for one in SAMPLES if one.names_symbol))
in_currency = over(*(one for one in SAMPLES if one.names_currency))


def provider_of(sample: Sample) -> Provider:
    return ALL[sample.provider]


def parse(
    sample: Sample,
    body: bytes,
    asked: Sequence[str],
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Answer:
    """The answer of a call whose every request, after those of the sample's `before`, gets this body."""
    response = Response(status, headers or {}, body, len(body))
    first = [Response(200, {}, one, len(one)) for one in sample.first_bodies(asked)]
    answer = read(provider_of(sample), sample.fetcher, asked, sample.window, response, first)
    return check_answer(sample.provider, asked, answer)


def request(provider: Provider, fetcher: Fetcher, asked: Sequence[str], window: Window | None) -> Request:
    """The first request of a call."""
    return next(dialogue_of(provider, Question(fetcher, asked, window, NOW)))


def read(
    provider: Provider,
    fetcher: Fetcher,
    asked: Sequence[str],
    window: Window | None,
    response: Response,
    first: Sequence[Response] = (),
) -> Answer:
    """The answer of a call whose requests get these responses first, and then each this one."""
    if isinstance(provider, OneRequest):
        return provider.parse(Question(fetcher, asked, window, NOW), response)
    dialogue = dialogue_of(provider, Question(fetcher, asked, window, NOW))
    next(dialogue)
    for sent in islice(chain(first, repeat(response)), MAX_REQUESTS):
        try:
            dialogue.send(sent)
        except StopIteration as end:
            answer: Answer = end.value
            return answer
    raise Unfinished(f"{provider.name} asks without end")


def outcome(sample: Sample, body: bytes, asked: Sequence[str], status: int = 200) -> Answer | ProviderError:
    """What a call ends in; every other exception is a failure of the test."""
    try:
        return parse(sample, body, asked, status)
    except ProviderError as error:
        return error


def values_of(result: Answer | ProviderError) -> list[tuple[str, object]]:
    """Symbol and day of all that would be stored; slots bring their product along, which is told of elsewhere."""
    if isinstance(result, ProviderError):
        return []
    days = [record for record in result.records if isinstance(record, ProductDays)]
    return [(one.symbol, one.observed_at.date()) for one in result.observations] + [
        (record.symbol, day) for record in days or result.records for day in _days_of(record)
    ]


def _days_of(record: Record) -> list[date | None]:
    """One for each value of a record; a product without slots has none, and what is about no day has None."""
    match record:
        case ProductDays():
            return [slot.local_start.date() for slot in record.slots]
        case Document():
            return [record.period]
        case _:
            return [None]


def good(sample: Sample, *symbols: str) -> list[Value]:
    """Two days of each symbol, or one quote; every symbol has its own price."""
    days = (MONDAY, TUESDAY) if sample.is_daily else (TUESDAY,)
    return [
        Value(symbol, day, close=f"{10 + number}.2{place}")
        for number, symbol in enumerate(symbols)
        for place, day in enumerate(days)
        for symbol in (symbol,)
    ]


def widened(values: Sequence[Value]) -> list[Value]:
    return [replace(one, high="99.5", low="1.5") for one in values]


def batch(sample: Sample) -> tuple[str, ...]:
    """Two symbols where one call may ask for them, else one."""
    return sample.symbols[: min(2, provider_of(sample).batch_limit(sample.fetcher, sample.window))]
