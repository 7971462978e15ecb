"""Everything that other Dagster projects may import; docs/dagster.md shows how."""

from pricing_pipeline.dagster.building import build_defs
from pricing_pipeline.dagster.component import PricingPipelineComponent
from pricing_pipeline.dagster.history_inputs import PriceHistoryIOManager
from pricing_pipeline.dagster.reader import PricingReader

__all__ = ["PriceHistoryIOManager", "PricingPipelineComponent", "PricingReader", "build_defs"]
