"""The sensor `report_alerts`: shows alerts about data types as a failed check of their latest prices."""

from dataclasses import dataclass

import dagster as dg

from pricing_pipeline.defs import cursors
from pricing_pipeline.defs.checks import alerts_evaluations
from pricing_pipeline.defs.resources import PricingDatabase, given, needed
from pricing_pipeline.defs.snapshot import RegistrySnapshot
from pricing_pipeline.operations import alerts

_EVERY_SECONDS = 30


@dataclass(frozen=True)
class _Reported:
    """The cursor of the sensor: the alerts that were reported of each type, with who looks after them."""

    alerts: dict[str, list[str]]


def report_alerts(snapshot: RegistrySnapshot) -> dg.SensorDefinition:
    """The sensor that evaluates the check `alerts` of a type when an alert about it begins, changes or ends."""
    naming, names = snapshot.naming, snapshot.names()

    @dg.sensor(
        required_resource_keys=needed(naming, PricingDatabase),
        name=naming.name("report_alerts"),
        minimum_interval_seconds=_EVERY_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Evaluates the check alerts of a data type when an alert about it, or about a provider of it, "
        "begins, is acknowledged or ends.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        database = given(context, naming, PricingDatabase)
        reported = cursors.read(context, _Reported) or _Reported({})
        with database.engine.connect() as connection:
            now = {
                name: [f"{c.alert_id} {c.severity} {c.acknowledged_by or ''}" for c in concerns]
                for name, concerns in alerts.concerning(connection, names).items()
            }
            changed = [name for name in names if now.get(name) != reported.alerts.get(name)]
            judged = alerts_evaluations(connection, snapshot, changed) if changed else []
        return dg.SensorResult(
            asset_events=judged,
            skip_reason=f"reported: {', '.join(changed)}" if changed else "nothing has changed",
            cursor=cursors.dump(_Reported(now)),
        )

    return sensor
