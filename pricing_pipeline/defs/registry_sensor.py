"""The sensor `follow_registry`: reloads the definitions when the registry has changed."""

from dataclasses import dataclass
from datetime import UTC, datetime

import dagster as dg

from pricing_pipeline.defs import cursors
from pricing_pipeline.defs.internals import GrpcServerCodeLocationOrigin
from pricing_pipeline.defs.resources import PricingDatabase, given, needed
from pricing_pipeline.defs.snapshot import RegistrySnapshot
from pricing_pipeline.demand import drains

_EVERY_SECONDS = 19
"""With the daemon of `up`, every second round of ticks."""
_RELOAD_PATIENCE_SECONDS = 20.0


@dataclass(frozen=True)
class _Seen:
    """The cursor of the registry sensor: the version that it last saw or asked to load, and since when."""

    version: int
    at: cursors.Moment


def follow_registry(snapshot: RegistrySnapshot) -> dg.SensorDefinition:
    """The sensor that reloads the code location when the registry has changed, so that new types and providers appear.

    If Dagster starts the location itself (`python_module`), the daemon starts a new server every minute, and a
    webserver keeps its own until a person reloads it there. The sensor cannot do that, so its ticks say so.
    """
    loaded, naming = snapshot.version, snapshot.naming

    @dg.sensor(
        required_resource_keys=needed(naming, PricingDatabase),
        name=naming.name("follow_registry"),
        minimum_interval_seconds=_EVERY_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Reloads the definitions when data types, providers or routes have changed. If a "
        "webserver must be reloaded by hand, its ticks say so.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        database = given(context, naming, PricingDatabase)
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


_AGAIN = "; if this repeats: `dagster api grpc` cannot reload, `dagster code-server start` can"


def _by_hand(loaded: int, seen: _Seen) -> str:
    """What to do about a location that the sensor cannot reload."""
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
