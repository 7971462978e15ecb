"""Recorded answers of Twelve Data: every body has one right outcome (A11, B18, A9, B8)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from pricing_pipeline.domain.answers import Answer, FailureKind
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import (
    KeyRefused,
    PlanRestricted,
    ProviderDown,
    ProviderError,
    RequestRefused,
    SchemaDrift,
    Throttled,
)
from pricing_pipeline.providers.base import check_answer
from pricing_pipeline.providers.twelvedata import TwelveData
from pricing_pipeline_tests.support.recordings import recorded, recorded_files

NOW = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)
PROVIDER = TwelveData()


@dataclass(frozen=True)
class Call:
    """How a recorded body was asked for."""

    fetcher: Fetcher
    symbols: list[str]
    window: Window | None = None


def raises(kind: type[ProviderError], words: str) -> Callable[[Callable[[], Answer]], None]:
    def check(read: Callable[[], Answer]) -> None:
        with pytest.raises(kind, match=words) as caught:
            read()
        assert type(caught.value) is kind

    return check


def fails(**kinds: FailureKind) -> Callable[[Callable[[], Answer]], None]:
    def check(read: Callable[[], Answer]) -> None:
        answer = read()
        assert {failure.symbol: failure.kind for failure in answer.failures} == kinds
        assert not answer.observations
        assert not answer.empty

    return check


def prices(*expected: tuple[str, str, str]) -> Callable[[Callable[[], Answer]], None]:
    """Symbol, time and spelling of each observation, all in USD; nothing else came."""

    def check(read: Callable[[], Answer]) -> None:
        answer = read()
        got = [(o.symbol, o.observed_at.isoformat(), o.text) for o in answer.observations]
        assert got == list(expected)
        assert all(o.currency == "USD" and str(o.close) == o.text for o in answer.observations)
        assert (answer.failures, answer.empty, answer.rejected) == ((), frozenset(), ())

    return check


def is_empty(read: Callable[[], Answer]) -> None:
    assert read() == Answer(empty=frozenset({"AAPL"}))


def one_bar_and_an_unknown(read: Callable[[], Answer]) -> None:
    answer = read()
    (observation,) = answer.observations
    assert (observation.symbol, observation.text) == ("AAPL", "229.87000")
    assert observation.observed_at == datetime(2024, 11, 22, tzinfo=UTC)
    assert observation.volume == Decimal("35462000")
    assert [(f.symbol, f.kind) for f in answer.failures] == [("INVALID", FailureKind.UNKNOWN_SYMBOL)]


def thirty_ibm_bars(read: Callable[[], Answer]) -> None:
    answer = read()
    assert len(answer.observations) == 30
    days = [observation.observed_at for observation in answer.observations]
    assert days == sorted(days)
    last = answer.observations[-1]
    assert (last.observed_at, last.text) == (datetime(2021, 7, 1, tzinfo=UTC), "146.84000")
    assert (last.open, last.high, last.low) == (
        Decimal("146.96001"),
        Decimal("147.50000"),
        Decimal("146.55000"),
    )
    assert (answer.failures, answer.empty, answer.rejected) == ((), frozenset(), ())


QUOTE, BARS = Fetcher.QUOTE, Fetcher.DAILY_BARS
ONE_QUOTE = Call(QUOTE, ["AAPL"])
OUTCOMES: dict[str, tuple[Call, Callable[[Callable[[], Answer]], None]]] = {
    "batch_quote_AAPL_MSFT_SYNTH.json": (
        Call(QUOTE, ["AAPL", "MSFT"]),
        prices(
            ("AAPL", "2024-11-22T20:00:00+00:00", "229.87000"),
            ("MSFT", "2024-11-22T20:00:00+00:00", "414.17000"),
        ),
    ),
    "batch_quote_all_not_found.json": (
        Call(QUOTE, ["NOTFOUND1", "NOTFOUND2"]),
        fails(NOTFOUND1=FailureKind.UNKNOWN_SYMBOL, NOTFOUND2=FailureKind.UNKNOWN_SYMBOL),
    ),
    "batch_time_series_partial_error_SYNTH.json": (Call(BARS, ["AAPL", "INVALID"]), one_bar_and_an_unknown),
    "error_400_bad_interval_http200.json": (
        Call(BARS, ["IBM"]),
        raises(RequestRefused, r"Invalid \*\*interval\*\*"),
    ),
    "error_400_no_data_on_dates.json": (
        Call(BARS, ["AAPL"], Window(date(2024, 11, 23), date(2024, 11, 24))),
        is_empty,
    ),
    "error_400_plan_gate_TASE_http200.json": (
        Call(BARS, ["ALD:TASE"]),
        fails(**{"ALD:TASE": FailureKind.PLAN_RESTRICTED}),
    ),
    "error_400_symbol_not_found.json": (
        Call(BARS, ["NOTFOUND"]),
        fails(NOTFOUND=FailureKind.UNKNOWN_SYMBOL),
    ),
    "error_401_apikey_http200.json": (ONE_QUOTE, raises(KeyRefused, "PRICING_TWELVEDATA_API_KEY")),
    "error_403_demo_key_http200.json": (ONE_QUOTE, raises(PlanRestricted, "initial familiarity")),
    "error_403_plan_grow.json": (ONE_QUOTE, raises(PlanRestricted, "exclusively with grow")),
    "error_404_nothing_found_http200.json": (ONE_QUOTE, fails(AAPL=FailureKind.UNKNOWN_SYMBOL)),
    "error_429_minute_credits_http429.json": (ONE_QUOTE, raises(Throttled, "run out of API credits")),
    "error_520_cloudflare_text.txt": (ONE_QUOTE, raises(ProviderDown, "error code: 520")),
    "quote_AAPL_2022_02_08.json": (ONE_QUOTE, prices(("AAPL", "2022-02-08T00:00:00+00:00", "174.83000"))),
    "quote_IBM_2021_07_01.json": (
        Call(QUOTE, ["IBM"]),
        prices(("IBM", "2021-07-01T00:00:00+00:00", "146.84000")),
    ),
    # Asked for daily bars and answered with minutes: not what was promised.
    "time_series_AAPL_1min_2021_03_01.json": (Call(BARS, ["AAPL"]), raises(SchemaDrift, "interval")),
    "time_series_IBM_1day_default30.json": (Call(BARS, ["IBM"]), thirty_ibm_bars),
}
NOT_AN_ENDPOINT_WE_CALL = {
    "api_usage_free.json",
    "dividends_AAPL.json",
    "exchange_rate_USDJPY.json",
    "headers_200_free_key.json",
    "price_IBM.json",
    "symbol_search_IBM_multi_exchange.json",
    "time_series_IBM_1day_csv.csv",
}


def test_every_recording_has_an_expected_outcome() -> None:
    assert recorded_files("twelvedata") == OUTCOMES.keys() | NOT_AN_ENDPOINT_WE_CALL


@pytest.mark.parametrize("file", sorted(OUTCOMES))
def test_b18_recordings_come_to_their_outcome(file: str) -> None:
    call, check = OUTCOMES[file]
    response = recorded("twelvedata", file)

    def read() -> Answer:
        answer = PROVIDER.parse(call.fetcher, call.symbols, call.window, response, now=NOW)
        return check_answer("twelvedata", call.symbols, answer)

    check(read)


@pytest.mark.parametrize("file", sorted(NOT_AN_ENDPOINT_WE_CALL))
def test_b18_answers_of_other_endpoints_are_never_taken_for_prices(file: str) -> None:
    response = recorded("twelvedata", file)
    for fetcher in (QUOTE, BARS):
        with pytest.raises(SchemaDrift):
            PROVIDER.parse(fetcher, ["IBM"], None, response, now=NOW)
