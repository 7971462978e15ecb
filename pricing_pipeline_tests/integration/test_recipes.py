"""E9: what the pages of docs/recipes say, done as they say it."""

from __future__ import annotations

import json
import re
from datetime import UTC, date
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import httpx
import jinja2
import pytest
import yaml

from pricing_pipeline.prices.files import open_store
from pricing_pipeline.settings import load_settings
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core
from pricing_pipeline_tests.fixtures.logins import Login
from pricing_pipeline_tests.support.api_server import RunningApi
from pricing_pipeline_tests.support.filing import export_all
from pricing_pipeline_tests.support.recipes import CLOSES, RECIPES, addressed, block, feed_of_recipes, urls

pytestmark = pytest.mark.usefixtures("still")


@pytest.fixture
def feed(api: RunningApi, core: Core) -> str:
    """The token of a feed."""
    return feed_of_recipes(api, core)


def at(content: Any, path: str) -> list[Any]:
    """What such a path of JSON finds: the recipes have names, numbers and [*] only."""
    found = [content]
    for name in re.findall(r"\w+|\*", path.removeprefix("$")):
        found = [
            inner
            for one in found
            for inner in (one if name == "*" else [one[int(name)] if name.isdigit() else one[name]])
        ]
    return found


def test_e9_notebooks(api: RunningApi, feed: str) -> None:
    names: dict[str, Any] = {}
    exec(addressed(block("notebooks", "python"), api, feed), names)
    assert names["closes"]["AAPL"].tolist() == [411.23, 1409.4]
    assert [day.isoformat() for day in names["closes"].index] == [str(day) for day, _ in CLOSES]
    assert names["bars"]["close"].to_list() == [Decimal(close) for _, close in CLOSES]


def test_e9_duckdb(core: Core, feed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    core.rows(
        "UPDATE pricing.price_history SET volume = 86300000, low_amount = amount, high_amount = amount"
        " WHERE data_type = 'equity_daily'"
    )
    monkeypatch.setenv("PRICING_EXPORT_URL", str(tmp_path))
    for data_type in (DAILY, QUOTE):
        export_all(core, open_store(load_settings()), data_type)
    asked = block("duckdb", "sql").replace("/srv/prices", str(tmp_path))
    with duckdb.connect() as session:
        ((symbol, month, turnover, spread),) = session.execute(asked).fetchall()
    total = sum(Decimal(close) for _, close in CLOSES)
    assert (symbol, month, turnover) == ("AAPL", date(2026, 10, 1), total * 86300000)
    assert abs(spread - 1409.4 / 411.23) < 1e-6


def test_e9_home_assistant(api: RunningApi, feed: str) -> None:
    page = yaml.safe_load(addressed(block("home-assistant", "yaml"), api, feed))
    (rest,) = page["rest"]
    answer = httpx.get(rest["resource"]).json()
    (sensor,) = rest["sensor"]
    assert jinja2.Template(sensor["value_template"]).render(value_json=answer) == "146.55"
    assert jinja2.Template(sensor["availability"]).render(value_json=answer) == "True"
    (several,) = re.findall(r"`(value_json[^`]*)`", (RECIPES / "home-assistant.md").read_text().replace("\n", " "))
    environment = jinja2.Environment()
    environment.tests["eq"] = lambda one, other: one == other
    assert environment.from_string(f"{{{{ {several} }}}}").render(value_json=answer) == "146.55"


def test_e9_ghostfolio(api: RunningApi, feed: str) -> None:
    """It wants this content type, and takes the first match as a number of the locale."""
    scraper = json.loads(addressed(block("ghostfolio", "json"), api, feed))
    answer = httpx.get(scraper["url"])
    assert answer.headers["content-type"] == "application/json"
    assert float(at(answer.json(), scraper["selector"])[0]) == 146.55


def test_e9_portfolio_performance(api: RunningApi, feed: str) -> None:
    """It wants as many dates as closes, ISO days, and numbers or texts with a point."""
    text = addressed(block("portfolio-performance", "text"), api, feed).replace("2020-01-01", "2026-10-01")
    answer = httpx.get(urls(text)[0]).json()
    dates, closes = (at(answer, path) for path in re.findall(r"\$\S+", text))
    assert [(date.fromisoformat(day), close) for day, close in zip(dates, closes, strict=True)] == [
        (day, f"{Decimal(close):.2f}") for day, close in CLOSES
    ]


def test_e9_grafana(api: RunningApi, feed: str, reader: tuple[str, Login]) -> None:
    _, session = reader
    asked = block("grafana", "sql").replace(
        "$__timeFilter(observed_at)", "observed_at BETWEEN '2026-10-01Z' AND '2026-10-31Z'"
    )
    rows = session.execute(asked).fetchall()
    assert [(row[0].astimezone(UTC).date(), row[1], Decimal(row[2])) for row in rows] == [
        (day, "AAPL", Decimal(close)) for day, close in CLOSES
    ]
    text = addressed(block("grafana", "text"), api, feed)
    text = text.replace("${__from:date:YYYY-MM-DD}", "2026-10-01").replace("${__to:date:YYYY-MM-DD}", "2026-10-31")
    header, *lines = httpx.get(text.strip()).text.splitlines()
    assert {"date", "symbol", "close"} <= set(header.split(","))
    assert len(lines) == 2
