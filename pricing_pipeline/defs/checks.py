"""Asset checks of latest prices and of their histories. They run on their own schedule, not in each run.

All belong to `latest_price`, which no run materializes: checks of `price_history` would be steps of every backfill.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Protocol, TypeVar

import dagster as dg
from sqlalchemy import Connection

from pricing_pipeline.defs import verdicts
from pricing_pipeline.defs.draining import ahead
from pricing_pipeline.defs.markdown import escaped, section
from pricing_pipeline.defs.naming import CHECKS_JOB, Naming
from pricing_pipeline.defs.page_links import page_address, page_link
from pricing_pipeline.defs.plots import freshness_plot, price_plot
from pricing_pipeline.defs.reports import describe_service, idle, serving, why_late
from pricing_pipeline.defs.resources import PricingDatabase, given, needed
from pricing_pipeline.defs.snapshot import RegistrySnapshot
from pricing_pipeline.defs.tables import Metadata, named_table
from pricing_pipeline.defs.verdicts import Verdict, examples_of, numbers_of
from pricing_pipeline.demand import drains, freshness
from pricing_pipeline.domain.data_types import Contents, DataType, Fetcher
from pricing_pipeline.operations import alerts
from pricing_pipeline.prices import quality

_GUIDE = "docs/operations.md"
_ROOT = Path(__file__).resolve().parents[2]
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_NEVER = "Nothing of this type was ever fetched."
MOST_ALERTS = 20
"""Rows of the table of open alerts in metadata."""
_REPORTED_KINDS = ("not_asked", "failed", "queued", "quarantined", "unreadable", "provider_has_none")


class _OfType(Protocol):
    @property
    def data_type(self) -> str: ...


RowT = TypeVar("RowT", bound=_OfType)


@dataclass(frozen=True)
class _Check:
    """A check of data types: its name, the section about its failure, the types it applies to, and its rule.

    A type that was never fetched passes no check that `needs_values`.
    """

    name: str
    description: str
    anchor: str
    applies: Callable[[DataType], bool]
    judge: Callable[[Connection, Sequence[str]], Mapping[str, Verdict]]
    needs_values: bool = True


def _on_time(connection: Connection, names: Sequence[str]) -> dict[str, Verdict]:
    return {
        row.data_type: Verdict(
            describe_service(row),
            {
                **serving(row),
                **why_late(connection, row),
                **freshness_plot(quality.served(connection, row.data_type)),
            },
            is_fault=not row.is_on_time,
            is_grave=2 * row.late > row.watched or not row.fresh + row.source_old + row.due,
        )
        for row in freshness.measure(connection, names)
    }


def _gaps(connection: Connection, names: Sequence[str]) -> dict[str, Verdict]:
    def judge(row: quality.Gaps) -> Verdict:
        none = row.sessions.get("provider_has_none", 0)
        numbers = numbers_of(
            expected=row.expected,
            missing=row.missing,
            symbols=row.symbols,
            symbols_with_gaps=row.lacking,
            without_calendar=row.without_calendar,
            calendar_ended=row.calendar_ended,
            market_closed=row.closed_days,
            **{kind: row.sessions.get(kind, 0) for kind in _REPORTED_KINDS},
        )
        numbers |= named_table(
            "gaps",
            ["symbol", "from", "to", "trading days", "kind", "why"],
            [[g.symbol, g.first_day, g.last_day, g.sessions, g.kind, g.detail or ""] for g in row.examples],
        )
        numbers |= price_plot(quality.plot_series(connection, row.data_type))
        is_poor = 100 * none > row.expected
        return Verdict(
            _describe_gaps(row, none, is_poor),
            numbers,
            row.missing > 0 or is_poor,
            20 * row.missing > row.expected,
        )

    return _each(quality.gaps(connection, names), judge)


def _describe_gaps(row: quality.Gaps, none: int, is_poor: bool) -> str:
    if row.missing:
        sentence = (
            f"{row.missing} of {row.expected} trading days of the last year lack a value, of {row.lacking} symbols, "
            "and were not asked for or failed. `pricing-pipeline backfill start` fetches them, if a provider has them."
        )
    else:
        sentence = f"Nothing that can be fetched is missing of {row.expected} trading days of the last year."
    if is_poor:
        sentence += (
            f" For {none} more, which is a lot, their provider has no value: another provider may have it, or an "
            "instrument has a wrong calendar. `pricing-pipeline price gaps SYMBOL` lists the gaps of a symbol."
        )
    if row.without_calendar:
        sentence += f" {row.without_calendar} symbols have no trading calendar, so their gaps are not known."
    if row.calendar_ended:
        sentence += (
            f" The trading days of {row.calendar_ended} symbols are known only up to a past day, and gaps since then "
            "are not. A newer exchange-calendars may know them."
        )
    return sentence


def _outliers(connection: Connection, names: Sequence[str]) -> dict[str, Verdict]:
    def judge(row: quality.Outliers) -> Verdict:
        untold, without_rate = row.unreported_splits or (), row.without_rate or ()
        numbers = numbers_of(
            quarantined=row.quarantined,
            symbols=row.symbols,
            priced=row.priced,
            unreported_splits=len(untold),
            payments_without_rate=len(without_rate),
        )
        numbers |= examples_of([*untold[:5], *without_rate[:5]])
        if row.oldest is not None:
            numbers["oldest"] = dg.MetadataValue.timestamp(row.oldest)
        sentence = "No value waits for a decision."
        if row.quarantined:
            sentence = (
                f"{row.quarantined} value(s) of {row.symbols} symbol(s) are not believed "
                f"({', '.join(row.kinds or ())}) and wait for a person. `pricing-pipeline quarantine list` shows them."
            )
        if untold:
            sentence += (
                f" {len(untold)} step(s) of the last year look like unreported splits, such as {untold[0]}: "
                "adjusted histories jump there until `pricing-pipeline action add` enters them."
            )
        if without_rate:
            sentence += (
                f" {len(without_rate)} payment(s) of the last year are in another currency than the prices, and no "
                f"rate of their day is stored, such as {without_rate[0]}: total returns over that day are refused."
            )
        is_fault = row.quarantined > 0 or bool(untold) or bool(without_rate)
        return Verdict(sentence, numbers, is_fault, 20 * row.symbols > max(row.priced, 20))

    return _each(quality.outliers(connection, names), judge)


def _agreement(connection: Connection, names: Sequence[str]) -> dict[str, Verdict]:
    def judge(row: quality.Agreement) -> Verdict:
        numbers = numbers_of(compared=row.compared, apart=row.apart) | examples_of(row.examples)
        if row.worst is not None:
            numbers["worst_factor"] = dg.MetadataValue.float(round(row.worst, 4))
        if not row.compared:
            return Verdict(
                "Nothing to compare: no symbol has prices of two providers for the same day, and no second provider "
                "was asked about a quarantined value.",
                numbers,
            )
        if not row.apart:
            return Verdict(f"{row.compared} of the symbols have prices of two providers, and they agree.", numbers)
        sentence = (
            f"{row.compared} of the symbols have prices of two providers, and {row.apart} of them are more than a "
            f"tenth apart, the worst by a factor of {row.worst:.3g}."
        )
        return Verdict(sentence, numbers, True, (row.worst or 0.0) >= 2.0)

    return _each(quality.agreement(connection, names), judge)


def _revisions(connection: Connection, names: Sequence[str]) -> dict[str, Verdict]:
    def judge(row: quality.Revisions) -> Verdict:
        rate = row.revised / row.stored if row.stored else 0.0
        numbers = numbers_of(stored=row.stored, revised=row.revised, symbols=row.symbols)
        numbers |= {"rate": dg.MetadataValue.float(round(rate, 6)), **examples_of(row.examples)}
        sentence = (
            f"{row.revised} of {row.stored} values of the last year were revised in the last 30 days ({rate:.2%})."
        )
        return Verdict(sentence, numbers, rate > 0.01, rate > 0.1)

    return _each(quality.revisions(connection, names), judge)


def _alerts(connection: Connection, names: Sequence[str]) -> dict[str, Verdict]:
    concerns = alerts.concerning(connection, names)
    return {name: _alerts_of_type(concerns.get(name, [])) for name in names}


def _alerts_of_type(concerns: Sequence[alerts.Concern]) -> Verdict:
    if not concerns:
        return Verdict("No urgent alert is open about this type or a provider of it.", {})
    worst = concerns[0]
    others = f" {len(concerns) - 1} more are open." if concerns[1:] else ""
    numbers: Metadata = {
        "alert": dg.MetadataValue.text(f"{worst.rule} ({worst.severity}) of {worst.subject}"),
        "since": dg.MetadataValue.timestamp(worst.since),
        "look_after_it": dg.MetadataValue.text(f"pricing-pipeline alert acknowledge {worst.alert_id}"),
        "what_to_do": what_to_do(worst.rule, alerts.RUNBOOK),
    }
    numbers |= named_table(
        "open_alerts",
        ["id", "severity", "alert", "about", "since (UTC)", "who looks after it", "what"],
        [
            [
                *(c.alert_id, c.severity, c.rule, c.subject),
                *(f"{c.since:%Y-%m-%d %H:%M:%S}", c.acknowledged_by or "", c.says),
            ]
            for c in concerns[:MOST_ALERTS]
        ],
    )
    return Verdict(
        f"{worst.severity}: {worst.says}{others}",
        numbers,
        is_fault=True,
        is_grave=worst.severity == "P0",
        place=f"alert-{worst.alert_id}",
    )


def _each(rows: Sequence[RowT], judge: Callable[[RowT], Verdict]) -> dict[str, Verdict]:
    return {row.data_type: judge(row) for row in rows}


def _is_price(type_: DataType) -> bool:
    return type_.contents is Contents.PRICES


def _has_slots(type_: DataType) -> bool:
    return type_.fetcher is Fetcher.SLOTS


def _is_commodity(type_: DataType) -> bool:
    return type_.contents is Contents.COMMODITIES


def _is_daily(type_: DataType) -> bool:
    return type_.fetcher.is_daily


ALERTS = _Check(
    "alerts",
    "No alert that is sent at once (P0, P1) is open about this type or a provider of it.",
    "an-alert-is-open",
    lambda type_: True,
    _alerts,
    needs_values=False,
)

CHECKS = (
    _Check(
        "on_time",
        "No watched price has been due for longer than max(30 s, TTL/4), unless its symbol is at fault.",
        "one-price-stays-old",
        lambda type_: True,
        _on_time,
    ),
    _Check(
        "gaps",
        "No symbol lacks a trading day of the last year that could still be fetched, by its own calendar, and "
        "providers lack at most 1 % of the days.",
        "a-history-has-gaps",
        _is_daily,
        _gaps,
    ),
    _Check(
        "outliers",
        "No quarantined value waits for a person's decision, no price steps like an unreported split, and each "
        "payment in another currency has a rate of its day.",
        "values-are-quarantined",
        _is_price,
        _outliers,
    ),
    _Check(
        "agreement",
        "Prices that two providers gave for one instrument on a day are within a tenth of each other, and no "
        "second provider contradicts a value that waits for a person.",
        "providers-disagree",
        _is_price,
        _agreement,
    ),
    _Check(
        "revisions",
        "Not more than 1 % of the last year's values were revised in the last 30 days.",
        "a-history-is-revised",
        _is_daily,
        _revisions,
    ),
    _Check(
        "vanished_slots",
        "No product has lost more than half of its slots within a day.",
        "slots-have-vanished",
        _has_slots,
        verdicts.vanished_slots,
    ),
    _Check(
        "game_version",
        "At least half of the prices of commodities are of the version of the game that people play.",
        "prices-are-of-an-old-version",
        _is_commodity,
        verdicts.game_version,
    ),
    ALERTS,
)


def _evaluation(check: _Check, snapshot: RegistrySnapshot, data_type: str, verdict: Verdict) -> dg.AssetCheckEvaluation:
    page = page_address(snapshot.source.settings()) if verdict.place else None
    grave = dg.AssetCheckSeverity.ERROR if verdict.is_grave else dg.AssetCheckSeverity.WARN
    return dg.AssetCheckEvaluation(
        check_name=check.name,
        asset_key=snapshot.naming.latest_key(data_type),
        passed=not verdict.is_fault,
        severity=grave if verdict.is_fault else dg.AssetCheckSeverity.WARN,
        description=escaped(verdict.sentence),
        metadata={
            "what_to_do": what_to_do(check.anchor),
            **verdict.numbers,
            **page_link(page, verdict.place or ""),
        },
    )


def _evaluations(
    connection: Connection,
    check: _Check,
    snapshot: RegistrySnapshot,
    data_types: Sequence[str],
    has_result: Callable[[dg.AssetCheckKey], bool],
) -> Iterator[dg.AssetCheckEvaluation]:
    """The evaluations of a check for some data types now.

    A type that was never fetched does not pass. If it has no fault and no earlier result, it gets none: Dagster shows
    the check as not evaluated. If it has an earlier result, a new one must replace it.
    """
    fetched = quality.fetched(connection, data_types)
    for name, verdict in check.judge(connection, data_types).items():
        if name in fetched:
            yield _evaluation(check, snapshot, name, verdict)
        elif verdict.is_fault or has_result(dg.AssetCheckKey(snapshot.naming.latest_key(name), check.name)):
            yield _evaluation(check, snapshot, name, _never_fetched(verdict) if check.needs_values else verdict)


def _never_fetched(verdict: Verdict) -> Verdict:
    """The result for a type that was never fetched."""
    return replace(
        verdict,
        sentence=f"{verdict.sentence} {_NEVER}",
        is_fault=True,
        is_grave=verdict.is_fault and verdict.is_grave,
    )


def on_time_evaluations(
    connection: Connection, snapshot: RegistrySnapshot, data_types: Sequence[str]
) -> list[dg.AssetCheckEvaluation]:
    """The check on_time of some data types now, for the sensor that sees them become late or fresh."""
    return list(_evaluations(connection, CHECKS[0], snapshot, data_types, lambda key: True))


def first_evaluations(
    connection: Connection, snapshot: RegistrySnapshot, type_: DataType
) -> list[dg.AssetCheckEvaluation]:
    """All checks of a data type whose first prices have come, for the sensor that sees them."""
    return [
        evaluation
        for check in CHECKS
        if check.applies(type_)
        for evaluation in _evaluations(connection, check, snapshot, [type_.data_type], lambda key: False)
    ]


def alerts_evaluations(
    connection: Connection, snapshot: RegistrySnapshot, data_types: Sequence[str]
) -> list[dg.AssetCheckEvaluation]:
    """The check alerts of some data types now, for the sensor that sees alerts begin and end."""
    return list(_evaluations(connection, ALERTS, snapshot, data_types, lambda key: True))


def _has_result(instance: dg.DagsterInstance, key: dg.AssetCheckKey) -> bool:
    """Whether a check has a result; Dagster shows the last one until the next."""
    summaries = instance.event_log_storage.get_asset_check_summary_records([key])
    return any(summary.last_completed_check_execution_record for summary in summaries.values())


def _report_idle(
    connection: Connection, instance: dg.DagsterInstance, naming: Naming, data_types: Sequence[str]
) -> None:
    """Report that types have no viewers, or nothing watched that can be fetched, so that their prices get older."""
    fetched = quality.fetched(connection, data_types)
    for row in freshness.measure(connection, data_types):
        if row.is_idle:
            instance.report_runless_asset_event(idle(naming, row, *(() if row.data_type in fetched else (_NEVER,))))


@cache
def what_to_do(anchor: str, guide: str = _GUIDE) -> dg.MetadataValue:
    """The section of a page that says what to do; only its name if the page is not installed.

    The Dagster UI shows it behind a link. The section's own links do not work there, so only their words stay.
    """
    named = dg.MetadataValue.text(f"{guide}#{anchor}")
    page = _ROOT / guide
    if not page.is_file():
        return named
    for part in re.split(r"^## ", page.read_text(), flags=re.MULTILINE)[1:]:
        title, _, body = part.partition("\n")
        if title.lower().replace(" ", "-") == anchor:
            words = _LINK.sub(r"\1", body).strip()
            return section(title, f"{guide}#{anchor}", words)
    return named


def as_result(evaluation: dg.AssetCheckEvaluation) -> dg.AssetCheckResult:
    """The event that a run yields for an evaluation."""
    return dg.AssetCheckResult(
        check_name=evaluation.check_name,
        asset_key=evaluation.asset_key,
        passed=evaluation.passed,
        severity=evaluation.severity,
        description=evaluation.description,
        metadata=evaluation.metadata,
    )


def price_checks(snapshot: RegistrySnapshot) -> dg.AssetChecksDefinition:
    """All checks of all data types, as one step."""

    naming = snapshot.naming

    @dg.multi_asset_check(
        required_resource_keys=needed(naming, PricingDatabase),
        name=naming.name("check_all_prices"),
        specs=[
            dg.AssetCheckSpec(
                check.name,
                asset=naming.latest_key(type_.data_type),
                description=escaped(f"{check.description} What to do: {_GUIDE}#{check.anchor}"),
            )
            for check in CHECKS
            for type_ in snapshot.data_types
            if check.applies(type_)
        ],
        can_subset=True,
    )
    def check_all_prices(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        database = given(context, naming, PricingDatabase)
        wanted = context.selected_asset_check_keys
        evaluated: list[dg.AssetCheckEvaluation] = []
        for check in CHECKS:
            names = sorted(key.asset_key.path[-1] for key in wanted if key.name == check.name)
            if not names:
                continue
            with database.engine.connect() as connection:
                evaluations = list(
                    _evaluations(connection, check, snapshot, names, partial(_has_result, context.instance))
                )
                if check.name == CHECKS[0].name:
                    _report_idle(connection, context.instance, naming, names)
            for evaluation in evaluations:
                evaluated.append(evaluation)
                yield as_result(evaluation)
        # Once its asset is materialized in another run, Dagster shows a check as not evaluated: for a quote, half a
        # minute later. Latest prices are materialized without a run, so results without a run stay visible.
        for evaluation in evaluated:
            context.instance.report_runless_asset_event(evaluation)

    return check_all_prices


def check_schedule(snapshot: RegistrySnapshot) -> dg.ScheduleDefinition:
    """The schedule that runs all checks every six hours, if anything is watched or stored.

    What turns within minutes, on_time and alerts, is evaluated by sensors when it turns. An hourly run of all stored
    5 MB of events a day.
    """
    naming = snapshot.naming
    job = dg.define_asset_job(
        naming.name(CHECKS_JOB),
        selection=dg.AssetSelection.checks_for_assets(*(naming.latest_key(name) for name in snapshot.names())),
        description="Evaluates the checks of latest prices and of the histories behind them.",
        executor_def=dg.in_process_executor,
    )

    @dg.schedule(
        required_resource_keys=needed(naming, PricingDatabase),
        name=naming.name(CHECKS_JOB),
        job=job,
        cron_schedule="17 */6 * * *",
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Checks every six hours that watched prices are on time, and histories whole, believed and steady.",
    )
    def schedule(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        database = given(context, naming, PricingDatabase)
        with database.engine.connect() as connection:
            if not (drains.outlook(connection).watched or quality.is_anything_stored(connection)):
                return dg.SkipReason("nothing is watched and nothing is stored, so there is nothing to check")
        return dg.RunRequest(tags=ahead(context.instance, 5))  # behind drains, before backfills

    return schedule
