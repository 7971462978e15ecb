"""E9: GnuCash stores our prices: those that Finance::Quote asks our module for, and those of its import of prices."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from datetime import UTC, date, datetime
from fractions import Fraction
from pathlib import Path

import pytest

from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, FX, QUOTE, Core, midnight, observation, store_days
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.api_server import RunningApi
from pricing_pipeline_tests.support.gnucash import (
    PROGRAM,
    Commodity,
    Stored,
    import_prices,
    stored_prices,
    write_book,
)
from pricing_pipeline_tests.support.json_server import Asked, JsonServer, Reply, serving
from pricing_pipeline_tests.support.patience import PATIENCE

pytestmark = pytest.mark.usefixtures("still")

ROOT = Path(__file__).parents[2]
DAY, NEXT = date(2026, 11, 3), date(2026, 11, 4)
ZONES = ("America/Los_Angeles", "UTC", "Pacific/Auckland")
ASK = """
use JSON; my %found = Finance::Quote->new("PricingPipeline")->fetch("pricing_pipeline", @ARGV); my %fields;
for (keys %found) { my ($symbol, $field) = split /$;/; $fields{$symbol}{$field} = "$found{$_}" }
print encode_json(\\%fields);
"""
PERL = shutil.which("perl")
HAS_QUOTES = PERL is not None and not subprocess.run([PERL, "-MFinance::Quote", "-e1"], check=False).returncode
needs_quotes = pytest.mark.skipif(not HAS_QUOTES, reason="needs Finance::Quote (Debian: libfinance-quote-perl)")
needs_gnucash = pytest.mark.skipif(PROGRAM is None, reason="needs GnuCash (Debian: gnucash)")


def environment(url: str, token: str, home: Path, zone: str = "UTC") -> dict[str, str]:
    """What the recipe exports, and the rest that a program needs."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TZ": zone,
        "LC_ALL": "C.UTF-8",
        "PRICES_URL": url,
        "PRICES_TOKEN": token,
        "PERL5LIB": str(ROOT / "client" / "perl"),
        "FQ_LOAD_QUOTELET": "-defaults PricingPipeline",
    }


@pytest.fixture
def quotes(api: RunningApi, tmp_path: Path) -> Callable[..., dict[str, dict[str, str]]]:
    """What Finance::Quote says about symbols, each field by its name."""

    def ask(token: str, *symbols: str, url: str = api.url, zone: str = "UTC") -> dict[str, dict[str, str]]:
        done = subprocess.run(
            [str(PERL), "-w", "-MFinance::Quote", "-e", ASK, *symbols],
            env=environment(url, token, tmp_path, zone),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
        assert token == "" or token not in done.stdout + done.stderr
        fields: dict[str, dict[str, str]] = json.loads(done.stdout)
        return fields

    return ask


@pytest.fixture
def feed(core: Core, api: RunningApi) -> str:
    """The token of a feed of a daily value, pence that came as pounds, and a rate; one pair has no price."""
    core.rows(
        "INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('equity', 'VOD:XLON'), ('equity', 'BRK.B')"
    )
    store_days(core, "AAPL", (DAY, "270.50"), (NEXT, "271.253678"))
    for symbol, price in (("AAPL", "271.253678"), ("BRK.B", "470.1")):
        call = core.claimed(DAILY, symbol)
        core.store(call, observation(symbol, price, midnight(NEXT)))
        core.complete(call)
    for data_type, symbol, price, currency in (
        (QUOTE, "VOD:XLON", "0.7215", "GBP"),
        (FX, "EUR/USD", "1.0512345", "USD"),
    ):
        core.enqueue(data_type, symbol)
        call = core.claim_one()
        core.store(call, observation(symbol, price, datetime(2026, 11, 4, 15, 30, 7, tzinfo=UTC), currency=currency))
        core.complete(call)
    return api.feed(
        (DAILY, "AAPL"),
        (DAILY, "BRK.B"),
        (QUOTE, "VOD:XLON"),
        (FX, "EUR/USD"),
        (DAILY, "MSFT"),
        name="gnucash",
    )


@needs_quotes
@pytest.mark.parametrize("zone", ZONES)
def test_e9_finance_quote_has_every_digit_and_the_day_of_each_price(
    api: RunningApi, feed: str, quotes: Callable[..., dict[str, dict[str, str]]], zone: str
) -> None:
    """GnuCash takes `date` and `time` for this machine's, and `isodate` alone for now."""
    found = quotes(feed, "AAPL", "VOD:XLON", "EUR/USD", "MSFT", "TSLA", url=f"{api.url}/", zone=zone)
    at = {"date": "11/04/2026", "isodate": "2026-11-04"}
    at_local = {
        "America/Los_Angeles": {**at, "time": "07:30:07"},
        "UTC": {**at, "time": "15:30:07"},
        "Pacific/Auckland": {"date": "11/05/2026", "isodate": "2026-11-05", "time": "04:30:07"},
    }[zone]
    good, bad = ({"method": "pricing_pipeline", "success": success} for success in "10")
    assert found == {
        "AAPL": {"symbol": "AAPL", "last": "271.253678", "currency": "USD", **at, **good},
        "VOD:XLON": {"symbol": "VOD:XLON", "last": "0.7215", "currency": "GBP", **at_local, **good},
        "EUR/USD": {"symbol": "EUR/USD", "last": "1.0512345", "currency": "USD", **at_local, **good},
        "MSFT": {"symbol": "MSFT", "errormsg": found["MSFT"]["errormsg"], **bad},
        "TSLA": {"symbol": "TSLA", "errormsg": "it is not in the feed", **bad},
    }
    assert found["MSFT"]["errormsg"].startswith("nothing was ever fetched: ")


@needs_quotes
def test_e9_finance_quote_is_told_why_there_is_no_price(
    api: RunningApi, core: Core, clock: Clock, feed: str, quotes: Callable[..., dict[str, dict[str, str]]]
) -> None:
    def why(token: str, url: str = api.url) -> str:
        found = quotes(token, "AAPL", url=url)["AAPL"]
        assert found["success"] == "0"
        assert "last" not in found
        return found["errormsg"]

    assert why("") == "PRICES_TOKEN is not set: `pricing-pipeline token add` makes one"
    core.rows("UPDATE pricing.latest_prices SET amount = 0, scale = 2 WHERE symbol = 'AAPL'")
    assert why(feed) == "its price is 0.00"
    hour = api.feed((DAILY, "AAPL"), name="hour", hours=1)
    clock.advance(3700)
    assert "401" not in why(hour)
    assert "token" in why(hour)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert f"127.0.0.1:{port}" in why(feed, f"http://127.0.0.1:{port}")


@needs_quotes
def test_e9_the_token_follows_no_redirection(
    api: RunningApi, feed: str, quotes: Callable[..., dict[str, dict[str, str]]]
) -> None:
    class Elsewhere(JsonServer):
        def answer(self, asked: Asked) -> Reply:
            return 302, {"Location": f"{api.url}{asked.path}"}, b""

    with serving(elsewhere := Elsewhere()):
        found = quotes(feed, "AAPL", url=elsewhere.url)
    assert "302" in found["AAPL"]["errormsg"]


def process_lines() -> bytes:
    """The command line of each process."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes())
        except OSError:
            continue
    return b"\n".join(lines)


@needs_gnucash
@pytest.mark.parametrize("zone", ZONES)
def test_e9_gnucash_stores_the_quotes_of_a_feed(feed: str, api: RunningApi, tmp_path: Path, zone: str) -> None:
    """It ends with 0 whatever it has stored, so the book is read."""
    book, home = tmp_path / "main.gnucash", tmp_path / "home"
    home.mkdir()
    securities = [
        ("NASDAQ", "AAPL"),
        ("LSE", "VOD:XLON"),
        ("NYSE", "BRK.B"),
        ("RATES", "EUR/USD"),
        ("NASDAQ", "MSFT"),
    ]
    write_book(book, [Commodity(*security) for security in securities])
    recipe = (ROOT / "docs" / "recipes" / "gnucash.md").read_text()
    (home / ".prices-token").write_text(feed)
    commands = recipe.partition("```bash\n")[2].partition("```")[0].replace("book.gnucash", str(book))
    commands = commands.partition("\n")[2].replace("/where/the/clone/is", str(ROOT))
    names = environment(api.url, "", home, zone)
    given = {name: names[name] for name in ("PATH", "HOME", "TZ", "LC_ALL", "PRICES_URL")}
    with subprocess.Popen(
        ["bash", "-ec", commands], env=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as program:
        while program.poll() is None:
            assert feed.encode() not in process_lines()
        assert program.stdout is not None
        said = program.stdout.read().decode()
    assert program.returncode == 0, said
    assert "NASDAQ:MSFT" in said
    noon = {"America/Los_Angeles": 20, "UTC": 12, "Pacific/Auckland": -1}[zone]
    day = datetime(2026, 11, 4 if noon > 0 else 3, noon % 24, tzinfo=UTC)
    at = datetime(2026, 11, 4, 15, 30, 7, tzinfo=UTC)
    assert stored_prices(book) == {
        Stored("NASDAQ", "AAPL", "USD", day, Fraction("271.253678")),
        Stored("NYSE", "BRK.B", "USD", day, Fraction("470.1")),
        Stored("LSE", "VOD:XLON", "GBP", at, Fraction("0.7215")),
        Stored("RATES", "EUR/USD", "USD", at, Fraction("1.0512345")),
    }
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != ".prices-token"]
    assert book in written
    assert not any(feed.encode() in path.read_bytes() for path in written)
    assert feed not in said


@needs_gnucash
def test_e9_gnucash_imports_what_price_export_writes(cli: CommandLine, core: Core, tmp_path: Path) -> None:
    """With the commands of the recipe; the import finds each security by the name that Finance::Quote asks for."""
    store_days(core, "AAPL", (DAY, "1270.123"), (NEXT, "271.25367849"))
    core.enqueue(FX, "EUR/USD")
    core.finish(core.claim_one(), "1.0512")
    recipe = (ROOT / "docs" / "recipes" / "gnucash.md").read_text().partition("## History")[2]
    lines = recipe.partition("```bash\n")[2].partition("```")[0].splitlines()
    said = [cli(*line.partition(" > ")[0].partition(" >> ")[0].split()[1:]) for line in lines]
    assert "warning: GnuCash rounds prices of AAPL to 6 decimals.\n" in said[0].stderr
    file, book = tmp_path / "prices.csv", tmp_path / "main.gnucash"
    file.write_text("".join(one.stdout for one in said))
    write_book(book, [Commodity("NASDAQ", "AAPL", None)])
    assert import_prices(book, file, environment("", "", tmp_path)) == ""
    found = {(one.namespace, one.symbol, one.currency, one.at.date(), one.value) for one in stored_prices(book)}
    today = core.clock().date()
    assert found == {
        ("NASDAQ", "AAPL", "USD", DAY, Fraction("1270.123")),
        ("NASDAQ", "AAPL", "USD", NEXT, Fraction("271.253678")),
        ("CURRENCY", "EUR", "USD", today, Fraction("1.0512")),
    }
