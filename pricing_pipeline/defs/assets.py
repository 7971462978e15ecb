"""Assets: two per data type, built from the registry, and the sources that their lineage starts from.

`price_history/<type>` is materializable, by drains and by backfills. `latest_price/<type>` is external:
it carries the freshness policy and is fed by events. They are two because Dagster judges freshness by an
asset's last materialization, whatever its partition: a backfill of 2010 would make a stale asset look fresh.
"""

import os
import socket
from collections.abc import Iterator
from datetime import timedelta

import dagster as dg

from pricing_pipeline.defs.reports import Reporter
from pricing_pipeline.defs.resources import Allowances, PricingDatabase, Providers
from pricing_pipeline.defs.snapshot import RegistrySnapshot
from pricing_pipeline.domain import DataType, Window
from pricing_pipeline.refresh import Refresher
from pricing_pipeline.settings import load_settings

DRAIN_TAG = "pricing/drain"
"""On runs that drain the queue; a run of `price_history` without it is a backfill."""

MONTHS = dg.MonthlyPartitionsDefinition(start_date="2000-01-01", end_offset=1)
"""UTC months of `observed_at`, shared by all types because one job must hold them all; the current one included."""

SUBSCRIPTIONS = dg.AssetKey("active_subscriptions")

_HISTORY_COLUMNS = dg.TableSchema(
    columns=[
        dg.TableColumn("symbol", "text", description="The instrument's symbol."),
        dg.TableColumn(
            "observed_at", "timestamptz", description="Source's time; midnight UTC for daily values."
        ),
        dg.TableColumn(
            "amount", "bigint", description="Close, NAV or quote in minor units: price x 10^scale."
        ),
        dg.TableColumn("open_amount", "bigint", description="Open, where the source has bars."),
        dg.TableColumn("high_amount", "bigint", description="High, where the source has bars."),
        dg.TableColumn("low_amount", "bigint", description="Low, where the source has bars."),
        dg.TableColumn("scale", "smallint", description="Decimals of the amounts."),
        dg.TableColumn("currency", "text", description="ISO 4217."),
        dg.TableColumn("volume", "numeric", description="Traded volume, where the source has it."),
        dg.TableColumn("provider", "text", description="Who said so."),
        dg.TableColumn("call_id", "bigint", description="The call that brought it, in collector_call_log."),
        dg.TableColumn("fetched_at", "timestamptz", description="When it was stored."),
    ]
)
_LATEST_COLUMNS = dg.TableSchema(
    columns=[
        dg.TableColumn("symbol", "text", description="The instrument's symbol."),
        dg.TableColumn("amount", "bigint", description="Price in minor units: price x 10^scale."),
        dg.TableColumn("scale", "smallint", description="Decimals of the amount."),
        dg.TableColumn("currency", "text", description="ISO 4217."),
        dg.TableColumn("observed_at", "timestamptz", description="Source's time."),
        dg.TableColumn("fetched_at", "timestamptz", description="When a provider last confirmed it."),
        dg.TableColumn("provider", "text", description="Who said so."),
        dg.TableColumn("call_id", "bigint", description="The call that brought it, in collector_call_log."),
        dg.TableColumn("source_text", "text", description="The price as the source spelled it."),
        dg.TableColumn("cache_ttl_minutes", "integer", description="TTL of this pair, if it has its own."),
    ]
)


def history_key(data_type: str) -> dg.AssetKey:
    return dg.AssetKey(["price_history", data_type])


def latest_key(data_type: str) -> dg.AssetKey:
    return dg.AssetKey(["latest_price", data_type])


def provider_key(provider: str) -> dg.AssetKey:
    return dg.AssetKey(["provider", provider])


def freshness_policy(data_type: DataType) -> dg.FreshnessPolicy:
    """Warn at the TTL, fail at twice the TTL but not before two minutes."""
    ttl = timedelta(minutes=data_type.default_ttl_minutes)
    return dg.FreshnessPolicy.time_window(fail_window=max(2 * ttl, timedelta(minutes=2)), warn_window=ttl)


def source_assets(snapshot: RegistrySnapshot) -> list[dg.AssetSpec]:
    """Where lineage starts: each provider, and what people look at."""
    providers = [
        dg.AssetSpec(
            provider_key(name),
            group_name="sources",
            kinds={"python"},
            description=f"The provider {name}; every call to it is a row of pricing.collector_call_log.",
            metadata={"dagster/table_name": "pricing.collector_call_log", "base_url": base_url},
        )
        for name, base_url in snapshot.providers.items()
    ]
    subscriptions = dg.AssetSpec(
        SUBSCRIPTIONS,
        group_name="sources",
        kinds={"postgres", "table"},
        description="What people look at now, kept alive by heartbeats. It decides what is refreshed.",
        metadata={"dagster/table_name": "pricing.active_subscriptions"},
    )
    return [*providers, subscriptions]


def latest_price_assets(snapshot: RegistrySnapshot) -> list[dg.AssetSpec]:
    """One external asset per data type, with the freshness policy that the registry's TTL asks for."""
    return [
        dg.AssetSpec(
            latest_key(kind.data_type),
            deps=[history_key(kind.data_type)],
            group_name="latest_price",
            kinds={"postgres", "table"},
            description=f"{_sentence(kind)} The newest price of each symbol, due again "
            f"{_minutes(kind.default_ttl_minutes)} after it was fetched while someone watches it.",
            freshness_policy=freshness_policy(kind),
            metadata={
                "dagster/table_name": f"pricing.{kind.table_name}",
                "dagster/column_schema": _LATEST_COLUMNS,
                "ttl_minutes": kind.default_ttl_minutes,
            },
            tags={"strategy": kind.refresh_strategy},
        )
        for kind in snapshot.data_types
    ]


def price_history_assets(snapshot: RegistrySnapshot) -> dg.AssetsDefinition:
    """All histories as one multi-asset: one process, one pool, one order of priority over all types."""
    sources = [*(provider_key(name) for name in snapshot.providers), SUBSCRIPTIONS]

    @dg.multi_asset(
        name="refresh_prices",
        specs=[
            dg.AssetSpec(
                history_key(kind.data_type),
                deps=sources,
                group_name="price_history",
                kinds={"python", "postgres"},
                description=f"{_sentence(kind)} {_history_sentence(kind)}",
                metadata={
                    "dagster/table_name": f"pricing.price_history_{kind.data_type}",
                    "dagster/column_schema": _HISTORY_COLUMNS,
                },
                tags={"strategy": kind.refresh_strategy},
                skippable=True,
            )
            for kind in snapshot.data_types
        ],
        partitions_def=MONTHS,
        backfill_policy=dg.BackfillPolicy.single_run(),
        can_subset=True,
    )
    def refresh_prices(
        context: dg.AssetExecutionContext,
        database: PricingDatabase,
        providers: Providers,
        allowances: Allowances,
    ) -> Iterator[dg.MaterializeResult[None]]:
        reporter = Reporter(context, database.engine, allowances)
        with (
            providers.clients() as clients,
            Refresher(
                database.engine,
                clients,
                worker=f"{socket.gethostname()}:{os.getpid()}",
                run_id=context.run_id,
                on_report=reporter.report,
            ) as refresher,
        ):
            if DRAIN_TAG in context.run.tags:
                _drain(context, refresher)
            else:
                _backfill(context, refresher, reporter)
        # Everything was reported as it happened; an asset that is yielded here would be reported twice.
        yield from ()

    return refresh_prices


def _drain(context: dg.AssetExecutionContext, refresher: Refresher) -> None:
    seconds = load_settings().max_drain_seconds
    context.log.info(f"draining the queue for {seconds} s, or until nobody watches and nothing is queued")
    if not refresher.drain(seconds):
        context.log.info("another drain is at work; it takes this run's tasks too")


def _backfill(context: dg.AssetExecutionContext, refresher: Refresher, reporter: Reporter) -> None:
    span = context.partition_time_window
    window = Window(span.start.date(), span.end.date() - timedelta(days=1))
    names = sorted(key.path[-1] for key in context.selected_asset_keys)
    plans = [refresher.plan_backfill(name, window) for name in names]
    for plan in plans:
        context.log.info(
            f"{plan.data_type}: {plan.tasks} gap(s) to fill between {window.start} and {window.end}"
            if plan.tasks
            else f"{plan.data_type}: everything between {window.start} and {window.end} is stored already"
        )
        progress = refresher.backfill(plan, reporter.progress(plan.data_type))
        reporter.report_months(plan, window)
        if progress.failed:
            raise dg.Failure(
                description=f"{progress.failed} of {progress.tasks} tasks of {plan.data_type} failed; "
                "the rest is stored. `pricing-pipeline queue list --status failed` shows why.",
                metadata={"failures": reporter.failures(plan)},
            )


def _sentence(kind: DataType) -> str:
    return kind.description or f"Prices of type {kind.data_type}."


def _history_sentence(kind: DataType) -> str:
    if kind.history_from is None:
        return "History grows as quotes arrive; its provider has none to backfill."
    return f"History from {kind.history_from} can be backfilled: choose months under Materialize."


def _minutes(ttl: int) -> str:
    if ttl % 1440 == 0:
        return "a day" if ttl == 1440 else f"{ttl // 1440} days"
    return "a minute" if ttl == 1 else f"{ttl} minutes"
