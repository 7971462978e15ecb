"""Every call is bounded in time and bytes, and counted on the wire.

Faults come from a real server (B12, B17, B18). Whom it reaches and who learns the key is in
test_client_reach.py.
"""

from __future__ import annotations

import gzip
import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import date, timedelta

import httpcore
import pytest
from pydantic import SecretStr

from pricing_pipeline.domain.answers import Answer, FailureKind
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import (
    KeyRefused,
    Misconfigured,
    PlanRestricted,
    ProviderDown,
    ProviderError,
    RequestRefused,
    SchemaDrift,
    SettingsError,
    Throttled,
)
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.providers.mfapi import MfApi
from pricing_pipeline.providers.transport import BoundedTransport
from pricing_pipeline_tests.fixtures.server import Connection, Script, ScriptedServer
from pricing_pipeline_tests.support.patience import PATIENCE
from pricing_pipeline_tests.support.scripted_client import KEY, NAV, NOW, QUOTE, read, refused, twelvedata


def test_providers_are_listed_under_their_own_names() -> None:
    assert all(name == provider.name for name, provider in PROVIDERS.items())
    assert {name for name, provider in PROVIDERS.items() if not provider.needs_key} == {"mfapi", "yahoo"}


# --- a good call --------------------------------------------------------------------------------


def test_a_call_sends_what_was_built_with_the_key_in_a_header() -> None:
    with ScriptedServer(lambda c: c.answer(QUOTE)) as server, twelvedata(f"{server.url}/base/") as client:
        fetched = client.fetch(Fetcher.QUOTE, ["AAPL"], now=NOW)
    (request,) = server.requests
    first, *rest = request.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in rest)}
    assert first == "GET /base/quote?symbol=AAPL HTTP/1.1"
    assert headers["authorization"] == f"apikey {KEY}"
    assert headers["user-agent"].startswith("pricing-pipeline/")
    assert headers["accept-encoding"] == "gzip"
    assert [o.text for o in fetched.answer.observations] == ["174.83000"]
    assert fetched.http_status == 200


def test_c3_the_user_agent_of_the_settings_goes_out_and_never_with_a_key() -> None:
    agent = "prices-of-ann/1.0 (ann@example.com)"
    with (
        ScriptedServer(lambda c: c.answer(QUOTE)) as server,
        ProviderClient(PROVIDERS["twelvedata"], server.url, SecretStr(KEY), user_agent=agent) as client,
    ):
        client.fetch(Fetcher.QUOTE, ["AAPL"], now=NOW)
        with pytest.raises(SettingsError) as late:
            client.replace_keys({"default": SecretStr("ann@example.com")})
    assert server.requests[0].lower().count(b"user-agent:") == 1
    assert f"User-Agent: {agent}\r\n".encode() in server.requests[0]
    with pytest.raises(SettingsError) as early:
        ProviderClient(PROVIDERS["twelvedata"], server.url, SecretStr(KEY), user_agent=f"a {KEY.upper()}")
    ProviderClient(PROVIDERS["twelvedata"], server.url, SecretStr("pipeline")).close()  # in our own, by chance
    for refusal in (early, late):
        assert str(refusal.value).startswith("PRICING_USER_AGENT contains an API key")
        assert KEY not in str(refusal.value).lower()


def test_a_provider_without_key_is_sent_none() -> None:
    with ScriptedServer(lambda c: c.answer(NAV)) as server:
        with ProviderClient(PROVIDERS["mfapi"], server.url, SecretStr(KEY)) as client:
            fetched = client.fetch(Fetcher.NAV, ["125497"], Window(date(2026, 11, 1), date(2026, 11, 30)), now=NOW)
        (request,) = server.requests
    assert request.startswith(b"GET /mf/125497?startDate=2026-11-01&endDate=2026-11-30 HTTP/1.1")
    assert KEY.encode() not in request
    assert b"authorization" not in request.lower()
    assert [o.text for o in fetched.answer.observations] == ["186.70090"]


def test_b12_bytes_are_those_on_the_wire_compressed_and_with_headers() -> None:
    body = gzip.compress(QUOTE + b" " * 50_000)
    with ScriptedServer(lambda c: c.answer(body, Content_Encoding="gzip")) as server:
        with twelvedata(server.url) as client:
            first = client.fetch(Fetcher.QUOTE, ["AAPL"], now=NOW)
            assert first.wire_bytes == server.sent
            second = client.fetch(Fetcher.QUOTE, ["AAPL"], now=NOW)
        assert second.wire_bytes == first.wire_bytes < 2000
        assert server.sent == 2 * first.wire_bytes
        assert server.accepted == 1, "the second call did not reuse the connection"


def test_a_missing_content_length_is_noticed() -> None:
    def chunked(c: Connection) -> None:
        c.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        c.send(f"{len(QUOTE):x}\r\n".encode() + QUOTE + b"\r\n0\r\n\r\n")

    with ScriptedServer(chunked) as server, twelvedata(server.url) as client:
        fetched = client.fetch(Fetcher.QUOTE, ["AAPL"], now=NOW)
        assert fetched.content_length_missing
        assert fetched.wire_bytes == server.sent
        server.script = lambda c: c.answer(QUOTE)
        assert not client.fetch(Fetcher.QUOTE, ["AAPL"], now=NOW).content_length_missing


def test_b17_headers_about_limits_are_handed_on_and_no_others() -> None:
    extra = {"Api-Credits-Used": "2", "Api-Credits-Left": "6", "Set-Cookie": "a=b"}
    with ScriptedServer(lambda c: c.answer(QUOTE, **extra)) as server, twelvedata(server.url) as client:
        fetched = client.fetch(Fetcher.QUOTE, ["AAPL"], now=NOW)
    assert fetched.headers == {"api-credits-used": "2", "api-credits-left": "6"}


def test_symbols_that_no_provider_could_know_cost_no_call() -> None:
    with (
        ScriptedServer(lambda c: c.answer(NAV)) as server,
        ProviderClient(PROVIDERS["mfapi"], server.url) as client,
    ):
        fetched = client.fetch(Fetcher.NAV, ["../secret"], now=NOW)
        assert [(f.symbol, f.kind) for f in fetched.answer.failures] == [("../secret", FailureKind.UNKNOWN_SYMBOL)]
        assert (fetched.http_status, fetched.wire_bytes, server.requests) == (None, 0, [])


def test_b8_a_symbol_that_cannot_be_sent_does_not_stop_the_others() -> None:
    with ScriptedServer(lambda c: c.answer(QUOTE)) as server, twelvedata(server.url) as client:
        answer = client.fetch(Fetcher.QUOTE, ["A,B", "AAPL", "AAPL"], now=NOW).answer
    assert [o.symbol for o in answer.observations] == ["AAPL"]
    assert [f.symbol for f in answer.failures] == ["A,B"]


@pytest.mark.parametrize(
    ("name", "fetcher", "count", "days", "words"),
    [
        (
            "twelvedata",
            Fetcher.QUOTE,
            121,
            0,
            "at most 120 symbols in such a call for quote, and 121 .* --batch-size quote=120` lowers it",
        ),
        (
            "twelvedata",
            Fetcher.DAILY_BARS,
            11,
            5000,
            "at most 10 .*provider change twelvedata --window-batch-size daily_bars=10",
        ),
        ("yahoo", Fetcher.DAILY_BARS, 2, 0, "at most 1 .*provider change yahoo --batch-size daily_bars=1"),
        ("fmp", Fetcher.QUOTE, 101, 0, "at most 100 .*provider change fmp --batch-size quote=100"),
        ("mfapi", Fetcher.NAV, 5001, 0, "at most 5000 "),
    ],
)
def test_b8_more_symbols_than_a_provider_takes_are_told_with_where_that_is_set(
    name: str, fetcher: Fetcher, count: int, days: int, words: str
) -> None:
    window = Window(NOW.date() - timedelta(days=days - 1), NOW.date()) if days else None
    symbols = [str(number + 1) for number in range(count)]
    client = ProviderClient(PROVIDERS[name], "http://127.0.0.1:1", SecretStr(KEY))
    with client, pytest.raises(Misconfigured, match=words):
        client.fetch(fetcher, symbols, window, now=NOW)


def test_b18_the_data_type_must_match_the_fetcher() -> None:
    with twelvedata("http://127.0.0.1:1") as client, pytest.raises(SettingsError, match="cannot fetch nav"):
        client.fetch(Fetcher.NAV, ["125497"])


def test_a_parser_that_loses_a_symbol_is_found_out() -> None:
    class Forgetful(MfApi):
        def parse(self, *args: object, **kwargs: object) -> Answer:
            return Answer()

    with ScriptedServer(lambda c: c.answer(NAV)) as server, ProviderClient(Forgetful(), server.url) as client:
        with pytest.raises(SchemaDrift, match="125497 came out not exactly once") as caught:
            client.fetch(Fetcher.NAV, ["125497"])
        assert caught.value.wire_bytes == server.sent


def test_b17_ten_calls_run_at_once_and_more_wait_for_a_place() -> None:
    lock, inside, peak = threading.Lock(), 0, 0
    full = threading.Barrier(10)

    def script(c: Connection) -> None:
        nonlocal inside, peak
        with lock:
            inside += 1
            peak = max(peak, inside)
        full.wait(PATIENCE)
        with lock:
            inside -= 1
        c.answer(QUOTE)

    with ScriptedServer(script) as server, twelvedata(server.url) as client, ThreadPoolExecutor(20) as pool:
        calls = [pool.submit(client.fetch, Fetcher.QUOTE, ["AAPL"], now=NOW) for _ in range(20)]
        assert all(len(call.result().answer.observations) == 1 for call in calls)
        assert all(call.result().wire_bytes == server.connections[0].sent for call in calls)
    assert peak == 10


# --- time ---------------------------------------------------------------------------------------

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"


def send_head_and_drip(c: Connection) -> None:
    c.send(HEAD)
    c.drip(b" " * 500, 0.05)


@pytest.mark.parametrize(
    "script",
    [
        lambda c: c.hang(),
        lambda c: c.drip(HEAD + b" " * 500, 0.05),
        send_head_and_drip,
        lambda c: (c.send(HEAD + b"{"), c.hang()),
        lambda c: c.drip(b"HTTP/1.1 100 Continue\r\n\r\n" * 50, 0.01),
    ],
    ids=["silent", "slow headers", "slow body", "too large a Content-Length", "endless 100s"],
)
def test_fault_11_a_call_ends_at_its_total_deadline(script: Script) -> None:
    start = time.monotonic()
    error, _ = refused(script, ProviderDown, deadline=0.4)
    assert time.monotonic() - start < PATIENCE / 2
    assert "within 0.4 s" in str(error)


def test_fault_11_bytes_that_came_before_the_deadline_are_booked() -> None:
    for deadline in (0.3, 3, 30):  # on a busy machine nothing may have come within 0.3 s
        error, sent = refused(lambda c: (c.send(HEAD + b"{}"), c.hang()), ProviderDown, deadline=deadline)
        if error.wire_bytes:
            break
    assert error.wire_bytes == sent == len(HEAD) + 2
    assert error.http_status == 200


def test_fault_11_a_name_server_that_hangs_does_not_hold_the_call() -> None:
    release = threading.Event()

    def resolve(host: str, port: int) -> list[str]:
        release.wait(PATIENCE)
        return []

    client = ProviderClient(PROVIDERS["mfapi"], "https://prices.example", None, deadline=0.3, resolve=resolve)
    start = time.monotonic()
    with client, pytest.raises(ProviderDown, match=r"within 0\.3 s"):
        client.fetch(Fetcher.NAV, ["125497"])
    assert time.monotonic() - start < PATIENCE / 2
    release.set()


def test_b17_waiting_for_one_of_ten_connections_counts_against_the_deadline() -> None:
    transport = BoundedTransport()
    over = threading.Event()

    def call(seconds: float) -> None:
        with transport.exchange(seconds=seconds, max_bytes=10_000):
            read(transport, server.url)

    with (
        ScriptedServer(lambda c: (over.wait(PATIENCE), c.send(b"no HTTP\r\n\r\n"))) as server,
        closing(transport),
    ):
        with ThreadPoolExecutor(10) as pool:
            calls = [pool.submit(call, PATIENCE) for _ in range(10)]
            while len(server.connections) < 10:
                time.sleep(0.01)
            with pytest.raises(httpcore.PoolTimeout):
                call(0.2)
            assert not any(call.done() for call in calls)
            over.set()
            assert all(call.exception() is not None for call in calls)
        assert server.accepted == 10


# --- bytes --------------------------------------------------------------------------------------


def test_fault_11_a_gzip_bomb_ends_at_the_cap() -> None:
    bomb = gzip.compress(b" " * 50_000_000, 9)
    tracemalloc.start()
    error, _ = refused(lambda c: c.answer(bomb, Content_Encoding="gzip"), SchemaDrift, max_bytes=100_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5_000_000
    assert "100000 bytes" in str(error)
    assert error.wire_bytes <= len(bomb) + 1000


def test_fault_11_a_body_without_end_stops_at_the_cap_on_the_wire() -> None:
    def endless(c: Connection) -> None:
        c.send(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            c.send(b" " * 65536)

    error, _ = refused(endless, SchemaDrift, max_bytes=200_000)
    assert 200_000 < error.wire_bytes <= 200_000 + 65536


@pytest.mark.parametrize(
    ("head", "filler"),
    [
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(QUOTE), b"\0" * 65536),
    ],
    ids=["100s", "after the packed end"],
)
def test_fault_11_bytes_that_come_to_nothing_count_as_well(head: bytes, filler: bytes) -> None:
    def endless(c: Connection) -> None:
        c.send(head)
        while True:
            c.send(filler)

    error, _ = refused(endless, SchemaDrift, max_bytes=200_000)
    assert 200_000 < error.wire_bytes <= 200_000 + 65536


def test_fault_11_headers_without_end_stop_too() -> None:
    def endless(c: Connection) -> None:
        c.send(b"HTTP/1.1 200 OK\r\n")
        while True:
            c.send(b"X-Filler: " + b"x" * 1000 + b"\r\n")

    refused(endless, ProviderDown, max_bytes=10_000_000)


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (f"HTTP/1.1 200 OK\r\nContent-Length: {len(QUOTE) + 1}\r\n\r\n", QUOTE),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"ff\r\n" + QUOTE),
        ("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", gzip.compress(QUOTE)[:-9]),
        ("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", gzip.compress(QUOTE)[:5]),
        ("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", QUOTE),
        ("HTTP/1.1 200 OK\r\nContent-Le", b""),
        ("", b""),
        ("SSH-2.0-OpenSSH\r\n\r\n", b""),
    ],
    ids=["length", "chunk", "gzip end", "gzip start", "no gzip", "head", "nothing", "no HTTP"],
)
def test_fault_11_a_broken_answer_is_no_answer(head: str, body: bytes) -> None:
    def broken(c: Connection) -> None:
        c.send(head.encode() + body)
        raise ConnectionAbortedError

    error, sent = refused(broken, ProviderDown)
    assert error.wire_bytes == sent


def test_fault_11_a_content_length_that_is_too_short_is_drift() -> None:
    error, _ = refused(lambda c: c.answer(QUOTE, Content_Length="20"), SchemaDrift)
    assert "not JSON" in str(error)


def test_an_encoding_that_was_not_offered_is_drift() -> None:
    error, _ = refused(lambda c: c.answer(b"\x0b\x02\x80", Content_Encoding="br"), SchemaDrift)
    assert "'br'" in str(error)


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        ("500 Internal Server Error", b"oops", ProviderDown),
        ("520 ", b"error code: 520", ProviderDown),
        ("503 Service Unavailable", b'{"code":503,"message":"x","status":"error"}', ProviderDown),
        ("429 Too Many Requests", b"slow down", Throttled),
        ("401 Unauthorized", b"bad key", KeyRefused),
        ("402 Payment Required", b"Premium", PlanRestricted),
        (
            "403 Forbidden",
            b'{"code":403,"message":"/quote needs pro plans","status":"error"}',
            PlanRestricted,
        ),
        ("400 Bad Request", b'{"code":400,"message":"Invalid **x**","status":"error"}', RequestRefused),
        ("200 OK", b"<html>We value your privacy</html>", SchemaDrift),
    ],
)
def test_each_refusal_has_its_type_status_and_bytes(status: str, body: bytes, kind: type[ProviderError]) -> None:
    error, sent = refused(lambda c: c.answer(body, status), kind)
    assert error.http_status == int(status.split()[0])
    assert error.wire_bytes == sent


@pytest.mark.parametrize(
    ("value", "seconds"), [("7", 7.0), ("-3", 0.0), ("1000000000", 3600.0), ("later", None), (None, None)]
)
def test_fault_12_throttled_carries_a_bounded_wait(value: str | None, seconds: float | None) -> None:
    headers = {"Retry_After": value} if value is not None else {}
    error, _ = refused(lambda c: c.answer(b"{}", "429 Too Many Requests", **headers), Throttled)
    assert isinstance(error, Throttled)
    assert error.retry_after == seconds


def test_fault_12_a_wait_until_a_date_is_read() -> None:
    headers = {"Date": "Fri, 20 Nov 2026 15:00:00 GMT", "Retry_After": "Fri, 20 Nov 2026 15:01:30 GMT"}
    error, _ = refused(lambda c: c.answer(b"{}", "429 Too Many Requests", **headers), Throttled)
    assert isinstance(error, Throttled)
    assert error.retry_after == 90.0


def test_fault_15_future_stamps_are_judged_by_the_time_that_is_passed() -> None:
    with ScriptedServer(lambda c: c.answer(QUOTE)) as server, twelvedata(server.url) as client:
        early = client.fetch(Fetcher.QUOTE, ["AAPL"], now=NOW - timedelta(hours=1)).answer
    assert [f.kind for f in early.failures] == [FailureKind.IMPLAUSIBLE]
