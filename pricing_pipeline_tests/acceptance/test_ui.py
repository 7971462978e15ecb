"""The Dagster UI in a browser, with our assets in it: what a person sees, and a backfill launched by clicking.

Needs Chromium (Debian: chromium); skipped where there is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from pricing_pipeline_tests.fixtures.stack import GROUP, Stack
from pricing_pipeline_tests.support.chromium import CHROMIUM, FLAGS, needs_chromium
from pricing_pipeline_tests.support.patience import PATIENCE

SYMBOLS = ("AAPL", "META", "GOOG", "IBM", "MSFT")

pytestmark = [GROUP, needs_chromium]


@pytest.fixture(scope="module")
def browser_page(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A page of a browser whose profile is new and empty."""
    with sync_playwright() as playwright:
        profile = tmp_path_factory.mktemp("profile")
        browser = playwright.chromium.launch_persistent_context(
            profile, executable_path=CHROMIUM, args=FLAGS, viewport={"width": 1500, "height": 950}
        )
        browser.set_default_timeout(PATIENCE * 1000)
        expect.set_options(timeout=PATIENCE * 1000)
        yield browser.new_page()
        browser.close()


@pytest.fixture
def page(browser_page: Page, tmp_path: Path) -> Iterator[Page]:
    """The page, whose last look is kept among the test's files."""
    yield browser_page
    browser_page.screenshot(path=tmp_path / "last.png")


def test_g6_a_backfill_is_launched_by_clicking_and_its_bars_arrive(stack: Stack, page: Page) -> None:
    """G6: Materialize, two months typed, Launch; both months have their bars for every share."""
    asked = date(2013, 9, 1), date(2013, 10, 31)
    _open(stack, page, "/assets/price_history/equity_daily")
    page.get_by_role("button", name="Materialize").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Show all partitions").click()  # the dialog begins with the last 90 days
    months = dialog.get_by_role("textbox").first
    months.fill("[2013-09-01...2013-10-01]")
    months.press("Enter")
    expect(dialog.get_by_text("2 partitions")).to_be_visible()
    dialog.get_by_role("button", name="Launch backfill").click()
    expect(dialog).to_be_hidden()

    def arrived() -> bool:
        bars = {symbol: stack.core.history(symbol, "equity_daily", *asked) for symbol in SYMBOLS}
        return all({bar.observed_at.month for bar in found} == {9, 10} for found in bars.values())

    stack.wait_until("the bars of both months", arrived)


def test_g5_the_lineage_page_shows_our_groups(stack: Stack, page: Page) -> None:
    """G5: from providers and subscriptions over histories and latest prices to freshness."""
    _open(stack, page, "/asset-groups")
    for group in ("sources", "price_history", "latest_price", "freshness"):
        expect(page.get_by_text(group, exact=True).first).to_be_visible()
    expect(page.get_by_text("Materialize all")).to_be_visible()


def test_g2_asset_pages_show_the_freshness_policy_and_the_latest_prices(stack: Stack, page: Page) -> None:
    """G2: when it warns and fails, what it says now, and the prices themselves."""
    _open(stack, page, "/assets/freshness/equity_quote")
    expect(page.get_by_text("Fails if more than 2 minutes since last materialization")).to_be_visible()
    expect(page.get_by_text("Warns if more than a minute since last materialization")).to_be_visible()
    _open(stack, page, "/assets/latest_price/equity_quote")
    for symbol in SYMBOLS:
        row = re.compile(rf"^{symbol} [0-9]+\.[0-9]+ USD .* twelvedata$")
        expect(page.get_by_role("row", name=row)).to_be_visible()


def _open(stack: Stack, page: Page, path: str) -> None:
    page.goto(stack.state()["urls"]["dagster"] + path)
