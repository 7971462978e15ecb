"""The token and the cookie of a login open the UI; a wrong token, a changed cookie and a foreign page do not."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Iterator
from unittest import mock

import pytest

from pricing_pipeline.processes import web_guard
from pricing_pipeline.processes.web_guard import SESSION_SECONDS, Guard
from pricing_pipeline_tests.support.guarded import (
    ACT,
    FORM,
    HOST,
    HTML,
    JSON,
    TOKEN,
    Dagster,
    ask,
    asked,
    log_in,
)


@pytest.fixture
def quick() -> Iterator[None]:
    """A wrong token is answered at once."""
    with mock.patch.object(web_guard, "_WRONG_SECONDS", 0):
        yield


def test_the_cookie_of_a_login_opens_everything_until_it_ends(
    locked: Guard, dagster: Dagster, now: list[float]
) -> None:
    cookie, attributes = log_in(locked)
    assert attributes == {"samesite=strict", "httponly", "path=/", "max-age=604800"}
    assert cookie.startswith("pricing-session-3000=")
    assert TOKEN not in cookie
    assert ask(locked, "POST", "/graphql", JSON, ("cookie", cookie), body=ACT).status == 200
    assert dagster.acts == 1
    now[0] += SESSION_SECONDS + 1
    assert ask(locked, "POST", "/graphql", JSON, ("cookie", cookie), body=ACT).status == 401
    assert dagster.acts == 1


def test_over_https_the_cookie_stays_there(locked: Guard) -> None:
    assert "secure" in log_in(locked, "https")[1]


def test_a_cookie_that_was_changed_or_made_with_another_token_opens_nothing(
    locked: Guard, dagster: Dagster, now: list[float]
) -> None:
    name, _, value = log_in(locked)[0].partition("=")
    ends_at, _, signature = value.partition(".")
    other = Guard(dagster.create_asgi_app(), hosts=[HOST], token=f"{TOKEN}2", clock=lambda: now[0])
    later = f"{int(ends_at) + 1}.{signature}"
    for forged in (later, f"{ends_at}.", f"0{value}", f"{ends_at}.{'0' * 64}", "", ".", "²." + signature):
        header = ("cookie", f"{name}={forged}")
        assert ask(locked, "POST", "/graphql", JSON, header, body=ACT).status == 401, forged
    assert ask(other, "POST", "/graphql", JSON, ("cookie", f"{name}={value}"), body=ACT).status == 401
    assert dagster.acts == 0


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("body", [b"token=wrong", b"", b"token=", f"token={TOKEN}x".encode(), b"token=" + b"x" * 9999])
def test_a_wrong_token_is_answered_by_the_form_again(locked: Guard, body: bytes) -> None:
    answer = ask(locked, "POST", "/login", FORM, HTML, body=body)
    assert answer.status == 401
    assert "This is not the token." in answer.text
    assert "set-cookie" not in answer.headers


def test_a_foreign_page_logs_nobody_in(locked: Guard) -> None:
    form = f"token={TOKEN}".encode()
    assert ask(locked, "POST", "/login", FORM, ("origin", "http://evil.example"), body=form).status == 403
    assert ask(locked, "POST", "/login", FORM, ("origin", "null"), body=form).status == 403


def test_forms_are_read_by_the_login_alone(locked: Guard) -> None:
    bearer = ("authorization", f"Bearer {TOKEN}")
    for path in ("/graphql", "/login/", "/report_asset_materialization/a"):
        assert ask(locked, "POST", path, FORM, bearer, body=b"").status == 415


@pytest.mark.usefixtures("quick")
def test_without_the_token_a_browser_gets_the_form_and_a_program_a_sentence(locked: Guard, dagster: Dagster) -> None:
    page = ask(locked, "GET", "/runs", HTML)
    assert (page.status, page.headers["cache-control"]) == (401, "no-store")
    assert re.search('<form method="post" action="/login">.*type="password" name="token"', page.text, re.DOTALL)
    assert "default-src 'none'" in page.headers["content-security-policy"]
    for headers in (
        [],
        [("authorization", "Bearer wrong")],
        [("authorization", "Bearer")],
        [("authorization", TOKEN)],
    ):
        answer = ask(locked, "POST", "/graphql", JSON, *headers, body=ACT)
        assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert "Authorization: Bearer" in answer.text
    assert dagster.acts == 0


def test_wrong_tokens_are_answered_late_and_the_right_one_at_once(locked: Guard) -> None:
    """Also while others guess: they would keep every program out."""
    assert web_guard._WRONG_SECONDS >= 1

    async def guess(token: str) -> int:
        headers = [("host", HOST), ("authorization", f"Bearer {token}")]
        return (await asked(locked, "GET", "/runs", headers, b"")).status

    async def log_in_beside() -> int:
        return (await asked(locked, "POST", "/login", [("host", HOST), FORM], f"token={TOKEN}".encode())).status

    async def play() -> None:
        with mock.patch.object(web_guard, "_WRONG_SECONDS", 1000):
            guesses = [asyncio.create_task(guess(f"wrong-{number}")) for number in range(10)]
            await asyncio.sleep(0)
            assert [await guess("wrong-10"), await guess(TOKEN), await log_in_beside()] == [429, 200, 303]
            assert not any(one.done() for one in guesses)
            for one in guesses:
                one.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await one

    asyncio.run(play())
    with mock.patch.object(web_guard, "_WRONG_SECONDS", 0):
        assert asyncio.run(guess("wrong")) == 401, "anyone who went away counts no more"
