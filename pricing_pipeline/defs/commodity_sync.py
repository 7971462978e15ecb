"""The lists of commodities as an asset: versions of the game, terminals, commodities and all prices, synced every hour.

Drains keep watched terminals fresh. A sync brings everything at once, in four calls, and the terminals that can be
watched.
"""

from collections.abc import Iterator
from datetime import timedelta

import dagster as dg
from sqlalchemy import Engine

from pricing_pipeline.commodities import etl
from pricing_pipeline.commodities.etl import Step, SyncReport
from pricing_pipeline.defs.checks import what_to_do
from pricing_pipeline.defs.code_links import code_links
from pricing_pipeline.defs.contents import SHOWN
from pricing_pipeline.defs.draining import ahead
from pricing_pipeline.defs.jobs import NO_RUN_RETRIES
from pricing_pipeline.defs.markdown import escaped
from pricing_pipeline.defs.naming import SYNC_JOB, UNREAD_LISTS, Naming
from pricing_pipeline.defs.page_links import page_address, page_link
from pricing_pipeline.defs.resources import PricingDatabase, Providers, given, needed
from pricing_pipeline.defs.snapshot import RegistrySnapshot
from pricing_pipeline.defs.tables import Metadata, named_table
from pricing_pipeline.domain.data_types import Contents
from pricing_pipeline.domain.words import counted
from pricing_pipeline.errors import LockUnavailable
from pricing_pipeline.providers.uex import Uex
from pricing_pipeline.queue import limits

_ANCHOR = "a-list-of-commodities-could-not-be-read"
_FRESHNESS = dg.FreshnessPolicy.time_window(warn_window=timedelta(hours=2), fail_window=timedelta(hours=4))
"""Of a sync every hour, one may be missed."""


def is_wanted(snapshot: RegistrySnapshot) -> bool:
    """Whether the registry has a type of commodities, and the provider of the lists.

    While the provider is switched off, the lists stay an asset, which shows that they grow old.
    """
    has_type = any(type_.contents is Contents.COMMODITIES for type_ in snapshot.data_types)
    return has_type and Uex.name in snapshot.providers


def commodity_lists(snapshot: RegistrySnapshot) -> dg.AssetsDefinition:
    """The asset of the lists."""
    naming = snapshot.naming

    @dg.asset(
        required_resource_keys=needed(naming, PricingDatabase, Providers),
        key=naming.commodity_lists,
        deps=[naming.provider_key(Uex.name)],
        group_name=naming.name(SHOWN[Contents.COMMODITIES].stored_group),
        kinds={"python", "postgres"},
        description="Versions of the game, terminals, commodities and all prices, as the provider lists them. "
        "Materialize asks for all of them now, in four calls. What goes wrong is in pricing.etl_warnings.",
        metadata={
            "dagster/table_name": "pricing.terminals",
            **page_link(page_address(snapshot.source.settings()), f"provider-{Uex.name}"),
            **code_links("commodities/etl.py", "db/functions/commodities/etl.sql"),
        },
        freshness_policy=_FRESHNESS,
        check_specs=[
            dg.AssetCheckSpec(
                UNREAD_LISTS,
                asset=naming.commodity_lists,
                description=escaped(
                    f"Every list could be read, with all its rows. What to do: docs/operations.md#{_ANCHOR}"
                ),
            )
        ],
    )
    def lists(
        context: dg.AssetExecutionContext,
    ) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
        database = given(context, naming, PricingDatabase)
        providers = given(context, naming, Providers)
        with providers.clients() as clients:
            client = clients.get(Uex.name)
            if client is None:
                why = _switched_off(database.engine) or "Uex cannot be asked: the log of this run says why."
                raise _not_retried(context, why)
            try:
                report = etl.sync(database.engine, client, run=context.run.run_id)
            except LockUnavailable as error:
                raise _not_retried(context, f"a sync is at work already: {error}") from None
        if not report.has_prices:  # materialized, the asset would stay fresh while its prices grow old
            yield _verdict(report)
            raise _not_retried(context, _failures(report))
        if not report.is_complete:
            context.log.warning(_failures(report))
        yield dg.MaterializeResult(metadata=_metadata(report), check_results=[_verdict(report)])

    return lists


def _switched_off(engine: Engine) -> str | None:
    """That the provider of the lists is switched off, in a sentence; None while it is active."""
    with engine.connect() as connection:
        (standing,) = limits.standings(connection, [Uex.name])
    return standing.words if standing.state == "provider_off" else None


def _not_retried(context: dg.AssetExecutionContext, words: str) -> dg.Failure:
    """The failure of a run that is not retried, also of one of Dagster's own job: the next sync asks again."""
    context.instance.add_run_tags(context.run.run_id, NO_RUN_RETRIES)
    return dg.Failure(words, allow_retries=False)


def _failures(report: SyncReport) -> str:
    failed = [f"{step.name}: {step.failure}" for step in report.steps if step.failure]
    return f"{len(failed)} of {len(report.steps)} lists could not be read. {' '.join(failed)}"


def _verdict(report: SyncReport) -> dg.AssetCheckResult:
    """A list that could not be read shows, although the others are stored."""
    rejected = sum(step.rejected for step in report.steps)
    sentence = f"All {len(report.steps)} lists were read."
    if not report.is_complete:
        sentence = _failures(report)
    elif rejected:
        sentence = f"{counted(rejected, 'row')} could not be read."
    return dg.AssetCheckResult(
        check_name=UNREAD_LISTS,
        passed=report.is_complete and not rejected,
        severity=dg.AssetCheckSeverity.WARN if report.has_prices else dg.AssetCheckSeverity.ERROR,
        description=escaped(sentence),
        metadata={"what_to_do": what_to_do(_ANCHOR)},
    )


def _metadata(report: SyncReport) -> Metadata:
    return {
        "calls": dg.MetadataValue.int(sum(step.calls for step in report.steps)),
        "wire_bytes": dg.MetadataValue.int(sum(step.wire_bytes for step in report.steps)),
        **named_table(
            "lists",
            ["list", "added", "revised", "vanished", "unreadable rows", "failure"],
            [_cells(step) for step in report.steps],
        ),
    }


def _cells(step: Step) -> list[object]:
    return [step.name, step.added, step.revised, step.vanished, step.rejected, step.failure or ""]


def sync_schedule(naming: Naming) -> dg.ScheduleDefinition:
    """The schedule that syncs the lists every hour."""
    job = dg.define_asset_job(
        naming.name(SYNC_JOB),
        selection=dg.AssetSelection.assets(naming.commodity_lists),
        description="Reads all lists of the game's commodities.",
        tags=NO_RUN_RETRIES,
        executor_def=dg.in_process_executor,
    )

    @dg.schedule(
        required_resource_keys=needed(naming, PricingDatabase),
        name=naming.name(SYNC_JOB),
        job=job,
        cron_schedule="23 * * * *",
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Syncs terminals, commodities and their prices every hour.",
    )
    def schedule(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        database = given(context, naming, PricingDatabase)
        if off := _switched_off(database.engine):
            return dg.SkipReason(off)
        return dg.RunRequest(tags=ahead(context.instance, 5))  # behind drains, before backfills

    return schedule
