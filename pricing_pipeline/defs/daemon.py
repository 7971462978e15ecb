"""`python -m pricing_pipeline.defs.daemon MARK run ...`: Dagster's daemon, after its storage was made ready.

MARK is a file that says that this is a fresh start; it is removed when the storage is ready.

Dagster's processes would each create the missing tables at the same time. And a run that was going when
everything was killed would count as running for ever, and take a place in the run queue. Both are seen to
here and not in a process of their own, because importing Dagster is what a start mostly waits for.
"""

import os
import socket
import sys
import time
from pathlib import Path

import dagster as dg
from dagster._daemon.cli import cli  # what the command `dagster-daemon` calls

_UNFINISHED = [
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def main() -> None:
    """Make the storage ready if this is a fresh start, wait for the code server, and become the daemon."""
    fresh_start, *arguments = sys.argv[1:]
    if Path(fresh_start).exists():
        prepare()
        Path(fresh_start).unlink()
    # The daemon would look for a code server that is not there yet only once a minute.
    while not _listens(os.environ["PRICING_CODE_SOCKET"]):
        time.sleep(0.05)
    cli(arguments, prog_name="dagster-daemon", obj={})


def prepare() -> None:
    """Create or migrate the storage, and fail what the last stop cut off."""
    with dg.DagsterInstance.get() as instance:
        instance.upgrade()
        for run in instance.get_runs(dg.RunsFilter(statuses=_UNFINISHED)):
            instance.report_run_failed(
                run, "the pipeline was stopped during this run; its tasks are taken up again"
            )


def _listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(path) == 0


if __name__ == "__main__":
    main()
