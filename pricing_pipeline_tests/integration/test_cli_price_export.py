"""E9: `price export` writes what is stored as lines for plain-text accounting."""

from __future__ import annotations

from datetime import date, datetime

import pytest

from pricing_pipeline.demand import instruments
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core, observation, store_days
from pricing_pipeline_tests.fixtures.database import Clock

pytestmark = pytest.mark.usefixtures("still")

FIRST, SECOND = date(2026, 11, 3), date(2026, 11, 4)


def store_quote(core: Core, data_type: str, symbol: str, price: str, at: datetime) -> None:
    core.enqueue(data_type, symbol)
    call = core.claim_one()
    core.store(call, observation(symbol, price, at))
    core.complete(call)


def test_e9_all_symbols_of_a_type_are_written_by_day(cli: CommandLine, core: Core) -> None:
    store_days(core, "IBM", (FIRST, "300.25"), (SECOND, "301.00"))
    store_days(core, "AAPL", (SECOND, "270.5"))
    said = cli("price", "export", "--type", DAILY, "--format", "ledger", "--directives")
    assert said.stdout.splitlines() == [
        "commodity USD",
        "  format 1000.00 USD",
        "P 2026-11-03 IBM 300.25 USD",
        "P 2026-11-04 AAPL 270.50 USD",
        "P 2026-11-04 IBM 301.00 USD",
    ]
    assert said.stderr == ""
    named = cli("price", "export", "aapl", "--type", DAILY, "--format", "beancount", "--name", "AAPL=APPLE")
    assert named.stdout == "2026-11-04 price APPLE 270.50 USD\n"
    assert named.stderr == "hint: AAPL is APPLE here.\n"
    for asked in (("gnucash",), ("gnucash", "--namespace", ""), ("ledger", "--namespace", "NASDAQ")):
        refused = cli("price", "export", "AAPL", "--type", DAILY, "--format", *asked)
        assert refused.exit_code == 2
        assert "--namespace NASDAQ belongs to --format gnucash, and that needs it." in " ".join(refused.stderr.split())
    lost = cli("price", "export", "AAPL", "--type", DAILY, "--format", "ledger", "--name", "APPL=A")
    assert lost.stderr == "warning: --name: no price is written of APPL.\n"


def test_e9_since_writes_what_was_stored_since_and_corrections_with_it(
    cli: CommandLine, core: Core, clock: Clock
) -> None:
    clock.set(core.clock().replace(hour=12))  # two hours later it is the same day
    store_days(core, "IBM", (FIRST, "300.25"), (SECOND, "301.00"))
    clock.advance(3600)
    since = core.clock().isoformat()
    clock.advance(3600)
    store_days(core, "IBM", (SECOND, "301.50"))
    export = ("price", "export", "IBM", "--type", DAILY, "--format", "hledger")
    assert cli(*export, "--since", since).stdout == "P 2026-11-04 IBM 301.50 USD\n"
    today = core.clock().date().isoformat()
    assert len(cli(*export, "--since", today).stdout.splitlines()) == 2, "a day means its beginning"
    nothing = cli(*export, "--from", "2026-11-05", "--to", "2026-11-06")
    assert nothing.stdout == ""
    assert nothing.stderr == f"hint: no price of {DAILY} is stored from 2026-11-05 to 2026-11-06.\n"


def test_e9_a_day_has_one_line_and_counts_where_the_market_is(cli: CommandLine, core: Core, clock: Clock) -> None:
    """Sydney opens at 23:00 UTC of the day before."""
    with core.engine.begin() as connection:
        instruments.add(connection, [instruments.NewInstrument("equity", "BHP:XASX", "BHP")])
    for at, price in (("03T23:30", "41"), ("04T04:00", "42"), ("04T23:30", "43")):
        clock.set(datetime.fromisoformat(f"2026-11-{at}:20+00:00"))
        store_quote(core, QUOTE, "BHP:XASX", price, datetime.fromisoformat(f"2026-11-{at}:00+00:00"))
    said = cli("price", "export", "--type", QUOTE, "--format", "ledger")
    assert said.stdout.splitlines() == [
        'P 2026-11-04 "BHP:XASX" 42.00 USD',
        'P 2026-11-05 "BHP:XASX" 43.00 USD',
    ]
