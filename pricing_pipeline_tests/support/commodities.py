"""The data type of commodities, which the sample lacks."""

from __future__ import annotations

from pricing_pipeline_tests.fixtures.core import Core

TYPE, UEX = "commodity_price", "uex"


def add_type(core: Core) -> None:
    """Add it as `type add` does."""
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, asset_class, default_ttl_minutes)"
        " VALUES ('commodity_price', 'terminal_prices', 'commodity', 30)"
    )
