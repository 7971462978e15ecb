"""Commands for whoever runs the pipeline: the queue, the registry, migrations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, date, datetime
from typing import Any

import typer
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.cli import reads
from pricing_pipeline.cli.database import explained, open_connection, open_engine, open_owner
from pricing_pipeline.cli.output import duration, print_json, print_role_faults, print_table
from pricing_pipeline.cli.refusals import sentence
from pricing_pipeline.db.engine import masked
from pricing_pipeline.db.location import owner_url
from pricing_pipeline.db.roles import role_faults
from pricing_pipeline.domain.data_types import DataType
from pricing_pipeline.errors import DatabaseError, PricingError
from pricing_pipeline.queue import task_queue
from pricing_pipeline.registry import calendars, data_type_registry
from pricing_pipeline.settings import load_settings


def list_queue(statuses: Sequence[str], at_most: int, *, as_json: bool) -> None:
    """Tell the tasks in some states: live ones in claim order, then the newest finished."""
    with open_connection(load_settings()) as connection:
        tasks = task_queue.tasks(connection, statuses, at_most)
    if as_json:
        print_json({"tasks": tasks})
        return
    now = datetime.now(UTC)
    print_table(
        ["id", "status", "data type", "symbol", "days", "provider", "priority", "tries", "age", "why"],
        [
            (
                task["id"],
                task["status"],
                task["data_type"],
                task["symbol"],
                "" if task["window_start"] is None else f"{task['window_start']} to {task['window_end']}",
                task["provider"],
                task["priority"],
                f"{task['attempt']} of {task['max_attempts']}",
                duration((now - task["enqueued_at"]).total_seconds()),
                task["last_error"],
            )
            for task in tasks
        ],
        right=["id", "priority", "age"],
        spare=["priority", "provider", "days", "tries"],
        long="why",
    )
    if not tasks:
        typer.echo(f"no task is {' or '.join(statuses)}.")


def list_registry(*, as_json: bool) -> None:
    """Tell every active data type."""
    with open_connection(load_settings()) as connection:
        kinds = data_type_registry.active_data_types(connection)
    if as_json:
        print_json({"data_types": [_kind(kind) for kind in kinds]})
        return
    print_table(
        ["data type", "fetcher", "asset class", "TTL", "refreshed", "history from", "description"],
        [
            (
                kind.data_type,
                kind.fetcher.value,
                kind.asset_class,
                duration(kind.default_ttl_minutes * 60),
                f"{kind.refresh_schedule} ({kind.schedule_timezone})"
                if kind.refresh_schedule
                else "on demand",
                kind.history_from,
                kind.description,
            )
            for kind in kinds
        ],
        right=["TTL"],
    )
    if not kinds:
        typer.echo("the registry is empty; `pricing-pipeline registry add --help` shows how to fill it.")


_JUDGES = {None: "", True: "is_market_stale", False: "is_data_stale"}


def add_data_type(
    data_type: str,
    *,
    fetcher: str,
    ttl_minutes: int,
    asset_class: str,
    schedule: str | None,
    timezone: str,
    history_from: date | None,
    description: str,
    background_ttl_minutes: int,
    follow_market: bool | None,
    owner: str | None,
    as_json: bool,
) -> None:
    """Add a data type, as the owner. Raises PricingError with the database's reason when it refuses."""
    if schedule is not None:
        _require_cron(schedule)
    with open_owner(load_settings()) as engine:
        try:
            with engine.begin() as connection:
                data_type_registry.add_data_type(
                    connection,
                    data_type,
                    fetcher=fetcher,
                    ttl_minutes=ttl_minutes,
                    asset_class=asset_class,
                    description=description,
                    schedule=schedule,
                    timezone=timezone,
                    history_from=history_from,
                    background_ttl_minutes=background_ttl_minutes,
                    staleness_function=_JUDGES[follow_market],
                    owner=owner,
                )
                kind = reads.data_type(connection, data_type)
        except PricingError as error:
            refusal = error.__cause__
            if isinstance(refusal, DBAPIError):
                raise PricingError(f"{data_type!r} is not added: {sentence(refusal)}") from refusal
            raise
    if as_json:
        print_json(_kind(kind))
    else:
        typer.echo(f"{data_type} is added; a running pipeline shows its assets within half a minute.")


def upgrade(*, as_json: bool) -> None:
    """Bring the database to the current schema, as the owner; safe to repeat and to run twice at once."""
    from pricing_pipeline.db import migrate

    settings = load_settings()
    url = owner_url(settings)
    try:
        migrate.upgrade(url)
        with open_engine(settings) as engine:
            # A newer library may know more of next year's holidays.
            calendars.extend(engine, again=True)
        with open_connection(settings) as connection:
            revision = reads.revision(connection)
            faults = role_faults(connection)
    except DatabaseError as error:
        raise explained(settings, error) from error
    if as_json:
        print_json(
            {
                "database": masked(url),
                "revision": revision,
                "role_faults": [asdict(fault) for fault in faults],
            }
        )
        return
    typer.echo(f"{masked(url)} is up to date (revision {revision}).")
    print_role_faults(faults)


def _kind(kind: DataType) -> dict[str, Any]:
    content = asdict(kind)
    content["ttl_minutes"] = content.pop("default_ttl_minutes")
    content["strategy"] = content.pop("refresh_strategy")
    content["schedule"] = content.pop("refresh_schedule")
    content["timezone"] = content.pop("schedule_timezone")
    return content


def _require_cron(schedule: str) -> None:
    """A schedule that nobody can read, or whose day never comes, is never served: it must not reach the registry."""
    from croniter import CroniterBadDateError, croniter

    if len(schedule.split()) != 5 or not croniter.is_valid(schedule):
        raise typer.BadParameter(
            f"--schedule {schedule!r} is not a cron expression. Write it like '30 23 * * *': "
            "minute, hour, day, month, weekday"
        )
    try:
        # Day and weekday both, so that a 30th of February is noticed beside a weekday, too.
        croniter(schedule, day_or=False).get_next()
    except CroniterBadDateError:
        raise typer.BadParameter(
            f"--schedule {schedule!r} names a day that never comes. Give one that its months have"
        ) from None
