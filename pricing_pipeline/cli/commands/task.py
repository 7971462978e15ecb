"""The commands of `task` as they are typed."""

from __future__ import annotations

from typing import Annotated

import typer

from pricing_pipeline.cli.options import Json, Limit
from pricing_pipeline.cli.style import listing
from pricing_pipeline.domain.states import LIVE_AND_FAILED_TASKS, TaskStatus

noun = typer.Typer(help="Look at the tasks of the fetch queue, and step in.")

Ids = Annotated[
    list[int], typer.Argument(metavar="ID", min=1, help="Ids of tasks, as `task list` shows them.")
]


@noun.command("list")
@listing
def list_(
    statuses: Annotated[
        list[TaskStatus], typer.Option("--status", help="Only tasks in this state; may be repeated.")
    ] = LIVE_AND_FAILED_TASKS,
    limit: Limit = 50,
    as_json: Json = False,
) -> None:
    """List tasks of the fetch queue: live ones in the order they are claimed, then finished ones, the newest first.

    \b
    Example: pricing-pipeline task list --status failed --limit 10
    """
    from pricing_pipeline.cli import task

    task.list_([status.value for status in statuses], limit, as_json=as_json)


@noun.command()
@listing
def show(
    task_id: Annotated[int, typer.Argument(metavar="ID", min=1, help="A task's id, as in `task list`.")],
    as_json: Json = False,
) -> None:
    """Show one task: what it is for, where it stands, and every failure it has had.

    \b
    Example: pricing-pipeline task show 17
    """
    from pricing_pipeline.cli import task

    task.show(task_id, as_json=as_json)


DeadIds = Annotated[
    list[int] | None, typer.Argument(metavar="ID", min=1, help="Ids of dead tasks.", show_default=False)
]
AllFailed = Annotated[
    bool, typer.Option("--all-failed", help="All failed tasks that nothing has settled since.")
]
OfType = Annotated[
    str | None, typer.Option("--type", metavar="TYPE", help="Of --all-failed: only this data type.")
]
OfProvider = Annotated[
    str | None, typer.Option("--provider", metavar="PROVIDER", help="Of --all-failed: only this provider.")
]


@noun.command()
def retry(
    ids: DeadIds = None,
    all_failed: AllFailed = False,
    data_type: OfType = None,
    provider: OfProvider = None,
    as_json: Json = False,
) -> None:
    """Make dead tasks pending again, with all their attempts, and end their pairs' back-off.

    A task whose work is queued already is left as it is. The exit code is 1 when a task could not be retried.

    \b
    Example: pricing-pipeline task retry --all-failed --provider twelvedata
    """
    _end(ids, data_type, provider, all_failed=all_failed, retried=True, as_json=as_json)


@noun.command()
def forget(
    ids: DeadIds = None,
    all_failed: AllFailed = False,
    data_type: OfType = None,
    provider: OfProvider = None,
    as_json: Json = False,
) -> None:
    """Settle dead tasks without another attempt: they count no longer, and their pairs back off as before.

    What is still watched or held fails again later if its cause remains.

    \b
    Example: pricing-pipeline task forget --all-failed --type equity_quote
    """
    _end(ids, data_type, provider, all_failed=all_failed, retried=False, as_json=as_json)


def _end(
    ids: list[int] | None,
    data_type: str | None,
    provider: str | None,
    *,
    all_failed: bool,
    retried: bool,
    as_json: bool,
) -> None:
    if bool(ids) == all_failed:
        raise typer.BadParameter("name tasks by their ids, or give --all-failed; not both")
    if (data_type or provider) and not all_failed:
        raise typer.BadParameter("--type and --provider choose among --all-failed; leave them out with ids")
    from pricing_pipeline.cli import task

    if not task.end(ids, data_type, provider, retried=retried, as_json=as_json):
        raise typer.Exit(1)


@noun.command()
def cancel(ids: Ids, as_json: Json = False) -> None:
    """Cancel tasks that wait or run. The answer of a running task is refused; its pair rests for an hour.

    \b
    Example: pricing-pipeline task cancel 17 18
    """
    from pricing_pipeline.cli import task

    if not task.cancel(ids, as_json=as_json):
        raise typer.Exit(1)
