"""The Dagster UI in a browser, with texts of others in all that we tell it: it shows them and asks nobody.

Needs Chromium (Debian: chromium); skipped where there is none.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import dagster as dg
import httpx
import pytest
from playwright.sync_api import Page, expect, sync_playwright

from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline.processes.ports import require_free_port
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core
from pricing_pipeline_tests.fixtures.dagster import ROOT, Stage
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.chromium import CHROMIUM, FLAGS, needs_chromium
from pricing_pipeline_tests.support.hostile_texts import hostile_texts
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until

pytestmark = needs_chromium

INSTANCE = "telemetry:\n  enabled: false\nnux:\n  enabled: false\n"
WORKSPACE = """
load_from:
  - python_module:
      module_name: pricing_pipeline.definitions
      attribute: definitions
      location_name: pricing_pipeline
"""


class Stranger:
    """A web server that remembers what it was asked for."""

    def __init__(self, port: int) -> None:
        self.host = f"127.0.0.1:{port}"
        self.symbol = f"http://{self.host}/s"
        self.asked: list[str] = []


@pytest.fixture
def stranger() -> Iterator[Stranger]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known.asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        known = Stranger(server.server_port)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield known
        server.shutdown()
        thread.join()


@pytest.fixture
def stage(environment: None, core: Core, stranger: Stranger, tmp_path: Path) -> Iterator[Stage]:
    """Definitions of a registry whose owner describes data types in hostile words, on an instance of files."""
    core.rows(
        "UPDATE pricing.data_type_registry SET description = :text WHERE data_type IN ('equity_daily', 'equity_quote')",
        text="\n\n".join(hostile_texts(stranger.host)),
    )
    core.unjudged_schedule("fx_rate", f"![no]({stranger.symbol}) <img src={stranger.symbol}>")
    folder = tmp_path / "instance"
    folder.mkdir()
    (folder / "dagster.yaml").write_text(INSTANCE)
    (folder / "workspace.yaml").write_text(WORKSPACE)
    with dg.DagsterInstance.from_config(str(folder)) as instance:
        yield Stage(instance)


@contextmanager
def webserver(folder: Path) -> Iterator[str]:
    """The UI of an instance; yields its address."""
    port = require_free_port(0, "the UI", "the port")
    variables = {"DAGSTER_HOME": str(folder), "PRICING_WEB_PORT": str(port), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pricing_pipeline.defs.webserver", "workspace.yaml"]
    address = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        try:
            return httpx.get(f"{address}/server_info", trust_env=False).is_success
        except httpx.TransportError:
            return process.poll() is not None

    with subprocess.Popen(command, env={**os.environ, **variables}, cwd=folder, start_new_session=True) as process:
        try:
            wait_until(answers)
            assert process.poll() is None
            yield address
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(PATIENCE)


@pytest.fixture
def told(stage: Stage, core: Core, clock: Clock, stranger: Stranger) -> str:
    """Have sensors and checks tell of a hostile symbol, client and provider's message; returns the client's name."""
    symbol, words = stranger.symbol, " ".join(hostile_texts(stranger.host))
    client = words[:60]
    core.rows("INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('equity', :s)", s=symbol)
    for days, amount, volume in ((range(31, 60), 20000, 1000), (range(1, 31), 10100, 900)):
        core.rows(
            "INSERT INTO pricing.price_history (data_type, symbol, observed_at, amount, scale, currency, provider,"
            " call_id, fetched_at, volume) SELECT :type, :symbol, date_trunc('day', pricing.clock(), 'UTC')"
            " - d * interval '1 day', :amount, 2, 'USD', 'twelvedata', 1, pricing.clock(), :volume"
            " FROM unnest(CAST(:days AS integer[])) AS d",
            type=DAILY, symbol=symbol, days=list(days), amount=amount, volume=volume,
        )  # fmt: skip
    core.rows(
        "INSERT INTO pricing.latest_prices (data_type, symbol, amount, scale, currency, observed_at, fetched_at,"
        " provider, call_id, source_text) VALUES (:type, :symbol, 10100, 2, 'USD', pricing.clock(), pricing.clock(),"
        " 'twelvedata', 1, '')",
        type=DAILY, symbol=symbol,
    )  # fmt: skip
    core.rows("SELECT pricing.note_latest_changes(:type, 1)", type=DAILY)
    core.heartbeat(client, (DAILY, symbol), (QUOTE, symbol))
    core.fail(core.claim_one(), FailureKind.SCHEMA_DRIFT, words)
    for sensor in ("report_prices", "report_sources"):
        tell(stage, sensor)
    clock.advance(60)
    # Else no worker would be what it waits for, and not what its provider said.
    core.rows("UPDATE pricing.api_call_queue_live SET run_after = pricing.clock() + interval '1 hour'")
    core.heartbeat(client, (DAILY, symbol), (QUOTE, symbol))
    tell(stage, "report_prices")
    checks = stage.definitions.resolve_job_def("check_prices")
    assert checks.execute_in_process(instance=stage.instance).success
    return client


def tell(stage: Stage, sensor: str) -> None:
    for event in stage.tick(sensor).asset_events:
        stage.instance.report_runless_asset_event(event)


@pytest.fixture
def page(told: str, tmp_path: Path) -> Iterator[Page]:
    """A page of a new browser, opened once all is told: Playwright and Dagster both want the thread's event loop."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch_persistent_context(
            tmp_path / "profile",
            executable_path=CHROMIUM,
            args=FLAGS,
            viewport={"width": 1500, "height": 2000},
        )
        browser.set_default_timeout(PATIENCE * 1000)
        expect.set_options(timeout=PATIENCE * 1000)
        yield browser.pages[0]
        browser.close()


class Reader:
    """Somebody who looks at pages of the UI, and opens whatever they offer to show."""

    def __init__(self, page: Page, address: str, host: str) -> None:
        self._page = page
        self._address = address
        self._far = page.locator(f'[href*="{host}"], [src*="{host}"]')

    def look(self, path: str, *texts: str, opened: int = 0) -> str:
        """Open a page that shows these texts, and all its markdown; returns what the page shows as markdown."""
        self._page.goto(self._address + path)
        for text in texts:
            expect(self._page.get_by_text(text).first).to_be_visible()
        offers = self._page.get_by_text("[Show Markdown]")
        expect(offers).to_have_count(opened)
        self._find_nothing()
        for offer in offers.all():
            offer.click()
            dialog = self._page.get_by_role("dialog")
            expect(dialog.locator(".dagster-markdown")).to_be_visible()
            self._find_nothing()
            dialog.get_by_role("button", name="Close").click()
            expect(dialog).to_be_hidden()
        return "\n".join(self._page.locator(".dagster-markdown").all_inner_texts())

    def _find_nothing(self) -> None:
        """Neither what leads to the stranger, nor what leads elsewhere from markdown."""
        assert [part.evaluate("e => e.outerHTML") for part in self._far.all()] == []
        elsewhere = self._page.locator('.dagster-markdown a, .dagster-markdown img:not([src^="data:"])')
        assert [part.evaluate("e => e.outerHTML") for part in elsewhere.all()] == []


def test_texts_of_others_are_shown_as_they_are_and_the_browser_asks_nobody(
    told: str, stranger: Stranger, page: Page, tmp_path: Path
) -> None:
    described = "\n\n".join(hostile_texts(stranger.host))
    asked: list[str] = []
    page.context.on("request", lambda request: asked.append(request.url))
    with webserver(tmp_path / "instance") as address:
        reader = Reader(page, address, stranger.host)
        said = reader.look(f"/assets/latest_price/{DAILY}", "The newest price of each symbol", "price_plot")
        assert described in said
        assert f"{stranger.symbol} 101.00 USD, " in said, "the price's plot"
        assert described in reader.look(f"/assets/price_history/{DAILY}", "can be backfilled")
        said = reader.look("/assets/latest_price/fx_rate", "Its schedule is not followed")
        assert f"'![no]({stranger.symbol}) <img src={stranger.symbol}>'" in said
        checks = f"/assets/latest_price/{DAILY}?view=checks&checkDetail="
        said = reader.look(f"{checks}outliers", "look like unreported splits", opened=1)
        assert f"such as {stranger.symbol} " in said
        reader.look(f"{checks}gaps", "without_calendar", "price_plot", opened=2)
        late = f"/assets/latest_price/{QUOTE}?view=checks&checkDetail=on_time"
        reader.look(late, "why_late", f"failed as schema_drift ({hostile_texts(stranger.host)[0]}", opened=1)
        reader.look("/assets/active_subscriptions?view=events", "biggest_clients", told)
        reader.look("/asset-groups", "latest_price")
        assert {url for url in asked if not url.startswith((address, "data:", "blob:"))} == set()
        assert stranger.asked == []
        page.goto(stranger.symbol)
        assert stranger.asked[0] == "/s", "what this browser asks for is seen"
