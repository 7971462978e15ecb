"""Sensors: start drains when there is work, say how fresh prices are, follow the registry."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import dagster as dg
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin  # internal: dagster is pinned
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.defs import cursors
from pricing_pipeline.defs.assets import months
from pricing_pipeline.defs.cancelling import cancel_with_runs
from pricing_pipeline.defs.checks import on_time_evaluations
from pricing_pipeline.defs.draining import drain_tags
from pricing_pipeline.defs.ours import Ours, latest_key, stored_key
from pricing_pipeline.defs.plots import freshness_plot, price_plot
from pricing_pipeline.defs.reports import Metadata, said_of_service, sample_table, serving
from pricing_pipeline.defs.resources import PricingDatabase
from pricing_pipeline.defs.schedules import MissedSlots
from pricing_pipeline.defs.snapshot import RegistrySnapshot
from pricing_pipeline.defs.starting import is_on_its_way
from pricing_pipeline.demand import drains, freshness, staleness
from pricing_pipeline.prices import quality
from pricing_pipeline.queue import limits

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


@dataclass(frozen=True)
class _Requested:
    """The cursor of the sensor of drains: when it has asked for one last, in Unix seconds."""

    at: cursors.Moment


def refresh_watched(snapshot: RegistrySnapshot) -> dg.SensorDefinition:
    """Turns what people watch and hold, and what a schedule has missed, into runs of the refresh job."""
    known = {kind.data_type: kind for kind in snapshot.data_types}
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
            staleness.run_duties(connection)
        with database.engine.begin() as connection:
            staleness.enqueue_due(connection)
        schedules.serve(database.engine)
        cancel_with_runs(context.instance, database.engine)
        with database.engine.connect() as connection:
            outlook = drains.outlook(connection)
        last = cursors.read(context, _Requested)
        requested = last.at if last else 0.0
        is_coming = is_on_its_way(context.instance, database.engine, Ours.of(context, ()).label)
        idle = _why_idle(outlook, requested, is_coming)
        if idle is not None:
            with database.engine.connect() as connection:
                stops = [allowance.stop for allowance in limits.allowances(connection)]
            return dg.SkipReason("; ".join([idle, *filter(None, stops)]))
        # A drain serves all types, those that are not loaded yet, too; but a run has to select some that are.
        wanted = ({*(outlook.queued_types or ())}, {*(outlook.watched_types or ())})
        names = next(filter(None, (names & known.keys() for names in wanted)), known.keys())
        kinds = [known[name] for name in sorted(names)]
        has_months = not all(kind.fetcher.is_document for kind in kinds)
        request = dg.RunRequest(
            run_key=_run_key(outlook, requested),
            # By Dagster's clock: the database's may be ahead.
            partition_key=partitions.get_last_partition_key() if has_months else None,
            asset_selection=[stored_key(kind) for kind in kinds],
            tags=drain_tags(context.instance, database.engine),
        )
        return dg.SensorResult(run_requests=[request], cursor=cursors.dump(_Requested(outlook.now_epoch)))

    return sensor


def _why_idle(outlook: drains.Outlook, requested: float, is_on_its_way: bool) -> str | None:
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


def _run_key(outlook: drains.Outlook, requested: float) -> str:
    """The same for two ticks that decide on the same state, so that Dagster launches one run for both."""
    return f"after-request-{requested:.3f}" if requested else f"first-{outlook.now_epoch:.3f}"


@dataclass(frozen=True)
class _Told:
    """The cursor of the freshness sensor: when each type was last reported fresh, in Unix seconds; which were late."""

    at: dict[str, cursors.Moment]
    late: list[str]


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
        told = cursors.read(context, _Told) or _Told({}, [])
        with database.engine.connect() as connection:
            outlook = drains.outlook(connection)
            now, watched = outlook.now_epoch, sorted(ttls.keys() & set(outlook.watched_types or ()))
            rows = [row for row in freshness.measure(connection, watched) if row.watched] if watched else []
            late = sorted(row.data_type for row in rows if not row.is_on_time)
            turned = sorted({*late} ^ ({*told.late} & ttls.keys()))
            judged = on_time_evaluations(connection, turned) if turned else []
        ready = [row for row in rows if row.is_calm]
        calm = [r for r in ready if not 0 <= now - told.at.get(r.data_type, 0.0) < _pause(ttls[r.data_type])]
        # A type in trouble is forgotten, so that it is reported at once when it is calm again.
        troubled = {row.data_type for row in rows if not (row.is_calm or row.is_merely_due)}
        kept = {name: at for name, at in told.at.items() if name in ttls and name not in troubled}
        return dg.SensorResult(
            asset_events=[*judged, *(_calm(database, row) for row in calm)],
            skip_reason=_told_what(calm, [row for row in rows if not row.is_calm], len(ttls) - len(rows)),
            cursor=cursors.dump(_Told(kept | {row.data_type: now for row in calm}, late)),
        )

    return sensor


def _pause(ttl: float) -> float:
    """Seconds between two reports of a data type with this TTL in seconds."""
    return max(_TOLD_AT_LEAST_SECONDS, ttl / 2) - _TICK_JITTER_SECONDS


def _calm(database: PricingDatabase, row: freshness.Freshness) -> dg.AssetMaterialization:
    shown: Metadata = {}
    try:
        with database.engine.connect() as connection:
            shown |= sample_table(connection, row.data_type)
            shown |= freshness_plot(quality.served(connection, row.data_type))
            shown |= price_plot(quality.portrait(connection, row.data_type))
    except DBAPIError as error:  # a plot must not keep this type, or another, from being reported
        shown["not_shown"] = dg.MetadataValue.text(
            f"what the database refuses to show now: {error.orig}"[:500]
        )
    return dg.AssetMaterialization(
        latest_key(row.data_type), metadata={"reason": said_of_service(row), **serving(row), **shown}
    )


def _told_what(
    calm: Sequence[freshness.Freshness], troubled: Sequence[freshness.Freshness], unwatched: int
) -> str:
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


@dataclass(frozen=True)
class _Seen:
    """The cursor of the sensor of the registry: the version that it has seen or asked to load, and since when."""

    version: int
    at: cursors.Moment


def follow_registry(snapshot: RegistrySnapshot) -> dg.SensorDefinition:
    """Reloads the code location when the registry has changed, so that new types appear by themselves.

    Of a location that Dagster starts by itself (`python_module`), its daemon starts a new server every minute, and a
    webserver keeps to its own until a person reloads it there: from here nobody reaches that, so it is said for good.
    """
    loaded = snapshot.version

    @dg.sensor(
        name="follow_registry",
        minimum_interval_seconds=_EVERY_SECOND_LOOP,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Reloads the definitions when a data type was added, changed or retired. Where a "
        "webserver has to be told by hand, its ticks say so.",
    )
    def sensor(
        context: dg.SensorEvaluationContext, database: PricingDatabase
    ) -> dg.SensorResult | dg.SkipReason:
        with database.engine.connect() as connection:
            outlook = drains.outlook(connection)
        version, server = outlook.registry_version, context.code_location_origin
        kept = cursors.read(context, _Seen)
        seen = kept if kept and kept.version == version else _Seen(version, outlook.now_epoch)
        if not isinstance(server, GrpcServerCodeLocationOrigin):
            return dg.SensorResult(skip_reason=_by_hand(loaded, seen), cursor=cursors.dump(seen))
        if version == loaded:
            return dg.SkipReason(f"the registry is unchanged (version {loaded})")
        if seen is kept and 0 <= outlook.now_epoch - seen.at < _RELOAD_PATIENCE_SECONDS:
            return dg.SkipReason("the definitions are being reloaded")
        server.create_client().reload_code(timeout=60)
        again = _AGAIN if seen is kept else ""
        return dg.SensorResult(
            skip_reason=f"reloading: the registry changed from version {loaded} to {version}{again}",
            cursor=cursors.dump(_Seen(version, outlook.now_epoch)),
        )

    return sensor


_AGAIN = (
    "; where that is said again and again: `dagster api grpc` cannot reload, `dagster code-server start` can"
)


def _by_hand(loaded: int, seen: _Seen) -> str:
    """What to do about a location that cannot be told from here to reload."""
    since = f"{datetime.fromtimestamp(seen.at, UTC):%d %b %H:%M} UTC"
    reload = "until the code location is reloaded there (Deployment, Code locations, Reload)"
    if seen.version != loaded:
        return (
            f"the registry has version {seen.version} since about {since}, loaded is {loaded}: the daemon loads it "
            f"within a minute, and a webserver shows the old one {reload}"
        )
    return (
        f"the registry is unchanged (version {loaded} since about {since}). A webserver that was started before that "
        f"may show an older one {reload}"
    )
