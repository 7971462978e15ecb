"""The pipeline for a Dagster project of yours: definitions to merge with yours, and a component for `dg`.

docs/dagster.md shows both.
"""

from pricing_pipeline.dagster.building import build_defs
from pricing_pipeline.dagster.component import PricingPipelineComponent

__all__ = ["PricingPipelineComponent", "build_defs"]
