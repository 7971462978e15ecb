"""B27: the client as a distribution of its own: a program installs it without the pipeline, and uses a real server.

It is built as `pip install ./client` builds it. What it needs comes from wherever pip gets packages here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.support.api_server import RunningApi

ROOT = Path(__file__).parents[2]
NEEDED = {"anyio", "certifi", "h11", "httpcore", "httpx", "idna", "sniffio", "typing-extensions"}
"""What httpx brings, in any of the versions that the client allows."""

PROGRAM = """
import os
import sys
from decimal import Decimal

from pricing_client import NotFound, Price, PricingClient, Update

pair = ("equity_quote", "AAPL")
with PricingClient(sys.argv[1], os.environ["TOKEN"], user="ann") as client:
    client.heartbeat(pair)
    client.hold(pair)
    price: Price = client.prices("AAPL", data_type="equity_quote").prices[0]
    exact: Decimal = price.price
    print(price.symbol, exact, price.fresh)
    print(client.why("AAPL", data_type="equity_quote")[0].state)
    print([str(bar.close) for bar in client.history("equity_quote", "AAPL")])
    print([holding.symbol for holding in client.holdings()])
    alert = client.add_price_alert("shop", *pair, "above", Decimal("200"))
    print(client.price_alerts() == [alert], client.remove_price_alerts(alert.price_alert_id) == [alert.price_alert_id])
    for update in client.watch(pair):
        print(update.kind, update.price.price if isinstance(update, Update) and update.price else "")
        if update.kind == "ready":
            break
    try:
        client.why("AAPL", data_type="nosuch")
    except NotFound as error:
        print(error.kind)
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python in whose environment nothing but the client is installed."""
    folder = tmp_path_factory.mktemp("alone")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, ROOT / "client"]
    subprocess.run([*pip, *build], check=True)
    (wheel,) = folder.glob("pricing_client-*.whl")
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv/bin/python"
    subprocess.run([*pip, "--python", python, "install", wheel], check=True)
    return python


def run(argv: list[str | Path], **environment: str) -> str:
    done = subprocess.run(argv, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_b27_the_client_installs_httpx_and_nothing_else(python: Path) -> None:
    code = "from importlib.metadata import distributions; print(*{one.name.lower() for one in distributions()})"
    installed = {name.replace("_", "-") for name in run([python, "-c", code]).split()}
    assert {"httpx", "pricing-client"} <= installed <= {*NEEDED, "pricing-client"}


@pytest.mark.usefixtures("still")
def test_b27_a_program_with_nothing_but_the_client_uses_a_server(
    python: Path, tmp_path: Path, api: RunningApi, core: Core
) -> None:
    core.rows(
        "INSERT INTO pricing.recipients (recipient, channel, takes_any_user, least_severity, created_at)"
        " VALUES ('shop', 'log', true, NULL, now())"
    )
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh(price="189.95")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    token = api.caller(Scope.READ, Scope.WATCH).token
    assert run([python, program, api.url], TOKEN=token or "").splitlines() == [
        "AAPL 189.95 True",
        "fresh",
        "['189.95']",
        "['AAPL']",
        "True True",
        "price 189.95",
        "ready ",
        "unknown-data-type",
    ]


def test_b27_a_type_checker_knows_the_clients_types(python: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    mypy = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path, "--python-executable", python]
    program.write_text(PROGRAM)
    run([*mypy, program])
    program.write_text(PROGRAM.replace("exact: Decimal", "exact: str"))
    done = subprocess.run([*mypy, program], capture_output=True, text=True, check=False)
    assert "Decimal" in done.stdout
    assert done.returncode == 1, done.stdout + done.stderr
