"""Takes the pictures of docs/images anew (`make pictures`): a first start, a backfill, and the UI in a browser.

Needs Chromium (Debian: chromium). Look at the pictures before you commit them.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright

from pricing_pipeline_tests.fixtures.stack import Stack, new_stack
from pricing_pipeline_tests.support.chromium import CHROMIUM, FLAGS

IMAGES = Path(__file__).parents[2] / "docs/images"
BACKFILL = ("backfill", "start", "--type", "equity_daily", "--from", "2000-03", "--to", "2013-02")


def hide_navigation(page: Page) -> None:
    """Once for a page: it stays hidden when the page is loaded again."""
    shown = page.get_by_text("Hide navigation")
    if shown.is_visible():
        shown.click()


def lineage(page: Page) -> None:
    expect(page.get_by_text("Materialize all")).to_be_visible()
    hide_navigation(page)
    folded = page.get_by_label("unfold_more")
    expect(folded.first).to_be_visible()
    while groups := folded.count():
        folded.first.click()
        expect(folded).to_have_count(groups - 1)
        page.wait_for_timeout(1_500)  # the graph moves
        page.mouse.dblclick(390, 125)  # on the canvas, beside what it shows: fits the graph into it
    # All of it would be too small to read: the groups of prices are at the top.
    page.mouse.move(390, 300)
    page.mouse.down()
    page.mouse.move(390, 900, steps=10)
    page.mouse.up()
    expect(page.get_by_text("Loading")).to_have_count(0)


def latest_price(page: Page) -> None:
    hide_navigation(page)
    row = page.get_by_role("row", name=re.compile("^MSFT [0-9.]+ USD"))
    expect(row).to_be_visible()
    row.scroll_into_view_if_needed()


def runs(page: Page) -> None:
    expect(page.get_by_text("refresh").first).to_be_visible()
    expect(page.get_by_text("Backfill").first).to_be_visible()


PAGES: tuple[tuple[Callable[[Page], None], str, tuple[int, int]], ...] = (
    (lineage, "/asset-groups", (1700, 1450)),
    (latest_price, "/assets/latest_price/equity_quote", (1500, 1000)),
    (runs, "/runs", (1400, 700)),
)


def operations_page(stack: Stack, browser: Browser) -> None:
    """The page of an operator who has something to decide on: a symbol that no provider knows."""
    stack.cli("subscription", "watch", "NOPE1", "--type", "equity_quote", "--minutes", "0.5")
    link = json.loads(stack.cli("page", "--json").stdout)["link"]
    page = browser.new_page(viewport={"width": 1100, "height": 1150})
    page.goto(link)
    expect(page.locator("#tasks")).to_contain_text("NOPE1", timeout=60_000)
    page.screenshot(path=IMAGES / "operations_page.png")
    page.close()


def _shows(page: Page, address: str, wait: Callable[[Page], None]) -> bool:
    """Whether the page shows all that the picture is about; most of it only when it is loaded again."""
    page.goto(address)
    try:
        wait(page)
    except AssertionError:
        return False
    return True


def main() -> int:
    if CHROMIUM is None:
        print("Chromium is not installed (Debian: chromium).", file=sys.stderr)
        return 1
    expect.set_options(timeout=15_000)
    with new_stack() as stack, sync_playwright() as playwright:
        stack.start()
        stack.wait_until_up()
        print(stack.cli(*BACKFILL).stdout)
        stack.wait_until_all_fresh()
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for wait, path, (width, height) in PAGES:
            page = browser.new_page(viewport={"width": width, "height": height})
            address = stack.state()["urls"]["dagster"] + path
            stack.wait_until(wait.__name__, lambda: _shows(page, address, wait))  # noqa: B023
            page.wait_for_timeout(5_000)  # what moves has settled
            page.screenshot(path=IMAGES / f"{wait.__name__}.png")
            page.close()
        operations_page(stack, browser)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
