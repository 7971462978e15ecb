"""E9: prices as lines for plain-text accounting, and what ledger and hledger make of them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from pricing_pipeline.errors import PricingError
from pricing_pipeline.prices.journals import DayPrice, Journal, write
from pricing_pipeline_tests.support.patience import PATIENCE

DAY = date(2026, 11, 27)
PRICES = [
    DayPrice(DAY, "BRK-B", Decimal("470.1012"), "USD"),
    DayPrice(DAY, "D05:XSES", Decimal("43.10"), "SGD"),
    DayPrice(DAY, "7203:XTKS", Decimal("2870"), "JPY"),
    DayPrice(DAY, "EUR/USD", Decimal("1.0512345"), "USD"),
    DayPrice(DAY, "SHIB/USD", Decimal("1E-8"), "USD"),
    DayPrice(DAY, "BIG", Decimal("1E+5"), "USD"),
    DayPrice(date(2026, 11, 26), "BRK-B", Decimal("460"), "USD"),
]
HOLDINGS = """
2026-11-20 opening
  assets:brk  3 "BRK-B"
  assets:dbs  100 "D05:XSES"
  assets:toyota  100 "7203:XTKS"
  assets:bank  10 EUR
  assets:shib  1000000000 SHIB
  assets:big  1 BIG
  equity
"""
WORTH = {
    "brk": "1410.30 USD",
    "dbs": "4310.00 SGD",
    "toyota": "287000 JPY",
    "bank": "10.51 USD",
    "shib": "10.00 USD",
    "big": "100000.00 USD",
}


def lines(journal: Journal, prices: Sequence[DayPrice] = PRICES, **own_names: str) -> list[str]:
    return write(prices, journal, own_names, has_directives=False).lines


def test_e9_names_that_are_not_letters_only_are_quoted_and_no_number_has_an_exponent() -> None:
    assert (
        lines(Journal.LEDGER)
        == lines(Journal.HLEDGER)
        == [
            'P 2026-11-26 "BRK-B" 460 USD',
            'P 2026-11-27 "7203:XTKS" 2870 JPY',
            "P 2026-11-27 BIG 100000 USD",
            'P 2026-11-27 "BRK-B" 470.1012 USD',
            'P 2026-11-27 "D05:XSES" 43.10 SGD',
            "P 2026-11-27 EUR 1.0512345 USD",
            "P 2026-11-27 SHIB 0.00000001 USD",
        ]
    )


def test_e9_beancount_gets_names_that_it_can_have_and_they_are_told() -> None:
    written = write(PRICES, Journal.BEANCOUNT, {"BIG": "BIG-1"}, has_directives=True)
    assert written.lines == [
        "2026-11-26 price BRK-B 460 USD",
        "2026-11-27 price BIG-1 100000 USD",
        "2026-11-27 price BRK-B 470.1012 USD",
        "2026-11-27 price D05.XSES 43.10 SGD",
        "2026-11-27 price EUR 1.0512345 USD",
        "2026-11-27 price SHIB 0.00000001 USD",
        "2026-11-27 price X7203.XTKS 2870 JPY",
    ]
    assert written.names == {
        "BIG": "BIG-1",
        "D05:XSES": "D05.XSES",
        "EUR/USD": "EUR",
        "SHIB/USD": "SHIB",
        "7203:XTKS": "X7203.XTKS",
    }


def test_e9_gnucash_gets_only_what_its_import_can_store() -> None:
    """It keeps four decimals more than the currency has, stores 0, and knows no coins as currencies."""
    prices = [
        *PRICES,
        DayPrice(DAY, "ALL", Decimal("210"), "USD"),  # also the lek of Albania
        DayPrice(DAY, "BTC/USD", Decimal("63000"), "USD"),
        DayPrice(DAY, "ETH/USDT", Decimal("3000"), "USDT"),
    ]
    written = write(prices, Journal.GNUCASH, {"BIG": "B,G"}, has_directives=True, namespace="MINE")
    assert written.lines == [
        "2026-11-26,460,BRK-B,MINE,USD",
        "2026-11-27,2870,7203:XTKS,MINE,JPY",
        "2026-11-27,210,ALL,MINE,USD",
        '2026-11-27,100000,"B,G",MINE,USD',
        "2026-11-27,470.1012,BRK-B,MINE,USD",
        "2026-11-27,63000,BTC/USD,MINE,USD",
        "2026-11-27,43.10,D05:XSES,MINE,SGD",
        "2026-11-27,1.0512345,EUR,CURRENCY,USD",
    ]
    assert written.names == {"BIG": "B,G", "EUR/USD": "EUR"}
    assert written.losses == [
        "GnuCash rounds prices of EUR/USD to 6 decimals.",
        "Prices of SHIB/USD that GnuCash would store as 0 are left out.",
        "ETH/USDT is left out: GnuCash has no currency USDT.",
    ]
    with pytest.raises(PricingError, match="is not a commodity of gnucash"):
        write(prices, Journal.GNUCASH, {}, has_directives=False, namespace='MY "OWN"')


def test_e9_a_name_of_ones_own_goes_before_ours() -> None:
    vodafone = DayPrice(DAY, "VOD:XLON", Decimal("0.8"), "GBP")
    assert lines(Journal.LEDGER, [vodafone], **{"VOD:XLON": "VOD"}) == ["P 2026-11-27 VOD 0.8 GBP"]


@pytest.mark.parametrize(
    ("name", "journal"),
    [
        ("vod", Journal.BEANCOUNT),
        ("VOD.", Journal.BEANCOUNT),
        ('V"D', Journal.LEDGER),
        ("V\\D", Journal.GNUCASH),
    ],
)
def test_e9_a_name_that_the_journal_cannot_have_is_refused(name: str, journal: Journal) -> None:
    with pytest.raises(PricingError, match="is not a commodity of"):
        lines(journal, [DayPrice(DAY, "VOD", Decimal("0.8"), "GBP")], VOD=name)


@pytest.mark.parametrize("journal", Journal)
def test_e9_a_pair_is_written_once_on_a_day(journal: Journal) -> None:
    """Two symbols of one name would overwrite each other, and programs make the inverse of a rate themselves."""
    two = [DayPrice(DAY, "EUR", Decimal("1.1"), "USD"), DayPrice(DAY, "EUR/USD", Decimal("1.2"), "USD")]
    with pytest.raises(PricingError, match="EUR and EUR/USD would both be EUR in USD"):
        lines(journal, two)
    inverse = [
        DayPrice(DAY, "EUR/USD", Decimal("1.2"), "USD"),
        DayPrice(DAY, "USD/EUR", Decimal("0.8"), "EUR"),
    ]
    with pytest.raises(PricingError, match="EUR/USD and USD/EUR are the same pair both ways"):
        lines(journal, inverse)


@pytest.mark.parametrize("journal", [Journal.LEDGER, Journal.HLEDGER])
def test_e9_the_program_values_a_portfolio_to_the_cent(journal: Journal, tmp_path: Path) -> None:
    """It shows as many decimals as each currency has, by the directives."""
    if shutil.which(journal) is None:
        pytest.skip(f"{journal} is not installed")
    written = write(PRICES, journal, {}, has_directives=True)
    file = tmp_path / "main.journal"
    file.write_text("\n".join(written.lines) + "\n" + HOLDINGS)
    until = ("--end", "2026-11-28") if journal is Journal.HLEDGER else ("--now", "2026-11-28")
    seen = {}
    for account in WORTH:
        command = [journal.value, "--file", str(file), "balance", "--market", f"assets:{account}", *until]
        if journal is Journal.HLEDGER:
            command[command.index("--market")] = "--value=end"
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
        seen[account] = done.stdout.splitlines()[0].partition("  assets")[0].strip()
    assert seen == WORTH
