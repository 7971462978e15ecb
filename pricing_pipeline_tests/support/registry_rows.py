"""Rows of the registry, written as its owner writes them."""

from __future__ import annotations

from pricing_pipeline_tests.fixtures.core import (
    Core,
)

INSERT = (
    "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes, table_name, symbol_column,"
    " timestamp_column, staleness_function, asset_class, schedule_timezone)"
    " VALUES (:data_type, :fetcher, :ttl, :table_name, :symbol_column, :timestamp_column, :staleness_function,"
    " :asset_class, :timezone)"
)
PLAIN = {
    "data_type": "crypto_quote",
    "fetcher": "quote",
    "ttl": 2,
    "table_name": "",
    "symbol_column": "symbol",
    "timestamp_column": "fetched_at",
    "staleness_function": "is_data_stale",
    "asset_class": "crypto",
    "timezone": "UTC",
}


def add(core: Core, **changes: object) -> None:
    core.rows(INSERT, **{**PLAIN, **changes})


def relations(core: Core) -> set[str]:
    return {
        row.relname
        for row in core.rows(
            "SELECT relname FROM pg_class WHERE relnamespace = 'pricing'::regnamespace AND relkind IN ('r', 'p', 'v')"
        )
    }


def own_table(core: Core) -> None:
    core.rows(
        "CREATE TABLE pricing.my_prices (ticker text PRIMARY KEY, loaded_at timestamptz, cache_ttl_minutes integer)"
    )
