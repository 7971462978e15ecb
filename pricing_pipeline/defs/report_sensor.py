"""The sensor `report_prices`: tells this Dagster instance what is fresh, and what has changed."""

from dataclasses import dataclass

import dagster as dg

from pricing_pipeline.defs import cursors, freshness_reports, news_reports
from pricing_pipeline.defs.freshness_reports import Reported
from pricing_pipeline.defs.naming import CHECKS_JOB
from pricing_pipeline.defs.news_reports import ReportedNews
from pricing_pipeline.defs.resources import PricingDatabase, given, needed
from pricing_pipeline.defs.snapshot import RegistrySnapshot
from pricing_pipeline.defs.ticks import EVERY_LOOP
from pricing_pipeline.demand import drains
from pricing_pipeline.operations import health


@dataclass(frozen=True)
class _Kept:
    """The cursor of the sensor."""

    freshness: Reported
    news: ReportedNews


def report_prices(snapshot: RegistrySnapshot) -> dg.SensorDefinition:
    """The sensor that materializes, without a run, freshness while it lasts, and prices that have changed.

    It is one sensor, because each tick costs Dagster's storage a kilobyte and its daemon 25 ms of CPU.
    """
    naming = snapshot.naming

    @dg.sensor(
        required_resource_keys=needed(naming, PricingDatabase),
        name=naming.name("report_prices"),
        minimum_interval_seconds=EVERY_LOOP,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Materializes what has changed, each with its data version: latest values within seconds, and "
        "months of history when they lack nothing that can be fetched. Assets that depend on these run then, and only "
        "then. A confirmed price that is the same is no change. Reports for each watched data type, at once and then "
        "about every half TTL, that prices are fresh and none is late. Otherwise it reports nothing, and the freshness "
        "policy warns and then fails. When a type becomes late, or is on time again, or a watched pair is paused or "
        "resumed, it evaluates the check on_time at once. After a type's first prices it evaluates all its checks; "
        f"later the job {naming.name(CHECKS_JOB)} does, every six hours. When nothing of a type can be fetched any "
        "more, it observes that; when nobody watches a type any more, its reports of freshness are removed.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        database = given(context, naming, PricingDatabase)
        with health.ticking(database.engine, "report_prices"):
            kept = cursors.read(context, _Kept) or _Kept(Reported(), ReportedNews())
            with database.engine.connect() as connection:
                outlook = drains.outlook(connection)
            fresh = freshness_reports.report(context, database, snapshot, kept.freshness, outlook)
            told, number = news_reports.tell(context.instance, database.engine, snapshot, kept.news, outlook.now_epoch)
            news = [f"reported {number} changes"] if number else []
            return dg.SensorResult(
                asset_events=fresh.events,
                # A tick without requests of runs skips for Dagster, also when it has reported.
                skip_reason="; ".join([fresh.words, *news]),
                cursor=cursors.dump(_Kept(fresh.reported, told)),
            )

    return sensor
