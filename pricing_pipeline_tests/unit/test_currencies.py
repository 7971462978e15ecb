"""What is a currency: ISO 4217, a few coins, and parts of currencies; nothing else that looks like one (A9, B18)."""

from __future__ import annotations

import re
import string
from hashlib import sha256

import pycountry
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing_pipeline.providers.currencies import CURRENCIES, PARTS
from pricing_pipeline.providers.values import Implausible, major_unit


@given(st.text(string.ascii_letters, min_size=3, max_size=5))
def test_b18_some_letters_are_no_currency_unless_they_are_on_the_list(code: str) -> None:
    """Invariant: what is believed is on a list; its unit is a code on the list, and never finer than it was quoted."""
    if code in CURRENCIES or code in PARTS:
        name, power = major_unit(code)
        assert name in CURRENCIES
        assert (power < 0) == (code in PARTS)
    else:
        with pytest.raises(Implausible, match="neither an ISO 4217 code"):
            major_unit(code)


@pytest.mark.parametrize(
    "code",
    [
        "XXZ",
        "GBZ",
        "USDX",
        "XXX",
        "XTS",
        "AAA",
        "usd",
        "usdt",
        "gbp",
        "GBPp",
        "",
        "US D",
        "\uff35\uff33\uff24",
    ],
)
def test_b18_what_only_looks_like_a_currency_is_refused(code: str) -> None:
    with pytest.raises(Implausible, match=f"^currency '{code}' is neither an ISO 4217 code nor a coin"):
        major_unit(code)


@pytest.mark.parametrize(
    ("code", "unit"),
    [
        *(
            (code, (code, 0))
            for code in ("USD", "GBP", "ZWG", "XCG", "XAU", "CNH", "BTC", "ETH", "HRK", "USDT", "USDC")
        ),
        ("GBp", ("GBP", -2)),
        ("GBX", ("GBP", -2)),
        ("ZAc", ("ZAR", -2)),
        ("ILA", ("ILS", -2)),
    ],
)
def test_a9_currencies_coins_and_parts(code: str, unit: tuple[str, int]) -> None:
    assert major_unit(code) == unit


def test_the_list_can_be_stored_and_no_part_hides_a_currency() -> None:
    assert all(re.fullmatch("[A-Z]{3,5}", code) for code in CURRENCIES)
    assert not CURRENCIES & PARTS.keys()
    assert {unit for unit, _ in PARTS.values()} <= CURRENCIES


def test_b18_no_raised_version_of_the_library_takes_a_currency_away_unseen() -> None:
    """A code that pycountry drops moves to the withdrawn ones, since histories keep it; then the digest changes."""
    codes = " ".join(sorted(one.alpha_3 for one in pycountry.currencies))
    assert sha256(codes.encode()).hexdigest()[:16] == "62185bf8d74197e2"
