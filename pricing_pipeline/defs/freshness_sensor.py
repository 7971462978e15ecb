"""The sensor `report_freshness`: reports that what people watch of each data type is fresh."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import dagster as dg
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.defs import cursors
from pricing_pipeline.defs.checks import first_evaluations, on_time_evaluations
from pricing_pipeline.defs.naming import CHECKS_JOB, Naming
from pricing_pipeline.defs.plots import freshness_plot
from pricing_pipeline.defs.reports import describe_service, idle, serving
from pricing_pipeline.defs.resources import PricingDatabase, given, needed
from pricing_pipeline.defs.snapshot import RegistrySnapshot
from pricing_pipeline.defs.tables import Metadata
from pricing_pipeline.defs.ticks import EVERY_LOOP
from pricing_pipeline.demand import drains, freshness
from pricing_pipeline.domain.data_types import DataType
from pricing_pipeline.operations import health
from pricing_pipeline.prices import quality

_REPORTED_AT_LEAST_SECONDS = 30.0
# Two ticks 30 s apart may come a little earlier.
_TICK_JITTER_SECONDS = 1.0


@dataclass(frozen=True)
class _Reported:
    """The cursor of the freshness sensor: when each type was last reported, in Unix seconds, and the late types.

    `at` is 0 of a type that is to be reported as soon as it is fresh; an event of earlier says that it was.

    `idle` are the types of which nothing watched can be fetched. `paused` counts the watched pairs that are paused.
    `checked` are the types whose checks were evaluated after their first prices.
    """

    at: dict[str, cursors.Moment]
    late: list[str]
    idle: list[str] = field(default_factory=list)
    paused: dict[str, int] = field(default_factory=dict)
    checked: list[str] = field(default_factory=list)


def report_freshness(snapshot: RegistrySnapshot) -> dg.SensorDefinition:
    """The sensor that materializes freshness, without a run, while all watched pairs are on time."""
    naming, types = snapshot.naming, {type_.data_type: type_ for type_ in snapshot.data_types}
    ttls = {name: type_.default_ttl_minutes * 60.0 for name, type_ in types.items()}

    @dg.sensor(
        required_resource_keys=needed(naming, PricingDatabase),
        name=naming.name("report_freshness"),
        minimum_interval_seconds=EVERY_LOOP,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Reports for each watched data type, at once and then about every half TTL, that prices are fresh "
        "and none is late. Otherwise it reports nothing, and the freshness policy warns and then fails. "
        "When a type becomes late, or is on time again, or a watched pair is paused or resumed, it evaluates the check "
        "on_time at once. After the first prices of a type it evaluates all its checks; later the job "
        f"{naming.name(CHECKS_JOB)} does, every hour. When nothing of a type can be fetched any more, it observes "
        "that; when nobody watches a type any more, its reports are removed.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        database = given(context, naming, PricingDatabase)
        with health.ticking(database.engine, "report_freshness"):
            reported = cursors.read(context, _Reported) or _Reported({}, [])
            with database.engine.connect() as connection:
                outlook = drains.outlook(connection)
                now, watched = outlook.now_epoch, sorted(ttls.keys() & set(outlook.watched_types or ()))
                rows = (
                    [row for row in freshness.measure(connection, watched) if row.watched] if watched else []
                )
                late = sorted(row.data_type for row in rows if not row.is_on_time)
                idle_rows = {row.data_type: row for row in rows if row.is_idle}
                paused = {row.data_type: row.paused for row in rows if row.paused}
                turned = sorted(_turned(reported, late, [*idle_rows], paused) & ttls.keys())
                judged = on_time_evaluations(connection, snapshot, turned) if turned else []
            ready = [row for row in rows if row.is_calm]
            calm = [
                r
                for r in ready
                if not 0 <= now - reported.at.get(r.data_type, 0.0) < _pause(ttls[r.data_type])
            ]
            # One in a tick: a type may come with years of history.
            first = [row.data_type for row in ready if row.data_type not in reported.checked][:1]
            for name in first:
                judged = [one for one in judged if one.asset_key != naming.latest_key(name)]
                judged += _first_checks(context, database, snapshot, types[name])
            # A type in trouble is reported at once when it is fresh again. Its old claim stands until then, and turns
            # red.
            troubled = {row.data_type for row in rows if not (row.is_calm or row.is_merely_due)}
            unwatched = [name for name in reported.at if name not in watched]
            if unwatched:
                # Nothing is claimed of them any more: an old claim would turn red.
                context.instance.wipe_assets(list(map(naming.freshness_key, unwatched)))
            kept = {
                name: 0.0 if name in troubled else at for name, at in reported.at.items() if name in watched
            }
            return dg.SensorResult(
                asset_events=[
                    *judged,
                    *(idle(naming, row) for name, row in idle_rows.items() if name not in reported.idle),
                    *(_calm(database, naming, row) for row in calm),
                ],
                skip_reason=_describe_tick(
                    calm, [row for row in rows if not row.is_calm], len(ttls) - len(rows)
                ),
                cursor=cursors.dump(
                    _Reported(
                        kept | {row.data_type: now for row in calm},
                        late,
                        sorted(idle_rows),
                        paused,
                        sorted({*reported.checked, *first} & ttls.keys()),
                    )
                ),
            )

    return sensor


def _turned(
    reported: _Reported, late: Sequence[str], idle_types: Sequence[str], paused: Mapping[str, int]
) -> set[str]:
    """The types whose check on_time would say something else than at the last tick."""
    resumed_or_paused = {name for name, _ in paused.items() ^ reported.paused.items()}
    return ({*late} ^ {*reported.late}) | ({*idle_types} ^ {*reported.idle}) | resumed_or_paused


def _pause(ttl: float) -> float:
    """Seconds between two reports of a data type with this TTL in seconds."""
    return max(_REPORTED_AT_LEAST_SECONDS, ttl / 2) - _TICK_JITTER_SECONDS


def _first_checks(
    context: dg.SensorEvaluationContext,
    database: PricingDatabase,
    snapshot: RegistrySnapshot,
    type_: DataType,
) -> list[dg.AssetCheckEvaluation]:
    try:
        with database.engine.connect() as connection:
            return first_evaluations(connection, snapshot, type_)
    except DBAPIError as error:  # check_prices evaluates them within the hour
        context.log.warning(f"the checks of {type_.data_type} cannot be evaluated now: {error.orig}"[:500])
        return []


def _calm(database: PricingDatabase, naming: Naming, row: freshness.Freshness) -> dg.AssetMaterialization:
    shown: Metadata = {}
    try:
        with database.engine.connect() as connection:
            shown |= freshness_plot(quality.served(connection, row.data_type))
    except DBAPIError as error:  # a failed plot must not stop the report of this type or another
        shown["not_shown"] = dg.MetadataValue.text(
            f"the database cannot show the plot now: {error.orig}"[:500]
        )
    return dg.AssetMaterialization(
        naming.freshness_key(row.data_type),
        metadata={"reason": describe_service(row), **serving(row), **shown},
    )


def _describe_tick(
    calm: Sequence[freshness.Freshness], troubled: Sequence[freshness.Freshness], unwatched: int
) -> str:
    late = [f"{row.data_type} ({row.late})" for row in troubled if row.late]
    waiting = [f"{row.data_type} ({row.due})" for row in troubled if row.due and not row.late]
    refused = [row.data_type for row in troubled if not (row.late or row.due)]
    states = {
        "on time": [row.data_type for row in calm],
        "late, so nothing is said": late,
        "being fetched, so nothing is said": waiting,
        "none can be fetched, so nothing is said": refused,
        "nobody watches": [f"{unwatched} data type{'s' if unwatched > 1 else ''}"] if unwatched else [],
    }
    return (
        "; ".join(f"{state}: {', '.join(names)}" for state, names in states.items() if names)
        or "nothing to say yet"
    )
