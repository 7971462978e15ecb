"""Chat and SMS through apprise, with Discord's address turned to a real server on loopback."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import requests
from apprise.manager_plugins import NotificationManager
from apprise.plugins.discord import NotifyDiscord
from pydantic import SecretStr

from pricing_pipeline.errors import OperationFailed
from pricing_pipeline.operations.channels import check_address, send_message, shown_address
from pricing_pipeline.operations.channels.messages import CHAT, SMS
from pricing_pipeline_tests.support.operations import an_operation
from pricing_pipeline_tests.support.receivers import Script, receiving

KEY = UUID("1f0c9a3e-5b1d-4c8e-9a55-0a2f4be7a9d0")
DISCORD = "discord://1234567890/abcdefghijkl"


def send(monkeypatch: pytest.MonkeyPatch, url: str, **options: Any) -> dict[str, object]:
    monkeypatch.setattr(NotifyDiscord, "notify_url", url)
    return send_message(an_operation(key=KEY), SecretStr(DISCORD), **{"seconds": 20.0, **options})


def failure_of(monkeypatch: pytest.MonkeyPatch, script: Script, **options: Any) -> OperationFailed:
    with receiving(script) as receiver, pytest.raises(OperationFailed) as caught:
        send(monkeypatch, receiver.url, **options)
    return caught.value


def test_e6_a_chat_message_arrives_with_the_sign_of_its_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    with receiving(lambda post: post.answer(204)) as receiver:
        for _ in range(2):
            assert send(monkeypatch, receiver.url) == {"to": "discord"}
    first, second = receiver.posted
    assert first.body == second.body
    text = json.dumps(json.loads(first.body))
    assert "AAPL is late #1f0c9a3e" in text
    assert "for an hour" in text


MENTIONS = "@everyone @here <@1> <@&2> <#3> <!channel> <!here|here> <users/all> <@all> <@personEmail:a@b.example>"
DISGUISES = (
    "[bank](https://evil.example/) <https://evil.example/|bank> [bank][1] [1]: https://evil.example/"
    " <a href='https://evil.example/'>bank</a> https://bank.example/\u202egpj.exe"
)
CHAT_ADDRESSES = {
    "discord": DISCORD,
    "gchat": "gchat://space/key/token",
    "slack": f"slack://T1JJ3T3L2/A1BRTD4JD/{'canary' * 4}",
    "tgram": "tgram://123456789:abcdefg_hijklmnop/12315544",
    "wxteams": f"wxteams://{'a' * 80}",
}
PINGS_AND_DISGUISES = {
    "discord": r"@(everyone|here)|<[@#:/]|<id:|\]\(",
    "gchat": r"<users/|<https?:|\]\(",
    "slack": r"<[!@#]|<https?:|@(everyone|here|channel)|\|bank>",
    "tgram": r"@\w|<a\b|tg:",
    "wxteams": r"<@|\]\(|\]\[|<spark",
}
"""What each service reads as a mention, or as a link that shows other words than its address."""


@pytest.mark.parametrize("scheme", CHAT)
def test_e8_words_of_a_provider_ping_nobody_and_disguise_no_link(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    assert CHAT_ADDRESSES.keys() == set(CHAT)
    posted: list[str] = []

    def request(session: requests.Session, method: str, url: str, **options: Any) -> requests.Response:
        posted.append(str(options.get("data") or json.dumps(options.get("json"))))
        answer = requests.Response()
        answer.status_code, answer._content = 200, b"ok"
        return answer

    monkeypatch.setattr(requests.Session, "request", request)
    operation = an_operation(key=KEY, title=MENTIONS, body=f"{MENTIONS}\n{DISGUISES}\nhttps://ui.example/runs/17?a=1")
    send_message(operation, SecretStr(CHAT_ADDRESSES[scheme]), seconds=20)
    texts = list(_strings(json.loads(posted[-1])))
    assert any("everyone" in text for text in texts)
    for text in texts:
        shown = text.replace("\\", "")
        assert not re.search(PINGS_AND_DISGUISES[scheme], shown), shown
        assert "\u202e" not in shown
    assert "https://ui.example/runs/17" in "".join(texts).replace("\\", ""), "a link that shows where it leads stays"


def _strings(value: object) -> Iterator[str]:
    """All texts of a document that are shown."""
    match value:
        case str():
            yield value
        case dict():
            for each in value.values():
                yield from _strings(each)
        case list():
            for each in value:
                yield from _strings(each)


def test_e8_a_text_that_is_too_long_is_cut_off_and_sent_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with receiving(lambda post: post.answer(204)) as receiver:
        monkeypatch.setattr(NotifyDiscord, "notify_url", receiver.url)
        send_message(an_operation(key=KEY, body="x" * 10_000), SecretStr(DISCORD), seconds=20)
    (posted,) = receiver.posted
    assert "#1f0c9a3e" in posted.body.decode()
    assert len(posted.body) < 4_000


def test_e8_a_password_of_netrc_is_not_sent_to_a_service(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    netrc = tmp_path / ".netrc"
    netrc.write_text("default login ann password canary\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(netrc))
    with receiving(lambda post: post.answer(204)) as receiver:
        send(monkeypatch, receiver.url)
    (posted,) = receiver.posted
    assert "Authorization" not in posted.headers


@pytest.mark.parametrize(
    ("status", "is_permanent"), [(400, True), (401, True), (404, True), (429, False), (503, False)]
)
def test_e8_a_service_that_cannot_now_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, status: int, is_permanent: bool
) -> None:
    error = failure_of(monkeypatch, lambda post: post.answer(status))
    assert str(error) == f"discord refused with HTTP status {status}"
    assert error.is_permanent is is_permanent


def test_e8_a_service_leads_nobody_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    with receiving(lambda post: post.answer(204)) as elsewhere:
        error = failure_of(monkeypatch, lambda post: post.answer(307, Location=elsewhere.url))
        assert elsewhere.posted == []
    assert error.is_permanent


def test_e8_a_service_that_breaks_off_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    error = failure_of(monkeypatch, lambda post: None)
    assert str(error) == "discord cannot be reached, or did not take the message"
    assert not error.is_permanent


@pytest.mark.parametrize("script", [lambda post: post.hang(), lambda post: post.drip(b"H", 0.02)])
def test_e8_a_service_holds_nobody_longer_than_the_limit_of_all(
    monkeypatch: pytest.MonkeyPatch, script: Script
) -> None:
    error = failure_of(monkeypatch, script, seconds=0.3)
    assert str(error) == "discord did not take the message within 0.3 s"
    assert not error.is_permanent


def test_e8_no_chat_or_sms_lets_its_user_name_a_host() -> None:
    for scheme in (*CHAT, *SMS):
        service = NotificationManager()[scheme]
        assert not [template for template in service.templates if "{host}" in template], scheme
        assert service.secure_protocol, scheme


@pytest.mark.parametrize(
    ("channel", "url", "words"),
    [
        ("chat", "json://127.0.0.1/", "an address of chat begins with one of discord://"),
        ("chat", "file:///etc/passwd", "an address of chat begins with one of discord://"),
        ("chat", "mattermost.example", "an address of chat begins with one of discord://"),
        (
            "chat",
            "https://hooks.slack.com/services/a/b/c",
            "an address of chat begins with one of discord://",
        ),
        ("chat", "", "an address of chat begins with one of discord://"),
        ("sms", DISCORD, "an address of sms begins with one of"),
        ("chat", "mailto://example.com", "an address of chat begins with one of"),
        ("chat", f"{DISCORD}?template=/etc/passwd", "options that are not allowed"),
        ("chat", f"{DISCORD}?avatar_url=http://127.0.0.1/", "options that are not allowed"),
        ("chat", f"{DISCORD}?verify=no", "options that are not allowed"),
        ("chat", f"{DISCORD}?redirect=yes", "options that are not allowed"),
        ("chat", f"{DISCORD}?:key=value", "options that are not allowed"),
        ("chat", "discord://1234567890", "not complete"),
        ("chat", "slack://nonsense", "not complete"),
        ("chat", "tgram://123456789:abcdefg_hijklmnop/1234/5678", "one receiver"),
        ("webhook", "https://xn--/hook/path", "is not a URL"),  # its host cannot be decoded
        ("webhook", "https://[::1/hook", "is not a URL"),
        ("webhook", "https:///hook", "begin with https://HOST"),
    ],
)
def test_e8_an_address_that_cannot_work_is_refused_before_it_is_stored(channel: str, url: str, words: str) -> None:
    with pytest.raises(OperationFailed, match=words) as caught:
        check_address(channel, url, allow_private=False)
    assert caught.value.is_permanent
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("channel", "url", "shown"),
    [
        ("chat", DISCORD, "discord://..."),
        ("chat", "tgram://123456789:abcdefg_hijklmnop/1234", "tgram://..."),
        ("chat", f"slack://T1JJ3T3L2/A1BRTD4JD/{'a1' * 12}/", "slack://..."),
        ("sms", f"twilio://AC{'a' * 32}:{'b' * 32}@15551233455/15551233456", "twilio://..."),
        ("webhook", "https://hooks.example:8443/t0ken?k=1", "https://hooks.example:8443"),
    ],
)
def test_e8_an_address_is_shown_without_what_is_secret(channel: str, url: str, shown: str) -> None:
    check_address(channel, url, allow_private=False)
    assert shown_address(SecretStr(url)) == shown
