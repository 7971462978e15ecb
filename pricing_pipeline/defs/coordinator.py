"""The run queue of dagster.yaml: Dagster's own, which also tags runs that a person starts, and those of others.

Dagster limits runs by their tags, and no tag of its UI tells such runs from drains: one month has the same tag as the
month of a drain, and documents have no tag.
"""

import dagster as dg

from pricing_pipeline.defs.naming import CHECKS_JOB, SYNC_JOB, Naming
from pricing_pipeline.defs.ours import DRAIN_TAG, LABEL
from pricing_pipeline.settings import load_settings_as_guest

BY_HAND_TAG = "pricing/by-hand"
"""The tag of our runs that are neither drains, checks nor syncs. dagster.yaml limits how many of them run at once."""

BESIDE_TAG = "pricing/beside"
"""The tag of runs of code locations beside ours. dagster.yaml limits how many of them run at once."""


class PricingRunCoordinator(dg.QueuedRunCoordinator[dg.DagsterInstance]):
    """Queues every run, and tags those that people start and those of others, so that they leave room for drains."""

    def submit_run(self, context: dg.SubmitRunContext) -> dg.DagsterRun:
        run = context.dagster_run
        origin = run.remote_job_origin
        is_ours = origin is not None and origin.repository_origin.get_label() == LABEL
        if is_ours and DRAIN_TAG not in run.tags and not _is_short(run):
            self._instance.add_run_tags(run.run_id, {BY_HAND_TAG: "true"})
        elif origin is not None and not is_ours:
            self._instance.add_run_tags(run.run_id, {BESIDE_TAG: "true"})
        return super().submit_run(context)


def _is_short(run: dg.DagsterRun) -> bool:
    """Whether a run only checks, or syncs lists. The UI starts both in a job of Dagster's own."""
    chosen = run.asset_selection or frozenset()
    is_check = bool(run.asset_check_selection) and not chosen
    naming = Naming.of(load_settings_as_guest())
    short_jobs = (naming.name(CHECKS_JOB), naming.name(SYNC_JOB))
    return is_check or chosen == {naming.commodity_lists} or run.job_name in short_jobs
