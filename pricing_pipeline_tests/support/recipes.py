"""The pages of docs/recipes: their blocks as a reader copies them, and the prices that their tests read."""

from __future__ import annotations

import re
from datetime import date

from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core, store_days
from pricing_pipeline_tests.support.api_server import RunningApi
from pricing_pipeline_tests.support.pages import ROOT

RECIPES = ROOT / "docs" / "recipes"
CLOSES = ((date(2026, 10, 1), "411.23"), (date(2026, 10, 2), "1409.4"))


def feed_of_recipes(api: RunningApi, core: Core) -> str:
    """The token of a feed of AAPL, of which prices are stored."""
    store_days(core, "AAPL", *CLOSES)
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh(price="146.55")
    return api.feed((DAILY, "AAPL"), (QUOTE, "AAPL"))


def block(page: str, language: str) -> str:
    """The first block of a page in a language, which has ten lines at most."""
    found = re.search(rf"```{language}\n(.*?)```", (RECIPES / f"{page}.md").read_text(), re.DOTALL)
    assert found, page
    assert found[1].count("\n") <= 10
    return found[1]


def addressed(text: str, api: RunningApi, token: str) -> str:
    """A text with the address and the token of this test."""
    return text.replace("http://127.0.0.1:8000", api.url).replace("FEED", token)


def urls(text: str) -> list[str]:
    return re.findall(r"http://\S+[^\s\",]", text)
