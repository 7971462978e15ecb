"""For other people's Dagster: what their code locations may import. docs/dagster.md shows how; all else is private."""

from pricing_pipeline.dagster.history_inputs import PriceHistoryIOManager
from pricing_pipeline.dagster.reader import PricingReader

__all__ = ["PriceHistoryIOManager", "PricingReader"]
