"""The view of a type's latest prices tells the price itself, exact, to anyone who reads plain SQL."""

from __future__ import annotations

import random
from decimal import Decimal

from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.fixtures.logins import Login
from pricing_pipeline_tests.support.examples import examples

MOST = 10**18 - 1


def test_g8_the_price_is_the_amount_at_its_scale_to_the_last_digit(core: Core, reader: tuple[str, Login]) -> None:
    dice = random.Random(8)
    amounts = [(1, 18), (MOST, 18), (MOST, 0), (-1, 12), (1250, 3)]
    amounts += [(dice.randint(1, 10 ** dice.randint(1, 18) - 1), dice.randint(0, 18)) for _ in range(examples(50))]
    for number, (amount, scale) in enumerate(amounts):
        core.rows(
            "INSERT INTO pricing.latest_prices (data_type, symbol, amount, scale, observed_at, fetched_at, changed_at,"
            " provider, call_id, source_text) VALUES (:type, :symbol, :amount, :scale, now(), now(), now(),"
            " 'twelvedata', 1, '')",
            type=QUOTE,
            symbol=f"S{number}",
            amount=amount,
            scale=scale,
        )
    found = dict(reader[1].execute("SELECT symbol, price FROM pricing.latest_price_equity_quote").fetchall())
    for number, (amount, scale) in enumerate(amounts):
        exact = Decimal(amount).scaleb(-scale)
        assert found[f"S{number}"].as_tuple() == exact.as_tuple(), (amount, scale)


def test_g8_every_column_of_the_view_is_explained(core: Core) -> None:
    unexplained = core.rows(
        "SELECT attname FROM pg_attribute WHERE attrelid = 'pricing.latest_price_equity_quote'::regclass"
        " AND attnum > 0 AND col_description(attrelid, attnum) IS NULL"
    )
    assert unexplained == []
