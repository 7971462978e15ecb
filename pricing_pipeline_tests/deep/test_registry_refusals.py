"""Every name of the pipeline's own, and every weird one: the registry takes none of them."""

from __future__ import annotations

import pytest
from sqlalchemy.exc import DBAPIError

from pricing_pipeline_tests.fixtures.core import DAILY, FX, NAV, QUOTE, Core
from pricing_pipeline_tests.support.registry_rows import add, own_table, relations

pytestmark = pytest.mark.usefixtures("still")

WEIRD = [
    'x"; DROP TABLE pricing.demand; --',
    "x'; DROP TABLE pricing.demand; --",
    "a" * 49,
    "a" * 64,
    "pg_catalog.pg_class",
    "Equity",
    "equity quote",
    "1st",
    "_hidden",
    "",
    "еquity_quote",  # noqa: RUF001 - its first letter is Cyrillic
    "equity_quote\n",
    "%I",
    "$$",
]


def test_b2_a_weird_name_is_refused_wherever_it_stands(core: Core) -> None:
    own_table(core)
    # Only a table of one's own has columns of one's own.
    own: dict[str, object] = {"table_name": "my_prices", "symbol_column": "ticker", "timestamp_column": "loaded_at"}
    before = relations(core)
    for column in ("data_type", "asset_class", "table_name", "staleness_function", "timezone"):
        for name in WEIRD:
            if (column, name) in (("table_name", ""), ("staleness_function", "")):
                continue  # asks for a table to be made, or for the usual judge
            with pytest.raises(DBAPIError):
                add(core, **{column: name})
    for column in ("symbol_column", "timestamp_column"):
        for name in WEIRD:
            with pytest.raises(DBAPIError):
                add(core, **{**own, column: name})
    assert relations(core) == before


# Tries every name there is, in the server, since thousands of refusals take their time.
TRY_ALL = """
CREATE FUNCTION pricing.accepted(wanted text[], is_table boolean, stamps text[]) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    one text;
    stamp text;
    found text[] := '{}';
BEGIN
    FOREACH one IN ARRAY wanted LOOP
        FOREACH stamp IN ARRAY stamps LOOP
            BEGIN
                INSERT INTO pricing.data_type_registry
                    (data_type, fetcher, default_ttl_minutes, table_name, timestamp_column, staleness_function)
                VALUES ('crypto_quote', 'quote', 2, CASE WHEN is_table THEN one ELSE '' END, stamp,
                        CASE WHEN is_table THEN 'is_data_stale' ELSE one END);
                found := found || one;
                DELETE FROM pricing.data_type_registry WHERE data_type = 'crypto_quote';
            EXCEPTION WHEN undefined_table OR wrong_object_type OR undefined_column OR undefined_function THEN
                NULL;
            END;
        END LOOP;
    END LOOP;
    RETURN found;
END $$
"""


def test_b2_nothing_of_the_pipelines_own_can_be_named_as_a_table(core: Core) -> None:
    """Neither queue, calls nor catalogue; only a view of prices has the shape, or one's own table."""
    core.rows(TRY_ALL)
    names = [
        row.relname
        for row in core.rows(
            "SELECT relname FROM pg_class WHERE relnamespace IN"
            " ('pricing'::regnamespace, 'pg_catalog'::regnamespace, 'information_schema'::regnamespace)"
        )
    ]
    assert len(names) > 300
    accepted = set(core.one("SELECT pricing.accepted(:names, true, '{fetched_at,created_at,xmin}')", names=names))
    assert accepted == {f"latest_price_{kind}" for kind in (QUOTE, DAILY, FX, NAV)}


def test_b2_nothing_of_the_pipelines_own_can_be_named_as_a_function(core: Core) -> None:
    core.rows(TRY_ALL)
    names = [
        row.proname
        for row in core.rows(
            "SELECT DISTINCT proname FROM pg_proc WHERE pronamespace = 'pricing'::regnamespace"
            " OR '1184 23' = proargtypes::text"
        )
    ]
    assert set(core.one("SELECT pricing.accepted(:names, false, '{fetched_at}')", names=names)) == {
        "is_data_stale",
        "is_market_stale",
    }
