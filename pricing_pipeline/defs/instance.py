"""`python -m pricing_pipeline.defs.instance`: make Dagster's storage ready before its processes start.

They would each create the missing tables at the same time. And a run that was going when everything was
killed would count as running for ever, and take a place in the run queue.
"""

import dagster as dg

_UNFINISHED = [
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def main() -> None:
    """Create or migrate the storage, and fail what the last stop cut off."""
    with dg.DagsterInstance.get() as instance:
        instance.upgrade()
        for run in instance.get_runs(dg.RunsFilter(statuses=_UNFINISHED)):
            instance.report_run_failed(
                run, "the pipeline was stopped during this run; its tasks are taken up again"
            )


if __name__ == "__main__":
    main()
