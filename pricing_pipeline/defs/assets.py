"""Assets: three for each data type, built from the registry, and the sources of their lineage.

People materialize `price_history/<type>`, or of other contents `document/<type>`, `inventory/<type>` and
`commodity/<type>`: to backfill, or to fetch the latest now. Only prices have months: documents may be about past
years, or about the future, and slots are. `latest_price/<type>` is external, and materialized when a value changes: it
is what other assets depend on. `freshness/<type>` has the freshness policy. It is an asset of its own, because Dagster
judges freshness by an asset's last materialization: a backfill of 2010 would make stale prices look fresh, and a report
that they are fresh would look like news.
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta

import dagster as dg

from pricing_pipeline.defs.backfilling import BackfillConfig, backfill
from pricing_pipeline.defs.cancelling import cancel_with_runs
from pricing_pipeline.defs.code_links import code_links
from pricing_pipeline.defs.commodity_sync import is_wanted
from pricing_pipeline.defs.contents import shown
from pricing_pipeline.defs.draining import refreshing
from pricing_pipeline.defs.jobs import NO_RUN_RETRIES
from pricing_pipeline.defs.markdown import escaped
from pricing_pipeline.defs.naming import REFRESH_OP, Naming
from pricing_pipeline.defs.page_links import page_address, page_link
from pricing_pipeline.defs.reports import Reporter
from pricing_pipeline.defs.resources import Allowances, PricingDatabase, Providers, given, needed
from pricing_pipeline.defs.schedules import schedule_name
from pricing_pipeline.defs.snapshot import RegistrySnapshot
from pricing_pipeline.defs.sources import url_metadata
from pricing_pipeline.domain.data_types import Contents, DataType


def months(snapshot: RegistrySnapshot, data_type: str) -> dg.MonthlyPartitionsDefinition:
    """UTC months of `observed_at`, from the first that the type can fill to the current one.

    With months that it can never fill, an unpartitioned asset downstream would wait for them for ever.
    """
    return dg.MonthlyPartitionsDefinition(snapshot.first_month(data_type).isoformat(), end_offset=1)


def freshness_policy(data_type: DataType) -> dg.FreshnessPolicy:
    """Warn at the TTL, fail at twice the TTL or at two minutes, whichever is later."""
    ttl = timedelta(minutes=data_type.default_ttl_minutes)
    return dg.FreshnessPolicy.time_window(fail_window=max(2 * ttl, timedelta(minutes=2)), warn_window=ttl)


def source_assets(snapshot: RegistrySnapshot) -> list[dg.AssetSpec]:
    """The sources of lineage: each provider, and the subscriptions."""
    settings, naming = snapshot.source.settings(), snapshot.naming
    page = page_address(settings)
    providers = [
        dg.AssetSpec(
            naming.provider_key(name),
            group_name=naming.name("sources"),
            kinds={"python"},
            description=escaped(f"The provider {name}; every call to it is a row of pricing.collector_call_log."),
            metadata={
                "dagster/table_name": "pricing.collector_call_log",
                **url_metadata(base_url, snapshot.called_at.get(name), is_sandbox=settings.sandbox),
                **page_link(page, f"provider-{name}"),
                **code_links(f"providers/{name}.py"),
            },
        )
        for name, base_url in snapshot.providers.items()
    ]
    subscriptions = dg.AssetSpec(
        naming.subscriptions,
        group_name=naming.name("sources"),
        kinds={"postgres", "table"},
        description="The pairs that people watch now, kept alive by heartbeats. They decide what is refreshed.",
        metadata={
            "dagster/table_name": "pricing.active_subscriptions",
            **page_link(page, "watched"),
            **code_links("db/functions/demand/demand.sql"),
        },
    )
    return [*providers, subscriptions]


def latest_price_assets(snapshot: RegistrySnapshot, unscheduled: Mapping[str, str]) -> list[dg.AssetSpec]:
    """One external asset for each data type, which others depend on.

    `unscheduled` has the reasons why types have no schedule although their row asks for one.
    """
    page, naming = page_address(snapshot.source.settings()), snapshot.naming
    lists = (naming.commodity_lists,) if is_wanted(snapshot) else ()  # a sync fills the latest prices, too
    return [
        dg.AssetSpec(
            naming.latest_key(type_.data_type),
            deps=[naming.stored_key(type_), *(lists if type_.contents is Contents.COMMODITIES else ())],
            group_name=naming.name(shown(type_).latest_group),
            kinds={"postgres", "table"},
            description=escaped(
                f"{_sentence(type_)} {shown(type_).latest} of each symbol, due again "
                f"{_minutes(type_.default_ttl_minutes)} after it was fetched while someone watches it. "
                f"The sensor {naming.name('refresh_watched')} has what is due fetched, and "
                f"{naming.name('report_prices')} reports here what has changed, with its data version: so "
                "the UI names no automation, and there is nothing to materialize."
                f"{_no_schedule(unscheduled.get(type_.data_type))}"
            ),
            metadata={
                "dagster/table_name": f"pricing.{type_.table_name}",
                **page_link(page, f"type-{type_.data_type}"),
                **code_links(shown(type_).file),
                **_latest_columns(type_),
            },
            tags={"strategy": type_.refresh_strategy},
            owners=_owners(type_),
        )
        for type_ in snapshot.data_types
    ]


def freshness_assets(snapshot: RegistrySnapshot) -> list[dg.AssetSpec]:
    """One external asset for each data type, with a freshness policy by its TTL.

    It is an asset of its own, because Dagster judges freshness by materializations alone: one that only confirms that
    prices are fresh would wake what depends on the prices.
    """
    page, naming = page_address(snapshot.source.settings()), snapshot.naming
    return [
        dg.AssetSpec(
            naming.freshness_key(type_.data_type),
            deps=[naming.latest_key(type_.data_type)],
            group_name=naming.name("freshness"),
            kinds={"postgres"},
            description=escaped(
                f"Whether what people watch of {type_.data_type} is fresh: the sensor "
                f"{naming.name('report_prices')} says so about every half TTL while it is, and nothing while a "
                "price is late or nobody watches the type. Let your assets depend on latest_price: this one says "
                "nothing about changes."
            ),
            freshness_policy=freshness_policy(type_),
            metadata={
                "dagster/table_name": "pricing.demand",
                "ttl_minutes": type_.default_ttl_minutes,
                **page_link(page, f"type-{type_.data_type}"),
                **code_links("db/functions/demand/freshness.sql"),
            },
            owners=_owners(type_),
        )
        for type_ in snapshot.data_types
    ]


def stored_assets(snapshot: RegistrySnapshot) -> dg.AssetsDefinition:
    """What runs store of all types as one multi-asset: a run that people start works at all types in one process.

    Types have months of their own, so that a backfill of several has a run for each first month among them.
    """
    page, naming = page_address(snapshot.source.settings()), snapshot.naming

    @dg.multi_asset(
        name=naming.name(REFRESH_OP),
        required_resource_keys=needed(naming, PricingDatabase, Providers, Allowances),
        specs=[_stored_spec(type_, snapshot, page) for type_ in snapshot.data_types],
        backfill_policy=dg.BackfillPolicy.single_run(),
        can_subset=True,
    )
    def refresh_prices(
        context: dg.AssetExecutionContext,
        config: BackfillConfig,
    ) -> Iterator[dg.MaterializeResult[None]]:
        database = given(context, naming, PricingDatabase)
        providers, allowances = given(context, naming, Providers), given(context, naming, Allowances)
        reporter = Reporter(context, database.engine, allowances, snapshot.data_types, naming)
        with refreshing(context.run.run_id, database, providers, reporter) as refresher:
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
    type_: DataType,
    snapshot: RegistrySnapshot,
    page: str | None,
) -> dg.AssetSpec:
    naming = snapshot.naming
    return dg.AssetSpec(
        naming.stored_key(type_),
        deps=[*map(naming.provider_key, snapshot.routes.get(type_.data_type, ())), naming.subscriptions],
        group_name=naming.name(shown(type_).stored_group),
        kinds={"python", "postgres"},
        description=escaped(f"{_sentence(type_)} {_history_sentence(type_)}"),
        metadata={
            "dagster/table_name": shown(type_).table.format(type_.data_type),
            **_columns(shown(type_).stored_columns),
            **_schedule(naming, type_),
            **page_link(page, "backfills" if type_.contents is Contents.PRICES else f"type-{type_.data_type}"),
            **code_links("refresh/refresher.py", "refresh/settling.py"),
        },
        tags={"strategy": type_.refresh_strategy},
        owners=_owners(type_),
        partitions_def=months(snapshot, type_.data_type) if type_.contents is Contents.PRICES else None,
        skippable=True,
    )


def _sentence(type_: DataType) -> str:
    return type_.description or f"{shown(type_).noun} of type {type_.data_type}."


def _latest_columns(type_: DataType) -> dict[str, dg.TableSchema]:
    # A table that the user has made has other columns.
    return {} if type_.has_own_table else _columns(shown(type_).latest_columns)


def _columns(schema: dg.TableSchema | None) -> dict[str, dg.TableSchema]:
    return {"dagster/column_schema": schema} if schema else {}


def _history_sentence(type_: DataType) -> str:
    if type_.contents is not Contents.PRICES:
        return f"{shown(type_).history}Materialize fetches the watched and held pairs now."
    if type_.history_from is None:
        return "History grows as quotes arrive; its provider has none to backfill."
    return f"History from {type_.history_from} can be backfilled: choose months under Materialize."


def _schedule(naming: Naming, type_: DataType) -> dict[str, str]:
    """The schedule of a type, which Dagster does not show with the asset, because it targets the job of drains."""
    if type_.refresh_schedule is None:
        return {}
    name = naming.name(schedule_name(type_.data_type))
    return {"schedule": f"{name}: {type_.refresh_schedule} ({type_.schedule_timezone})"}


def _no_schedule(fault: str | None) -> str:
    if fault is None:
        return ""
    return f" Its schedule is not followed; correct it in pricing.data_type_registry. {fault}"


def _owners(type_: DataType) -> list[str] | None:
    return [type_.owner] if type_.owner else None


def _minutes(ttl: int) -> str:
    if ttl % 1440 == 0:
        return "a day" if ttl == 1440 else f"{ttl // 1440} days"
    return "a minute" if ttl == 1 else f"{ttl} minutes"
