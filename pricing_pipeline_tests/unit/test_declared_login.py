"""A token that a login brings for the stored key: fetched once, renewed when it ends, shown nowhere (F11, A4, A6)."""

from __future__ import annotations

import json
import logging
import re
import threading
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from pydantic import SecretStr

from pricing_pipeline.domain.calls import Receipt
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import (
    DeclarationRefused,
    KeyRefused,
    ProviderDown,
    ProviderError,
    SchemaDrift,
    SettingsError,
    Throttled,
    Unfinished,
)
from pricing_pipeline.providers.base import Request
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.providers.declared import DeclaredProvider
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline_tests.support.declarations import PAGES, changed
from pricing_pipeline_tests.support.json_server import Asked, JsonServer, Reply, serving
from pricing_pipeline_tests.support.patience import PATIENCE

NOW = datetime(2026, 11, 20, 15, tzinfo=UTC)
DAY = date(2026, 11, 19)
KEY = "canary-id-0123456789:canary-secret-0123456789"
FORM = """key: {header: Authorization, scheme: Bearer}
login:
  path: /oauth2/token
  form: {grant_type: client_credentials}
  parts: [client_id, client_secret]
  token: access_token
  lifetime: expires_in
"""


def provider(login: str = FORM) -> DeclaredProvider:
    return DeclaredProvider(changed(PAGES, ("key: {header: X-Api-Key}\n", login)))


@dataclass
class Guarded(JsonServer):
    """Gives a token to each login, and a bar to whoever has the newest; `login` replaces an answer to a login."""

    logins: int = 0
    login: Any = None
    status: int = 200
    path: str = "/oauth2/token"
    seen: list[str] = field(default_factory=list)

    def answer(self, asked: Asked) -> Reply:
        if asked.path.partition("?")[0] == self.path:
            self.logins += 1
            answer = self.login
            if answer is None:
                answer = {"access_token": f"canary-token-number-{self.logins}", "expires_in": 600}
            return self.status, {}, answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.seen.append(asked.headers.get("Authorization", ""))
        if self.seen[-1] != f"Bearer canary-token-number-{self.logins}":
            return 401, {}, json.dumps({"error": f"{self.seen[-1]} has ended"}).encode()
        bars = [{"day": f"{DAY}", "close": "10.50", "open": 10, "high": 12, "low": 9, "volume": 1}]
        return 200, {}, json.dumps({"ticker": "AAPL", "bars": bars, "meta": {}}).encode()


def client(server: Guarded, login: str = FORM, key: str = KEY) -> ProviderClient:
    return ProviderClient(provider(login), server.url, SecretStr(key), deadline=PATIENCE)


def fetch(one: ProviderClient, now: datetime = NOW, **options: Any) -> Fetched:
    return one.fetch(Fetcher.DAILY_BARS, ["AAPL"], Window(DAY, DAY), now=now, **options)


@dataclass
class Booked:
    """Lets `most` further requests through, and keeps what they have cost."""

    most: int = 50
    receipts: list[Receipt] = field(default_factory=list)

    def begin(self, spent: Sequence[int]) -> None:
        if len(self.receipts) >= self.most:
            raise Unfinished("no more")

    def end(self, receipt: Receipt) -> None:
        self.receipts.append(receipt)


def test_f11_calls_share_one_login_until_its_token_ends() -> None:
    server = Guarded()
    with serving(server), client(server) as one:
        assert [f"{row.close:f}" for row in fetch(one).answer.observations] == ["10.50"]
        fetch(one, NOW + timedelta(seconds=539))
        assert server.logins == 1
        fetch(one, NOW + timedelta(seconds=540))
        assert server.logins == 2, "nine tenths of its lifetime are over"
    login = server.asked[0]
    assert (login.method, login.headers["Content-Type"]) == ("POST", "application/x-www-form-urlencoded")
    assert login.body == {
        "grant_type": "client_credentials",
        "client_id": "canary-id-0123456789",
        "client_secret": "canary-secret-0123456789",
    }
    assert "Authorization" not in login.headers
    assert server.seen == ["Bearer canary-token-number-1"] * 2 + ["Bearer canary-token-number-2"]


def test_f11_a_login_may_be_json_or_basic_and_name_its_lifetime_nowhere() -> None:
    json_login = FORM.replace("form: {grant_type", "post: {scope").replace("lifetime: expires_in", "seconds: 60")
    basic = FORM.replace("parts: [client_id, client_secret]", "basic: true")
    server = Guarded()
    with serving(server):
        with client(server, json_login) as one:
            fetch(one)
        with client(server, basic) as one:
            fetch(one)
    by_json, by_basic = (asked for asked in server.asked if asked.path == server.path)
    assert by_json.body == {
        "scope": "client_credentials",
        "client_id": "canary-id-0123456789",
        "client_secret": "canary-secret-0123456789",
    }
    assert by_basic.headers["Authorization"] == f"Basic {b64encode(KEY.encode()).decode()}"
    assert by_basic.body == {"grant_type": "client_credentials"}


def test_a6_a_login_is_the_first_request_of_a_call_and_the_data_a_page_of_it() -> None:
    server, booked = Guarded(), Booked()
    with serving(server), client(server) as one:
        first = fetch(one, pages=booked)
        assert [first.http_status, len(booked.receipts)] == [200, 1]
        assert first.wire_bytes + sum(first.page_bytes) == server.sent
        assert b"canary-token" not in first.body
        assert fetch(one, pages=booked).page_bytes == ()
    server = Guarded()
    with serving(server), client(server) as one, pytest.raises(Unfinished):
        fetch(one, pages=Booked(most=0))
    assert (server.logins, server.seen) == (1, [])


def test_f11_a_token_that_ended_early_brings_one_more_login() -> None:
    server, booked = Guarded(), Booked()
    with serving(server), client(server) as one:
        fetch(one)
        server.logins = 5  # the server knows the first token no more
        assert len(list(fetch(one, pages=booked).answer.observations)) == 1
        assert [receipt.http_status for receipt in booked.receipts] == [200, 200]
        server.login = {"access_token": "canary-token-of-nobody", "expires_in": 600}
        server.logins = 9
        with pytest.raises(KeyRefused, match=r"\*\*\* has ended"):
            fetch(one)
        assert server.logins == 10, "no second login, though its token is refused as well"


def test_f11_threads_log_in_once() -> None:
    server, failed = Guarded(), []

    def run(one: ProviderClient) -> None:
        try:
            fetch(one)
        except ProviderError as error:
            failed.append(error)

    with serving(server), client(server) as one:
        threads = [threading.Thread(target=run, args=(one,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (server.logins, failed) == (1, [])


def test_f11_a_call_does_not_wait_for_a_login_that_may_wait_for_its_room() -> None:
    server = Guarded()
    with (
        serving(server),
        ProviderClient(provider(), server.url, SecretStr(KEY), deadline=0.05) as one,
        one._one_login,
        pytest.raises(ProviderDown, match="another call logs in") as caught,
    ):
        fetch(one)
    assert not caught.value.was_sent
    assert not server.asked


REFUSED: list[tuple[int, object, type[ProviderError], str]] = [
    (
        401,
        {"error": f"no client {KEY}"},
        KeyRefused,
        r"refused the login \(HTTP 401: no client \*\*\*\)\. Check",
    ),
    (400, {"error": "invalid_client"}, KeyRefused, r"refused the login \(HTTP 400: invalid_client\)\. Check"),
    (403, b"<html>blocked</html>", ProviderDown, "This is not an answer of its API"),
    (429, {"error": "slow"}, Throttled, "answered 429: slow"),
    (503, b"", ProviderDown, "answered 503"),
    (302, b"", ProviderDown, "a redirect to nowhere"),
    (
        200,
        {"token": "canary-hidden-1"},
        SchemaDrift,
        r"`access_token` \(line \d+ .*\) does not lead to a text",
    ),
    (200, {"access_token": 7, "expires_in": 1}, SchemaDrift, "`access_token`"),
    (200, {"access_token": "canary a b\r\nX: y", "expires_in": 1}, SchemaDrift, "`access_token`"),
    (200, {"access_token": "c" * 8193, "expires_in": 1}, SchemaDrift, "`access_token`"),
    (200, {"access_token": "canary-token"}, SchemaDrift, "`expires_in`"),
    (200, {"access_token": "canary-token", "expires_in": True}, SchemaDrift, "`expires_in`"),
    (200, {"access_token": "canary-token", "expires_in": -1}, SchemaDrift, "`expires_in`"),
    (200, b'{"access_token": "canary-token", "expires_in": NaN}', SchemaDrift, "`expires_in`"),
    (200, b"canary-token-number-1", SchemaDrift, "`access_token`"),
]


@pytest.mark.parametrize(("status", "body", "kind", "words"), REFUSED)
def test_f11_a_refused_login_says_so_and_shows_no_secret(
    status: int, body: object, kind: type[ProviderError], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server = Guarded(login=body, status=status)
    with serving(server), client(server) as one, pytest.raises(kind, match=words) as caught:
        fetch(one)
    assert not server.seen, "nothing was asked for without a token"
    assert "canary" not in str(caught.value) + caplog.text
    assert caught.value.wire_bytes == server.sent


@pytest.mark.parametrize(
    ("when", "length"), [("at the login", 289), ("at the login", 292), ("for data", 190), ("for data", 193)]
)
def test_a4_a_short_secret_is_not_quoted_in_part_where_a_refusal_is_cut(when: str, length: int) -> None:
    """Nothing of a refusal is a price, so a short key is taken out of it before it is cut to length."""
    body = ("e" * length + "zqxary&3x is wrong").encode()

    @dataclass
    class Refusing(Guarded):
        def answer(self, asked: Asked) -> Reply:
            is_refused = asked.path == self.path or when == "for data"
            return (400, {}, body) if is_refused else Guarded.answer(self, asked)

    server = Refusing()
    plain = "key: {query: api_key}\n"
    login, key = (FORM, "bob:zqxary&3x") if when == "at the login" else (plain, "zqxary&3x")
    with serving(server), client(server, login, key) as one, pytest.raises(ProviderError) as caught:
        fetch(one)
    assert "eee" in str(caught.value)
    assert "zqx" not in str(caught.value)


@pytest.mark.parametrize("lifetime", [10**30, "600", 1.5, "1e3", 1])
def test_f11_any_true_lifetime_is_read(lifetime: object) -> None:
    server = Guarded(login={"access_token": "canary-token-number-1", "expires_in": lifetime})
    with serving(server), client(server) as one:
        if lifetime == "1e3":
            with pytest.raises(SchemaDrift):
                fetch(one)
            return
        fetch(one)
        server.login = None
        fetch(one, NOW + timedelta(seconds=0.5))
        assert server.logins == 1
        fetch(one, NOW + timedelta(days=30))
    assert server.logins == 2, "a month is the longest"


def test_a4_key_and_token_stand_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    told: list[str] = []

    @dataclass
    class Echo(Guarded):
        def answer(self, asked: Asked) -> Reply:
            status, fields, body = Guarded.answer(self, asked)
            if asked.path != self.path:
                status, body = 400, json.dumps({"error": f"{asked.headers} {KEY}"}).encode()
            return status, fields, body

    server = Echo()
    with serving(server), client(server) as one:
        for _ in range(2):
            with pytest.raises(ProviderError) as caught:
                fetch(one, witness=lambda *seen: told.append(repr(seen)))
            told.append(str(caught.value) + repr(caught.value) + repr(one) + repr(vars(one)))
        one.replace_keys({"default": SecretStr("other-id-0123456789:other-secret-0123456789")})
        assert one.hide_keys("canary-token-number-1 canary-secret-0123456789") == "*** ***"
    assert "***" in told[0]
    assert "canary" not in "".join(told) + caplog.text


def test_f11_what_is_read_of_no_symbol_is_asked_with_the_token_too() -> None:
    """A list of names, for instance: the key itself goes nowhere but into the login."""
    server, booked = Guarded(), Booked()
    with serving(server), client(server) as one:
        for _ in range(2):
            body, receipt = one.read(Request("/list"), lambda response, _: response.body, now=NOW, pages=booked)
            assert b"10.50" in body
        assert receipt.wire_bytes + sum(page.wire_bytes for page in booked.receipts) < server.sent
    assert (server.logins, len(booked.receipts)) == (1, 1)
    assert server.seen == ["Bearer canary-token-number-1"] * 2


def test_f11_another_key_has_another_token() -> None:
    server = Guarded()
    with serving(server), client(server) as one:
        fetch(one)
        one.replace_keys({"default": SecretStr("other-id-0123456789:other-secret-0123456789")})
        fetch(one)
    assert server.logins == 2
    assert [asked.body["client_id"] for asked in server.asked if asked.path == server.path] == [
        "canary-id-0123456789",
        "other-id-0123456789",
    ]


def test_f11_a_key_with_another_number_of_parts_is_refused_before_it_is_sent() -> None:
    with pytest.raises(SettingsError, match="has 2 parts, for client_id and client_secret"):
        ProviderClient(provider(), "https://api.example.com", SecretStr("canary-alone"))


FAULTS = [
    ("header: Authorization, scheme: Bearer", "headers: [X-A, X-B]", "says with which `header` or `query`"),
    ("login:", "sandbox: mfapi\nlogin:", "the sandbox knows no logins"),
    ("/oauth2/token", "/oauth2/{symbol}", "a login is about no symbol"),
    ("/oauth2/token", "https://evil.example/token", "requests and logins go to no other host"),
    ("/oauth2/token", "/../token", "no parts `.` and `..`"),
    ("grant_type: client_credentials", "client_secret: hunter2", "looks like a key"),
    ("form: {grant_type: client_credentials}", "post: {a: {password: hunter2}}", "looks like a key"),
    ("/oauth2/token", "//login.example.com/token", "requests and logins go to no other host"),
    ("  form:", "  method: GET\n  form:", "unknown key `method`"),
    ("grant_type:", "client_id:", "is in the login twice"),
    ("[client_id, client_secret]", "[client_id, client_id]", "is in the login twice"),
    ("  form: {grant_type: client_credentials}\n", "", "one of `post` and `form`"),
    ("parts: [client_id, client_secret]", "basic: true\n  parts: [a]", "one of `parts` and `basic: true`"),
    ("lifetime: expires_in", "lifetime: expires_in\n  seconds: 600", "one of `seconds` and `lifetime`"),
    ("token: access_token", "token: '\"{symbol}\"'", "it has no placeholders here"),
]


@pytest.mark.parametrize(("old", "new", "words"), FAULTS)
def test_f11_faults_of_a_login_are_told_with_their_line(old: str, new: str, words: str) -> None:
    assert old in FORM
    with pytest.raises(DeclarationRefused, match=rf"pages.yaml:\d+: .*{re.escape(words)}"):
        provider(FORM.replace(old, new))
