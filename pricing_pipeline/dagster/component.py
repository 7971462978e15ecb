"""The component for `dg`: the pipeline as a defs.yaml.

No postponed annotations here: Dagster reads the fields of a component when its class is made.
"""

from typing import Annotated

import dagster as dg

from pricing_pipeline.dagster.building import build_defs
from pricing_pipeline.settings import OWN


class PricingPipelineComponent(dg.Component, dg.Model, dg.Resolvable):
    """Prices that are kept fresh inside every provider's limits: the assets, checks, sensors and jobs of a pipeline.

    It holds no secret: the database and the keys of providers come from environment variables.
    """

    prefix: Annotated[
        str | list[str] | None,
        dg.Resolver.default(
            description="What the keys of all assets begin with, such as prices or eu/prices; names of jobs, sensors, "
            "groups and resources begin with it, too. Unset: the setting PRICING_ASSET_PREFIX, or no prefix.",
        ),
    ] = None
    variables: Annotated[
        str,
        dg.Resolver.default(
            description="What the names of the environment variables begin with that hold the settings. With "
            "EU_PRICING_ the URL of the database is in EU_PRICING_DATABASE_URL.",
        ),
    ] = OWN.variables

    @classmethod
    def get_spec(cls) -> dg.ComponentTypeSpec:
        return dg.ComponentTypeSpec(
            description="Prices that are kept fresh inside every provider's limits.",
            produces=["asset", "asset_check", "job", "schedule", "sensor", "resource"],
        )

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        return build_defs(prefix=self.prefix, variables=self.variables)
