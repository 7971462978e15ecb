"""`backfill list|show|cancel`, and what one would cost (`backfill start --dry-run`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import date
from uuid import UUID

import typer

from pricing_pipeline.cli.database import open_connection, open_engine
from pricing_pipeline.cli.output import (
    duration,
    listed,
    moment,
    print_json,
    print_lines,
    print_table,
    printable,
    size,
)
from pricing_pipeline.cli.program import hint, warn
from pricing_pipeline.cli.style import in_zone, zone
from pricing_pipeline.demand import backfills
from pricing_pipeline.demand.backfills import Estimate
from pricing_pipeline.settings import load_settings


def cost(
    data_type: str,
    first: date,
    last: date | None,
    symbols: list[str] | None,
    *,
    again: bool = False,
    as_json: bool,
) -> bool:
    """Tell what a backfill would ask of each provider, and queue nothing; `again` as in `backfill_start.start`.

    False when it would be refused, or would leave out every instrument.
    """
    with open_connection(load_settings()) as connection:
        request = backfills.checked(connection, data_type, first, last, symbols)
        if again:
            backfills.ask_again(connection, request)  # rolled back with the connection
        estimates = backfills.estimate(connection, data_type, request.window, symbols)
        left_out = backfills.left_out(connection, data_type, symbols)
        states = backfills.states(connection, data_type, request.window, symbols)
    fits = all(estimate.fits for estimate in estimates) and bool(states)
    if as_json:
        print_json(
            {
                "data_type": data_type,
                "from": request.window.start,
                "to": request.window.end,
                "symbols": symbols,
                "tasks": sum(estimate.tasks for estimate in estimates),
                "calls": sum(estimate.calls for estimate in estimates),
                "units": sum(estimate.units for estimate in estimates),
                "wire_bytes": sum(estimate.wire_bytes for estimate in estimates),
                "minutes": round(max((estimate.seconds for estimate in estimates), default=0.0) / 60, 2),
                "fits": fits,
                "left_out": left_out,
                "states": states,
                "providers": [_row(estimate) for estimate in estimates],
            }
        )
    elif not estimates:
        typer.echo(f"{data_type}: {backfills.nothing_words(request.window, states, left_out)}.")
    else:
        typer.echo(f"{data_type}, {request.window.start} to {request.window.end}:")
        _show(estimates)
    for estimate in estimates:
        _complain(data_type, estimate)
    if left_out and not as_json:
        warn(f"{backfills.left_out_words(left_out)}.")
    return fits


def _row(estimate: Estimate) -> dict[str, object]:
    share = estimate.quota_share
    return asdict(estimate) | {
        "quota_share": None if share is None else round(share, 6),
        "fits": estimate.fits,
    }


def _show(estimates: Sequence[Estimate]) -> None:
    print_table(
        [
            "provider",
            "symbols",
            "tasks",
            "calls",
            "units",
            "bytes, about",
            "time, at least",
            "of its quota",
            "left for backfills",
        ],
        [
            (
                estimate.provider or "none",
                estimate.symbols,
                estimate.tasks,
                estimate.calls,
                estimate.units,
                size(estimate.wire_bytes),
                duration(estimate.seconds),
                "" if estimate.quota_share is None else f"{estimate.quota_share:.2%}",
                "" if estimate.left_bytes is None else size(estimate.left_bytes),
            )
            for estimate in estimates
        ],
        right=["symbols", "tasks", "calls", "units", "bytes, about", "of its quota", "left for backfills"],
        spare=["left for backfills", "symbols", "tasks", "of its quota"],
    )


def _complain(data_type: str, estimate: Estimate) -> None:
    if estimate.provider is None:
        warn(
            f"no active provider serves {data_type} of {estimate.symbols} symbols; "
            "add a route with `pricing-pipeline route add`, or choose a provider with `pricing-pipeline provider use`."
        )
    elif not estimate.fits:
        warn(
            f"the backfill would be refused: {estimate.provider} has {size(estimate.left_bytes or 0)} left for "
            "backfills. Ask for fewer days or symbols, or raise the quota with `pricing-pipeline provider change`."
        )


def list_(at_most: int, *, as_json: bool) -> None:
    """Tell the newest backfills and how far they are."""
    with open_connection(load_settings()) as connection:
        recent = backfills.recent(connection, at_most)
    if as_json:
        print_json({"backfills": [asdict(backfill) | {"state": backfill.state} for backfill in recent]})
        return
    print_table(
        ["id", "data type", "days", "state", "done", "failed", "symbols", in_zone("asked at")],
        [
            (
                backfill.backfill_id,
                backfill.data_type,
                f"{backfill.first_day} to {backfill.last_day}",
                backfill.state,
                f"{backfill.done} of {backfill.tasks}",
                backfill.failed,
                "all" if backfill.symbols is None else listed(backfill.symbols, 3),
                moment(backfill.requested_at),
            )
            for backfill in recent
        ],
        right=["done", "failed"],
        spare=[in_zone("asked at"), "symbols", "failed", "days"],
    )
    if not recent:
        hint("there was no backfill yet: pricing-pipeline backfill start --help")


def show(backfill_id: UUID, *, as_json: bool) -> None:
    """Tell everything about one backfill. Raises UnknownBackfill."""
    with open_connection(load_settings()) as connection:
        backfill = backfills.find(connection, backfill_id)
        spent = backfills.cost(connection, backfill_id)
        failures = backfills.failures(connection, backfill_id)
        waits = backfills.waits_for(connection, backfill_id)
    if as_json:
        more = {"failures": [asdict(failure) for failure in failures], "waits_for": waits}
        print_json(asdict(backfill) | {"state": backfill.state} | asdict(spent) | more)
        return
    counts = {
        "done": backfill.done,
        "failed": backfill.failed,
        "cancelled": backfill.cancelled,
        "open": backfill.open,
    }
    tasks = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    print_lines(
        {
            "backfill": backfill.backfill_id,
            "what": f"{backfill.data_type}, {backfill.first_day} to {backfill.last_day}",
            "symbols": "all" if backfill.symbols is None else listed(backfill.symbols),
            "state": backfill.state,
            "tasks": f"{backfill.tasks}: {tasks}" if tasks else backfill.tasks,
            "cost": f"{spent.calls} calls, {spent.units} units, {size(spent.wire_bytes)}",
            "stored": f"{spent.rows_stored} values",
            "asked at": moment(backfill.requested_at),
            "ended at": moment(backfill.finished_at),
            "cancelled": moment(backfill.cancelled_at),
            "left out": backfills.left_out_words(backfill.left_out),
            "run": backfill.run_id,
            "waits for": "; ".join(waits),
        }
    )
    for failure in failures:
        typer.echo(printable(f"  {failure.symbol}: {failure.message or failure.kind}"))


def cancel(backfill_id: UUID, *, as_json: bool) -> None:
    """Call a backfill off. Raises UnknownBackfill."""
    with open_engine(load_settings()) as engine, engine.begin() as connection:
        count = backfills.cancel(connection, backfill_id)
        finished_at, cancelled_at = backfills.ended(connection, backfill_id)
    if as_json:
        print_json({"backfill_id": backfill_id, "cancelled": count})
    elif count or not finished_at:
        typer.echo(
            f"{count} tasks are cancelled. What was fetched stays, and another backfill goes on from there."
        )
    elif cancelled_at:
        typer.echo(f"nothing to do: it was cancelled at {moment(cancelled_at)} {zone()}.")
    else:
        typer.echo(f"nothing to do: it ended at {moment(finished_at)} {zone()}.")
