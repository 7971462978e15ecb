"""The commands of `operation` as they are typed."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from pricing_pipeline.cli.options import Json
from pricing_pipeline.cli.style import listing, zoned

noun = typer.Typer(help="Look at side effects such as messages, and step in.")

Ids = Annotated[list[int], typer.Argument(metavar="ID", min=1, help="Ids, as `operation list` shows them.")]


class OperationStatus(StrEnum):
    """The states of a side effect."""

    PENDING = "pending"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


_LIVE_AND_FAILED = [OperationStatus.PENDING, OperationStatus.PROCESSING, OperationStatus.FAILED]


@noun.command("list")
@listing
def list_(
    statuses: Annotated[
        list[OperationStatus], typer.Option("--status", help="Only those in this state; may be repeated.")
    ] = _LIVE_AND_FAILED,
    operation_type: Annotated[
        str | None, typer.Option("--type", metavar="TYPE", help="Only this type, such as webhook; else all.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 50,
    as_json: Json = False,
) -> None:
    """List side effects: those that wait in the order they are claimed, then the newest finished ones.

    \b
    Example: pricing-pipeline operation list --status failed
    """
    from pricing_pipeline.cli import operation

    operation.list_([status.value for status in statuses], operation_type, limit, as_json=as_json)


@noun.command()
@zoned
def show(
    operation_id: Annotated[int, typer.Argument(metavar="ID", min=1, help="As in `operation list`.")],
    as_json: Json = False,
) -> None:
    """Show one side effect: what it is to do, where it stands, and every failure it has had.

    \b
    Example: pricing-pipeline operation show 17
    """
    from pricing_pipeline.cli import operation

    operation.show(operation_id, as_json=as_json)


@noun.command()
@listing
def status(as_json: Json = False) -> None:
    """Count side effects by type and status, and tell what was done today.

    \b
    Example: pricing-pipeline operation status
    """
    from pricing_pipeline.cli import operation

    operation.status(as_json=as_json)


@noun.command()
def retry(
    ids: Annotated[
        list[int] | None,
        typer.Argument(metavar="ID", min=1, help="Ids of dead ones.", show_default=False),
    ] = None,
    all_failed: Annotated[bool, typer.Option("--all-failed", help="All that have failed for good.")] = False,
    as_json: Json = False,
) -> None:
    """Queue dead side effects again, with all their attempts and the same idempotency key.

    The exit code is 1 when one could not be retried.

    \b
    Example: pricing-pipeline operation retry --all-failed
    """
    if bool(ids) == all_failed:
        raise typer.BadParameter("name operations by their ids, or give --all-failed; not both")
    from pricing_pipeline.cli import operation

    if not operation.retry(ids or [], all_failed=all_failed, as_json=as_json):
        raise typer.Exit(1)


@noun.command()
def cancel(ids: Ids, as_json: Json = False) -> None:
    """Cancel side effects that wait or are under way. One that is under way may have happened already.

    The exit code is 1 when one could not be cancelled.

    \b
    Example: pricing-pipeline operation cancel 17 18
    """
    from pricing_pipeline.cli import operation

    if not operation.cancel(ids, as_json=as_json):
        raise typer.Exit(1)
