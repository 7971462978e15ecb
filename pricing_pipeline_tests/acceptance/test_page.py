"""The operations page in a browser (skipped without Chromium), and what it is served.

Time stands still but for the browser's.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright
from sqlalchemy import Engine

from pricing_pipeline.api.page import reading
from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.errors import DatabaseError
from pricing_pipeline.queue import task_queue
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.api_server import Caller, RunningApi
from pricing_pipeline_tests.support.chromium import CHROMIUM, FLAGS, needs_chromium
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until
from pricing_pipeline_tests.support.troubled import DOUBTED, be_fresh, be_ill, doubt, price
from pricing_pipeline_tests.support.working import start

NO_CACHE = {"Cache-Control": "no-cache"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        expect.set_options(timeout=PATIENCE * 1000)
        yield browser
        browser.close()


@pytest.fixture
def operator(api: RunningApi) -> Caller:
    return api.caller(Scope.READ, Scope.OPERATE)


def opened(browser: Browser, api: RunningApi, caller: Caller, **options: Any) -> Page:
    """The page as the link of `pricing-pipeline page` opens it. Whatever is asked of another server fails the test."""
    page = browser.new_page(**{"viewport": {"width": 1100, "height": 800}, **options})
    page.set_default_timeout(PATIENCE * 1000)
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
    page.on("request", lambda sent: faults.append(sent.url) if not sent.url.startswith(api.url) else None)
    page.faults = faults  # type: ignore[attr-defined]
    page.goto(f"{api.url}/#token={caller.token}")
    expect(page.locator("#headline")).to_be_visible()
    return page


def ended(page: Page) -> None:
    assert page.faults == []  # type: ignore[attr-defined]
    page.close()


@needs_chromium
def test_e4_a_click_retries_a_dead_task_and_its_row_goes(
    browser: Browser, api: RunningApi, core: Core, clock: Clock, operator: Caller
) -> None:
    be_ill(core, clock)
    (dead,) = [task for task in core.tasks("NVDA") if task.status == "failed"]
    page = opened(browser, api, operator)
    row = page.locator(f"#task-{dead.id}")
    row.get_by_role("button", name="Retry").click()
    expect(row.locator(".outcome")).to_have_text("Pending again, with all its attempts.")
    expect(page.locator("#announcement")).to_have_text("Pending again, with all its attempts.")
    assert [task.status for task in core.tasks("NVDA") if task.id == dead.id] == ["pending"]
    expect(row).to_be_hidden()
    expect(page.locator("#tasks .count")).to_have_text("1")
    ended(page)


@needs_chromium
def test_e4_equal_failures_are_one_row_that_is_retried_or_forgotten_as_a_whole(
    browser: Browser, api: RunningApi, core: Core, clock: Clock, operator: Caller
) -> None:
    """After an import with wrong symbols the page said that all is well, above a row for each."""
    be_fresh(core)
    wrong = [f"BAD{number}" for number in range(28)]
    core.lift_limits()
    core.heartbeat("ann", *((QUOTE, symbol) for symbol in wrong))
    for call in core.claim(max_calls=10):
        for task in call.tasks:
            with core.engine.begin() as connection:
                task_queue.fail(
                    connection,
                    [task.id],
                    call.claim_token,
                    FailureKind.UNKNOWN_SYMBOL,
                    f"**symbol** {task.symbol} is not found. See /docs#{task.id}",
                )
    page = opened(browser, api, operator)
    expect(page.locator("#headline")).to_have_text(
        "3 of 31 watched prices are fresh, 28 are refused, and none is late. One point below needs attention."
    )
    expect(page.locator(".findings")).to_have_text("28 tasks have failed for good, 28 of them by their symbols")
    expect(page.locator("#tasks .row")).to_have_count(1)
    expect(page.locator("#tasks .row h3")).to_contain_text("28 tasks of equity_quote unknown symbol, twelvedata")
    expect(page.locator("#tasks .row")).to_contain_text("and 23 more")
    assert page.locator("#tasks").bounding_box()["height"] < 300  # type: ignore[index]
    page.get_by_role("button", name="Retry all").click()
    page.get_by_role("dialog").get_by_role("button", name="Retry all").click()
    expect(page.locator("#tasks .outcome")).to_have_text("28 of them: pending again, with all its attempts.")
    assert {task.status for task in core.tasks() if task.symbol in wrong} == {"pending"}
    expect(page.locator("#tasks")).to_contain_text("No task has failed for good.")
    for call in core.claim(max_calls=10):
        core.fail(call, FailureKind.UNKNOWN_SYMBOL, "there is no such symbol")
    page.get_by_role("button", name="Forget all").click()
    page.get_by_role("dialog").get_by_role("button", name="Forget all").click()
    expect(page.locator("#tasks .outcome")).to_have_text("28 of them: forgotten: it no longer counts.")
    expect(page.locator("#tasks")).to_contain_text("No task has failed for good.")
    expect(page.locator(".findings")).to_have_text("28 of 31 watched prices are refused")
    # Every pair is listed, those that are not well first; the others unfold.
    expect(page.locator("#watched .count")).to_have_text("31")
    expect(page.locator("#watched tbody tr")).to_have_count(31)
    expect(page.locator("#watched tbody tr").first).to_contain_text("refused")
    page.locator("#more-watched summary").click()
    expect(page.locator("#watched tbody tr").last).to_contain_text("fresh")
    ended(page)


@needs_chromium
def test_what_an_empty_home_says_has_whole_commands_in_it(
    browser: Browser, api: RunningApi, core: Core, operator: Caller
) -> None:
    start(core)
    core.rows("UPDATE pricing.data_collectors SET is_active = false")
    page = opened(browser, api, operator, viewport={"width": 700, "height": 800})
    expect(page.locator("#headline")).to_contain_text("Nobody watches a price now.")
    assert "`" not in page.locator("#sections").inner_text()
    commands = page.locator(".findings code")
    expect(commands).to_have_text(["pricing-pipeline provider list", "pricing-pipeline provider use NAME"])
    ended(page)


def test_b5_what_is_said_of_one_product_agrees(core: Core, operator: Caller) -> None:
    """It was counted as fresh in one section and told as never confirmed in another."""
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, asset_class, default_ttl_minutes, days_ahead)"
        " VALUES ('tours_today', 'slots', 'inventory', 15, 1)"
    )
    core.heartbeat("ann", ("tours_today", "TOUR"))
    core.rows("DELETE FROM pricing.api_call_queue_live")
    core.rows("SELECT pricing.confirm_pairs('tours_today', ARRAY['TOUR'], 'octo', 7)")
    core.rows("UPDATE pricing.demand SET became_due_at = NULL, owed_since = NULL, due_at = now() + interval '1 hour'")
    html = read_page(operator)
    (row,) = re.findall(r"<tr><th.*?TOUR.*?</tr>", html)
    words = re.sub("<[^>]+>", " ", row).split()
    assert words[:3] == ["TOUR", "tours_today", "inventory"]
    assert ("fresh" in words, "never" in words) == (True, False)
    assert "<strong>1</strong> of 1 fresh" in html


@needs_chromium
def test_f6_a_released_value_becomes_the_price_and_a_new_price_comes_without_a_reload(
    browser: Browser, api: RunningApi, core: Core, clock: Clock, operator: Caller
) -> None:
    be_fresh(core)
    doubt(core, clock)
    page = opened(browser, api, operator)
    shown = page.locator("#watched tr").filter(has_text="AAPL").locator("td").first
    expect(shown).to_have_text("73.10 USD")
    page.get_by_role("button", name="Release").click()
    # What cannot be undone is asked about, and Enter on what is focused undoes nothing.
    expect(page.get_by_role("dialog")).to_contain_text(f"Store {DOUBTED} of AAPL as a price? It stays one.")
    page.keyboard.press("Enter")
    assert core.one("SELECT status FROM pricing.quarantined_values") == "quarantined"
    page.get_by_role("button", name="Release").click()
    page.get_by_role("dialog").get_by_role("button", name="Release").click()
    expect(page.locator("#quarantine .outcome")).to_have_text("Released: it is stored as a price.")
    expect(shown).to_have_text("7250.00 USD")
    expect(page.locator("#quarantine")).to_contain_text("No value is in quarantine.")
    signed = core.one("SELECT resolved_by FROM pricing.quarantined_values")
    assert signed == core.one("SELECT name FROM pricing.api_tokens")
    clock.advance(61)
    price(core, "MSFT", "413.75")
    expect(page.locator("#watched tr").filter(has_text="MSFT").locator("td").first).to_have_text("413.75 USD")
    ended(page)


@needs_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_and_a_phone_needs_no_sideways_scrolling(
    browser: Browser, api: RunningApi, core: Core, clock: Clock, operator: Caller, scheme: str
) -> None:
    """In the dark only colours differ."""
    rules = None if scheme == "light" else ["color-contrast"]

    def is_fit_for_all(page: Page) -> bool:
        found = Axe().run(page, options={"runOnly": rules} if rules else None).response["violations"]
        assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == []
        return True

    be_ill(core, clock)
    page = opened(browser, api, operator, color_scheme=scheme, viewport={"width": 360, "height": 740})
    assert is_fit_for_all(page)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    page.get_by_role("button", name="Silence").first.click()
    assert is_fit_for_all(page)
    page.keyboard.press("Escape")
    page.set_viewport_size({"width": 1100, "height": 800})
    assert is_fit_for_all(page)
    page.evaluate("sessionStorage.clear()")
    page.reload()
    expect(page.get_by_label("Token")).to_be_focused()
    assert is_fit_for_all(page)
    page.goto(f"{api.url}/ops/docs/runbook.md#breaker_open")
    assert is_fit_for_all(page)
    ended(page)


@needs_chromium
def test_everything_is_done_by_keys_alone_and_focus_survives_what_changes(
    browser: Browser, api: RunningApi, core: Core, clock: Clock, operator: Caller
) -> None:
    be_ill(core, clock)
    page = opened(browser, api, operator)
    alert = core.one("SELECT alert_id FROM pricing.alerts WHERE rule = 'breaker_open'")
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == f"silence-{alert}":
            break
    else:
        raise AssertionError("the button is not reached by Tab")
    # Another alert ends meanwhile: the section changes around the focused button.
    core.rows("UPDATE pricing.alerts SET resolved_at = pricing.clock() WHERE rule = 'message_dead'")
    expect(page.locator("#alerts")).not_to_contain_text("message dead")
    assert page.evaluate("document.activeElement.id") == f"silence-{alert}"
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.value") == "yes"
    page.keyboard.press("Enter")
    expect(page.locator(f"#alert-{alert} .outcome")).to_contain_text("Silenced")
    assert page.evaluate("document.activeElement.className") == "outcome"
    silence = core.rows("SELECT subject, silenced_by, until - pricing.clock() AS lasts FROM pricing.alert_silences")
    assert [(one.subject, one.silenced_by, round(one.lasts.total_seconds() / 3600)) for one in silence] == [
        ("twelvedata", core.one("SELECT name FROM pricing.api_tokens"), 8)
    ]
    ended(page)


@needs_chromium
def test_a_token_leaves_the_address_at_once_and_a_wrong_one_opens_nothing(
    browser: Browser, api: RunningApi, core: Core, operator: Caller
) -> None:
    page = opened(browser, api, operator)
    assert page.url == f"{api.url}/"
    assert operator.token is not None
    assert operator.token not in page.content()
    assert page.context.cookies() == []
    page.reload()
    expect(page.locator("#headline")).to_be_visible()
    ended(page)
    page = browser.new_page()
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url))
    page.goto(f"{api.url}/#token=pp_{'A' * 43}")
    expect(page.locator("#refusal")).to_contain_text("This token is unknown")
    page.get_by_label("Token").fill(operator.token)
    page.get_by_role("button", name="Open").click()
    expect(page.locator("#headline")).to_be_visible()
    assert not any("pp_" in url for url in sent), "no token is in any address that is sent"
    page.close()


@needs_chromium
def test_what_cannot_be_reached_is_said_and_comes_back(
    browser: Browser, api: RunningApi, core: Core, operator: Caller
) -> None:
    page = opened(browser, api, operator)
    page.context.set_offline(True)
    expect(page.locator("#connection")).to_contain_text("does not answer")
    expect(page.locator("#headline")).to_be_visible()
    page.context.set_offline(False)
    expect(page.locator("#connection")).to_have_text("live")
    page.close()


@needs_chromium
def test_what_takes_long_to_answer_is_said(browser: Browser, api: RunningApi, core: Core, operator: Caller) -> None:
    page = opened(browser, api, operator)
    page.route("**/v1/page", lambda _: None)  # as while the database hangs
    expect(page.locator("#connection")).to_contain_text("There is no answer yet")
    page.close()


def test_who_only_looks_has_no_buttons_and_is_not_told_who_is_told(
    api: RunningApi, core: Core, clock: Clock, operator: Caller
) -> None:
    be_ill(core, clock)
    html = read_page(api.caller(Scope.READ))
    assert "<button" not in html
    assert 'id="operations"' in html
    assert "chat to" not in re.sub("<[^>]+>", "", html)
    assert "<button" in read_page(operator)
    assert "chat to" in re.sub("<[^>]+>", "", read_page(operator))
    watcher = api.caller(Scope.WATCH)
    assert watcher.refusal("GET", "page")["type"] == "urn:pricing-pipeline:scope-missing"
    assert api.stranger().refusal("GET", "page")["status"] == 401


def read_page(caller: Caller) -> str:
    answer = caller.ask("GET", "page", headers=NO_CACHE)
    assert answer.is_success, answer.text
    return answer.text


def test_the_page_itself_needs_no_token_and_trusts_nothing_but_its_own_files(api: RunningApi, core: Core) -> None:
    price(core, "AAPL", "72.50")
    for path in (
        "/",
        "/ops/page.css",
        "/ops/page.js",
        "/ops/icon.svg",
        "/ops/docs/runbook.md",
    ):
        answer = api.client.get(path)
        assert answer.is_success
        assert "AAPL" not in answer.text or "docs" in path
        assert "set-cookie" not in answer.headers
        if answer.headers["content-type"].startswith("text/html"):
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "frame-ancestors 'none'" in policy
            assert not re.search(r"<script(?! src=\"/ops/)|<style|\sstyle=|\son[a-z]+=", answer.text)
        assert api.client.get("/ops/nosuch").status_code == 404
        assert api.client.get("/ops/..%2Froutes.py").status_code == 404


def test_a_look_at_what_has_not_changed_costs_no_page(api: RunningApi, core: Core, operator: Caller) -> None:
    first = operator.ask("GET", "page")
    again = operator.ask("GET", "page", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    price(core, "AAPL", "72.50")
    core.heartbeat("ann", (QUOTE, "AAPL"))
    changed = operator.ask("GET", "page", headers={"If-None-Match": first.headers["etag"], **NO_CACHE})
    assert changed.status_code == 200
    assert "AAPL" in changed.text


def test_many_open_pages_read_the_database_as_often_as_one(
    api: RunningApi, core: Core, operator: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 0
    read = reading.read

    def counted(*parameters: Any) -> Any:
        nonlocal count
        count += 1
        return read(*parameters)

    monkeypatch.setattr(reading, "read", counted)
    monkeypatch.setattr(reading, "_SHORTEST_SECONDS", 3600.0)
    for _ in range(30):
        operator.ask("GET", "page")
    assert count == 1
    operator.ask("GET", "page", headers=NO_CACHE)
    assert count == 2


def test_b7_clicks_that_wait_share_a_reading(monkeypatch: pytest.MonkeyPatch, engine: Engine) -> None:
    """Who asks for this moment's again and again keeps neither the database nor the threads of others busy."""
    count = 0
    has_begun, may_end = threading.Event(), threading.Event()

    def slow(*_: object) -> Any:
        nonlocal count
        count += 1
        has_begun.set()
        assert may_end.wait(PATIENCE)
        return count

    monkeypatch.setattr(reading, "read", slow)
    asked_at: list[float] = []

    def clock() -> float:
        asked_at.append(len(asked_at))
        return asked_at[-1]

    readings: Any = reading.Readings(engine, clock=clock)
    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(readings.newest, anew=True)
        assert has_begun.wait(PATIENCE)
        others = [pool.submit(readings.newest, anew=True) for _ in range(7)]
        wait_until(lambda: len(asked_at) == 2 + len(others))
        may_end.set()
        assert first.result() == 1
        assert {other.result() for other in others} == {2}
    assert readings.newest(anew=True) == 3


def test_b7_an_old_reading_is_not_shown_as_live_while_another_page_waits_for_the_database(
    monkeypatch: pytest.MonkeyPatch, engine: Engine
) -> None:
    now, count = 0.0, 0
    has_begun, may_end = threading.Event(), threading.Event()

    def slow_from_the_second_on(*_: object) -> Any:
        nonlocal count
        count += 1
        if count > 1:
            has_begun.set()
            assert may_end.wait(PATIENCE)
        return count

    monkeypatch.setattr(reading, "read", slow_from_the_second_on)
    readings: Any = reading.Readings(engine, clock=lambda: now)
    assert readings.newest() == 1
    with ThreadPoolExecutor(2) as pool, ExitStack() as ends:
        ends.callback(may_end.set)
        now = 5.0
        second = pool.submit(readings.newest)
        assert has_begun.wait(PATIENCE)
        now = 11.9
        assert readings.newest() == 1
        now = 12.0
        with monkeypatch.context() as patch:
            patch.setattr(reading, "_PATIENCE_SECONDS", 0.01)
            with pytest.raises(DatabaseError, match="may be busy"):
                readings.newest()
        third = pool.submit(readings.newest)
        may_end.set()
        assert (second.result(), third.result(), count) == (2, 2, 2)


def test_the_command_prints_a_link_that_opens_the_page_for_some_hours(
    cli: CommandLine, api: RunningApi, core: Core, clock: Clock
) -> None:
    assert "pricing-pipeline up" in cli("page").error
    assert "set PRICING_PAGE_URL" in cli("page").error
    elsewhere = cli("page", page_url="https://prices.example.com/ops/").stdout
    assert elsewhere.startswith("https://prices.example.com/ops/#token=")
    with cli.running(urls={"api": api.url}):
        said = cli("page", "--hours", "2")
        look_only = cli("page", "--look-only", "--json").json
    address, _, token = said.stdout.strip().partition("/#token=")
    assert address == api.url
    assert token not in said.stderr
    assert "may press its buttons" in said.stderr
    assert "<h1" in read_page(api.stranger(token))
    reader = api.stranger(look_only["link"].partition("/#token=")[2])
    assert "<h1" in read_page(reader)
    problem = reader.refusal("POST", "tasks/retry", json={"ids": [1]})
    assert problem["type"] == "urn:pricing-pipeline:scope-missing"
    assert cli("token", "remove", look_only["token"]).exit_code == 0
