"""`/v1/backfills`: estimate, start, follow and cancel backfills.

Only starting a backfill and asking for its run need Dagster. The other routes need the database alone.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import date, datetime
from typing import Annotated
from uuid import UUID

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Depends, Path, Query, Request
from pydantic import Field
from sqlalchemy import Engine

from pricing_pipeline.api.access import Database, Operator, Reader
from pricing_pipeline.api.bodies import Body, Shape
from pricing_pipeline.api.paging import Keyset, Page
from pricing_pipeline.api.parameters import LONGEST_NAME, SomeSymbols, SymbolList, each_of
from pricing_pipeline.api.problems import Refused
from pricing_pipeline.demand import backfills
from pricing_pipeline.demand.backfills import Estimate, Failure, Listed
from pricing_pipeline.demand.dagster_runs import Webserver
from pricing_pipeline.errors import DagsterUnreachable, InvalidRange
from pricing_pipeline.settings import Settings

router = APIRouter(prefix="/backfills", tags=["backfills"])

AT_ONCE = 2
"""How many requests wait for Dagster at once, in threads of their own: if it hangs, it delays no other request."""

_limiter = CapacityLimiter(AT_ONCE)


class ProviderCost(Shape):
    """The cost of a backfill at a provider (null: no active one serves the symbols). `units` are the provider's own."""

    provider: str | None
    symbols: int
    tasks: int
    calls: int
    units: int
    wire_bytes: int
    seconds: float
    quota_bytes: int | None
    used_bytes: int | None
    left_bytes: int | None
    """What the quota leaves for backfills."""
    quota_share: float | None
    fits: bool


class BackfillCost(Shape):
    """The cost of a backfill. It is refused unless it `fits`."""

    data_type: str
    first_day: date
    last_day: date
    symbols: list[str] | None
    tasks: int
    calls: int
    units: int
    wire_bytes: int
    minutes: float
    fits: bool
    left_out: dict[str, int]
    """Instruments that are left out, by reason."""
    states: dict[str, int]
    """How many of the other instruments are in each state in these days."""
    providers: list[ProviderCost]


class NewBackfill(Body):
    """The days and instruments to fetch. Without a last day: until today; without symbols: all that are not paused."""

    data_type: str = Field(max_length=LONGEST_NAME, examples=["equity_daily"])
    first_day: date = Field(examples=["2000-03-01"])
    last_day: date | None = Field(None, examples=["2013-02-28"])
    symbols: SymbolList | None = None
    again: bool = False
    """Whether to ask also for days that had no value before."""


class BackfillRun(Shape):
    """A run of Dagster that fetches a backfill. It plans the backfill when its turn comes."""

    run_id: str
    run_url: str
    status: str | None = Field(examples=["QUEUED"])
    """Dagster's status of the run."""
    backfill_id: UUID | None
    """The backfill, once it is planned."""
    failure: str | None
    """Why the run has failed before it planned the backfill."""


class Backfill(Shape):
    """A backfill and its progress, in tasks. Times are UTC."""

    backfill_id: UUID
    data_type: str
    first_day: date
    last_day: date
    symbols: list[str] | None
    run_id: str | None
    requested_at: datetime
    finished_at: datetime | None
    cancelled_at: datetime | None
    left_out: dict[str, int]
    tasks: int
    done: int
    failed: int
    cancelled: int
    open: int
    state: str = Field(examples=["running"])
    """running, done, failed or cancelled."""


class Backfills(Shape):
    """Backfills, the newest first."""

    backfills: list[Backfill]
    next: str | None
    """The cursor of the next page; null on the last one."""


class WholeBackfill(Backfill):
    """A backfill, what it has taken and brought, what failed, and what it waits for."""

    calls: int
    units: int
    wire_bytes: int
    rows_stored: int
    failures: list[Failure]
    waits_for: list[str]


class CancelledBackfill(Shape):
    """How many tasks were cancelled. `sentence` says what has become of the backfill."""

    backfill_id: UUID
    cancelled: int
    sentence: str = Field(examples=["2 tasks are cancelled, and what was fetched stays."])


_BACKFILLS: Keyset[Listed] = Keyset("backfills", (datetime, UUID), lambda row: (row.requested_at, row.backfill_id))


@router.get("/cost")
def estimate_backfill(
    database: Database,
    _: Reader,
    data_type: Annotated[str, Query(max_length=LONGEST_NAME, examples=["equity_daily"])],
    first_day: date,
    last_day: date | None = None,
    symbols: SomeSymbols = None,
) -> BackfillCost:
    """What a backfill would ask of each provider. It queues nothing."""
    named = None if symbols is None else each_of(symbols)
    with database.connect() as connection:
        request = backfills.checked(connection, data_type, first_day, last_day, named)
        estimates = backfills.estimate(connection, data_type, request.window, request.symbols)
        left_out = backfills.left_out(connection, data_type, request.symbols)
        states = backfills.states(connection, data_type, request.window, request.symbols)
    return BackfillCost(
        data_type=data_type,
        first_day=request.window.start,
        last_day=request.window.end,
        symbols=request.symbols,
        tasks=sum(estimate.tasks for estimate in estimates),
        calls=sum(estimate.calls for estimate in estimates),
        units=sum(estimate.units for estimate in estimates),
        wire_bytes=sum(estimate.wire_bytes for estimate in estimates),
        minutes=round(max((estimate.seconds for estimate in estimates), default=0.0) / 60, 2),
        fits=all(estimate.fits for estimate in estimates) and bool(states),
        left_out=left_out,
        states=states,
        providers=[_provider_cost(estimate) for estimate in estimates],
    )


@router.post("", status_code=202)
async def start_backfill(database: Database, request: Request, caller: Operator, body: NewBackfill) -> BackfillRun:
    """Have Dagster fetch what is missing between two days. What is stored already costs no call.

    The answer names the run; ask for it until it names the backfill, or has failed. 503 while Dagster does not run.
    """
    settings = request.app.state.settings
    return await to_thread.run_sync(_start, database, settings, body, caller.token.name, limiter=_limiter)


@router.get("/runs/{run_id}")
async def show_run(
    database: Database,
    request: Request,
    _: Reader,
    run_id: Annotated[str, Path(pattern="^[0-9a-f-]{8,64}$", examples=["0b5e2f7a-8a0f-4a51-9a5b-1d2e3f405162"])],
) -> BackfillRun:
    """The status of a run of Dagster, and the backfill that it has planned. 503 while Dagster does not run."""
    return await to_thread.run_sync(_run, database, request.app.state.settings, run_id, limiter=_limiter)


def _start(database: Engine, settings: Settings | None, body: NewBackfill, asked_by: str) -> BackfillRun:
    with database.connect() as connection:
        request = backfills.checked(connection, body.data_type, body.first_day, body.last_day, body.symbols)
    name = request.type_.data_type
    with _webserver(settings) as webserver:
        asset = webserver.find(name)
        if asset is None:
            raise DagsterUnreachable(
                f"Dagster at {webserver.url} has no asset {webserver.history(name)} yet. Try again in a minute."
            )
        if request.window.start < asset.first_day:
            raise InvalidRange(f"Dagster's partitions of {name} begin on {asset.first_day}. Choose no earlier day.")
        if body.again:
            with database.begin() as connection:
                backfills.ask_again(connection, request)
        run_id = webserver.launch(asset, name, request.window, request.symbols, asked_by)
        return BackfillRun(
            run_id=run_id, run_url=webserver.run_url(run_id), status="QUEUED", backfill_id=None, failure=None
        )


def _run(database: Engine, settings: Settings | None, run_id: str) -> BackfillRun:
    with _webserver(settings) as webserver:
        status = webserver.status(run_id)
        if status is None:
            raise Refused(404, "unknown-run", f"Dagster has no run {run_id}")
        with database.connect() as connection:
            backfill_id = backfills.of_run(connection, run_id)
        failure = webserver.failure(run_id) if status == "FAILURE" and backfill_id is None else None
        return BackfillRun(
            run_id=run_id,
            run_url=webserver.run_url(run_id),
            status=status,
            backfill_id=backfill_id,
            failure=failure,
        )


@router.get("")
def list_backfills(database: Database, _: Reader, page: Annotated[Page, Depends(_BACKFILLS)]) -> Backfills:
    """Backfills and how far they are, the newest first; those of the Dagster UI too."""
    with database.connect() as connection:
        rows = backfills.recent(connection, page.at_most, page.after)
    shown, following = page.cut(rows)
    return Backfills(backfills=[Backfill.model_validate(row, from_attributes=True) for row in shown], next=following)


@router.get("/{backfill_id:uuid}")
def show_backfill(database: Database, _: Reader, backfill_id: UUID) -> WholeBackfill:
    """One backfill: how far it is, what it cost, what failed, and what it waits for."""
    with database.begin() as connection:
        # Notes when it has ended.
        backfills.find(connection, backfill_id)
        backfills.progress(connection, backfill_id)
        backfill = backfills.find(connection, backfill_id)
        return WholeBackfill(
            **asdict(backfill),
            state=backfill.state,
            **asdict(backfills.cost(connection, backfill_id)),
            failures=backfills.failures(connection, backfill_id),
            waits_for=backfills.waits_for(connection, backfill_id),
        )


@router.post("/{backfill_id:uuid}/cancel")
def cancel_backfill(database: Database, _: Operator, backfill_id: UUID) -> CancelledBackfill:
    """Cancel a backfill: its open tasks are not fetched. Stored values stay."""
    with database.begin() as connection:
        count = backfills.cancel(connection, backfill_id)
        ended = backfills.ended(connection, backfill_id)
    if count:
        words = f"{count} {'task is' if count == 1 else 'tasks are'} cancelled, and what was fetched stays"
    elif ended[1] is not None:
        words = "it is cancelled; it had no tasks left"
    else:
        words = "nothing to do: it has ended"
    return CancelledBackfill(backfill_id=backfill_id, cancelled=count, sentence=f"{words}.")


def _webserver(settings: Settings | None) -> Webserver:
    """Dagster's webserver of this home. Raises DagsterUnreachable when none runs."""
    webserver = None if settings is None else Webserver.of_home(settings)
    if webserver is None:
        raise DagsterUnreachable(
            "Dagster does not run on this home, so no backfill can be started here. Start it with "
            "`pricing-pipeline up`, set PRICING_WEBSERVER_URL to where it runs, or have the command "
            "`pricing-pipeline backfill start` fetch it."
        )
    return webserver


def _provider_cost(estimate: Estimate) -> ProviderCost:
    share = estimate.quota_share
    return ProviderCost(**asdict(estimate), quota_share=None if share is None else round(share, 6), fits=estimate.fits)
