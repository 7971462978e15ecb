"""The sandbox over real HTTP: mounts, refusals, the log, faults that need a connection, start and stop."""

from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial

import httpx
import pytest

from pricing_pipeline.errors import SupervisorError
from pricing_pipeline.sandbox.server import SandboxSettings, listen, serve
from pricing_pipeline_tests.fixtures.refresher import reset_sandbox
from pricing_pipeline_tests.support.loopback import NO_TLS
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox, running_sandbox

sandbox = reset_sandbox


get = partial(httpx.get, timeout=PATIENCE, verify=NO_TLS)
post = partial(httpx.post, timeout=PATIENCE, verify=NO_TLS)


def quote(sandbox: RunningSandbox, symbol: str, timeout: float = PATIENCE) -> httpx.Response:
    params = {"symbol": symbol, "apikey": sandbox.key}
    return get(f"{sandbox.twelvedata_url}/quote", params=params, timeout=timeout)


def test_both_providers_answer_under_their_mounts(sandbox):
    answer = quote(sandbox, "AAPL,EUR/USD,NOPE1")
    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    assert answer.headers["api-credits-request"] == "3"
    assert set(answer.json()) == {"AAPL", "EUR/USD", "NOPE1"}
    nav = get(f"{sandbox.mfapi_url}/mf/118632/latest")
    assert nav.headers["content-type"] == "application/json"
    assert nav.json()["status"] == "SUCCESS"
    assert get(f"{sandbox.mfapi_url}/mf/latest", params={"limit": 2}).json()[0]["schemeCode"] == 118000
    assert get(f"{sandbox.url}/_sandbox/health").json() == {"status": "ok"}
    assert get(f"{sandbox.url}/elsewhere").status_code == 404


def test_a6_every_call_is_logged_with_what_it_cost(sandbox):
    body = quote(sandbox, "AAPL,NOPE").content
    get(f"{sandbox.twelvedata_url}/quote", params={"symbol": "AAPL", "apikey": "wrong"})
    get(f"{sandbox.mfapi_url}/mf/118632")
    first, second, third = sandbox.calls()
    assert (first["path"], first["symbols"], first["units"]) == ("/quote", ["AAPL", "NOPE"], 2)
    assert (first["status"], first["bytes"], first["refused"]) == (200, len(body), False)
    assert (second["status"], second["units"]) == (401, 0)
    assert (third["provider"], third["path"], third["key_name"]) == ("mfapi", "/mf/118632", None)
    assert [call["seq"] for call in sandbox.calls("mfapi")] == [3]
    assert [call["seq"] for call in sandbox.calls(since=1)] == [2, 3]
    assert sandbox.key not in json.dumps(sandbox.calls())


def test_a6_limits_hold_against_concurrent_callers_and_the_log_proves_it():
    noon = datetime(2026, 11, 18, 12, 0, 30, tzinfo=UTC)
    with running_sandbox(credits_per_minute=20, clock=lambda: noon) as sandbox, ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda _: quote(sandbox, "AAPL,IBM").status_code, range(25)))
        assert (statuses.count(200), statuses.count(429)) == (10, 15)
        assert sum(call["units"] for call in sandbox.calls()) == 50
        assert sum(call["units"] for call in sandbox.calls() if not call["refused"]) == 20
        sandbox.reset()
        assert sandbox.calls() == []
        assert quote(sandbox, "AAPL").status_code == 200


def test_fault11_delay_and_status_and_clearing(sandbox):
    sandbox.behave("delay", provider="twelvedata", seconds=0.15)
    sandbox.behave("status", provider="twelvedata", symbols="IBM", status=520, body="error code: 520")
    answer = quote(sandbox, "IBM")
    assert (answer.status_code, answer.text) == (520, "error code: 520")
    assert answer.elapsed.total_seconds() >= 0.15
    assert quote(sandbox, "AAPL").status_code == 200
    assert [call["fault"] for call in sandbox.calls()] == ["delay,status", "delay"]
    sandbox.behave_well()
    assert quote(sandbox, "IBM").status_code == 200
    assert sandbox.calls()[-1]["fault"] is None


def test_fault11_a_hanging_call_stays_open_in_the_log_until_the_client_leaves(sandbox):
    sandbox.behave("hang", provider="mfapi", count=1)
    with pytest.raises(httpx.ReadTimeout):
        get(f"{sandbox.mfapi_url}/mf/118632/latest", timeout=0.2)
    wait_until(lambda: [call for call in sandbox.calls() if call["milliseconds"] is not None])
    (call,) = sandbox.calls()
    assert (call["status"], call["fault"], call["bytes"]) == (None, "hang", 0)
    assert get(f"{sandbox.mfapi_url}/mf/118632/latest").status_code == 200


def test_fault12_a_retry_after_goes_out_word_for_word(sandbox):
    sandbox.behave("throttle", retry_after="Wed, 21 Oct 2026 07:28:00 GMT")
    answer = quote(sandbox, "AAPL")
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "Wed, 21 Oct 2026 07:28:00 GMT")


@pytest.mark.parametrize(
    ("agent", "status"),
    [
        ("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36", 200),
        ("Mozilla", 429),
        ("pricing-pipeline/1.0", 429),
        ("", 429),
    ],
)
def test_fault12_it_answers_browsers_only(sandbox, agent, status):
    sandbox.behave("browsers_only", provider="yahoo")
    url = f"{sandbox.url}/yahoo/v8/finance/chart/AAPL"
    answer = get(url, params={"range": "1d"}, headers={"User-Agent": agent})
    assert (answer.status_code, answer.text == "Edge: Too Many Requests") == (status, status == 429)


def test_wrong_orders_are_refused_with_the_reason(sandbox):
    url = f"{sandbox.url}/_sandbox/behaviour"
    answer = post(url, json={"kind": "delay"})
    assert answer.status_code == 400
    assert "delay needs seconds" in answer.text
    assert post(url, content=b"{").status_code == 400
    assert get(f"{sandbox.url}/_sandbox/calls", params={"since": "x"}).status_code == 400
    assert get(url).json() == []


OF_A_PAGE = [
    {"Origin": "https://elsewhere.example", "Content-Type": "text/plain"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "cross-site"},  # without cors, as an image or a script
    {"Sec-Fetch-Site": "same-site"},  # of another port of this machine
    {"Host": "evil.example:8100"},  # a name that was made to point here
    {"Host": "127.0.0.1.evil.example"},
]


@pytest.mark.parametrize("headers", OF_A_PAGE, ids=str)
def test_a_web_page_cannot_steer_the_sandbox(sandbox, headers):
    """Nor use up its limits, nor read who asked it for what."""
    url, price = f"{sandbox.url}/_sandbox/behaviour", f"{sandbox.twelvedata_url}/price"
    symbols = {"symbol": "AAPL", "apikey": sandbox.key}
    assert post(url, headers=headers, content=b'{"kind": "garbage"}').status_code == 403
    assert post(f"{sandbox.url}/_sandbox/reset", headers=headers).status_code == 403
    assert get(f"{sandbox.url}/_sandbox/calls", headers=headers).status_code == 403
    assert get(price, params=symbols, headers=headers).status_code == 403
    assert get(url).json() == []
    assert sandbox.calls() == []


def test_a_person_looks_at_the_sandbox_by_any_name_of_this_machine(sandbox):
    port = sandbox.url.rpartition(":")[2]
    typed = {"Sec-Fetch-Site": "none"}
    for host in (f"localhost:{port}", f"[::1]:{port}", "127.0.0.1", f"LocalHost:{port}"):
        assert get(f"{sandbox.url}/_sandbox/calls", headers={"Host": host, **typed}).status_code == 200


def test_a_port_in_use_is_one_clear_sentence():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(SupervisorError, match=f"127.0.0.1:{port} is taken.*PRICING_SANDBOX_PORT"):
            serve(SandboxSettings(port=port))


def test_two_sandboxes_never_share_a_port():
    with listen(SandboxSettings(port=0)) as first, pytest.raises(SupervisorError, match="taken"):
        listen(SandboxSettings(port=first.getsockname()[1]))
