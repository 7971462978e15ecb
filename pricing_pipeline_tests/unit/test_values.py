"""Exact values from any spelling: nothing passes through a binary float (A9), nothing untrue passes (B18)."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing_pipeline.domain.answers import Answer, FailureKind, RejectedValue, SymbolFailure
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.observations import Observation, Rows
from pricing_pipeline.errors import ProviderDown, SchemaDrift
from pricing_pipeline.providers.base import check_answer, decode_json, parse_retry_after, refusal
from pricing_pipeline.providers.values import (
    Implausible,
    calendar_day,
    decimal_of,
    in_major_unit,
    midnight,
    price_of,
    settle_days,
    spelling,
    volume_of,
)

NOW = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)

AMOUNTS = st.integers(min_value=1, max_value=10**18 - 1)
SCALES = st.integers(min_value=0, max_value=18)


@given(AMOUNTS, SCALES)
def test_a9_every_price_of_18_digits_is_read_exactly(amount: int, scale: int) -> None:
    text = format(Decimal(amount).scaleb(-scale), "f")
    value = price_of(text)
    assert int(value * 10**scale) == amount
    assert spelling(text) == text
    decoded = json.loads(f'{{"p": {text}}}', parse_float=Decimal)["p"]
    assert price_of(decoded) == value


@given(AMOUNTS, SCALES)
def test_a9_json_numbers_keep_value_and_spelling(amount: int, scale: int) -> None:
    text = format(Decimal(amount).scaleb(-scale), "f")
    body = f"[{text}]".encode()
    (raw,) = decode_json("someone", Response(200, {}, body, len(body)))  # type: ignore[misc]
    assert not isinstance(raw, float)
    assert spelling(raw) == text
    assert price_of(raw) == Decimal(text)


@pytest.mark.parametrize("body", [b'{"a": 1, "a": 1}', b'[{"b": {"a": "1", "c": 2, "\\u0061": "2"}}]'])
def test_b18_an_object_that_names_a_value_twice_is_refused(body: bytes) -> None:
    with pytest.raises(SchemaDrift, match="an object that has the name 'a' twice"):
        decode_json("someone", Response(200, {}, body, len(body)))


def test_b18_too_many_decimal_places_are_called_that() -> None:
    assert price_of("0.000008123456789012") == Decimal("8123456789012e-18")
    with pytest.raises(Implausible, match="has more than 18 decimal places"):
        price_of("0.0000081234567890123")
    with pytest.raises(Implausible, match="has more than 18 digits"):
        price_of("1234567890123456789")


@given(st.one_of(st.text(), st.text("0123456789.-+eE NaInfity_,", max_size=30)))
def test_b18_any_text_is_a_number_we_can_store_or_is_refused(text: str) -> None:
    try:
        value = decimal_of(text, "price")
    except Implausible:
        return
    assert value.is_finite()
    assert re.fullmatch(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", text)
    assert abs(value) < 10**18
    assert value == value.quantize(Decimal("1e-18")) if abs(value) < 10**9 else True


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "1 ",
        "1_000",
        "١٢٣",
        "0x10",
        "nan",
        "1e400",
        "1e-400",
        "9" * 19,
        "0." + "0" * 18 + "1",
        "1" * 1000,
        None,
        True,
        1.5,
        Decimal("NaN"),
        10**18,
    ],
)
def test_b18_what_is_no_storable_price_is_refused(raw: object) -> None:
    with pytest.raises(Implausible):
        price_of(raw)  # type: ignore[arg-type]


def test_b18_a_price_below_zero_is_refused_in_words() -> None:
    """Oil closed at -37.63 on 2020-04-20: anyone who looks for it reads why it is not there."""
    with pytest.raises(Implausible, match=r"^price '-37.63' is not above zero; prices below it are not supported$"):
        price_of("-37.63")
    with pytest.raises(Implausible, match=r"^price '0' is not above zero$"):
        price_of("0")


@pytest.mark.parametrize(("raw", "value"), [("1e-5", "0.00001"), ("1.5E3", "1500"), ("0012.50", "12.50"), (7, "7")])
def test_other_spellings_of_true_prices(raw: str | int, value: str) -> None:
    assert price_of(raw) == Decimal(value)


def test_volume_may_be_zero_but_not_negative() -> None:
    assert volume_of("0") == 0
    with pytest.raises(Implausible, match="negative"):
        volume_of("-1")


@given(AMOUNTS, st.integers(min_value=0, max_value=16))
def test_a9_hundredths_are_converted_exactly(amount: int, scale: int) -> None:
    pence = Decimal(amount).scaleb(-scale)
    pounds = in_major_unit(pence, -2)
    assert pounds * 100 == pence
    assert -int(pounds.as_tuple().exponent) == scale + 2


# --- Retry-After --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("30", 30.0),
        (" 30 ", 30.0),
        ("1.5", 1.5),
        ("0", 0.0),
        ("-5", 0.0),
        ("1000000000", 3600.0),
        ("9" * 400, 3600.0),
        ("Fri, 20 Nov 2026 15:01:00 GMT", 60.0),
        ("Fri, 20 Nov 2026 14:00:00 GMT", 0.0),
        ("Fri, 20 Nov 2099 15:01:00 GMT", 3600.0),
        ("Fri, 20 Nov 2026 15:01:00 -0000", 60.0),
        ("Fri, 99 Nov 2026 15:01:00 GMT", None),
    ],
)
def test_fault_12_retry_after_in_every_form_is_bounded(value: str | None, seconds: float | None) -> None:
    assert parse_retry_after(value, NOW) == seconds


@given(st.text())
def test_fault_12_any_retry_after_is_none_or_within_an_hour(value: str) -> None:
    seconds = parse_retry_after(value, NOW)
    assert seconds is None or 0 <= seconds <= 3600


def test_fault_15_a_retry_date_is_read_by_the_servers_own_clock() -> None:
    headers = {"Date": "Fri, 20 Nov 2026 03:00:00 GMT", "Retry-After": "Fri, 20 Nov 2026 03:00:20 GMT"}
    error = refusal("someone", Response(429, headers, b"", 0), now=NOW)
    assert getattr(error, "retry_after", None) == 20.0


def test_a_page_before_the_api_convicts_neither_key_nor_plan() -> None:
    for status in (400, 401, 402, 403, 404):
        error = refusal("someone", Response(status, {}, b"\n <!DOCTYPE html>", 0), now=NOW)
        assert type(error) is ProviderDown


# --- accounting ---------------------------------------------------------------------------------


def test_an_answer_accounts_for_each_symbol_exactly_once() -> None:
    price = Observation("A", NOW, Decimal(1), "1")
    failure = SymbolFailure("B", FailureKind.UNKNOWN_SYMBOL, "no")
    good = Answer(Rows([price, price]), (failure,), frozenset({"C"}), (RejectedValue("A", None, "bad", "x"),))
    assert check_answer("someone", ["A", "B", "C"], good) is good
    for symbols, answer in [
        (["A", "B", "C", "D"], good),
        (["A", "B"], good),
        (["A"], Answer(Rows([price]), empty=frozenset({"A"}))),
        (["B"], Answer(failures=(failure, failure))),
        (["B"], Answer(failures=(failure,), rejected=(RejectedValue("Z", None, "bad", "x"),))),
    ]:
        with pytest.raises(SchemaDrift, match="exactly once"):
            check_answer("someone", symbols, answer)


# Days


def test_b18_days_that_come_in_order_are_kept_as_they_are_and_others_sorted() -> None:
    rows = [Observation("A", midnight(calendar_day(f"2026-03-{day}")), Decimal(day), day) for day in ("10", "11", "12")]
    assert settle_days("A", iter(rows)).observations == tuple(rows)
    assert settle_days("A", reversed(rows)).observations == tuple(rows)
    assert settle_days("A", [*rows, rows[0]]).rejected


def bars(*rows: tuple[str, str]) -> list[Observation]:
    return [Observation("A", midnight(calendar_day(day)), Decimal(text), text) for day, text in rows]


@pytest.mark.parametrize("day", ["0001-01-01", "1900-01-01", "1969-12-31", "2001-05-05", "2026-01-08"])
def test_b18_the_latest_days_reach_no_further_than_two_months(day: str) -> None:
    """Seen: one of five latest bars was of 1900, and became a price."""
    answer = settle_days("A", bars((day, "5000.00"), ("2026-03-09", "100.00"), ("2026-03-10", "100.00")))
    assert [str(row.observed_at.date()) for row in answer.observations] == ["2026-03-09", "2026-03-10"]
    (rejected,) = answer.rejected
    assert (rejected.observed_at, rejected.count) == (None, 1)
    assert rejected.reason.endswith(f"outside the asked 60 days until the newest; the first: 5000.00 of {day}")


def test_b18_holidays_and_thin_trading_are_within_reach_and_a_single_value_may_be_of_any_day() -> None:
    thin = bars(("2026-01-12", "99.00"), ("2026-02-09", "100.00"), ("2026-03-10", "101.00"))
    assert settle_days("A", thin) == Answer(observations=Rows(thin))
    ended = bars(("2008-04-01", "12.5"))
    assert settle_days("A", ended) == Answer(observations=Rows(ended))


def test_b18_a_day_that_comes_twice_in_two_spellings_is_one() -> None:
    answer = settle_days("A", bars(("2026-03-09", "100.00"), ("2026-03-09", "100.0")))
    assert [row.text for row in answer.observations] == ["100.00"]
    assert [row.reason for row in answer.rejected] == ["day 2026-03-09 appears more than once"]
    assert settle_days("A", bars(("2026-03-09", "100.00"), ("2026-03-09", "100.01"))).failures


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_refusal_promises_no_other_try(status: int) -> None:
    """Nobody asks again after a command; of a task, the queue says when it is tried again."""
    error = refusal("someone", Response(status, {}, b"Busy", 0), now=NOW)
    assert str(error) == f"someone answered {status}: Busy."
