"""`backfill start`: check what is asked, have it fetched one way or the other, tell how it went."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import date

import typer
from sqlalchemy import Engine

from pricing_pipeline.cli.backfill_ways import Outcome, Show, in_dagster, in_process
from pricing_pipeline.cli.database import open_engine
from pricing_pipeline.cli.output import console, listed, print_json, size
from pricing_pipeline.cli.program import warn
from pricing_pipeline.cli.provider_access import with_sandbox
from pricing_pipeline.demand import backfills
from pricing_pipeline.demand.backfills import Progress, Request
from pricing_pipeline.demand.dagster_runs import Location, Webserver
from pricing_pipeline.errors import DagsterUnreachable
from pricing_pipeline.settings import Settings, load_settings

_NO_COST = backfills.Cost(0, 0, 0, 0)


def start(
    data_type: str,
    first: date,
    last: date | None,
    symbols: list[str] | None,
    *,
    again: bool = False,
    as_json: bool,
) -> bool:
    """Fetch what is missing between two days (the last one None: today); `again` also what the provider had none of.

    False when that did not succeed, or every instrument was left out.
    """
    settings = load_settings()
    cost, failures, cancelled, left_out = _NO_COST, list[backfills.Failure](), 0, dict[str, int]()
    states = dict[str, int]()
    with open_engine(settings, pool_size=7) as engine:
        with engine.begin() as connection:
            request = backfills.checked(connection, data_type, first, last, symbols)
            if again:
                backfills.ask_again(connection, request)
        with _progress(data_type, quiet=as_json) as show:
            outcome = _fetch(settings, engine, request, show)
        if outcome.backfill_id is not None:
            with engine.connect() as connection:
                cost = backfills.cost(connection, outcome.backfill_id)
                failures = backfills.failures(connection, outcome.backfill_id)
                cancelled = backfills.cancelled(connection, outcome.backfill_id)
                left_out = backfills.left_out_of(connection, outcome.backfill_id)
                states = backfills.states(connection, data_type, request.window, request.symbols)
        outcome = replace(
            outcome, failed=max(outcome.failed - cancelled, 0), cancelled=cancelled, left_out=left_out
        )
    if as_json:
        print_json(
            {
                "data_type": data_type,
                "from": request.window.start,
                "to": request.window.end,
                "symbols": symbols,
            }
            | asdict(outcome)
            | asdict(cost)
            | {"states": states, "failures": [asdict(failure) for failure in failures]}
        )
    else:
        _say(request, outcome, cost, states)
    if outcome.is_complete and not states:
        return False
    if not outcome.is_complete:
        _complain(outcome, failures)
    elif outcome.run_status in ("FAILURE", "CANCELED"):
        warn(f"everything is fetched, yet the run ended as {outcome.run_status}: {outcome.run_url}")
    return outcome.is_complete


def _fetch(settings: Settings, engine: Engine, request: Request, show: Show) -> Outcome:
    webserver = Webserver.of_home(settings)
    if webserver is not None:
        with webserver:
            where = _place_of(webserver, request)
            if isinstance(where, Location):
                return in_dagster(webserver, where, engine, request, show)
        warn(f"{where}; the backfill runs in this process.")
    return in_process(with_sandbox(settings), engine, request, show)


def _place_of(webserver: Webserver, request: Request) -> Location | str:
    """Where Dagster has the asset, or a clause on why Dagster cannot run this backfill."""
    name = request.type_.data_type
    try:
        where = webserver.find(name)
    except DagsterUnreachable:
        return f"Dagster at {webserver.url} does not answer"
    if where is None:
        return f"Dagster at {webserver.url} has no asset {webserver.history(name)} yet"
    if request.window.start < where.first_day:
        return f"Dagster's partitions begin on {where.first_day}"
    return where


@contextmanager
def _progress(data_type: str, *, quiet: bool) -> Iterator[Show]:
    """A progress bar on standard error, where a person looks at it."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as ProgressBar

    screen = console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with ProgressBar(*columns, console=screen, disable=quiet or not screen.is_terminal) as bar:
        task = bar.add_task(data_type, total=None)

        def show(state: str, progress: Progress) -> None:
            bar.update(
                task,
                description=f"{data_type}: {state}",
                completed=progress.tasks - progress.open,
                total=progress.tasks or None,
            )

        yield show


def _say(request: Request, outcome: Outcome, cost: backfills.Cost, states: Mapping[str, int]) -> None:
    window, name = request.window, request.type_.data_type
    whose = "" if request.symbols is None else f" of {listed(request.symbols)}"
    if outcome.run_url is not None:
        typer.echo(f"run: {outcome.run_url}")
    if outcome.backfill_id is None:
        return
    if outcome.tasks == 0:
        why = backfills.nothing_words(window, states, outcome.left_out)
        typer.echo(f"{name}{whose}: {why}; no call was made.")
        _say_left_out(outcome.left_out)
        return
    done = outcome.tasks - outcome.open - outcome.failed - outcome.cancelled
    typer.echo(
        f"{name}{whose}, {window.start} to {window.end}: {done} of {outcome.tasks} tasks done, "
        f"{cost.rows_stored} values stored with {cost.calls} calls "
        f"({cost.units} units, {size(cost.wire_bytes)})."
    )
    _say_left_out(outcome.left_out)


def _say_left_out(left_out: Mapping[str, int]) -> None:
    words = backfills.left_out_words(left_out)
    if words is not None:
        warn(f"{words}.")


def _complain(outcome: Outcome, failures: Sequence[backfills.Failure]) -> None:
    for failure in failures:
        typer.echo(f"  {failure.symbol}: {failure.message or failure.kind}", err=True)
    if outcome.cancelled:
        sentence = (
            f"it was cancelled: {outcome.cancelled} of {outcome.tasks} tasks are left out"
            f"{f', and {outcome.failed} failed' if outcome.failed else ''}. "
            "What is stored stays, and the same command goes on from there."
        )
    elif outcome.failed:
        more = outcome.failed - len(failures)
        if more > 0:
            typer.echo(f"  and {more} more", err=True)
        sentence = (
            f"{outcome.failed} of {outcome.tasks} tasks failed; the rest is stored. "
            "`pricing-pipeline task list --status failed` shows them."
        )
    elif outcome.open:
        sentence = (
            f"the run ended as {outcome.run_status} with {outcome.open} of {outcome.tasks} tasks still queued. "
            f"The next drain or backfill fetches them; {outcome.run_url} shows why it ended."
        )
    elif outcome.reason is not None:
        sentence = outcome.reason
    else:
        sentence = f"the run ended as {outcome.run_status} before anything was planned: {outcome.run_url}"
    typer.echo(f"error: {sentence}", err=True)
