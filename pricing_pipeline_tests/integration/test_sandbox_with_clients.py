"""The real clients against the sandbox, over HTTP: what they read is what it has, in every style it speaks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, date, datetime

import pytest
from pydantic import SecretStr

from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import KeyRefused, PlanRestricted, Throttled
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox, running_sandbox

NOON = datetime(2026, 11, 18, 17, 0, 5, tzinfo=UTC)


@contextmanager
def clients(sandbox: RunningSandbox, key: str | None = None) -> Iterator[tuple[ProviderClient, ProviderClient]]:
    with ExitStack() as stack:
        yield (
            stack.enter_context(
                ProviderClient(PROVIDERS["twelvedata"], sandbox.twelvedata_url, SecretStr(key or sandbox.key))
            ),
            stack.enter_context(ProviderClient(PROVIDERS["mfapi"], sandbox.mfapi_url)),
        )


def test_f1_clients_read_the_sandbox():
    with (
        running_sandbox(clock=lambda: NOON, market_hours="exchange") as sandbox,
        clients(sandbox) as (twelvedata, mfapi),
    ):
        quotes = twelvedata.fetch(Fetcher.QUOTE, ["AAPL", "EUR/USD", "BTC/USD", "NOPE"], None)
        seen = {one.symbol: one for one in quotes.answer.observations}
        assert set(seen) == {"AAPL", "EUR/USD", "BTC/USD"}
        assert {one.currency for one in seen.values()} == {"USD"}
        (coin,) = twelvedata.fetch(Fetcher.QUOTE, ["BTC/USDT"], None).answer.observations
        assert coin.currency == "USDT"
        assert all(0 <= (NOON - one.observed_at).total_seconds() < 60 for one in seen.values())
        assert [(one.symbol, one.kind) for one in quotes.answer.failures] == [("NOPE", FailureKind.UNKNOWN_SYMBOL)]
        weekend = Window(date(2026, 11, 14), date(2026, 11, 15))
        assert twelvedata.fetch(Fetcher.DAILY_BARS, ["AAPL"], weekend).answer.empty == {"AAPL"}
        navs = mfapi.fetch(Fetcher.NAV, ["118632"], None).answer.observations
        assert (navs[0].observed_at, navs[0].currency) == (datetime(2026, 11, 17, tzinfo=UTC), "INR")
        failures = mfapi.fetch(Fetcher.NAV, ["950000"], None).answer.failures
        assert [one.kind for one in failures] == [FailureKind.UNKNOWN_SYMBOL]
        assert [call["units"] for call in sandbox.calls("twelvedata")] == [4, 1, 1]


def test_a6_clients_understand_its_refusals():
    with running_sandbox(credits_per_minute=2) as sandbox:
        with clients(sandbox) as (twelvedata, _), pytest.raises(Throttled):
            twelvedata.fetch(Fetcher.QUOTE, ["AAPL", "IBM", "MSFT"], None)
        with clients(sandbox, "another-key-of-16-or-more") as (twelvedata, _), pytest.raises(KeyRefused):
            twelvedata.fetch(Fetcher.QUOTE, ["AAPL"], None)
        assert [call["refused"] for call in sandbox.calls()] == [True, False]


def yahoo_client(sandbox: RunningSandbox) -> ProviderClient:
    return ProviderClient(PROVIDERS["yahoo"], sandbox.yahoo_url)


def test_a11_yahoos_client_reads_the_sandbox():
    with running_sandbox(clock=lambda: NOON, market_hours="exchange") as sandbox, yahoo_client(sandbox) as yahoo:
        for symbols in (["AAPL", "EURUSD=X", "BTC-USD", "NOPE"], ["^NOPE"], ["EURUSD=X"]):
            answer = yahoo.fetch(Fetcher.QUOTE, symbols, now=NOON).answer
            assert {one.symbol for one in answer.observations} == {one for one in symbols if "NOPE" not in one}
            assert {one.kind for one in answer.failures} <= {FailureKind.UNKNOWN_SYMBOL}
            assert all(0 <= (NOON - one.observed_at).total_seconds() < 60 for one in answer.observations)
        (coin,) = yahoo.fetch(Fetcher.QUOTE, ["BTC-USDT"], now=NOON).answer.observations
        assert coin.currency == "USDT"
        days = [one.observed_at.day for one in yahoo.fetch(Fetcher.DAILY_BARS, ["AAPL"], now=NOON).answer.observations]
        assert days == [12, 13, 16, 17], "today's session is in progress"
        for nothing in (date(2026, 11, 14), date(1990, 1, 1)):
            window = Window(nothing, nothing)
            assert yahoo.fetch(Fetcher.DAILY_BARS, ["AAPL"], window, now=NOON).answer.empty == {"AAPL"}


@contextmanager
def fmp_client(sandbox: RunningSandbox) -> Iterator[ProviderClient]:
    with ProviderClient(PROVIDERS["fmp"], sandbox.fmp_url, SecretStr(sandbox.key)) as client:
        yield client


def test_b29_the_client_reads_the_sandboxs_fmp() -> None:
    with (
        running_sandbox(clock=lambda: NOON) as sandbox,
        fmp_client(sandbox) as fmp,
        clients(sandbox) as (other, _),
    ):
        for symbols in (["AAPL"], ["AAPL", "MSFT", "NOPE1"]):
            seen = fmp.fetch(Fetcher.QUOTE, symbols, now=NOON).answer
            theirs = other.fetch(Fetcher.QUOTE, symbols, now=NOON).answer
            assert {one.symbol: (one.close, one.observed_at, one.currency) for one in seen.observations} == {
                one.symbol: (one.close, one.observed_at, one.currency) for one in theirs.observations
            }
            kinds = [(one.symbol, one.kind) for one in seen.failures]
            assert kinds == [(symbol, FailureKind.UNKNOWN_SYMBOL) for symbol in symbols[2:]]
        assert [call["path"] for call in sandbox.calls("fmp")] == ["/quote", "/batch-quote"]

        bars = fmp.fetch(Fetcher.DAILY_BARS, ["IBM"], Window(date(2009, 1, 1), date(2009, 12, 31)), now=NOON).answer
        whole = other.fetch(Fetcher.DAILY_BARS, ["IBM"], Window(date(2009, 1, 1), date(2009, 12, 31)), now=NOON).answer
        assert [(one.observed_at, one.close, one.volume) for one in bars.observations] == [
            (one.observed_at, one.close, one.volume) for one in whole.observations
        ]
        assert fmp.fetch(Fetcher.DAILY_BARS, ["IBM"], now=NOON).answer.observations[-1].observed_at.date() == date(
            2026, 11, 17
        )
        weekend = Window(date(2026, 11, 14), date(2026, 11, 15))
        assert fmp.fetch(Fetcher.DAILY_BARS, ["IBM"], weekend, now=NOON).answer.empty == {"IBM"}

        for fetcher, least in ((Fetcher.PROFILE, 1), (Fetcher.EARNINGS, 60), (Fetcher.INCOME_STATEMENT, 5)):
            answer = fmp.fetch(fetcher, ["IBM"], now=NOON).answer
            assert (len(answer.records) >= least, answer.rejected, answer.failures) == (True, (), ())
            unknown = fmp.fetch(fetcher, ["NOPE1"], now=NOON).answer.failures
            assert [one.kind for one in unknown] == [FailureKind.UNKNOWN_SYMBOL]


def test_b29_the_client_understands_the_free_plan() -> None:
    with running_sandbox(clock=lambda: NOON, fmp_plan="free", fmp_calls_per_minute=3) as sandbox:
        with fmp_client(sandbox) as fmp:
            assert fmp.fetch(Fetcher.QUOTE, ["AAPL"], now=NOON).answer.observations
            (failure,) = fmp.fetch(Fetcher.QUOTE, ["TSLA"], now=NOON).answer.failures
            assert failure.kind is FailureKind.PLAN_RESTRICTED
            with pytest.raises(PlanRestricted, match="--batch-size quote=1") as caught:
                fmp.fetch(Fetcher.QUOTE, ["AAPL", "IBM"], now=NOON)
            assert caught.value.most_symbols == 1
            with pytest.raises(Throttled):
                fmp.fetch(Fetcher.QUOTE, ["AAPL"], now=NOON)
        with (
            ProviderClient(PROVIDERS["fmp"], sandbox.fmp_url, SecretStr("another-key-of-16")) as stranger,
            pytest.raises(KeyRefused),
        ):
            stranger.fetch(Fetcher.QUOTE, ["AAPL"], now=NOON)
        assert all(sandbox.key not in str(call) for call in sandbox.calls())
