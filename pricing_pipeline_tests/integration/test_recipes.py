"""E9: what the pages of docs/recipes say, done as they say it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from datetime import UTC, date
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import duckdb
import httpx
import jinja2
import pytest
import yaml

from pricing_pipeline.prices.files import open_store
from pricing_pipeline.settings import load_settings
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core, store_days
from pricing_pipeline_tests.fixtures.logins import Login
from pricing_pipeline_tests.support.api_server import RunningApi
from pricing_pipeline_tests.support.filing import export_all
from pricing_pipeline_tests.support.patience import PATIENCE

pytestmark = pytest.mark.usefixtures("still")

RECIPES = Path(__file__).parents[2] / "docs" / "recipes"
CLOSES = ((date(2026, 10, 1), "411.23"), (date(2026, 10, 2), "1409.4"))


@pytest.fixture
def feed(api: RunningApi, core: Core) -> str:
    """The token of a feed."""
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


@pytest.mark.parametrize("decimal", ["point", "comma"])
def test_e9_spreadsheets(api: RunningApi, feed: str, tmp_path: Path, decimal: str) -> None:
    """LibreOffice takes days as days and prices as numbers, as its import of text does, and computes with them."""
    program = shutil.which("soffice")
    if program is None:
        pytest.skip("LibreOffice is not installed: apt-get install libreoffice-calc-nogui")
    now, history = urls(addressed(block("spreadsheets", "text"), api, feed))
    between, language = (",", 1033) if decimal == "point" else (";", 1031)  # of the United States, and of Germany
    for name, url, column, formulas in (
        ("now", now, "price", ("={0}2*12345.678",)),
        ("history", history.replace("2026-01-01", "2026-10-01"), "close", ("=SUM({0}2:{0}3)", "={0}2*{0}3")),
    ):
        content = httpx.get(f"{url}&decimal={decimal}").text
        place = content.splitlines()[0].split(between).index(column)
        below = (f"{between * place}{formula.format('ABCDEFGHIJ'[place])}\r\n" for formula in formulas)
        (tmp_path / f"{name}.csv").write_text(content + "".join(below), newline="")
    subprocess.run(
        [
            *(program, "--headless", f"-env:UserInstallation=file://{tmp_path}/profile"),
            f"--infilter=CSV:{ord(between)},34,76,1,,{language},false,true,false,false,false,0,true",  # with formulas
            *("--convert-to", "fods", "--outdir", tmp_path, tmp_path / "now.csv", tmp_path / "history.csv"),
        ],
        check=True,
        capture_output=True,
        timeout=4 * PATIENCE,
    )

    def cells(name: str) -> tuple[set[str], list[Decimal]]:
        """Days and numbers, and the results of formulas."""
        text = (tmp_path / f"{name}.fods").read_text()
        results = re.findall(r'table:formula="[^"]+" office:value-type="float" office:value="([^"]+)"', text)
        return set(re.findall(r'office:(?:date-)?value="([^"]+)"', text)), [
            digits(Decimal(result)) for result in results
        ]

    digits = Context(prec=15).create_decimal  # as many as a spreadsheet keeps
    values, results = cells("now")
    assert "146.55" in values
    assert results == [digits(Decimal("146.55") * Decimal("12345.678"))]
    values, results = cells("history")
    assert {"411.23", "1409.4", "2026-10-01", "2026-10-02"} <= values
    first, second = (Decimal(close) for _, close in CLOSES)
    assert results == [digits(first + second), digits(first * second)]
