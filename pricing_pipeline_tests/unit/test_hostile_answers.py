"""Answers that are made to cost time, memory or rows are refused before they do, by a real client."""

from __future__ import annotations

import gzip
import json
import threading
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from typing import Any

import pytest
from pydantic import SecretStr

from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import ProviderDown, ProviderError, SchemaDrift
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.base import MAX_DAYS, MAX_DOCUMENTS, MAX_ROWS, Question
from pricing_pipeline.providers.client import MAX_BYTES, MAX_DOCUMENT_BYTES, ProviderClient
from pricing_pipeline.providers.fetched import MAX_EVIDENCE
from pricing_pipeline.providers.transport import MAX_HEAD_BYTES
from pricing_pipeline.providers.twelvedata import TwelveData
from pricing_pipeline.providers.unpacking import Unpacker
from pricing_pipeline_tests.fixtures.server import Connection, ScriptedServer
from pricing_pipeline_tests.support.patience import PATIENCE
from pricing_pipeline_tests.support.scripted_client import KEY, NOW, QUOTE, refused

WINDOW = Window(date(2024, 1, 1), date(2024, 12, 31))
META = {"symbol": "AAPL", "interval": "1day", "currency": "USD"}
BAR = {"datetime": "2024-01-02", "open": "1.5", "high": "1.5", "low": "1.5", "close": "1.5"}
ESCAPED = b"%2525" * 800_000


def fetch(provider: str, fetcher: Fetcher, body: bytes, window: Window | None = WINDOW) -> Any:
    def answer(c: Connection) -> None:
        c.answer(body)

    with (
        ScriptedServer(answer) as server,
        ProviderClient(PROVIDERS[provider], server.url, SecretStr(KEY)) as client,
    ):
        return client.fetch(fetcher, ["AAPL"], window, now=NOW)


def peak_of(work: Callable[[], object]) -> int:
    tracemalloc.start()
    work()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def chart(days: int = 1, figure: str = "1", dividends: int = 0) -> bytes:
    """An answer of Yahoo's, all of whose figures are spelled alike."""
    figures = "[" + ",".join([figure] * days) + "]"
    columns = ",".join(f'"{name}": {figures}' for name in ("open", "high", "low", "close", "volume"))
    stamps = [1732000000 - 86400 * n for n in range(days)]
    paid = {str(n): {"date": 86400 * n, "amount": 0.01} for n in range(1, dividends + 1)}
    meta = {
        "symbol": "AAPL",
        "currency": "USD",
        "regularMarketPrice": 1,
        "regularMarketTime": 1732104000,
        "exchangeTimezoneName": "America/New_York",
        "gmtoffset": -18000,
        "instrumentType": "EQUITY",
        "dataGranularity": "1d",
    }
    return (
        f'{{"chart": {{"error": null, "result": [{{"meta": {json.dumps(meta)}, "timestamp": {stamps},'
        f' "events": {{"dividends": {json.dumps(paid)}}},'
        f' "indicators": {{"quote": [{{{columns}}}], "adjclose": [{{"adjclose": {figures}}}]}}}}]}}}}'
    ).encode()


@pytest.mark.parametrize(
    "filler",
    [b"HTTP/1.1 100 Continue\r\n\r\n" * 1000, b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 1000],
)
def test_fault_11_a_storm_of_interim_answers_ends_the_call_early(filler: bytes) -> None:
    """They were read until 16 MiB had come: half a million answers for the price of one."""

    def storm(c: Connection) -> None:
        while True:
            c.send(filler)

    error, _ = refused(storm, SchemaDrift, max_bytes=MAX_BYTES)
    assert MAX_HEAD_BYTES < error.wire_bytes <= MAX_HEAD_BYTES + 65536
    assert "interim answers without end" in str(error)


def test_fault_11_a_body_may_be_larger_than_a_head() -> None:
    body = QUOTE[:-1] + b', "more": "' + b"x" * 2 * MAX_HEAD_BYTES + b'"}'
    assert fetch("twelvedata", Fetcher.QUOTE, body, None).answer.observations


def test_fault_11_what_comes_behind_a_packed_body_is_not_kept() -> None:
    unpacker = Unpacker("gzip", 1000)
    unpacker.feed(gzip.compress(b"{}"))

    def feed() -> None:
        for _ in range(500):
            unpacker.feed(b"x" * 1000)

    assert peak_of(feed) < 100_000
    assert unpacker.finish() == b"{}"


@pytest.mark.parametrize(
    ("body", "status"),
    [(ESCAPED, "500 No"), (b"\0" * 4_000_000, "403 No"), (KEY.encode() * 100_000, "302 No")],
    ids=["escapes", "zeros", "keys"],
)
def test_fault_11_of_a_long_error_only_the_beginning_is_looked_at(body: bytes, status: str) -> None:
    """To look for keys in all of it took twelve seconds and a gigabyte."""

    def call() -> None:
        with pytest.raises(ProviderError) as caught:
            client.fetch(Fetcher.QUOTE, ["AAPL"], now=NOW)
        assert caught.value.wire_bytes > len(body)

    with (
        ScriptedServer(lambda c: c.answer(body, status)) as server,
        ProviderClient(PROVIDERS["twelvedata"], server.url, SecretStr(KEY)) as client,
    ):
        assert peak_of(call) < 5 * len(body)


def test_fault_11_of_an_answer_as_much_is_kept_for_people_as_they_may_read() -> None:
    row = BAR | {"close": "none", "more": "x" * 2_000_000}
    body = json.dumps({"meta": META, "values": [row], "status": "ok"}).encode()
    fetched = fetch("twelvedata", Fetcher.DAILY_BARS, body)
    assert (len(fetched.evidence), len(fetched.body)) == (MAX_EVIDENCE, len(body))


def test_fault_11_a_document_is_no_larger_than_documents_are() -> None:
    profile = {"symbol": "AAPL", "companyName": "A", "currency": "USD", "exchange": "N"}
    body = json.dumps([profile | {"description": "x" * MAX_DOCUMENT_BYTES}]).encode()
    with pytest.raises(SchemaDrift, match=f"more than the {MAX_DOCUMENT_BYTES} bytes") as caught:
        fetch("fmp", Fetcher.PROFILE, body, None)
    assert caught.value.wire_bytes <= MAX_DOCUMENT_BYTES + 65536


class _Slow(TwelveData):
    """Reads a large answer for as long as it is told to, and knows how many it reads at a time."""

    def __init__(self) -> None:
        self.may_end, self.begun = threading.Event(), threading.Event()
        self.inside, self.most = 0, 0

    def parse(self, question: Question, response: Response) -> Answer:
        if len(response.body) > 1_000_000:
            self.inside += 1
            self.most = max(self.most, self.inside)
            self.begun.set()
            assert self.may_end.wait(PATIENCE)
            self.inside -= 1
        return super().parse(question, response)


def test_fault_11_large_answers_of_a_provider_are_read_one_at_a_time_and_nothing_else_waits() -> None:
    provider, come = _Slow(), threading.Semaphore(0)
    large = QUOTE[:-1] + b', "more": "' + b"x" * 1_000_000 + b'"}'

    def serve(c: Connection) -> None:
        c.answer(QUOTE if b"MSFT" in c.request else large)
        come.release()

    with (
        ScriptedServer(serve) as server,
        ProviderClient(provider, server.url, SecretStr(KEY)) as client,
        ProviderClient(TwelveData(), server.url, SecretStr(KEY)) as other,
        ThreadPoolExecutor() as pool,
    ):
        calls = [pool.submit(client.fetch, Fetcher.QUOTE, ["AAPL"], now=NOW) for _ in range(3)]
        try:
            assert provider.begun.wait(PATIENCE)
            assert all(come.acquire(timeout=PATIENCE) for _ in calls)
            assert client.fetch(Fetcher.QUOTE, ["MSFT"], now=NOW).answer.failures  # the answer is about AAPL
            assert other.fetch(Fetcher.QUOTE, ["AAPL"], now=NOW).answer.observations
        finally:
            provider.may_end.set()
        assert all(call.result(PATIENCE).answer.observations for call in calls)
    assert provider.most == 1


def rows_of(fetcher: Fetcher, count: int) -> bytes:
    figures = {
        Fetcher.EARNINGS: {
            "epsActual": None,
            "epsEstimated": 1,
            "revenueActual": None,
            "revenueEstimated": None,
        },
        Fetcher.DIVIDENDS: {"dividend": 0.1},
        Fetcher.SPLITS: {"numerator": 2, "denominator": 1},
    }[fetcher]
    first = date(1900, 1, 1)
    return json.dumps(
        [{"symbol": "AAPL", "date": str(first + timedelta(days=n))} | figures for n in range(count)]
    ).encode()


@pytest.mark.parametrize("fetcher", [Fetcher.EARNINGS, Fetcher.DIVIDENDS, Fetcher.SPLITS])
def test_fault_11_nothing_has_more_documents_than_one_a_week_for_forty_years(fetcher: Fetcher) -> None:
    assert len(fetch("fmp", fetcher, rows_of(fetcher, MAX_DOCUMENTS), None).answer.records) == MAX_DOCUMENTS
    with pytest.raises(SchemaDrift, match=f"{MAX_DOCUMENTS + 1} entries"):
        fetch("fmp", fetcher, rows_of(fetcher, MAX_DOCUMENTS + 1), None)


def test_fault_11_nor_more_dividends_beside_its_prices() -> None:
    assert len(fetch("yahoo", Fetcher.DAILY_BARS, chart(dividends=MAX_DOCUMENTS), None).answer.actions) > 1000
    with pytest.raises(SchemaDrift, match=f"{MAX_DOCUMENTS + 1} entries"):
        fetch("yahoo", Fetcher.DAILY_BARS, chart(dividends=MAX_DOCUMENTS + 1), None)


def test_fault_11_nor_more_days_than_two_hundred_years_have() -> None:
    with pytest.raises(SchemaDrift, match=f"{MAX_DAYS + 1} entries"):
        fetch("yahoo", Fetcher.DAILY_BARS, chart(MAX_DAYS + 1))


def test_fault_11_more_rows_than_any_answer_has_are_refused_unread() -> None:
    body = json.dumps({"meta": META, "values": [BAR] * MAX_ROWS, "status": "ok"}).encode()
    with pytest.raises(SchemaDrift, match=f"more than the {MAX_ROWS} rows"):
        fetch("twelvedata", Fetcher.DAILY_BARS, body)


def test_fault_11_of_one_day_that_comes_a_thousand_times_a_hundred_and_the_number_are_kept() -> None:
    body = json.dumps({"meta": META, "values": [BAR] * 1000, "status": "ok"}).encode()
    answer = fetch("twelvedata", Fetcher.DAILY_BARS, body).answer
    assert (len(answer.observations), len(answer.rejected)) == (1, 101)
    assert sum(one.count for one in answer.rejected) == 999


@pytest.mark.parametrize("figure", ["1e999999999", "1e-999999999", "0e999999999", "NaN", "-Infinity"])
def test_fault_11_a_figure_beyond_all_numbers_is_refused_by_itself(figure: str) -> None:
    answer = fetch("yahoo", Fetcher.DAILY_BARS, chart(figure=figure), None).answer
    assert [one.kind.value for one in answer.failures] == ["implausible"]


def test_a4_a_key_in_a_part_of_a_bar_is_not_told_with_what_is_wrong_with_it() -> None:
    days = [date(2024, 1, 1) + timedelta(days=n) for n in range(100)]
    values = [BAR | {"datetime": str(day), "open": KEY.upper()} for day in days]
    body = json.dumps({"meta": META, "values": values, "status": "ok"}).encode()
    answer: Answer = fetch("twelvedata", Fetcher.DAILY_BARS, body).answer
    assert len(answer.observations) == 100
    assert {row.quality for row in answer.observations} == {"open '***' is not a finite decimal number"}


def test_fault_11_headers_that_lie_about_the_length_are_down_or_drift() -> None:
    for length in (b"9" * 19, b"9" * 60_000, b"-5", b"2\r\nContent-Length: 3"):

        def lie(c: Connection, length: bytes = length) -> None:
            c.send(b"HTTP/1.1 200 OK\r\nContent-Length: " + length + b"\r\n\r\n{}")
            raise OSError

        error, sent = refused(lie, ProviderDown)
        assert error.wire_bytes == sent
        assert len(str(error)) < 500


def test_the_head_budget_does_not_outlive_its_answer() -> None:
    """A connection that is used again begins with a new one."""
    with (
        ScriptedServer(lambda c: c.answer(QUOTE, X_Filler="x" * 50_000)) as server,
        ProviderClient(PROVIDERS["twelvedata"], server.url, SecretStr(KEY)) as client,
    ):
        for _ in range(8):
            assert client.fetch(Fetcher.QUOTE, ["AAPL"], now=NOW).answer.observations
        assert server.accepted == 1
