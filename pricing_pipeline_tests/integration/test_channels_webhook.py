"""Webhooks, before real receivers on loopback: what they get, how they misbehave, and whom they may not be.

That no secret is told is in test_channels_secrets.py.
"""

from __future__ import annotations

import json
import socket
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any
from uuid import UUID

import pytest
from pydantic import SecretStr

from pricing_pipeline.errors import OperationFailed
from pricing_pipeline.operations.channels.log import send_to_log
from pricing_pipeline.operations.channels.webhook import document, send_webhook, sign, verify_signature
from pricing_pipeline.operations.operation_queue import Operation
from pricing_pipeline.providers import transport
from pricing_pipeline_tests.support.certificates import Tls, tls_contexts
from pricing_pipeline_tests.support.operations import an_operation
from pricing_pipeline_tests.support.pages import ROOT
from pricing_pipeline_tests.support.receivers import Post, Script, receiving

SECRET = "whsec-0123456789abcdef"
KEY = UUID("1f0c9a3e-5b1d-4c8e-9a55-0a2f4be7a9d0")


def send(url: str, operation: Operation | None = None, **options: Any) -> dict[str, object]:
    """A webhook to a receiver on loopback."""
    options = {"allow_private": True, "seconds": 20.0, **options}
    return send_webhook(operation or an_operation(key=KEY), SecretStr(url), SecretStr(SECRET), **options)


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    return tls_contexts(tmp_path_factory.mktemp("tls"), "hooks.example")


def failure(url: str, **options: Any) -> OperationFailed:
    with pytest.raises(OperationFailed) as caught:
        send(url, **options)
    assert caught.value.__cause__ is caught.value.__context__ is None
    return caught.value


def failure_of(script: Script, **options: Any) -> OperationFailed:
    with receiving(script) as receiver:
        return failure(receiver.url, **options)


# --- what the receiver gets -----------------------------------------------------------------------


def test_e8_a_webhook_is_signed_and_carries_the_key_of_its_operation() -> None:
    with receiving(lambda post: post.answer(204)) as receiver:
        told = send(f"{receiver.url}/hook/7?team=a%20b")
    (posted,) = receiver.posted
    assert told == {"to": receiver.url, "status": 204}
    assert posted.path == "/hook/7?team=a%20b"
    assert posted.headers["Content-Type"] == "application/json"
    assert posted.headers["Idempotency-Key"] == str(KEY)
    assert json.loads(posted.body) == {
        "id": str(KEY),
        "type": "alert",
        "queued_at": "2026-11-20T15:00:00+00:00",
        "payload": {"recipient": "ann", "title": "AAPL is late", "body": "for an hour"},
    }
    timestamp, signature = posted.headers["Pricing-Timestamp"], posted.headers["Pricing-Signature"]
    assert abs(time.time() - int(timestamp)) < 60
    assert verify_signature(SECRET, timestamp, signature, posted.body, time.time())


def test_e6_each_attempt_sends_the_same_body_and_key() -> None:
    with receiving(lambda post: post.answer(503 if len(receiver.posted) == 1 else 200)) as receiver:
        first, second = an_operation(key=KEY, attempt=1), an_operation(key=KEY, attempt=2)
        with pytest.raises(OperationFailed):
            send(receiver.url, first)
        send(receiver.url, second)
    one, two = receiver.posted
    assert one.body == two.body == document(first)
    assert one.headers["Idempotency-Key"] == two.headers["Idempotency-Key"]


@pytest.mark.parametrize(
    ("change", "is_genuine"),
    [
        ({}, True),
        ({"now": 1_000_300.0}, True),
        ({"now": 999_700.0}, True),
        ({"now": 1_000_301.0}, False),
        ({"now": 999_699.0}, False),
        ({"secret": "another"}, False),
        ({"body": b'{"price":"530.38"}'}, False),
        ({"timestamp": "1000001"}, False),
        ({"timestamp": "1e6"}, False),
        ({"timestamp": "\u0661\u0660"}, False),
        ({"timestamp": ""}, False),
        ({"signature": ""}, False),
        ({"signature": "v1="}, False),
        ({"signature": "v1=é"}, False),
        ({"signature": sign(SECRET, 1_000_000, b'{"price":"530.37"}').removeprefix("v1=")}, False),
    ],
)
def test_e8_a_signature_holds_for_its_body_and_time_alone(change: dict[str, Any], is_genuine: bool) -> None:
    body = b'{"price":"530.37"}'
    genuine = {
        "secret": SECRET,
        "timestamp": "1000000",
        "signature": sign(SECRET, 1_000_000, body),
        "body": body,
        "now": 1_000_000.0,
    }
    assert verify_signature(**{**genuine, **change}) is is_genuine


def test_e8_the_receiver_that_the_page_names_tells_a_genuine_webhook_from_a_forged_one() -> None:
    """The example, run as it stands, before our own signatures."""
    assert "(examples/verify_webhook.py)" in (ROOT / "docs/alerts.md").read_text()
    example = (ROOT / "docs/examples/verify_webhook.py").read_text()
    scope: dict[str, Any] = {}
    exec(example, scope)
    body = document(an_operation(key=KEY))
    now = int(time.time())
    headers = {"Pricing-Timestamp": str(now), "Pricing-Signature": sign(SECRET, now, body)}
    assert scope["is_genuine"](SECRET, headers, body)
    assert not scope["is_genuine"](SECRET, headers, body + b" ")
    assert not scope["is_genuine"]("another", headers, body)
    old = {"Pricing-Timestamp": str(now - 400), "Pricing-Signature": sign(SECRET, now - 400, body)}
    assert not scope["is_genuine"](SECRET, old, body)
    for missing in headers:
        assert not scope["is_genuine"](SECRET, {**headers, missing: ""}, body)
        assert not scope["is_genuine"](SECRET, {k: v for k, v in headers.items() if k != missing}, body)
    for odd in ("9" * 400, "9" * 5000, "-1", "1e9", "\u0661"):
        assert not scope["is_genuine"](SECRET, {**headers, "Pricing-Timestamp": odd}, body)


def test_the_log_sends_nothing_and_shows_what_would_have_been_sent() -> None:
    told = send_to_log(an_operation())
    assert told == {"to": "ann", "title": "AAPL is late", "body": "for an hour"}


# --- how it answers -------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 599])
def test_e8_a_receiver_that_cannot_now_is_asked_again(status: int) -> None:
    error = failure_of(lambda post: post.answer(status))
    assert not error.is_permanent
    assert error.retry_after is None
    assert f"HTTP status {status}" in str(error)


@pytest.mark.parametrize("status", [301, 302, 307, 308, 400, 401, 403, 404, 410, 422])
def test_e8_a_receiver_that_refuses_is_not_asked_again(status: int) -> None:
    with receiving(lambda post: post.answer(200)) as elsewhere:
        error = failure_of(lambda post: post.answer(status, Location=f"{elsewhere.url}/inside"))
        assert elsewhere.posted == []
    assert error.is_permanent
    assert f"HTTP status {status}" in str(error)


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [("7", 7, 7), ("0", 0, 0), ("-5", 0, 0), ("999999999999", 86_400, 86_400), ("date", 7_000, 7_200)],
)
def test_e8_a_receiver_may_ask_for_a_pause_of_a_day_at_most(header: str, least: float, most: float) -> None:
    if header == "date":
        header = format_datetime(datetime.now(UTC) + timedelta(hours=2))
    error = failure_of(lambda post: post.answer(429, Retry_After=header))
    assert error.retry_after is not None
    assert least <= error.retry_after <= most


def test_e8_a_pause_that_is_no_time_is_none() -> None:
    assert failure_of(lambda post: post.answer(503, Retry_After="soon")).retry_after is None


# --- how it misbehaves ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "script",
    [
        lambda post: post.hang(),
        lambda post: post.drip(b"H", 0.02),
        lambda post: post.drip(b"HTTP/1.1 100 Continue\r\n\r\n", 0.02),
        lambda post: (post.wfile.write(b"HTTP/1.1 200 OK\r\n"), post.drip(b"X-A: b\r\n", 0.02)),
    ],
    ids=["silent", "no status", "interim answers", "headers"],
)
def test_e8_a_receiver_holds_nobody_longer_than_the_limit_of_all(script: Script) -> None:
    """Each of these bytes comes long before a time limit of reads would strike."""
    error = failure_of(script, seconds=0.3)
    assert "gave no answer within 0.3 s" in str(error)
    assert not error.is_permanent


@pytest.mark.parametrize("length", [b"Content-Length: 99999999999", b"Transfer-Encoding: chunked", b"X-Y: z"])
def test_e8_the_body_of_an_answer_is_not_waited_for(length: bytes) -> None:
    def endless(post: Post) -> None:
        post.wfile.write(b"HTTP/1.1 200 OK\r\n" + length + b"\r\n\r\n")
        post.drip(b"x" * 100_000, 0)

    with receiving(endless) as receiver:
        assert send(receiver.url)["status"] == 200


def test_e8_headers_without_end_are_cut_off() -> None:
    def endless(post: Post) -> None:
        post.wfile.write(b"HTTP/1.1 200 OK\r\n")
        post.drip(b"X-A: " + b"b" * 1000 + b"\r\n", 0)

    error = failure_of(endless)
    assert "without end" in str(error) or "not HTTP" in str(error)


@pytest.mark.parametrize(
    "script",
    [
        lambda post: None,
        lambda post: post.wfile.write(b"HTTP/1.1 20"),
        lambda post: post.wfile.write(b"220 mail.example ESMTP\r\n"),
    ],
    ids=["nothing", "half a line", "another protocol"],
)
def test_e8_a_receiver_that_breaks_off_is_asked_again(script: Script) -> None:
    error = failure_of(script)
    assert not error.is_permanent
    assert "closed the connection" in str(error)


def test_e8_a_receiver_that_is_not_there_is_asked_again() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
    error = failure(f"http://127.0.0.1:{port}/")
    assert not error.is_permanent
    assert str(error).startswith(f"http://127.0.0.1:{port} cannot be reached")

    def unknown(host: str, port: int) -> list[str]:
        raise OSError("Name or service not known")

    error = failure("https://hooks.example/", resolve=unknown)
    assert not error.is_permanent
    assert str(error) == "https://hooks.example cannot be reached: Name or service not known"


# --- whom it may not be ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "10.0.0.1",
        "169.254.169.254",
        "168.63.129.16",
        "0.0.0.0",
        "224.0.0.1",
        "[::1]",
        "[::]",
        "[fd00:ec2::254]",
        "[fe80::1]",
        "[ff02::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:a9fe:a9fe]",
        "[64:ff9b::127.0.0.1]",
    ],
)
def test_e8_private_addresses_are_refused_written_or_resolved(host: str) -> None:
    error = failure(f"https://{host}/", allow_private=False)
    assert error.is_permanent
    assert "private address" in str(error)
    address = "127.0.0.1" if host == "localhost" else host.strip("[]")
    error = failure("https://hooks.example/", allow_private=False, resolve=lambda host, port: [address])
    assert error.is_permanent
    assert f"hooks.example leads to {address}, which is not on the public internet" in str(error)


@pytest.mark.parametrize("host", ["127.1", "0x7f000001", "2130706433", "localhost."])
def test_e8_disguised_addresses_are_refused(host: str) -> None:
    with receiving(lambda post: post.answer(200)) as receiver:
        port = receiver.server_port
        error = failure(f"https://{host}:{port}/", allow_private=False)
        assert receiver.posted == []
    assert "private address" in str(error) or "public internet" in str(error) or "cannot be reached" in str(error)


def test_e8_the_address_that_was_judged_is_the_one_that_is_reached(monkeypatch: pytest.MonkeyPatch, tls: Tls) -> None:
    """The resolver changes its mind at once: what it says later is never asked for."""
    monkeypatch.setattr(transport, "is_public", lambda address: address == "127.0.0.1")
    asked = []

    def changing(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["127.0.0.2"]

    with receiving(lambda post: post.answer(200), tls[0]) as receiver:
        url = f"https://hooks.example:{receiver.server_port}/"
        strict = {"allow_private": False, "ssl_context": tls[1]}
        send(url, resolve=changing, **strict)
        assert asked == ["hooks.example"]
        assert receiver.posted[0].headers["Host"] == f"hooks.example:{receiver.server_port}"
        error = failure(url, resolve=changing, **strict)
        assert "leads to 127.0.0.2" in str(error)
        both = failure(url, resolve=lambda host, port: ["127.0.0.1", "127.0.0.2"], **strict)
        assert "leads to 127.0.0.2" in str(both)
        assert len(receiver.posted) == 1


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://93.184.215.14/", "must begin with https://"),
        ("ftp://93.184.215.14/", "must begin with https://HOST"),
        ("//93.184.215.14/", "must begin with https://HOST"),
        ("https:///path", "must begin with https://HOST"),
        ("https://ann:pa55@93.184.215.14/", "no user or password"),
        ("https://[::1", "not a URL"),
        ("https://host:port/", "not a URL"),
        ("https://host/\r\nX: y", "not a URL"),
        ("", "must begin with https://HOST"),
    ],
)
def test_e8_an_address_that_cannot_work_is_refused(url: str, words: str) -> None:
    error = failure(url, allow_private=False)
    assert error.is_permanent
    assert words in str(error)
    assert "pa55" not in str(error)


def test_e8_nothing_is_sent_unsigned() -> None:
    with pytest.raises(OperationFailed, match="no secret") as caught:
        send_webhook(an_operation(), SecretStr("https://93.184.215.14/"), SecretStr(""))
    assert caught.value.is_permanent


def test_the_environments_proxies_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        receiving(lambda post: post.answer(200)) as proxy,
        receiving(lambda post: post.answer(200)) as receiver,
    ):
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("ALL_PROXY", proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        send(receiver.url)
        assert proxy.posted == []
        assert len(receiver.posted) == 1


# --- TLS ------------------------------------------------------------------------------------------


def test_e8_tls_is_verified_for_the_name_and_not_for_the_address(
    tls: Tls,
) -> None:
    context, trusting = tls
    named = []
    context.sni_callback = lambda connection, name, context: named.append(name)
    with receiving(lambda post: post.answer(200), context) as receiver:
        url = f"https://hooks.example:{receiver.server_port}/"
        assert send(url, resolve=lambda host, port: ["127.0.0.1"], ssl_context=trusting)["status"] == 200
        assert named == ["hooks.example"]
        other = failure(
            f"https://other.example:{receiver.server_port}/",
            resolve=lambda host, port: ["127.0.0.1"],
            ssl_context=trusting,
        )
        unknown = failure(url, resolve=lambda host, port: ["127.0.0.1"])
        assert len(receiver.posted) == 1
    for error in (other, unknown):
        assert not error.is_permanent
        assert "certificate verify failed" in str(error)


def test_each_webhook_resolves_its_host_anew() -> None:
    """None rides on a connection to an address that was judged long ago."""
    asked = []

    def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"]

    with receiving(lambda post: post.answer(200)) as receiver:
        for _ in range(2):
            send(f"http://hooks.example:{receiver.server_port}/", resolve=resolve)
    assert len(asked) == 2
