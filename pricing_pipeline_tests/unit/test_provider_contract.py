"""What every provider keeps, whatever is sent to it (B18, B8, A9).

Runs over all samples of provider_samples.py. An answer ends in exactly one outcome for each asked symbol or in a
ProviderError; what cannot be true is stored from nobody; and one symbol's or one day's fault costs no other. What is
special about a provider is in the tests of its own; spoiled answers are in deep/test_provider_contract_spoiled.py.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import InvalidRange, ProviderDown, SettingsError, Throttled
from pricing_pipeline.judging.knowledge import Known
from pricing_pipeline.judging.plausibility import judge
from pricing_pipeline.providers.dialogue import OwnKeys
from pricing_pipeline.providers.values import NO_CURRENCY
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.provider_contract import (
    ALL,
    MONDAY,
    SAMPLES,
    TUESDAY,
    batch,
    daily,
    every,
    good,
    in_currency,
    naming,
    outcome,
    over,
    parse,
    priced,
    provider_of,
    quotes,
    ranged,
    request,
    twice_a_day,
    values_of,
    widened,
)
from pricing_pipeline_tests.support.provider_samples import (
    NOW,
    WINDOW,
    Sample,
    Value,
    encoded,
    literal,
)

CANARY = "canary-key-of-the-contract"


# --- asking -------------------------------------------------------------------------------------


def test_every_provider_and_fetcher_has_a_sample() -> None:
    served = {(name, fetcher) for name, provider in ALL.items() for fetcher in provider.fetchers}
    assert {(one.provider, one.fetcher) for one in SAMPLES} == served


@every
def test_only_its_own_spellings_are_sent(sample: Sample) -> None:
    provider = provider_of(sample)
    assert all(provider.accepts(symbol) for symbol in sample.symbols)
    assert not any(provider.accepts(symbol) for symbol in sample.strangers)


@every
def test_a_request_has_no_key_before_it_is_sent(sample: Sample) -> None:
    provider = provider_of(sample)
    sent = request(provider, sample.fetcher, batch(sample), sample.window)
    assert sent.path.startswith("/")
    assert CANARY not in repr(sent)
    carried = [*provider.authorize(CANARY).values()]
    if isinstance(provider, OwnKeys):
        carried += [value for _, value in provider.authorize_query(CANARY)]
    assert provider.needs_key == any(CANARY in value for value in carried)
    assert not {"key", "apikey", "token"} & {name.lower() for name, _ in (*sent.params, *sent.headers)}


@every
def test_f1_a_call_holds_as_many_symbols_as_it_says_and_no_more(sample: Sample) -> None:
    provider = provider_of(sample)
    limit = provider.batch_limit(sample.fetcher, sample.window)
    many = [sample.symbols[0]] * limit
    assert request(provider, sample.fetcher, many, sample.window)
    for wrong in ([], [*many, sample.symbols[0]]):
        with pytest.raises(ValueError, match=f"{sample.provider} takes 1 to {limit} "):
            request(provider, sample.fetcher, wrong, sample.window)


@every
def test_b18_what_it_cannot_fetch_it_does_not_ask(sample: Sample) -> None:
    provider = provider_of(sample)
    for fetcher in set(Fetcher) - provider.fetchers:
        with pytest.raises(SettingsError, match=sample.provider):
            request(provider, fetcher, sample.symbols[:1], None)


@over(*(one for one in SAMPLES if one.window is not None))
def test_spans_that_no_call_answers_are_refused(sample: Sample) -> None:
    provider, longest = provider_of(sample), provider_of(sample).max_window_days(sample.fetcher)
    spans = [Window(WINDOW.end, WINDOW.start)]
    if longest is not None:
        full = Window(WINDOW.end - timedelta(days=longest - 1), WINDOW.end)
        assert request(provider, sample.fetcher, sample.symbols[:1], full)
        spans.append(replace(full, start=full.start - timedelta(days=1)))
    for span in spans:
        with pytest.raises(InvalidRange, match=r"Swap|in parts"):
            request(provider, sample.fetcher, sample.symbols[:1], span)


# --- good answers -------------------------------------------------------------------------------


@priced
def test_a9_good_values_are_read_to_the_last_digit(sample: Sample) -> None:
    asked = batch(sample)
    values = widened(good(sample, *asked))
    answer = parse(sample, sample.encoded(asked, values), asked)
    assert not answer.failures
    assert not answer.rejected
    read = {(one.symbol, one.close, one.currency) for one in answer.observations}
    assert read == {(one.symbol, Decimal(one.close), sample.currency) for one in values}
    if sample.keeps_text:
        assert {one.text for one in answer.observations} == {one.close for one in values}
    if sample.is_daily:
        assert {one.observed_at.date() for one in answer.observations} == {MONDAY, TUESDAY}


@over(*(one for one in SAMPLES if not one.is_positional))
def test_the_order_of_members_and_fields_does_not_matter(sample: Sample) -> None:
    asked = batch(sample)
    values = widened(good(sample, *asked))
    body = sample.body(asked, values)
    turned = json.loads(
        encoded(body),
        object_pairs_hook=lambda pairs: dict(reversed(pairs)),
        parse_float=lambda text: literal(text),
    )
    whole = sample.encode(body)
    there, back = parse(sample, sample.encode(turned), asked), parse(sample, whole, tuple(reversed(asked)))
    for answer in (there, back):
        assert sorted(map(repr, answer.observations)) == sorted(map(repr, parse(sample, whole, asked).observations))


# --- bad answers --------------------------------------------------------------------------------


def bodies(sample: Sample) -> Iterator[bytes]:
    whole = sample.encoded(sample.symbols[:1], good(sample, sample.symbols[0]))
    if not sample.is_csv:
        yield from (whole[: len(whole) * part // 8] for part in (1, 4, 7))
        yield from (whole + whole, whole + b"]", b"\xef\xbb\xbf" * 2 + whole)
    yield whole[::-1]
    yield from (
        b"",
        b" ",
        b"\0",
        b"\xff\xfe",
        b"null",
        b"true",
        b"0",
        b"-1",
        b"NaN",
        b"Infinity",
        b"1e400",
        b'""',
    )
    yield from (
        b"[]",
        b"{}",
        b"[null]",
        b"[[]]",
        b"[{}]",
        b"[1]",
        b'{"":{}}',
        b"[" * 100_000,
        b'{"a":' * 10_000,
    )
    yield from (
        b"9" * 5_000,
        b"[" + b"9" * 100_000 + b"]",
        b'{"status":"error"}',
        b'{"error":null}',
        b'{"data":[]}',
    )
    yield from (
        b"<!DOCTYPE html><html>Just a moment...</html>",
        b"Edge: Too Many Requests",
        b"error code: 520",
    )
    for key in (b"chart", b"spark", b"finance", b"meta", b"values", b"result", b"Error Message", b"code"):
        yield from (b'{"' + key + b'":' + value + b"}" for value in (b"null", b"[]", b"{}", b"1", b'""', b"[null]"))


@every
def test_b18_no_garbage_is_a_value_or_a_crash(sample: Sample) -> None:
    for body in bodies(sample):
        for asked in {sample.symbols[:1], batch(sample)}:
            assert values_of(outcome(sample, body, asked)) == [], body[:100]


REFUSALS = [304, 307, 400, 401, 402, 403, 404, 408, 422, 429, 500, 520, 999]


@every
def test_b18_nothing_is_believed_of_a_refusal(sample: Sample) -> None:
    asked = batch(sample)
    whole = sample.encoded(asked, good(sample, *asked))
    bodies = (whole, b"", b"<html>refused</html>", b'{"message":"no"}')
    for status, body in itertools.product(REFUSALS, bodies):
        result = outcome(sample, body, asked, status)
        assert values_of(result) == [], (status, body)
        assert status != 429 or isinstance(result, Throttled), body
        assert status < 500 or isinstance(result, ProviderDown), (status, body)


@every
def test_a6_how_long_to_wait_is_taken_from_its_header(sample: Sample) -> None:
    for text, wait in (("7", 7.0), ("-3", 0.0), ("1000000000", 3600.0), ("soon", None)):
        with pytest.raises(Throttled) as caught:
            parse(sample, b"slow down", sample.symbols[:1], 429, {"retry-after": text})
        assert caught.value.retry_after == wait


@naming
def test_fault_14_an_answer_for_another_symbol_is_nobodys(sample: Sample) -> None:
    asked, other, third = batch(sample), sample.symbols[2], sample.symbols[1]
    assert values_of(outcome(sample, sample.encoded(asked[:1], good(sample, other)), asked[:1])) == []
    if len(asked) == 2:
        result = outcome(sample, sample.encoded(asked, good(sample, asked[0], other)), asked)
        assert {symbol for symbol, _ in values_of(result)} <= {asked[0]}
        assert isinstance(result, Answer)
        assert third in {one.symbol for one in result.failures}


# --- bad values ---------------------------------------------------------------------------------

NO_PRICES = [
    *map(
        literal,
        ("NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1e308", "1e-400", "-1", "0", "-0.0", "0e5"),
    ),
    *(literal("9" * 400), True, False, None, [], {}, [1], {"raw": 10.25}),
    *("", " ", "abc", "NaN", "Infinity", "-Infinity", "1e400", "-10.25", "0", "0.00000", "1,000.00", "0x10"),
    *("1_000", "١٢", "10.25 USD", "--1", "1e", "null", "10.25\0"),
]


@priced
def test_fault_14_what_cannot_be_a_price_costs_no_other(sample: Sample) -> None:
    asked = batch(sample)
    values = widened(good(sample, *asked))
    for price in NO_PRICES:
        if str(price) in sample.also_prices:
            continue
        bad = replace(values[0], close=price)
        result = outcome(sample, sample.encoded(asked, [bad, *values[1:]]), asked)
        stored = values_of(result)
        assert (bad.symbol, bad.day if sample.is_daily else NOW.date()) not in stored, ascii(price)
        if isinstance(result, Answer):
            believed = {one.close for one in result.observations}
            assert believed <= {Decimal(one.close) for one in values[1:]}, ascii(price)
        is_a_number = isinstance(price, str) and re.fullmatch(r"(@@)?-?[0-9.]+(e-?[0-9]+)?(@@)?", price)
        if len(asked) == 2:
            assert asked[1] in {symbol for symbol, _ in stored}, f"the other symbol is lost: {price!a}"
        elif sample.is_daily and is_a_number and price.startswith("@@") != sample.writes_text:
            assert [day for _, day in stored] == [TUESDAY], f"the other day is lost: {price!a}"


ODD_PARTS = [
    *("9", "10.1", "10.25", "10.4", "11", "102.5", "1.025", "0.00001", "99999999999", "123456789012345678"),
    *("0", "-1", "", "NaN", "Infinity", "abc", "\ud800", "1\0", None, [], {}, True),
    *map(literal, ("NaN", "Infinity", "1e400", "0", "-1", "12345678901234567890")),
]


@ranged
@settings(max_examples=examples(40), deadline=None)
@given(high=st.sampled_from(ODD_PARTS), low=st.sampled_from(ODD_PARTS))
def test_fault_14_the_price_decides_and_nothing_is_stored_that_contradicts_it(
    sample: Sample, high: Any, low: Any
) -> None:
    """Whatever range comes with a good price: it is kept as sent, and so is every part that can be true beside it.

    A quote, of which no range is stored, is refused with one that is inside out or of another unit.
    """
    symbol = sample.symbols[0]
    odd = Value(symbol, MONDAY, "10.25", high=high, low=low)
    good_one = Value(symbol, TUESDAY, "10.25")
    result = outcome(sample, sample.encoded([symbol], [odd, good_one][: 2 if sample.is_daily else 1]), [symbol])
    if not sample.is_daily:
        assert {one.close for one in getattr(result, "observations", ())} <= {Decimal("10.25")}
        return
    assert isinstance(result, Answer)
    verdict = judge(Known(), result.observations, Fetcher.DAILY_BARS, is_latest=False)
    first, second = verdict.good
    assert not verdict.doubted
    assert not result.rejected
    assert (first.close, first.text, second.quality) == (Decimal("10.25"), "10.25", None)
    assert second.high == Decimal("11.5")
    highest = Decimal("Infinity") if first.high is None else first.high
    lowest = Decimal(0) if first.low is None else first.low
    assert lowest <= first.close <= min(highest, 5 * first.close)
    assert first.open is None or lowest <= first.open <= highest
    assert all(one is None or 5 * one >= first.close for one in (first.open, first.low))
    is_lacking = (first.high is None and high not in (None, "")) or (first.low is None and low not in (None, ""))
    assert (first.quality is not None) == (is_lacking or first.open is None)


@twice_a_day
def test_fault_14_a_day_with_two_prices_has_none(sample: Sample) -> None:
    symbol = sample.symbols[0]
    twice = [Value(symbol, MONDAY, "10.25"), Value(symbol, TUESDAY, "10.35"), Value(symbol, MONDAY, "10.45")]
    assert values_of(outcome(sample, sample.encoded([symbol], twice), [symbol])) == [(symbol, TUESDAY)]
    same = [*twice[:2], twice[0]]
    assert values_of(outcome(sample, sample.encoded([symbol], same), [symbol])) == [
        (symbol, MONDAY),
        (symbol, TUESDAY),
    ]


@daily
def test_fault_14_no_day_of_the_future_or_outside_the_window(sample: Sample) -> None:
    symbol = sample.symbols[0]
    days = (date(2026, 11, 23), date(2027, 1, 1), date(9999, 12, 31), date(2026, 11, 2), date(1999, 12, 31))
    values = [Value(symbol, MONDAY), *(Value(symbol, day) for day in days)]
    assert values_of(outcome(sample, sample.encoded([symbol], values), [symbol])) == [(symbol, MONDAY)]


@daily
@pytest.mark.parametrize("ahead", [0, 40])
def test_b18_a_row_without_a_value_of_a_day_that_is_not_over_is_nothing(sample: Sample, ahead: int) -> None:
    """It is no failure and nothing to be told; of a day that is over, it is told."""
    symbol = sample.symbols[0]
    coming = Value(symbol, NOW.date() + timedelta(days=ahead), None, None, None)
    answer = parse(sample, sample.encoded([symbol], [Value(symbol, MONDAY), coming]), [symbol])
    assert values_of(answer) == [(symbol, MONDAY)]
    assert (answer.rejected, answer.failures, answer.unread) == ((), (), {})
    only = parse(sample, sample.encoded([symbol], [coming]), [symbol])
    assert (values_of(only), only.rejected, only.failures) == ([], (), ())


@daily
def test_fault_14_the_first_day_of_the_calendar_is_refused_as_any_other_day_without_an_exchange(
    sample: Sample,
) -> None:
    symbol = sample.symbols[0]
    assert not values_of(outcome(sample, sample.encoded([symbol], [Value(symbol, date.min)]), [symbol]))


@in_currency
@pytest.mark.parametrize("currency", ["", "dollars", "usd", 5, None, "\uff35\uff33\uff24"], ids=ascii)
def test_fault_14_no_value_in_a_currency_that_is_none(sample: Sample, currency: Any) -> None:
    asked = batch(sample)
    values = [replace(one, currency=currency if one.symbol == asked[0] else "USD") for one in good(sample, *asked)]
    result = outcome(sample, sample.encoded(asked, values), asked)
    found = [one for one in getattr(result, "observations", ()) if one.symbol == asked[0]]
    if currency is None:
        assert all(one.currency is None and one.quality.startswith(NO_CURRENCY) for one in found)
    else:
        assert found == []


@quotes
@pytest.mark.parametrize("stamp", [0, -1, 10**12, literal("1e400"), "now", True])
def test_fault_14_no_quote_without_a_time_that_can_be(sample: Sample, stamp: Any) -> None:
    asked = batch(sample)
    values = [replace(one, stamp=stamp) if one.symbol == asked[0] else one for one in widened(good(sample, *asked))]
    stored = {symbol for symbol, _ in values_of(outcome(sample, sample.encoded(asked, values), asked))}
    assert stored == set(asked[1:])
