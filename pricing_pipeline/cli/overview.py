"""`status`: one look at everything. It works, as far as it can, while the database is away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import typer

from pricing_pipeline.cli import reads
from pricing_pipeline.cli.database import load_settings, open_connection
from pricing_pipeline.cli.output import duration, moment, print_json, print_role_faults, print_table, size
from pricing_pipeline.cli.reads import Warned
from pricing_pipeline.db.embedded import EmbeddedServer
from pricing_pipeline.db.engine import masked
from pricing_pipeline.db.errors import sentence, statement_error
from pricing_pipeline.db.location import worker_url
from pricing_pipeline.db.roles import RoleFault, role_faults
from pricing_pipeline.demand import backfills, freshness, schedules
from pricing_pipeline.errors import DatabaseError, PricingError
from pricing_pipeline.operations import alerts, health, life, recipients
from pricing_pipeline.operations.health import Part
from pricing_pipeline.processes.home import read_state
from pricing_pipeline.quarantine import quarantined_values
from pricing_pipeline.queue import forecast, limits, task_queue
from pricing_pipeline.registry import provider_rules

if TYPE_CHECKING:
    from pricing_pipeline.demand.freshness import Freshness
    from pricing_pipeline.demand.schedules import WaitingSchedule
    from pricing_pipeline.operations.life import LastSigns
    from pricing_pipeline.queue.forecast import Forecast
    from pricing_pipeline.queue.limits import Budget, LowerLimit, ProviderState, Unqueued
    from pricing_pipeline.queue.task_queue import Counted
    from pricing_pipeline.settings import Settings

_COUNTS = ("watched", "fresh", "due", "late", "refused", "paused", "source_old")


@dataclass(slots=True)
class Overview:
    """What the database knows of demand, queue and quota, and of the first price since the supervisor's start."""

    types: Sequence[Freshness] = ()
    queue: Sequence[Counted] = ()
    quota: Sequence[ProviderState] = ()
    budgets: Sequence[Budget] = ()
    shown_limits: Sequence[LowerLimit] = ()
    unqueued: Sequence[Unqueued] = ()
    waiting_schedules: Sequence[WaitingSchedule] = ()
    left_out: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    refetches: Sequence[backfills.Waiting] = ()
    first_price_at: datetime | None = None
    role_faults: Sequence[RoleFault] = ()
    warnings: Sequence[Warned] = ()
    quarantine: Sequence[quarantined_values.Count] = ()
    notifier: LastSigns | None = None
    forecasts: Sequence[Forecast] = ()
    health: Sequence[Part] = ()
    no_provider: str | None = None
    alerts: Sequence[Mapping[str, Any]] = ()
    unreached: Sequence[recipients.Unreached] = ()

    def total(self, name: str) -> int:
        return sum(int(getattr(type_, name)) for type_ in self.types)


def show(*, as_json: bool) -> bool:
    """Tell the state of the pipeline of this home; False when its database does not answer."""
    settings = load_settings()
    state = read_state(settings.home) or {}
    started_at = datetime.fromisoformat(state["started_at"]) if "started_at" in state else None
    overview, error = Overview(), None
    try:
        with open_connection(settings) as connection:
            overview = Overview(
                freshness.measure(connection),
                task_queue.counts(connection),
                limits.standings(connection),
                limits.budgets(connection),
                limits.shown(connection),
                limits.unqueued(connection),
                schedules.waiting_schedules(connection),
                backfills.left_out_by_type(connection),
                backfills.waiting_refetches(connection),
                reads.first_price(connection, started_at) if started_at else None,
                role_faults(connection),
                reads.warnings(connection),
                quarantined_values.counts(connection),
                life.last_signs(connection),
                forecast.forecasts(connection),
                health.measure(connection),
                provider_rules.no_provider(connection),
                alerts.listed(connection, None),
                recipients.unreached(connection),
            )
    except (DatabaseError, statement_error()) as failure:
        error = sentence(failure)
    content = _content(settings, state, started_at, overview, error)
    if as_json:
        print_json(content)
    else:
        _print(content)
        if overview.role_faults:
            typer.echo()
            print_role_faults(overview.role_faults)
    if error is not None:
        typer.echo(f"error: {error}", err=True)
    return error is None


def _content(
    settings: Settings,
    state: Mapping[str, Any],
    started_at: datetime | None,
    overview: Overview,
    error: str | None,
) -> dict[str, Any]:
    first_price = None
    if started_at is not None and overview.first_price_at is not None:
        first_price = round((overview.first_price_at - started_at).total_seconds(), 3)
    known = error is None
    return {
        "running": bool(state),
        "started_at": started_at,
        "first_price_seconds": first_price,
        **{name: overview.total(name) if known else None for name in _COUNTS},
        "types": {type_.data_type: _type(type_) for type_ in overview.types},
        "queue": _queue(overview.queue) if known else {},
        "quota": {standing.provider: _standing(standing) for standing in overview.quota},
        "forecast": {ahead.provider: ahead.content for ahead in overview.forecasts},
        "no_provider": overview.no_provider,
        "budget": {budget.provider: _budget(budget) for budget in overview.budgets},
        "shown_limits": [asdict(shown) for shown in overview.shown_limits],
        "unqueued": [asdict(pairs) for pairs in overview.unqueued],
        "waiting_schedules": [{**asdict(schedule), "words": schedule.words} for schedule in overview.waiting_schedules],
        "left_out": overview.left_out,
        "refetches": [asdict(refetch) | {"words": refetch.words} for refetch in overview.refetches],
        "warnings": [asdict(warning) for warning in overview.warnings],
        "quarantine": [asdict(count) for count in overview.quarantine],
        "alerts": [
            {name: alert[name] for name in ("alert_id", "rule", "subject", "severity", "acknowledged_by")}
            for alert in overview.alerts
        ],
        "health": [asdict(part) for part in overview.health] if known else _unreachable(error),
        "notifier": _notifier(overview),
        "recipients_unreached": [asdict(recipient) | {"words": recipient.words} for recipient in overview.unreached],
        "urls": state.get("urls", {}),
        "processes": state.get("processes", {}),
        "home": str(settings.home.absolute()),
        "database": _place(settings),
        "role_faults": [asdict(fault) for fault in overview.role_faults] if known else None,
        "sandbox": state.get("sandbox", settings.sandbox),
        "error": error,
    }


def _queue(counts: Sequence[Counted]) -> dict[str, int]:
    """Tasks of all providers by status; all four are always there."""
    tasks = dict.fromkeys(("pending", "processing", "scheduled", "dead"), 0)
    for counted in counts:
        tasks[counted.status] += counted.tasks
    return tasks


def _type(type_: Freshness) -> dict[str, Any]:
    return {
        "ttl_minutes": type_.default_ttl_minutes,
        "watched": type_.watched,
        "fresh": type_.fresh,
        "due": type_.due,
        "late": type_.late,
        "refused": type_.refused,
        "paused": type_.paused,
        "source_old": type_.source_old,
        "oldest_fetched_at": type_.oldest_fetched_at,
    }


def _notifier(overview: Overview) -> dict[str, Any] | None:
    """When the notifier last worked, and what that means."""
    signs = overview.notifier
    if signs is None:
        return None
    says = next((part.says for part in health.late(overview.health) if part.part == "notifier"), None)
    return {"looked_at": signs.looked_at, "ran_at": signs.ran_at, "warning": says}


def _unreachable(error: str | None) -> list[dict[str, Any]]:
    return [asdict(Part(health.DATABASE, True, None, error))]


def check() -> bool:
    """Tell which parts of the pipeline are late, a line for each; True when there are none."""
    try:
        with open_connection() as connection:
            parts = health.late(health.measure(connection))
    except (DatabaseError, statement_error()) as failure:
        parts = [Part(health.DATABASE, True, None, sentence(failure))]
    for part in parts:
        typer.echo(f"late: {_words(part.part, part.says)}")
    return not parts


def _words(part: str, says: str | None) -> str:
    return f"{part.replace('_', ' ')}: {(says or '').rstrip('.')}."


def _budget(budget: Budget) -> dict[str, Any]:
    return {
        "pairs": budget.pairs,
        "units_needed_per_minute": round(budget.units_needed, 6),
        "units_allowed_per_minute": budget.units_allowed,
        "bytes_needed_in_30_days": budget.bytes_needed,
        "bytes_allowed_in_30_days": budget.bytes_allowed,
        "warning": budget.warning,
    }


def _standing(standing: ProviderState) -> dict[str, Any]:
    return {
        "quota_bytes": standing.quota_bytes,
        "used_bytes": standing.used_bytes,
        "left_bytes": standing.quota_left_bytes,
        "is_spent": standing.is_spent,
        "units_left": standing.units_left if standing.units_limit is not None else None,
        "units_limit": standing.units_limit,
        "no_units": standing.sentence if standing.is_rate_limited else None,
        "next_unit_at": standing.next_at if standing.is_rate_limited else None,
        "blocked_seconds": standing.blocked_seconds,
        "blocked_reason": standing.blocked_reason,
        "breaker": standing.breaker,
        "breaker_seconds": standing.breaker_seconds,
        "breaker_reason": standing.breaker_reason,
        "outages": standing.outages,
        "stop": standing.stop,
        "unannounced_calls": standing.unannounced_calls,
        "keys": {
            key.key_name: {
                "is_active": key.is_active,
                "units_left": key.units_left if key.units_limit is not None else None,
                "units_limit": key.units_limit,
                "blocked_seconds": key.blocked_seconds,
                "blocked_reason": key.blocked_reason,
            }
            for key in standing.keys
        },
    }


def _place(settings: Settings) -> dict[str, Any]:
    """Where the database is: its address without the password, and the folder of a server of our own."""
    try:
        url = masked(worker_url(settings))
    except PricingError:  # this home has never had a server
        url = None
    folder = None if settings.database_url else str(EmbeddedServer(settings.home).data_dir.absolute())
    return {"url": url, "folder": folder if url else None}


def _print(content: Mapping[str, Any]) -> None:
    started = content["started_at"]
    since = f" for {duration((datetime.now(UTC) - started).total_seconds())}" if started else ""
    where = content["database"]["folder"] or content["database"]["url"] or "none yet"
    prices = "the sandbox" if content["sandbox"] else "the real providers"
    lines = {
        "pipeline": f"running{since}" if content["running"] else _no_up(content["database"]),
        "home": content["home"],
        "database": where,
        "prices": f"from {prices}",
        **content["urls"],
    }
    if content["first_price_seconds"] is not None:
        lines["first price"] = f"{content['first_price_seconds']:.1f} s after the start"
    for name, value in lines.items():
        typer.echo(f"{name + ':':<13}{value}")
    _say_processes(content["processes"])
    if content["error"] is None:
        for part in content["health"]:
            if part["is_late"]:
                typer.echo(f"late:        {_words(part['part'], part['says'])}")
        if content["no_provider"]:
            typer.echo(f"hint:        {content['no_provider']}.")
        _say_types(content)
        _say_quota(content["quota"], content["forecast"])
        _say_budget(content["budget"])
        for shown in content["shown_limits"]:
            typer.echo(f"warning:     {shown['words']}")
        _print_left_out(content)
        for recipient in content["recipients_unreached"]:
            typer.echo(f"warning:     {recipient['words']}")
        _say_quarantine(content["quarantine"])
        _print_warnings(content["warnings"])


def _no_up(database: Mapping[str, Any]) -> str:
    """What is known without a running `up`. On other servers, everything may run without it."""
    if database["folder"] or not database["url"]:
        return "not running; `pricing-pipeline up` starts it"
    return "no `up` runs here; `pricing-pipeline status --check` says whether all works without it"


def _say_processes(processes: Mapping[str, Mapping[str, Any]]) -> None:
    if processes:
        typer.echo()
        rows = [
            (name, process["pid"] or "-", process["restarts"], process["log"]) for name, process in processes.items()
        ]
        print_table(["process", "pid", "restarts", "log"], rows, right=["pid", "restarts"], spare=["log"])
        for name, process in processes.items():
            if process.get("silent_since"):
                since = datetime.fromisoformat(process["silent_since"])
                typer.echo(f"warning:     {name} runs and does not answer since {moment(since)}; it is started again")


def _say_types(content: Mapping[str, Any]) -> None:
    typer.echo()
    rows = [
        (name, duration(type_["ttl_minutes"] * 60), *(type_[count] for count in _COUNTS))
        for name, type_ in content["types"].items()
    ]
    rows.append(("all", "", *(content[count] for count in _COUNTS)))
    counted = [count.replace("_", " ") for count in _COUNTS]
    print_table(["data type", "TTL", *counted], rows, right=["TTL", *counted])
    typer.echo()
    queue = content["queue"]
    typer.echo("queue:       " + ", ".join(f"{count} {status}" for status, count in queue.items()))
    counts = Counter(alert["severity"] for alert in content["alerts"])
    if counts:
        of_each = ", ".join(f"{count} {severity}" for severity, count in sorted(counts.items()))
        typer.echo(f"alerts:      {of_each}; `pricing-pipeline alert list` shows them")


def _say_quota(quota: Mapping[str, Mapping[str, Any]], forecasts: Mapping[str, Mapping[str, Any]]) -> None:
    if quota:
        typer.echo()
        rows = [
            (
                name,
                _units(allowance),
                f"{size(allowance['left_bytes'])} of {size(allowance['quota_bytes'])}",
                forecasts.get(name, {}).get("words", ""),
            )
            for name, allowance in quota.items()
        ]
        print_table(["provider", "units left now", "quota left", "how long"], rows, spare=["how long"])
        for name, ahead in forecasts.items():
            if ahead["outlook"] == "ends":
                typer.echo(f"forecast:    the quota of {name} {ahead['words']}: {ahead['basis_words']}.")
            day = ahead["day"]
            if day and day["outlook"] == "ends" and day["used"] < day["units"]:
                typer.echo(f"forecast:    {name}: {day['words']}.")
            if ahead["stretch_words"]:
                typer.echo(f"stretched:   {ahead['stretch_words']}.")
        for name, allowance in quota.items():
            if allowance["stop"]:
                typer.echo(f"blocked:     {allowance['stop']}.")
            for key_name, key in allowance["keys"].items():
                if key["blocked_seconds"] and key["is_active"] and not allowance["blocked_seconds"]:
                    pause = f"for {duration(key['blocked_seconds'])}: {key['blocked_reason']}"
                    typer.echo(f"blocked:     {name}: key {key_name} {pause}")
            if allowance["no_units"]:
                typer.echo(f"used up:     {allowance['no_units']}.")
        for name, allowance in quota.items():
            if allowance["unannounced_calls"]:
                typer.echo(
                    f"{allowance['unannounced_calls']} answers of {name} in 24 h came without a length "
                    "(Content-Length); their bytes were counted as they arrived."
                )


def _say_quarantine(counts: Sequence[Mapping[str, Any]]) -> None:
    if counts:
        typer.echo()
        rows = [
            (
                count["data_type"],
                count["provider"],
                count["kind"],
                count["quarantined"],
                count["symbols"],
                moment(count["last_seen_at"]),
            )
            for count in counts
        ]
        headings = ["not believed", "from", "kind", "values", "symbols", "last"]
        print_table(headings, rows, right=["values", "symbols"], spare=["symbols", "last"])
        typer.echo("`pricing-pipeline quarantine list` shows them.")


def _print_warnings(warnings: Sequence[Mapping[str, Any]]) -> None:
    """A line for each, however long: its end often says what to do."""
    if warnings:
        typer.echo()
    for warning in warnings:
        times = "once" if warning["times"] == 1 else f"{warning['times']} times"
        seen = f"{warning['source']}, {times} in 24 h, last at {moment(warning['last_at'])}"
        typer.echo(f"warning:     {warning['subject']} ({seen}): {warning['message']}")


def _units(allowance: Mapping[str, Any]) -> str:
    if not any(key["is_active"] for key in allowance["keys"].values()):
        return "none"
    return (
        "no limit" if allowance["units_limit"] is None else f"{allowance['units_left']} of {allowance['units_limit']}"
    )


def _print_left_out(content: Mapping[str, Any]) -> None:
    """Pairs that will not be fetched, and why: nothing is skipped silently."""
    for pairs in content["unqueued"]:
        typer.echo(
            f"warning:     {pairs['pairs']} pairs of {pairs['data_type']} are due and not queued: the quota of "
            f"{pairs['provider']} has no room for them. Raise the quota with `pricing-pipeline provider change`, or "
            "wait until bytes come back."
        )
    for schedule in content["waiting_schedules"]:
        typer.echo(f"schedule:    {schedule['words']}")
    for name, left_out in content["left_out"].items():
        typer.echo(f"left out:    {name}: {backfills.left_out_words(left_out)}")
    for refetch in content["refetches"]:
        typer.echo(f"waiting:     {refetch['words']}.")


def _say_budget(budgets: Mapping[str, Mapping[str, Any]]) -> None:
    for budget in budgets.values():
        if budget["warning"]:
            typer.echo(f"warning:     {budget['warning']}")
