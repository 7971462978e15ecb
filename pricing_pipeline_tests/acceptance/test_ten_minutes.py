"""From a URL to stored prices with the commands of docs/adding-a-provider.md alone, and a fake service (F11).

The service is at an address of this machine, which no declaration may name: so the draft's address is corrected, as the
page says of lines with CHECK, and only `try` and the worker are told where the service is.
"""

from __future__ import annotations

import json
import re
import shlex
import time
from datetime import date, timedelta
from pathlib import Path

import pytest

from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.providers.declaration_file import read_file
from pricing_pipeline.providers.declared import DeclaredProvider
from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline.registry import calendars
from pricing_pipeline_tests.fixtures.cli import CommandLine, Said
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.server import Connection, ScriptedServer
from pricing_pipeline_tests.support.declarations import ROOT
from pricing_pipeline_tests.support.refreshing import work_until

pytestmark = pytest.mark.usefixtures("still")

REAL = "https://api.frankfurter.dev"
PAGE = (ROOT / "docs" / "adding-a-provider.md").read_text()
STEPS = PAGE.partition("## By declaration")[2].partition("### Examples")[0]
COMMANDS = re.findall(r"^ {7}pricing-pipeline (.+)$", STEPS, re.MULTILINE)
(URL,) = re.findall(r"^ {7}URL='(.+)'$", STEPS, re.MULTILINE)
TEN_MINUTES = 600.0


def serve(connection: Connection) -> None:
    """Rates of working days in the shape of the service, from the Friday before a weekend on."""
    target = connection.request.split(b" ")[1].decode()
    asked = re.fullmatch(r"/v1/([0-9-]+)\.\.([0-9-]+)\?base=EUR&symbols=USD", target)
    if asked is None:
        connection.answer(b'{"message": "not found"}', "404 Not Found")
        return
    first, last = map(date.fromisoformat, asked.groups())
    days = [first + timedelta(days=n) for n in range(-2, (last - first).days + 1)]
    rates = {f"{day}": {"USD": float(f"1.1{day.day:02}")} for day in days if day.weekday() < 5}
    connection.answer(json.dumps({"amount": 1.0, "base": "EUR", "rates": rates}).encode())


def test_f11_the_page_leads_from_a_url_to_stored_prices_in_ten_minutes(
    core: Core, cli: CommandLine, tmp_path: Path
) -> None:
    began = time.monotonic()
    draft, try_, declare, use, watch = map(shlex.split, COMMANDS)
    file = tmp_path / "rates.yaml"

    def run(words: list[str], *more: str) -> Said:
        said = cli(*(str(file) if word == file.name else word for word in words), *more, sandbox="false")
        assert said.exit_code == 0, said
        return said

    with ScriptedServer(serve) as server:
        assert draft[-2:] == [">", "rates.yaml"]
        drafted = run([URL.replace(REAL, server.url) if word == "$URL" else word for word in draft[:-2]])
        checked = re.sub(r"base_url: .*# CHECK.*", f"base_url: {REAL}", drafted.stdout)
        file.write_text(checked.replace("my_provider", "frankfurter"))
        tried = run(try_, "--at", server.url)
        assert "would be stored: 22 values" in tried.stdout
        assert "would be refused" not in tried.stdout
        run(declare)
        used = run(use, "--no-check")
        assert "frankfurter is in use with the plan free" in used.stdout
        calendars.extend(core.engine)
        watched = run(watch, "--minutes", "0.001")
        assert core.statuses() == {"EUR/USD": "pending"}, watched
        provider = DeclaredProvider(read_file(file))
        with (
            ProviderClient(provider, server.url) as client,
            Refresher(core.engine, {"frankfurter": client}, worker="w") as refresher,
        ):
            stored = "SELECT count(*) FROM pricing.latest_prices WHERE data_type = 'frankfurter_daily'"
            work_until(refresher, lambda: core.one(stored) == 1)
    (price,) = core.rows("SELECT * FROM pricing.latest_prices WHERE data_type = 'frankfurter_daily'")
    assert (price.symbol, price.currency, price.provider) == ("EUR/USD", "USD", "frankfurter")
    assert price.observed_at.weekday() < 5
    assert time.monotonic() - began < TEN_MINUTES
