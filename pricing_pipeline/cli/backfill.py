"""`backfill start|list|show|cancel`: history that a person requests, and its cost.

The database decides what is missing (`pricing.plan_backfill`). It is fetched by a run of Dagster that is followed
from here, or in this process: both fetch the same, and only once.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit
from uuid import UUID

import typer

from pricing_pipeline.cli.arguments import day, id_of_backfill
from pricing_pipeline.cli.database import load_settings, open_connection, open_engine, with_sandbox
from pricing_pipeline.cli.options import Json, Last, Type, symbols_argument
from pricing_pipeline.cli.output import (
    console,
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
from pricing_pipeline.cli.style import in_zone, listing, zone, zoned
from pricing_pipeline.demand import backfills, dagster_runs
from pricing_pipeline.domain.words import counted
from pricing_pipeline.errors import DagsterUnreachable, DatabaseError, ProviderDown
from pricing_pipeline.keys import clients as provider_clients
from pricing_pipeline.refresh import refresher as refreshers

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from pricing_pipeline.demand.backfills import Estimate, Progress, Request
    from pricing_pipeline.demand.dagster_runs import Location, Webserver
    from pricing_pipeline.settings import Settings

noun = typer.Typer()

BackfillId = Annotated[str, typer.Argument(metavar="ID", help="An id of `backfill list`.")]

_FOLLOW_SECONDS = 0.5
_EXPLAINED_AFTER_SECONDS = 3.0
_ENDED = frozenset({"SUCCESS", "FAILURE", "CANCELED"})

Show = Callable[[str, "Progress"], None]
"""Shows the work and its progress."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a backfill ended; without Dagster there is no run. `backfill_id` is None if nothing was planned."""

    backfill_id: UUID | None
    tasks: int
    open: int
    failed: int
    cancelled: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Instruments that were not asked for, by reason."""
    run_id: str | None = None
    run_url: str | None = None
    run_status: str | None = None
    reason: str | None = None
    """Why nothing was planned, where the run has said so."""

    @property
    def is_complete(self) -> bool:
        """Every task done. A run may still have failed after its last task: then its status says so."""
        return self.backfill_id is not None and self.open == self.failed == self.cancelled == 0


class Pauses:
    """Prints each reason once why a backfill waits: its providers may not be called."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._open = -1
        self._since = 0.0
        self._told: set[str] = set()

    def explain(self, backfill_id: UUID, progress: Progress) -> None:
        """Look for a reason when no task has ended for some seconds."""
        now = time.monotonic()
        if progress.open == 0 or progress.open != self._open:
            self._open, self._since = progress.open, now
        elif now - self._since >= _EXPLAINED_AFTER_SECONDS:
            self._since = now
            with self._engine.connect() as connection:
                reasons = backfills.waits_for(connection, backfill_id)
            for reason in (reason for reason in reasons if reason not in self._told):
                self._told.add(reason)
                warn(f"it waits: {reason}.")


def _in_process(settings: Settings, engine: Engine, request: Request, show: Show) -> Outcome:
    """Plan and fetch here, within the limits, beside other workers on the queue.

    Raises ProviderDown when the sandbox is to be asked and does not run, and SettingsError when no provider of the
    data type has a key.
    """
    if settings.sandbox:
        _require_sandbox(settings)
    worker = f"{socket.gethostname()}:{os.getpid()}"
    with (
        provider_clients.open_clients(settings, engine) as clients,
        refreshers.Refresher(engine, clients, worker=worker) as refresher,
    ):
        plan = refresher.plan_backfill(request.type_.data_type, request.window, request.symbols)
        try:
            pauses = Pauses(engine)

            def look(progress: Progress) -> None:
                show("fetching", progress)
                pauses.explain(plan.id, progress)

            end = refresher.backfill(plan, look)
        except KeyboardInterrupt as stop:
            raise KeyboardInterrupt("stopped. What is not fetched yet stays queued for the next worker.") from stop
    return Outcome(plan.id, end.tasks, end.open, end.failed)


def _in_dagster(webserver: Webserver, where: Location, engine: Engine, request: Request, show: Show) -> Outcome:
    """Have Dagster do it, and wait until everything is fetched. Raises DagsterUnreachable when it refuses."""
    name = request.type_.data_type
    run_id = webserver.launch(where, name, request.window, request.symbols)
    show("starting", backfills.Progress(0, 0, 0))
    try:
        return _follow(webserver, engine, run_id, name, show)
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(
            f"left. The run goes on: {webserver.run_url(run_id)}. `pricing-pipeline backfill list` has its backfill as "
            "soon as it begins, and `pricing-pipeline backfill cancel` ends it."
        ) from stop


def _follow(webserver: Webserver, engine: Engine, run_id: str, data_type: str, show: Show) -> Outcome:
    """Watch the tasks of a run's backfill until all are finished, or the run has ended without finishing them.

    The run itself lives on for a while, to report each month to Dagster. While the webserver is away, the tasks show
    enough; while the database is away, it waits.
    """
    from sqlalchemy.exc import OperationalError

    backfill_id: UUID | None = None
    progress, pauses = backfills.Progress(0, 0, 0), Pauses(engine)
    is_warned = False
    status: str | None = "STARTING"
    while True:
        # Asked before the tasks are counted, so that the count includes everything that the run did.
        with suppress(DagsterUnreachable):
            status = webserver.status(run_id)
        try:
            with engine.begin() as connection:
                backfill_id = backfill_id or backfills.of_run(connection, run_id, data_type)
                if backfill_id is not None:
                    progress = backfills.progress(connection, backfill_id)
            if backfill_id is not None:
                pauses.explain(backfill_id, progress)
        except (DatabaseError, OperationalError) as error:
            if not is_warned:
                warn(f"{error} Waiting for it.")
            is_warned = True
        else:
            is_warned = False
            is_fetched = backfill_id is not None and progress.is_finished
            if is_fetched or status in _ENDED or status is None:
                url = webserver.run_url(run_id)
                reason = None
                if backfill_id is None:
                    with suppress(DagsterUnreachable):
                        reason = webserver.failure(run_id)
                return Outcome(
                    backfill_id,
                    progress.tasks,
                    progress.open,
                    progress.failed,
                    run_id=run_id,
                    run_url=url,
                    run_status=status,
                    reason=reason,
                )
        show(_phase(status, backfill_id is not None), progress)
        time.sleep(_FOLLOW_SECONDS)


def _phase(status: str | None, is_planned: bool) -> str:
    if is_planned:
        return "fetching"
    return "waiting for its turn" if status == "QUEUED" else "starting"


def _require_sandbox(settings: Settings) -> None:
    # Without this each task would be tried four times over minutes before it reported that nothing listens there.
    from pricing_pipeline.providers.configured import sandbox_url

    address = urlsplit(sandbox_url(settings))
    try:
        socket.create_connection((address.hostname or "", address.port or 80), timeout=2).close()
    except OSError:
        raise ProviderDown(
            f"the sandbox at {address.geturl()} does not answer. Start it with `pricing-pipeline up` or "
            "`pricing-pipeline sandbox`, or set PRICING_SANDBOX=false to ask the real providers."
        ) from None


@noun.command()
@listing
def start(
    data_type: Type,
    first: Annotated[str, typer.Option("--from", metavar="DATE", help="First day, like 2000-03-01 or 2000-03.")],
    symbols: Annotated[
        list[str] | None, symbols_argument("Only these; default: every instrument that is not paused.")
    ] = None,
    last: Last = None,
    again: Annotated[bool, typer.Option("--again", help="Also ask for days that had no value before.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the cost; queue nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Fetch the history that is missing between two days. Stored values cost no call.

    Days for which the provider answered without a value are requested again only with --again.

    Dagster does it if it runs on this home, and continues when you leave; otherwise this process does. With
    --dry-run: calls, units, bytes, time and share of the quota. The exit code is 1 if something failed, would be
    refused, or every instrument is left out.

    \b
    Example: pricing-pipeline backfill start AAPL MSFT --type equity_daily --from 2000-03 --to 2013-02
    """
    first_day = day(first, "--from")
    last_day = None if last is None else day(last, "--to", last=True)
    wanted = list(dict.fromkeys(symbols)) if symbols else None
    if dry_run:
        done = _show_cost(data_type, first_day, last_day, wanted, again=again, as_json=as_json)
    else:
        done = _fetch_and_print(data_type, first_day, last_day, wanted, again=again, as_json=as_json)
    if not done:
        raise typer.Exit(1)


def _fetch_and_print(
    data_type: str,
    first: date,
    last: date | None,
    symbols: list[str] | None,
    *,
    again: bool = False,
    as_json: bool,
) -> bool:
    """Fetch what is missing between two days (no last day: today); `again` repeats days for which the provider had no
    value.

    False if that failed, or every instrument was left out.
    """
    settings = load_settings()
    cost, failures, cancelled, left_out = (
        backfills.Cost(0, 0, 0, 0),
        list[backfills.Failure](),
        0,
        dict[str, int](),
    )
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
        outcome = replace(outcome, failed=max(outcome.failed - cancelled, 0), cancelled=cancelled, left_out=left_out)
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
        _print(request, outcome, cost, states)
    if outcome.is_complete and not states:
        return False
    if not outcome.is_complete:
        _complain(outcome, failures)
    elif outcome.run_status in ("FAILURE", "CANCELED"):
        warn(f"everything is fetched, yet the run ended as {outcome.run_status}: {outcome.run_url}")
    return outcome.is_complete


def _fetch(settings: Settings, engine: Engine, request: Request, show: Show) -> Outcome:
    webserver = dagster_runs.Webserver.of_home(settings)
    if webserver is not None:
        with webserver:
            where = _place_of(webserver, request)
            if isinstance(where, dagster_runs.Location):
                return _in_dagster(webserver, where, engine, request, show)
        warn(f"{where}; the backfill runs in this process.")
    return _in_process(with_sandbox(settings), engine, request, show)


def _place_of(webserver: dagster_runs.Webserver, request: Request) -> dagster_runs.Location | str:
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


def _print(request: Request, outcome: Outcome, cost: backfills.Cost, states: Mapping[str, int]) -> None:
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
        f"{counted(cost.rows_stored, 'value')} stored with {counted(cost.calls, 'call')} "
        f"({counted(cost.units, 'unit')}, {size(cost.wire_bytes)})."
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


def _show_cost(
    data_type: str,
    first: date,
    last: date | None,
    symbols: list[str] | None,
    *,
    again: bool = False,
    as_json: bool,
) -> bool:
    """Tell what a backfill would ask of each provider, and queue nothing; `again` as in `backfill start`.

    False when it would be refused, or would leave out every instrument.
    """
    with open_connection() as connection:
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
                "providers": [_estimate_row(estimate) for estimate in estimates],
            }
        )
    elif not estimates:
        typer.echo(f"{data_type}: {backfills.nothing_words(request.window, states, left_out)}.")
    else:
        typer.echo(f"{data_type}, {request.window.start} to {request.window.end}:")
        _show_estimates(estimates)
    for estimate in estimates:
        _complain_of_estimate(data_type, estimate)
    if left_out and not as_json:
        warn(f"{backfills.left_out_words(left_out)}.")
    return fits


def _estimate_row(estimate: Estimate) -> dict[str, object]:
    share = estimate.quota_share
    return asdict(estimate) | {
        "quota_share": None if share is None else round(share, 6),
        "fits": estimate.fits,
    }


def _show_estimates(estimates: Sequence[Estimate]) -> None:
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


def _complain_of_estimate(data_type: str, estimate: Estimate) -> None:
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


@noun.command("list")
@listing
def list_(
    at_most: Annotated[int, typer.Option("--limit", min=1, help="Show at most this many rows, the newest first.")] = 20,
    as_json: Json = False,
) -> None:
    """List backfills and their progress, the newest first, also those of the Dagster UI.

    \b
    Example: pricing-pipeline backfill list --limit 5
    """
    with open_connection() as connection:
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


@noun.command()
@zoned
def show(id_: BackfillId, as_json: Json = False) -> None:
    """Show one backfill: its progress, cost and failures, and what it waits for.

    \b
    Example: pricing-pipeline backfill show 2f1c1f6e-8a0f-4a51-9a5b-1d2e3f405162
    """
    backfill_id = id_of_backfill(id_)
    with open_connection() as connection:
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
            "cost": f"{counted(spent.calls, 'call')}, {counted(spent.units, 'unit')}, {size(spent.wire_bytes)}",
            "stored": counted(spent.rows_stored, "value"),
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


@noun.command()
@zoned
def cancel(id_: BackfillId, as_json: Json = False) -> None:
    """Cancel the unfinished part of a backfill. Stored values stay.

    \b
    Example: pricing-pipeline backfill cancel 2f1c1f6e-8a0f-4a51-9a5b-1d2e3f405162
    """
    backfill_id = id_of_backfill(id_)
    with open_engine() as engine, engine.begin() as connection:
        count = backfills.cancel(connection, backfill_id)
        finished_at, cancelled_at = backfills.ended(connection, backfill_id)
    if as_json:
        print_json({"backfill_id": backfill_id, "cancelled": count})
    elif count or not finished_at:
        typer.echo(
            f"cancelled {counted(count, 'task')}. Fetched values stay, and another backfill continues from there."
        )
    elif cancelled_at:
        typer.echo(f"nothing to do: it was cancelled at {moment(cancelled_at)} {zone()}.")
    else:
        typer.echo(f"nothing to do: it ended at {moment(finished_at)} {zone()}.")
