"""The commands of `operation` as they are typed."""

from __future__ import annotations

from typing import Annotated

import typer

from pricing_pipeline.cli.options import Json, Limit
from pricing_pipeline.cli.style import listing, zoned
from pricing_pipeline.domain.states import LIVE_AND_FAILED_OPERATIONS, OperationStatus

noun = typer.Typer(help="Look at side effects such as messages, and step in.")

Ids = Annotated[list[int], typer.Argument(metavar="ID", min=1, help="Ids, as `operation list` shows them.")]


@noun.command("list")
@listing
def list_(
    statuses: Annotated[
        list[OperationStatus],
        typer.Option("--status", help="Only operations in this state; may be repeated."),
    ] = LIVE_AND_FAILED_OPERATIONS,
    operation_type: Annotated[
        str | None, typer.Option("--type", metavar="TYPE", help="Only this type, such as webhook; else all.")
    ] = None,
    limit: Limit = 50,
    as_json: Json = False,
) -> None:
    """List side effects: waiting ones in the order they are claimed, then finished ones, the newest first.

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
    """Count side effects by type and status, and those of today.

    \b
    Example: pricing-pipeline operation status
    """
    from pricing_pipeline.cli import operation

    operation.status(as_json=as_json)


@noun.command()
def retry(
    ids: Annotated[
        list[int] | None,
        typer.Argument(
            metavar="ID", min=1, help="Ids of failed or cancelled operations.", show_default=False
        ),
    ] = None,
    all_failed: Annotated[
        bool, typer.Option("--all-failed", help="All operations that have failed for good.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Queue failed or cancelled side effects again, with all their attempts and the same idempotency key.

    The exit code is 1 when an operation could not be retried.

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
    """Cancel side effects that wait or are under way. Those under way may have happened already.

    The exit code is 1 when an operation could not be cancelled.

    \b
    Example: pricing-pipeline operation cancel 17 18
    """
    from pricing_pipeline.cli import operation

    if not operation.cancel(ids, as_json=as_json):
        raise typer.Exit(1)
