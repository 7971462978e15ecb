"""Assets: two for each data type, built from the registry, and the sources of their lineage.

Drains and people materialize `price_history/<type>`, or `document/<type>`: to backfill, or to fetch the latest now.
Documents have no months: they may be about past years, or about the future. `latest_price/<type>` is external: it has
the freshness policy, and events report to it. There are two assets because Dagster judges freshness by an asset's last
materialization of any partition: a backfill of 2010 would make a stale asset look fresh.
"""

import os
import socket
import warnings
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from pathlib import Path

import dagster as dg

from pricing_pipeline.defs.backfilling import BackfillConfig, backfill
from pricing_pipeline.defs.cancelling import cancel_with_runs
from pricing_pipeline.defs.draining import drain
from pricing_pipeline.defs.jobs import NO_RUN_RETRIES
from pricing_pipeline.defs.markdown import escaped
from pricing_pipeline.defs.ours import DRAIN_TAG, SUBSCRIPTIONS, latest_key, provider_key, stored_key
from pricing_pipeline.defs.page_links import page_link
from pricing_pipeline.defs.reports import Reporter
from pricing_pipeline.defs.resources import Allowances, PricingDatabase, Providers
from pricing_pipeline.defs.snapshot import RegistrySnapshot
from pricing_pipeline.defs.sources import url_metadata
from pricing_pipeline.domain.data_types import DataType
from pricing_pipeline.refresh.refresher import Refresher

_NO_HISTORY = date(2000, 1, 1)
"""The first month while no type has history."""

_PACKAGE = Path(__file__).parents[1]

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
        dg.TableColumn("currency", "text", description="ISO 4217, or a coin."),
        dg.TableColumn("volume", "numeric", description="Traded volume, where the source has it."),
        dg.TableColumn("provider", "text", description="Who said so."),
        dg.TableColumn("call_id", "bigint", description="The call that brought it, in pricing.calls."),
        dg.TableColumn("fetched_at", "timestamptz", description="When it was stored."),
        dg.TableColumn(
            "adjustment", "text", description="raw = as traded; splits = divided by later splits."
        ),
        dg.TableColumn(
            "quality",
            "text",
            description="The parts of the bar that cannot be true and were dropped, and why.",
        ),
        dg.TableColumn(
            "source_text", "text", description="The source's spelling, where it is not the stored digits."
        ),
    ]
)
_LATEST_COLUMNS = dg.TableSchema(
    columns=[
        dg.TableColumn("symbol", "text", description="The instrument's symbol."),
        dg.TableColumn("amount", "bigint", description="Price in minor units: price x 10^scale."),
        dg.TableColumn("scale", "smallint", description="Decimals of the amount."),
        dg.TableColumn("currency", "text", description="ISO 4217, or a coin."),
        dg.TableColumn("observed_at", "timestamptz", description="Source's time."),
        dg.TableColumn("fetched_at", "timestamptz", description="When a provider last confirmed it."),
        dg.TableColumn("provider", "text", description="Who said so."),
        dg.TableColumn("call_id", "bigint", description="The call that brought it, in pricing.calls."),
        dg.TableColumn("source_text", "text", description="The price as the source spelled it."),
        dg.TableColumn("cache_ttl_minutes", "integer", description="TTL of this pair, if it has its own."),
    ]
)


_DOCUMENTS_COLUMNS = dg.TableSchema(
    columns=[
        dg.TableColumn("symbol", "text", description="Whom it is about."),
        dg.TableColumn("period", "date", description="The day it is filed under; -infinity for none."),
        dg.TableColumn("body", "jsonb", description="As it was checked; NULL = withdrawn."),
        dg.TableColumn("provider", "text", description="Who said so."),
        dg.TableColumn("call_id", "bigint", description="The call that brought it, in pricing.calls."),
        dg.TableColumn("recorded_at", "timestamptz", description="Since when we believe it."),
    ]
)
_DOCUMENT_COLUMNS = dg.TableSchema(
    columns=[
        dg.TableColumn("symbol", "text", description="Whom they are about."),
        dg.TableColumn("documents", "jsonb", description="Current documents, the newest period first."),
        dg.TableColumn("fetched_at", "timestamptz", description="When a provider last confirmed them."),
        dg.TableColumn("provider", "text", description="Who did."),
        dg.TableColumn("call_id", "bigint", description="The call that was answered, in pricing.calls."),
        dg.TableColumn("cache_ttl_minutes", "integer", description="TTL of this pair, if it has its own."),
    ]
)


def months(snapshot: RegistrySnapshot) -> dg.MonthlyPartitionsDefinition:
    """UTC months of `observed_at`, from the earliest history of any type to the current month.

    All types share them, because they are in one job. A type without history has only the values that came in its time.
    """
    begins = [kind.history_from for kind in snapshot.data_types if kind.history_from is not None]
    return dg.MonthlyPartitionsDefinition(
        min(begins, default=_NO_HISTORY).replace(day=1).isoformat(), end_offset=1
    )


def freshness_policy(data_type: DataType) -> dg.FreshnessPolicy:
    """Warn at the TTL, fail at twice the TTL or at two minutes, whichever is later."""
    ttl = timedelta(minutes=data_type.default_ttl_minutes)
    return dg.FreshnessPolicy.time_window(fail_window=max(2 * ttl, timedelta(minutes=2)), warn_window=ttl)


def source_assets(snapshot: RegistrySnapshot) -> list[dg.AssetSpec]:
    """The sources of lineage: each provider, and the subscriptions."""
    providers = [
        dg.AssetSpec(
            provider_key(name),
            group_name="sources",
            kinds={"python"},
            description=escaped(
                f"The provider {name}; every call to it is a row of pricing.collector_call_log."
            ),
            metadata={
                "dagster/table_name": "pricing.collector_call_log",
                **url_metadata(name, base_url),
                **page_link(f"provider-{name}"),
                **_code(f"providers/{name}.py"),
            },
        )
        for name, base_url in snapshot.providers.items()
    ]
    subscriptions = dg.AssetSpec(
        SUBSCRIPTIONS,
        group_name="sources",
        kinds={"postgres", "table"},
        description="The pairs that people watch now, kept alive by heartbeats. They decide what is refreshed.",
        metadata={
            "dagster/table_name": "pricing.active_subscriptions",
            **page_link("watched"),
            **_code("db/functions/demand/demand.sql"),
        },
    )
    return [*providers, subscriptions]


def latest_price_assets(snapshot: RegistrySnapshot, unscheduled: Mapping[str, str]) -> list[dg.AssetSpec]:
    """One external asset for each data type, with a freshness policy by its TTL.

    `unscheduled` has the reasons why types have no schedule although their row asks for one.
    """
    return [
        dg.AssetSpec(
            latest_key(kind.data_type),
            deps=[stored_key(kind)],
            group_name="latest_document" if kind.fetcher.is_document else "latest_price",
            kinds={"postgres", "table"},
            description=escaped(
                f"{_sentence(kind)} {_what_is_latest(kind)} of each symbol, due again "
                f"{_minutes(kind.default_ttl_minutes)} after it was fetched while someone watches it. "
                "A type without viewers gets no events, so its freshness may read stale."
                f"{_no_schedule(unscheduled.get(kind.data_type))}"
            ),
            freshness_policy=freshness_policy(kind),
            metadata={
                "dagster/table_name": f"pricing.{kind.table_name}",
                "ttl_minutes": kind.default_ttl_minutes,
                **page_link(f"type-{kind.data_type}"),
                **_code(
                    "db/functions/prices/documents.sql"
                    if kind.fetcher.is_document
                    else "db/functions/prices/prices.sql"
                ),
                # A table that the user has made has other columns.
                **_latest_columns(kind),
            },
            tags={"strategy": kind.refresh_strategy},
            owners=_owners(kind),
        )
        for kind in snapshot.data_types
    ]


def price_history_assets(snapshot: RegistrySnapshot) -> dg.AssetsDefinition:
    """All histories and documents as one multi-asset: one process, one pool, one order of priority over all types."""
    partitions = months(snapshot)

    without_history = frozenset(kind.data_type for kind in snapshot.data_types if kind.history_from is None)

    @dg.multi_asset(
        name="refresh_prices",
        specs=[_stored_spec(kind, snapshot, partitions) for kind in snapshot.data_types],
        backfill_policy=dg.BackfillPolicy.single_run(),
        can_subset=True,
    )
    def refresh_prices(
        context: dg.AssetExecutionContext,
        config: BackfillConfig,
        database: PricingDatabase,
        providers: Providers,
        allowances: Allowances,
    ) -> Iterator[dg.MaterializeResult[None]]:
        reporter = Reporter(context, database.engine, allowances, without_history)
        with (
            providers.clients() as clients,
            Refresher(
                database.engine,
                clients,
                worker=f"{socket.gethostname()}:{os.getpid()}",
                run_id=context.run.run_id,
                on_report=reporter.report,
            ) as refresher,
        ):
            if DRAIN_TAG in context.run.tags:
                drain(context, refresher)
                reporter.finish_months()
            else:
                try:
                    backfill(context, snapshot, config, database.engine, refresher, reporter)
                except dg.Failure:
                    context.instance.add_run_tags(context.run.run_id, NO_RUN_RETRIES)
                    raise
                except (KeyboardInterrupt, dg.DagsterExecutionInterruptedError):
                    cancel_with_runs(context.instance, database.engine)
                    raise
        # Everything is reported already; yielding an asset here would report it twice.
        yield from ()

    return refresh_prices


def _stored_spec(
    kind: DataType, snapshot: RegistrySnapshot, partitions: dg.PartitionsDefinition[str]
) -> dg.AssetSpec:
    return dg.AssetSpec(
        stored_key(kind),
        deps=[*map(provider_key, snapshot.routes.get(kind.data_type, ())), SUBSCRIPTIONS],
        group_name="documents" if kind.fetcher.is_document else "price_history",
        kinds={"python", "postgres"},
        description=escaped(f"{_sentence(kind)} {_history_sentence(kind)}"),
        metadata={
            "dagster/table_name": _history_table(kind),
            "dagster/column_schema": _DOCUMENTS_COLUMNS if kind.fetcher.is_document else _HISTORY_COLUMNS,
            **page_link("backfills"),
            **_code("refresh/refresher.py", "refresh/settling.py"),
        },
        tags={"strategy": kind.refresh_strategy},
        owners=_owners(kind),
        partitions_def=None if kind.fetcher.is_document else partitions,
        skippable=True,
    )


def _sentence(kind: DataType) -> str:
    contents = "Documents" if kind.fetcher.is_document else "Prices"
    return kind.description or f"{contents} of type {kind.data_type}."


def _what_is_latest(kind: DataType) -> str:
    return "The current documents" if kind.fetcher.is_document else "The newest price"


def _latest_columns(kind: DataType) -> dict[str, dg.TableSchema]:
    if kind.table_name == f"document_{kind.data_type}" and kind.fetcher.is_document:
        return {"dagster/column_schema": _DOCUMENT_COLUMNS}
    if kind.table_name == f"latest_price_{kind.data_type}":
        return {"dagster/column_schema": _LATEST_COLUMNS}
    return {}


def _history_table(kind: DataType) -> str:
    return "pricing.documents" if kind.fetcher.is_document else f"pricing.price_history_{kind.data_type}"


def _history_sentence(kind: DataType) -> str:
    if kind.fetcher.is_document:
        return (
            "A changed document leaves a revision in pricing.document_revisions; there is nothing to backfill. "
            "Materialize fetches the watched and held pairs now."
        )
    if kind.history_from is None:
        return "History grows as quotes arrive; its provider has none to backfill."
    return f"History from {kind.history_from} can be backfilled: choose months under Materialize."


def _no_schedule(fault: str | None) -> str:
    if fault is None:
        return ""
    return f" Its schedule is not followed; correct it in pricing.data_type_registry. {fault}"


def _code(*files: str) -> dict[str, dg.CodeReferencesMetadataValue]:
    """Links from an asset's page to its source files, if they exist."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)  # whose exact version is pinned
        links = [
            dg.LocalFileCodeReference(file_path=str(path), label=path.name)
            for path in map(_PACKAGE.joinpath, files)
            if path.is_file()
        ]
        return (
            {"dagster/code_references": dg.CodeReferencesMetadataValue(code_references=links)}
            if links
            else {}
        )


def _owners(kind: DataType) -> list[str] | None:
    return [kind.owner] if kind.owner else None


def _minutes(ttl: int) -> str:
    if ttl % 1440 == 0:
        return "a day" if ttl == 1440 else f"{ttl // 1440} days"
    return "a minute" if ttl == 1 else f"{ttl} minutes"
