"""E9: beancount reads what `price export` writes for it, every digit of it, and `bean-price` asks our API."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.prices.journals import DayPrice, Journal, write
from pricing_pipeline_tests.fixtures.core import DAILY, FX, Core, midnight, observation, store_days
from pricing_pipeline_tests.support.api_server import RunningApi
from pricing_pipeline_tests.support.patience import PATIENCE

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-clients" / "bin" / "python"
DAY = date(2026, 11, 27)

if not PYTHON.exists():
    pytest.skip("the foreign clients are not installed: make clients-install", allow_module_level=True)


def test_e9_beancount_reads_every_price_as_it_is_stored(tmp_path: Path) -> None:
    prices = [
        DayPrice(DAY, "BRK-B", Decimal("470.1012"), "USD"),
        DayPrice(date(2026, 11, 26), "BRK-B", Decimal("460"), "USD"),
        DayPrice(DAY, "C", Decimal("100"), "USD"),
        DayPrice(DAY, "7203:XTKS", Decimal("2870"), "JPY"),
        DayPrice(DAY, "EUR/USD", Decimal("1.0512345"), "USD"),
        DayPrice(DAY, "SHIB/USD", Decimal("1E-8"), "USD"),
        DayPrice(DAY, "BIG", Decimal("12345678901234567890.123456789"), "USD"),
    ]
    journal = tmp_path / "prices.beancount"
    journal.write_text("\n".join(write(prices, Journal.BEANCOUNT, {}, has_directives=True).lines) + "\n")
    script = ROOT / "foreign_clients" / "read_beancount.py"
    done = subprocess.run(
        [PYTHON, script, journal, DAY.isoformat()],
        capture_output=True,
        text=True,
        timeout=3 * PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout) == {
        "errors": [],
        "prices": {
            "BRK-B/USD": "470.1012",
            "C/USD": "100",
            "X7203.XTKS/JPY": "2870",
            "EUR/USD": "1.0512345",
            "SHIB/USD": "1E-8",
            "BIG/USD": "12345678901234567890.123456789",
        },
    }


def bean_price(api: RunningApi, home: Path, *arguments: str | Path, zone: str = "UTC") -> str:
    """What it prints when it asks this API."""
    done = subprocess.run(
        [PYTHON.with_name("bean-price"), "--no-cache", *arguments],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "TZ": zone,
            "PYTHONPATH": str(ROOT / "client"),
            "PRICES_URL": api.url,
            "PRICES_TOKEN": str(api.caller(Scope.READ).token),
        },
        capture_output=True,
        text=True,
        timeout=3 * PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "UTC", "Pacific/Auckland"])
@pytest.mark.usefixtures("still")
def test_e9_bean_price_dates_a_daily_value_by_its_trading_day_in_every_zone(
    core: Core, api: RunningApi, zone: str, tmp_path: Path
) -> None:
    """It knows no slash in a ticker, and a rate of no daily type has a time."""
    store_days(core, "AAPL", (date(2026, 11, 3), "270.50"), (date(2026, 11, 4), "271.25"))
    latest = core.claimed(DAILY, "AAPL")
    core.store(latest, observation("AAPL", "271.25", midnight(date(2026, 11, 4))))
    core.complete(latest)
    core.enqueue(FX, "EUR/USD")
    core.finish(core.claim_one(), "1.0512")

    def quote(ticker: str, *options: str) -> str:
        return bean_price(api, tmp_path, *options, "-e", f"USD:pricing_client.beanprice/{ticker}", zone=zone)

    assert quote(f"{DAILY}:AAPL").split() == ["2026-11-04", "price", f"{DAILY}:AAPL", "271.25", "USD"]
    assert quote(f"{DAILY}:AAPL", "--date", "2026-11-03").split()[::3] == ["2026-11-03", "270.50"]
    assert quote(f"{DAILY}:AAPL", "--date", "2026-11-09").split()[::3] == ["2026-11-04", "271.25"]
    assert quote(f"{FX}:EUR-USD").split()[-2:] == ["1.05120", "USD"]


@pytest.mark.usefixtures("still")
def test_e9_bean_price_keeps_every_digit_with_the_journal_of_the_recipe(
    core: Core, api: RunningApi, tmp_path: Path
) -> None:
    """It rounds to the decimals of the journal's amounts, which are cents here, unless the journal has the option."""
    latest = core.claimed(DAILY, "AAPL")
    core.store(latest, observation("AAPL", "271.253678", midnight(date(2026, 11, 4))))
    core.complete(latest)
    recipe = (ROOT / "docs" / "recipes" / "plain-text-accounting.md").read_text()
    journal = tmp_path / "main.beancount"
    journal.write_text(
        recipe.partition("```beancount\n")[2].partition("```")[0]
        + "2020-01-01 open Assets:Broker\n2020-01-01 open Equity:Opening\n"
        + '2020-01-02 * "Opening balance"\n  Assets:Broker  1 AAPL {70.00 USD}\n  Equity:Opening  -70.00 USD\n'
    )
    assert bean_price(api, tmp_path, journal).split() == [
        "2026-11-04",
        "price",
        "AAPL",
        "271.25367800",
        "USD",
    ]
