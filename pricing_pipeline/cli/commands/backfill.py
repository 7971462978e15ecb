"""The commands of `backfill` as they are typed."""

from __future__ import annotations

from typing import Annotated

import typer

from pricing_pipeline.cli.options import Json, Last, Type, symbols_argument
from pricing_pipeline.cli.style import listing, zoned

noun = typer.Typer(help="Fetch history, see how far that is, or call it off.")

BackfillId = Annotated[str, typer.Argument(metavar="ID", help="Of `backfill list`.")]


@noun.command()
@listing
def start(
    data_type: Type,
    first: Annotated[
        str, typer.Option("--from", metavar="DATE", help="First day, like 2000-03-01 or 2000-03.")
    ],
    symbols: Annotated[
        list[str] | None, symbols_argument("Only these; else every instrument that is not paused.")
    ] = None,
    last: Last = None,
    again: Annotated[
        bool, typer.Option("--again", help="Also ask for days that had no value before.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the cost; queue nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Fetch the history that is missing between two days. What is stored already costs no call.

    A day for which the provider has answered without a value is asked for again only with --again.

    Dagster does it if it runs on this home, and goes on when you leave; otherwise this process does. With
    --dry-run: calls, units, bytes, time and share of the quota. The exit code is 1 if something failed, would be
    refused, or every instrument is left out.

    \b
    Example: pricing-pipeline backfill start AAPL MSFT --type equity_daily --from 2000-03 --to 2013-02
    """
    from pricing_pipeline.cli.arguments import day

    first_day = day(first, "--from")
    last_day = None if last is None else day(last, "--to", last=True)
    wanted = list(dict.fromkeys(symbols)) if symbols else None
    if dry_run:
        from pricing_pipeline.cli import backfill

        done = backfill.cost(data_type, first_day, last_day, wanted, again=again, as_json=as_json)
    else:
        from pricing_pipeline.cli import backfill_start

        done = backfill_start.start(data_type, first_day, last_day, wanted, again=again, as_json=as_json)
    if not done:
        raise typer.Exit(1)


@noun.command("list")
@listing
def list_(
    at_most: Annotated[
        int, typer.Option("--limit", min=1, help="Show at most this many rows, the newest first.")
    ] = 20,
    as_json: Json = False,
) -> None:
    """List backfills and how far they are, the newest first; those of the Dagster UI too.

    \b
    Example: pricing-pipeline backfill list --limit 5
    """
    from pricing_pipeline.cli import backfill

    backfill.list_(at_most, as_json=as_json)


@noun.command()
@zoned
def show(backfill_id: BackfillId, as_json: Json = False) -> None:
    """Show one backfill: how far it is, what it cost, what failed, and what it waits for.

    \b
    Example: pricing-pipeline backfill show 2f1c1f6e-8a0f-4a51-9a5b-1d2e3f405162
    """
    from pricing_pipeline.cli import backfill
    from pricing_pipeline.cli.arguments import identifier

    backfill.show(identifier(backfill_id, "backfill list"), as_json=as_json)


@noun.command()
@zoned
def cancel(backfill_id: BackfillId, as_json: Json = False) -> None:
    """Call a backfill off: what it still waits for is not fetched. What is stored stays.

    \b
    Example: pricing-pipeline backfill cancel 2f1c1f6e-8a0f-4a51-9a5b-1d2e3f405162
    """
    from pricing_pipeline.cli import backfill
    from pricing_pipeline.cli.arguments import identifier

    backfill.cancel(identifier(backfill_id, "backfill list"), as_json=as_json)
