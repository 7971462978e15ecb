"""E-mail, before a real mail server on loopback: what arrives, and how refusals, silence and bad TLS end."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from email import message_from_bytes, policy
from typing import Any
from urllib.parse import quote
from uuid import UUID

import pytest
from pydantic import SecretStr

from pricing_pipeline.errors import OperationFailed
from pricing_pipeline.operations.channels import check_address, send_message, shown_address
from pricing_pipeline.operations.operation_queue import Operation
from pricing_pipeline_tests.support.certificates import Tls, tls_contexts
from pricing_pipeline_tests.support.operations import an_operation
from pricing_pipeline_tests.support.patience import PATIENCE
from pricing_pipeline_tests.support.receivers import MailServer, mail_server

KEY = UUID("1f0c9a3e-5b1d-4c8e-9a55-0a2f4be7a9d0")
TO = "bob%40example.com"


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    return tls_contexts(tmp_path_factory.mktemp("tls"))


def plain(port: int) -> str:
    """A destination of a server that wants no password."""
    return f"mailto://127.0.0.1:{port}?from=ann%40example.com&to={TO}&smtp=127.0.0.1"


def secure(server: MailServer, *, password: str | None = None, mode: str = "starttls") -> str:
    login = f"{server.user}:{quote(password or server.password)}"
    where = f"example.com:{server.port}?smtp=127.0.0.1&mode={mode}&to={TO}"
    return f"mailtos://{login}@{where}&from=ann%40example.com&name=Prices"


def send(url: str, operation: Operation | None = None, **options: Any) -> dict[str, object]:
    options = {"allow_private": True, "seconds": 20.0, **options}
    return send_message(operation or an_operation(key=KEY), SecretStr(url), **options)


def failure(url: str, **options: Any) -> OperationFailed:
    with pytest.raises(OperationFailed) as caught:
        send(url, **options)
    assert caught.value.__cause__ is caught.value.__context__ is None
    return caught.value


# --- what arrives -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["starttls", "ssl"])
def test_e8_an_e_mail_arrives_over_tls_under_the_key_of_its_operation(mode: str, tls: Tls) -> None:
    with mail_server(tls[0], implicit=mode == "ssl") as server:
        told = send(secure(server, mode=mode), ssl_context=tls[1])
    assert told == {"to": "127.0.0.1"}
    assert server.logins == [(server.user, server.password)]
    assert server.recipients == ["bob@example.com"]
    assert server.was_tls
    (raw,) = server.messages
    message = message_from_bytes(raw, policy=policy.default)
    assert message["Subject"] == "AAPL is late"
    assert message["From"] == "Prices <ann@example.com>"
    assert message["To"] == "bob@example.com"
    assert message["Message-ID"] == f"<{KEY}@example.com>"
    assert message["Date"].datetime.isoformat() == "2026-11-20T15:00:00+00:00"
    assert message.get_content().strip() == "for an hour"  # type: ignore[attr-defined]


def test_e6_each_attempt_sends_the_same_e_mail() -> None:
    with mail_server() as server:
        for attempt in (1, 2):
            send(plain(server.port), an_operation(key=KEY, attempt=attempt))
    first, second = server.messages
    assert first == second
    assert f"<{KEY}@example.com>".encode() in first


def test_e8_a_title_cannot_add_headers() -> None:
    operation = an_operation(title="AAPL\r\nBcc: eve@example.com\r\n\r\nü", body=".\r\n.\r\nlast")
    with mail_server() as server:
        send(plain(server.port), operation)
    message = message_from_bytes(server.messages[0], policy=policy.default)
    assert message["Subject"] == "AAPL Bcc: eve@example.com ü"
    assert message["Bcc"] is None
    assert server.recipients == ["bob@example.com"]
    assert message.get_content().split() == [".", ".", "last"]  # type: ignore[attr-defined]


# --- how it is refused --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "answer", "words", "is_permanent"),
    [
        ("RCPT", "550 5.1.1 who is ann?", "refused the recipient (SMTP 550 5.1.1)", True),
        ("RCPT", "450 4.2.0 greylisted", "refused the recipient (SMTP 450 4.2.0)", False),
        ("RCPT", "421 too busy", "refused the recipient (SMTP 421)", False),
        ("MAIL", "553 not you", "refused the message (SMTP 553)", True),
        ("DATA", "554 5.7.1 spam", "refused the message (SMTP 554 5.7.1)", True),
        ("DATA", "452 4.3.1 disk full", "refused the message (SMTP 452 4.3.1)", False),
    ],
)
def test_e8_a_refusal_is_for_good_or_for_now_by_its_code(
    command: str, answer: str, words: str, is_permanent: bool
) -> None:
    with mail_server(**{command: answer}) as server:
        error = failure(plain(server.port))
    assert str(error) == f"the mail server 127.0.0.1 {words}"
    assert error.is_permanent is is_permanent
    assert server.messages == []


def test_e8_a_wrong_password_is_not_tried_again(tls: Tls) -> None:
    with mail_server(tls[0]) as server:
        error = failure(secure(server, password="the wrong one"), ssl_context=tls[1])
    assert str(error) == "the mail server 127.0.0.1 refused user or password (SMTP 535 5.7.8)"
    assert error.is_permanent
    assert server.messages == []


def test_e8_a_login_that_fails_for_now_is_tried_again(tls: Tls) -> None:
    with mail_server(tls[0], AUTH="454 4.7.0 later") as server:
        error = failure(secure(server), ssl_context=tls[1])
    assert "454" in str(error)
    assert not error.is_permanent


# --- how it misbehaves --------------------------------------------------------------------------------


@contextmanager
def raw_server(script: Callable[[socket.socket, threading.Event], None]) -> Iterator[int]:
    """A server that runs `script` for one connection; its port."""
    stopped = threading.Event()
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        listener.settimeout(PATIENCE)

        def serve() -> None:
            connection, _ = listener.accept()
            with closing(connection), suppress(OSError):  # the sender hangs up
                script(connection, stopped)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            stopped.set()
            socket.create_connection(listener.getsockname()).close()  # wakes one that nobody called
            thread.join(PATIENCE)


def drip(connection: socket.socket, stopped: threading.Event) -> None:
    while not stopped.wait(0.02):
        connection.sendall(b"220-welcome\r\n")


@pytest.mark.parametrize("script", [lambda connection, stopped: stopped.wait(PATIENCE), drip])
def test_e8_a_mail_server_holds_nobody_longer_than_the_limit_of_all(script: Any) -> None:
    with raw_server(script) as port:
        error = failure(plain(port), seconds=0.3)
    assert str(error) == "the mail server 127.0.0.1 did not take the message within 0.3 s"
    assert not error.is_permanent


@pytest.mark.parametrize("greeting", [b"", b"220 mail.example\r\n", b"HTTP/1.1 400 Bad\r\n\r\n", b"\0" * 100])
def test_e8_a_mail_server_that_breaks_off_is_tried_again(greeting: bytes) -> None:
    with raw_server(lambda connection, stopped: connection.sendall(greeting)) as port:
        assert not failure(plain(port)).is_permanent


def test_e8_a_mail_server_that_is_not_there_is_tried_again() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
    error = failure(plain(port))
    assert "the mail server 127.0.0.1 cannot be reached" in str(error)
    assert not error.is_permanent


def test_e8_an_e_mail_that_was_taken_is_done_whatever_the_farewell_is() -> None:
    def take(connection: socket.socket, stopped: threading.Event) -> None:
        connection.sendall(b"220 mail.example\r\n")
        with connection.makefile("rb") as lines:
            for line in lines:
                if line == b".\r\n" or not re.match(rb"(?i)(ehlo|mail|rcpt|data)\b", line):
                    if line == b".\r\n":
                        connection.sendall(b"250 taken\r\n")
                        return
                    continue
                connection.sendall(b"354 go on\r\n" if line.lower().startswith(b"data") else b"250 OK\r\n")

    with raw_server(take) as port:
        assert send(plain(port)) == {"to": "127.0.0.1"}


# --- TLS ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["starttls", "ssl"])
def test_e8_a_mail_server_that_nobody_vouches_for_gets_no_password(mode: str, tls: Tls) -> None:
    with mail_server(tls[0], implicit=mode == "ssl") as server:
        error = failure(secure(server, mode=mode))
    assert "has no valid certificate" in str(error)
    assert not error.is_permanent
    assert server.logins == []


def test_e8_a_mail_server_without_tls_gets_no_password() -> None:
    with mail_server() as server:
        error = failure(secure(server))
        assert "offers no TLS" in str(error)
        for url in (
            secure(server, mode="insecure"),
            secure(server, mode="insecure").replace("mailtos", "mailto"),
        ):
            error = failure(url)
            assert "only over TLS" in str(error)
            assert error.is_permanent
    assert server.logins == []


# --- whom it may not be -------------------------------------------------------------------------------


def test_e8_mail_servers_at_private_addresses_are_refused() -> None:
    with mail_server() as server:
        error = failure(plain(server.port), allow_private=False)
        assert error.is_permanent
        assert "127.0.0.1 is a private address" in str(error)
        named = plain(server.port).replace("smtp=127.0.0.1", "smtp=mail.example")
        error = failure(named, allow_private=False, resolve=lambda host, port: ["127.0.0.1"])
        assert error.is_permanent
        assert "mail.example leads to 127.0.0.1" in str(error)
        send(named, resolve=lambda host, port: ["127.0.0.1"])
    assert len(server.messages) == 1


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("mailtos://ann:pa55@example.com?to=bob%40a.org,eve%40a.org", "one receiver"),
        ("mailtos://ann:pa55@example.com?cc=eve%40a.org", "options"),
        ("mailtos://ann:pa55@example.com?verify=no", "options"),
        ("mailtos://ann:pa55@example.com?pgp=encrypt", "options"),
        ("mailtos://ann:pa55@example.com?+X-Mine=1", "options"),
        ("mailtos://ann:pa55@example.com?mode=none", "not valid"),
        ("mailtos://ann:pa55@example.com:99999", "no port"),
        ("mailtos://", "not valid"),
        ("mailto:ann@example.com", "begins with one of"),
        ("mailto://ann:pa55@example.com?to=bob%40a.org", "only over TLS"),
    ],
)
def test_e8_a_mail_address_that_cannot_work_is_refused_before_it_is_stored(url: str, words: str) -> None:
    with pytest.raises(OperationFailed, match=words) as caught:
        check_address("email", url, allow_private=True)
    assert caught.value.is_permanent
    assert "pa55" not in str(caught.value)


def test_e8_a_mail_address_is_shown_without_its_password() -> None:
    url = "mailtos://ann:pa55@gmail.com?to=bob%40example.com"
    check_address("email", url, allow_private=False)
    assert shown_address(SecretStr(url)) == "bob@example.com by smtp.gmail.com"
