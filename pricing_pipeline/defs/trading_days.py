"""The sensor that keeps trading calendars filled in the database; see calendars.py."""

import dagster as dg

from pricing_pipeline.defs.naming import Naming
from pricing_pipeline.defs.resources import PricingDatabase, given, needed
from pricing_pipeline.registry import calendars

_EVERY_SECONDS = 300


def extend_calendars(naming: Naming) -> dg.SensorDefinition:
    """The sensor that writes trading days."""

    @dg.sensor(
        required_resource_keys=needed(naming, PricingDatabase),
        name=naming.name("extend_calendars"),
        minimum_interval_seconds=_EVERY_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Writes the trading days of the instruments' exchanges, to the end of next year.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        database = given(context, naming, PricingDatabase)
        if context.cursor is None:
            # It takes seconds, and the first prices after a first start need not wait for it.
            context.update_cursor("begun")
            return dg.SkipReason("calendars are checked from the next tick on")
        extended = calendars.extend(database.engine)
        said = [f"wrote the sessions of {', '.join(extended.written)}"] if extended.written else []
        said += [f"{calendar} failed: {why}" for calendar, why in extended.failed.items()]
        return dg.SkipReason("; ".join(said) or "every calendar in use is known far enough")

    return sensor
