"""No error, result or log of a channel holds a secret, whatever the receiver does and the secret looks like."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from urllib.parse import quote

import pytest
from apprise.plugins.discord import NotifyDiscord
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from pricing_pipeline.operations.channels import check_address, send_message, send_webhook
from pricing_pipeline_tests.support.certificates import Tls, tls_contexts
from pricing_pipeline_tests.support.operations import an_operation
from pricing_pipeline_tests.support.receivers import Post, mail_server, receiving
from pricing_pipeline_tests.support.secrets_told import FEW, SECRETS, echo, garbage, is_in, told


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    return tls_contexts(tmp_path_factory.mktemp("tls"))


def test_the_collector_of_logs_would_find_a_secret() -> None:
    assert is_in("5ecret012345", told(lambda: logging.getLogger("any").debug("5ecret012345")))


@pytest.mark.parametrize(
    "script",
    [lambda post: post.answer(200), lambda post: post.answer(500), echo, garbage, lambda post: None],
    ids=["done", "500", "echo", "garbage", "nothing"],
)
def test_e8_a_webhook_tells_no_secret(script: Callable[[Post], None]) -> None:
    with receiving(script) as receiver:

        @FEW
        @given(secret=SECRETS)
        def holds(secret: str) -> None:
            safe = quote(secret, safe="")
            url = SecretStr(f"{receiver.url}/{safe}?key={safe}")
            said = told(lambda: send_webhook(an_operation(), url, SecretStr(secret), allow_private=True, seconds=20))
            assert not is_in(secret, said)

        holds()
        assert receiver.posted


@FEW
@given(
    secret=SECRETS,
    shape=st.sampled_from(
        [
            "https://ann:{}@hooks.example/",
            "https://{}@hooks.example/",
            "https://hooks.example:{}/",
            "https://[{}",
            "ftp://hooks.example/{}",
            "https://127.0.0.1/{}",
            "{}",
            "mailtos://ann:{}@127.0.0.1?to=a%40b.org",
            "mailto://ann:{}@example.com",
            "mailtos://ann:{}@example.com?{}=1",
            "discord://1234/{}",
            "discord://1234567890/abcdefghijkl?{}",
            "slack://{}/{}/{}",
            "twilio://{}:{}@1555/",
            "tgram://{}",
        ]
    ),
)
def test_e8_an_address_that_is_refused_is_not_repeated(secret: str, shape: str) -> None:
    for form in (secret, quote(secret, safe="")):
        for channel in ("webhook", "email", "chat", "sms"):
            url = shape.replace("{}", form)
            assert not is_in(secret, told(partial(check_address, channel, url, allow_private=False)))


@pytest.mark.parametrize(
    "answers",
    [
        {},
        {"AUTH": "535 5.7.8 {}"},
        {"MAIL": "550 {}"},
        {"RCPT": "450 {}"},
        {"DATA": "554 {}"},
    ],
)
def test_e8_an_e_mail_tells_no_password(tls: Tls, answers: dict[str, str]) -> None:
    with mail_server(tls[0]) as server:

        @FEW
        @given(secret=SECRETS)
        def holds(secret: str) -> None:
            server.password = secret
            words = secret.encode("ascii", "ignore").decode()
            server.answers = {command: answer.format(words) for command, answer in answers.items()}
            where = f"example.com:{server.port}?smtp=127.0.0.1&to=bob%40example.com"
            url = SecretStr(f"mailtos://ann:{quote(secret, safe='')}@{where}")
            said = told(lambda: send_message(an_operation(), url, allow_private=True, seconds=20, ssl_context=tls[1]))
            assert not is_in(secret, said)

        holds()


@pytest.mark.parametrize(
    "script",
    [lambda post: post.answer(204), lambda post: post.answer(401), echo, garbage, lambda post: None],
    ids=["done", "401", "echo", "garbage", "nothing"],
)
def test_e8_a_chat_message_tells_no_token(monkeypatch: pytest.MonkeyPatch, script: Callable[[Post], None]) -> None:
    token = "secretTOKENabcdef0123456789"
    with receiving(script) as receiver:
        monkeypatch.setattr(NotifyDiscord, "notify_url", receiver.url)
        said = told(lambda: send_message(an_operation(), SecretStr(f"discord://1234567890/{token}"), seconds=20))
        assert token in receiver.posted[0].path
    assert not is_in(token, said)
