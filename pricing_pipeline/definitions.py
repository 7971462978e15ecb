"""The code location of `pricing-pipeline up`: our definitions alone."""

from __future__ import annotations

import dagster as dg

from pricing_pipeline.dagster import build_defs


@dg.definitions
def definitions() -> dg.Definitions:
    """Load from the registry; in a run worker, from the copy its code location was built from."""
    ours_alone = dg.Definitions(
        # Nothing goes through it. Dagster's own writes files, to a folder that a run's config may name.
        resources={"io_manager": dg.mem_io_manager},
        # Of Dagster's own job, which the UI starts; our jobs have it anyway.
        executor=dg.in_process_executor,
    )
    return dg.Definitions.merge(build_defs(), ours_alone)
