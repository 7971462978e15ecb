"""Sensors: start drains when there is work, say how fresh prices are, follow the registry."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import dagster as dg
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin  # internal: dagster is pinned
from sqlalchemy.exc import DBAPIError

from pricing_pipeline import checks, demand, limits
from pricing_pipeline.defs.assets import months
from pricing_pipeline.defs.cancelling import cancel_with_runs
from pricing_pipeline.defs.checks import on_time_evaluations
from pricing_pipeline.defs.draining import drain_tags
from pricing_pipeline.defs.ours import Ours, history_key, latest_key
from pricing_pipeline.defs.plots import freshness_plot, price_plot
from pricing_pipeline.defs.reports import Metadata, said_of_service, sample_table, serving
from pricing_pipeline.defs.resources import PricingDatabase
from pricing_pipeline.defs.schedules import MissedSlots
from pricing_pipeline.defs.snapshot import RegistrySnapshot
from pricing_pipeline.defs.starting import is_on_its_way

# A strict comparison against Dagster's 5 s loop: an interval of 5 would tick every 5 and 10 s in turn.
_EVERY_LOOP = 4
# A tick costs Dagster's daemon about 25 ms of CPU, also when nothing happens; what can wait ticks less often.
_EVERY_SECOND_LOOP = 9
# A tick every five seconds, a launch of three to nine: asked for this early, the successor is there in time.
_HAND_OVER_SECONDS = 15.0
# A drain that fails as it begins must not be launched anew with every tick.
_LEAST_SECONDS_BETWEEN = 10.0
_RELOAD_PATIENCE_SECONDS = 20.0
_TOLD_AT_LEAST_SECONDS = 30.0
# Two ticks that are to be 30 s apart can come a little less than that apart.
_TICK_JITTER_SECONDS = 1.0


def _read(cursor: str | None) -> dict[str, Any]:
    """What a cursor holds; nothing when it is not ours. A person may have set it by hand."""
    try:
        kept = json.loads(cursor or "{}")
    except ValueError:
        return {}
    return kept if isinstance(kept, dict) else {}


def refresh_watched(snapshot: RegistrySnapshot) -> dg.SensorDefinition:
    """Turns what people watch and hold, and what a schedule has missed, into runs of the refresh job."""
    known = frozenset(snapshot.names())
    schedules = MissedSlots(snapshot)
    partitions = months(snapshot)

    @dg.sensor(
        name="refresh_watched",
        job_name="refresh",
        minimum_interval_seconds=_EVERY_LOOP,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Finds watched and held prices that are due, queues them most-watched first, serves slots that a "
        "schedule has missed, and keeps one drain at work.",
    )
    def sensor(
        context: dg.SensorEvaluationContext, database: PricingDatabase
    ) -> dg.SensorResult | dg.SkipReason:
        with database.engine.begin() as connection:
            demand.run_duties(connection)
        with database.engine.begin() as connection:
            demand.enqueue_due(connection)
        schedules.serve(database.engine)
        cancel_with_runs(context.instance, database.engine)
        with database.engine.connect() as connection:
            outlook = demand.outlook(connection)
        requested = float(_read(context.cursor).get("at", 0.0))
        is_coming = is_on_its_way(context.instance, database.engine, Ours.of(context, ()).label)
        idle = _why_idle(outlook, requested, is_coming)
        if idle is not None:
            with database.engine.connect() as connection:
                stops = [allowance.stop for allowance in limits.allowances(connection)]
            return dg.SkipReason("; ".join([idle, *filter(None, stops)]))
        # A drain serves all types, those that are not loaded yet, too; but a run has to select some that are.
        wanted = ({*(outlook.queued_types or ())}, {*(outlook.watched_types or ())})
        types = next(filter(None, (names & known for names in wanted)), known)
        request = dg.RunRequest(
            run_key=_run_key(outlook, requested),
            partition_key=partitions.get_last_partition_key(),  # by Dagster's clock: the database's may be ahead
            asset_selection=[history_key(name) for name in sorted(types)],
            tags=drain_tags(context.instance, database.engine),
        )
        return dg.SensorResult(run_requests=[request], cursor=json.dumps({"at": outlook.now_epoch}))

    return sensor


def _why_idle(outlook: demand.Outlook, requested: float, is_on_its_way: bool) -> str | None:
    """Why no run is needed now; None when one is. `requested` is when one was asked for last, in Unix seconds."""
    if not outlook.watched and not outlook.queued:
        held = "; what is held is fresh enough" if outlook.held else ""
        return f"nobody watches anything and nothing is queued{held}"
    if is_on_its_way:
        return "a drain is queued or starting"
    left = outlook.drain_seconds_left or 0.0
    if left > _HAND_OVER_SECONDS:
        return f"a drain is at work for another {left:.0f} s"
    # What was requested in the future was requested before the database's clock was set back.
    if 0 <= outlook.now_epoch - requested < _LEAST_SECONDS_BETWEEN:
        return "a drain was requested a moment ago, and has ended or failed"
    return None


def _run_key(outlook: demand.Outlook, requested: float) -> str:
    """The same for two ticks that decide on the same state, so that Dagster launches one run for both."""
    return f"after-request-{requested:.3f}" if requested else f"first-{outlook.now_epoch:.3f}"


@dataclass
class _Told:
    """The cursor of the freshness sensor: when each type was last reported fresh, in Unix seconds; which were late."""

    at: dict[str, float] = field(default_factory=dict)
    late: list[str] = field(default_factory=list)

    @classmethod
    def load(cls, cursor: str | None) -> "_Told":
        kept = _read(cursor)
        return cls(kept["at"], kept["late"]) if kept.keys() == {"at", "late"} else cls()

    def dump(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)


def report_freshness(snapshot: RegistrySnapshot) -> dg.SensorDefinition:
    """Materializes latest prices, without a run, while all that is watched is on time; silent otherwise."""
    ttls = {kind.data_type: kind.default_ttl_minutes * 60.0 for kind in snapshot.data_types}

    @dg.sensor(
        name="report_freshness",
        minimum_interval_seconds=_EVERY_LOOP,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Says of each watched data type, at once and then about every half TTL, that prices are fresh and "
        "none is late. Otherwise it says nothing, and the freshness policy warns and then fails. "
        "When a type turns late, and when it is on time again, it evaluates the check on_time at once.",
    )
    def sensor(
        context: dg.SensorEvaluationContext, database: PricingDatabase
    ) -> dg.SensorResult | dg.SkipReason:
        told = _Told.load(context.cursor)
        with database.engine.connect() as connection:
            outlook = demand.outlook(connection)
            now, watched = outlook.now_epoch, sorted(ttls.keys() & set(outlook.watched_types or ()))
            rows = [row for row in demand.freshness(connection, watched) if row.watched] if watched else []
            late = sorted(row.data_type for row in rows if not row.is_on_time)
            turned = sorted({*late} ^ ({*told.late} & {row.data_type for row in rows}))
            judged = on_time_evaluations(connection, turned) if turned else []
        ready = [row for row in rows if row.is_calm]
        calm = [r for r in ready if not 0 <= now - told.at.get(r.data_type, 0.0) < _pause(ttls[r.data_type])]
        # A type in trouble is forgotten, so that it is reported at once when it is calm again.
        troubled = {row.data_type for row in rows if not (row.is_calm or row.is_merely_due)}
        kept = {name: at for name, at in told.at.items() if name in ttls and name not in troubled}
        return dg.SensorResult(
            asset_events=[*judged, *(_calm(database, row) for row in calm)],
            skip_reason=_told_what(calm, [row for row in rows if not row.is_calm], len(ttls) - len(rows)),
            cursor=_Told(kept | {row.data_type: now for row in calm}, late).dump(),
        )

    return sensor


def _pause(ttl: float) -> float:
    """Seconds between two reports of a data type with this TTL in seconds."""
    return max(_TOLD_AT_LEAST_SECONDS, ttl / 2) - _TICK_JITTER_SECONDS


def _calm(database: PricingDatabase, row: demand.Freshness) -> dg.AssetMaterialization:
    shown: Metadata = {}
    try:
        with database.engine.connect() as connection:
            shown |= sample_table(connection, row.data_type)
            shown |= freshness_plot(checks.served(connection, row.data_type))
            shown |= price_plot(checks.portrait(connection, row.data_type))
    except DBAPIError as error:  # a plot must not keep this type, or another, from being reported
        shown["not_shown"] = dg.MetadataValue.text(
            f"what the database refuses to show now: {error.orig}"[:500]
        )
    return dg.AssetMaterialization(
        latest_key(row.data_type), metadata={"reason": said_of_service(row), **serving(row), **shown}
    )


def _told_what(calm: Sequence[demand.Freshness], troubled: Sequence[demand.Freshness], unwatched: int) -> str:
    late = [f"{row.data_type} ({row.late})" for row in troubled if row.late]
    waiting = [f"{row.data_type} ({row.due})" for row in troubled if row.due and not row.late]
    refused = [row.data_type for row in troubled if not (row.late or row.due)]
    said = {
        "on time": [row.data_type for row in calm],
        "late, so nothing is said": late,
        "being fetched, so nothing is said": waiting,
        "none can be fetched, so nothing is said": refused,
        "nobody watches": [f"{unwatched} data type{'s' if unwatched > 1 else ''}"] if unwatched else [],
    }
    return (
        "; ".join(f"{what}: {', '.join(names)}" for what, names in said.items() if names)
        or "nothing to say yet"
    )


def follow_registry(snapshot: RegistrySnapshot) -> dg.SensorDefinition:
    """Reloads the code location when the registry has changed, so that new types appear by themselves."""
    loaded = snapshot.version

    @dg.sensor(
        name="follow_registry",
        minimum_interval_seconds=_EVERY_SECOND_LOOP,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Reloads the definitions when a data type was added, changed or retired.",
    )
    def sensor(
        context: dg.SensorEvaluationContext, database: PricingDatabase
    ) -> dg.SensorResult | dg.SkipReason:
        with database.engine.connect() as connection:
            outlook = demand.outlook(connection)
        if outlook.registry_version == loaded:
            return dg.SkipReason(f"the registry is unchanged (version {loaded})")
        asked: Mapping[str, Any] = _read(context.cursor)
        if (
            asked.get("version") == outlook.registry_version
            and 0 <= outlook.now_epoch - asked["at"] < _RELOAD_PATIENCE_SECONDS
        ):
            return dg.SkipReason("the definitions are being reloaded")
        server = context.code_location_origin
        if not isinstance(server, GrpcServerCodeLocationOrigin):
            # Dagster's daemon starts a server of its own for such a location, and starts it again every minute.
            return dg.SkipReason(
                f"the registry has version {outlook.registry_version}, loaded is {loaded}: the daemon loads it within "
                "a minute; reload the code location where it is shown"
            )
        server.create_client().reload_code(timeout=60)
        cursor = json.dumps({"version": outlook.registry_version, "at": outlook.now_epoch})
        return dg.SensorResult(
            skip_reason=f"reloading: the registry changed from version {loaded} to {outlook.registry_version}",
            cursor=cursor,
        )

    return sensor
