"""The view of a type's latest prices tells the price itself, exact, to whoever reads plain SQL."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path

import psycopg

from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.fixtures.logins import Login
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.pages import ROOT

MIGRATION = Path(ROOT) / "migrations/versions/0105_price_in_latest_views.sql"
MOST = 10**18 - 1


def test_g8_the_price_is_the_amount_at_its_scale_to_the_last_digit(
    core: Core, reader: tuple[str, Login]
) -> None:
    dice = random.Random(8)
    amounts = [(1, 18), (MOST, 18), (MOST, 0), (-1, 12), (1250, 3)]
    amounts += [
        (dice.randint(1, 10 ** dice.randint(1, 18) - 1), dice.randint(0, 18)) for _ in range(examples(50))
    ]
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


def test_g8_an_upgrade_adds_the_price_under_the_views_of_others(core: Core, owner_url: str) -> None:
    """Also to a type that is retired; a table of the user's own is left alone."""
    core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = 'mf_nav'")
    core.rows(
        "CREATE TABLE pricing.mine (symbol text PRIMARY KEY, at timestamptz, cache_ttl_minutes integer)"
    )
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes, asset_class, table_name,"
        " timestamp_column) VALUES ('crypto_quote', 'quote', 2, 'crypto', 'mine', 'at')"
    )
    for name in ("equity_quote", "equity_daily", "fx_rate", "mf_nav"):
        core.rows(f"DROP VIEW pricing.latest_price_{name}")
        core.rows(
            f"CREATE VIEW pricing.latest_price_{name} AS SELECT symbol, amount, scale, currency, observed_at,"
            " fetched_at, provider, call_id, source_text, cache_ttl_minutes FROM pricing.latest_prices"
            f" WHERE data_type = '{name}'"
        )
    core.rows("DROP VIEW pricing.latest_price_fx_rate")  # somebody has; nothing falls over it
    core.rows("CREATE VIEW pricing.of_theirs AS SELECT symbol, amount FROM pricing.latest_price_equity_quote")
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh(price="146.55")
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute(MIGRATION.read_bytes())
    assert core.one("SELECT price::text FROM pricing.latest_price_equity_quote") == "146.55"
    assert core.rows("SELECT price FROM pricing.latest_price_mf_nav") == []
    assert core.one("SELECT symbol FROM pricing.of_theirs") == "AAPL"
    made = "SELECT pg_get_viewdef('pricing.latest_price_equity_quote'::regclass)"
    before = core.one(made)
    core.rows("DROP VIEW pricing.of_theirs")
    core.rows("DROP VIEW pricing.latest_price_equity_quote")
    core.rows("SELECT pricing.make_view_of_prices('latest_price_equity_quote', 'equity_quote')")
    assert core.one(made) == before, "a new type has the same view"


def test_g8_every_column_of_the_view_is_explained(core: Core) -> None:
    unexplained = core.rows(
        "SELECT attname FROM pg_attribute WHERE attrelid = 'pricing.latest_price_equity_quote'::regclass"
        " AND attnum > 0 AND col_description(attrelid, attnum) IS NULL"
    )
    assert unexplained == []
