"""The sensor `report_news`: tells this Dagster instance which stored data has changed.

The database numbers changes (`pricing.data_versions`), and each instance follows them with a cursor of its own: it is
told of every change once, whoever fetched it. A tick that dies after it has told and before its cursor is kept would
tell twice, so the instance's last event of an asset is looked at first. Runs and other ticks may look
and tell at the same time, so whoever does has the turn; the daemon would tell after it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from time import monotonic

import dagster as dg
from sqlalchemy import Connection

from pricing_pipeline.defs import cursors
from pricing_pipeline.defs.naming import Naming
from pricing_pipeline.defs.news import LastTold, last_told, materialization
from pricing_pipeline.defs.reports import asset_size, lacking_metadata, month_size
from pricing_pipeline.defs.resources import PricingDatabase, given, needed
from pricing_pipeline.defs.samples import plot, sample
from pricing_pipeline.defs.snapshot import RegistrySnapshot
from pricing_pipeline.defs.ticks import EVERY_LOOP
from pricing_pipeline.demand import drains
from pricing_pipeline.domain.data_types import Contents, DataType
from pricing_pipeline.domain.windows import Window, months_after, months_of
from pricing_pipeline.operations import health
from pricing_pipeline.prices import changes, quality
from pricing_pipeline.prices.changes import DataVersion

_AT_ONCE = 200
"""Versions told in a tick. An instance that is new to a database is told of all that is stored, step by step."""
_JUDGED_SECONDS = 15.0
"""After so long in a tick, the months of further types are left to the next one: a code server answers in a minute."""
_LOOK_AGAIN_SECONDS = 600.0
"""How often months that are not complete are looked at again: a day may turn out to have no value."""

Event = dg.AssetMaterialization | dg.AssetObservation


@dataclass(frozen=True)
class _Told:
    """The cursor of the sensor: the last version that the instance was told, in which log of versions, of which types.

    `incomplete` has the months that changed and lack days, by data type, last looked at in Unix seconds `at`; `later`
    those that are to be looked at in another tick, such as those that a backfill changes now.
    """

    log: str
    version: int
    types: list[str] = field(default_factory=list)
    incomplete: dict[str, list[str]] = field(default_factory=dict)
    later: dict[str, list[str]] = field(default_factory=dict)
    at: cursors.Moment = 0.0


def report_news(snapshot: RegistrySnapshot) -> dg.SensorDefinition:
    """The sensor that materializes, without a run, what has changed: latest values, and complete months of history."""
    naming, types = snapshot.naming, {type_.data_type: type_ for type_ in snapshot.data_types}

    @dg.sensor(
        required_resource_keys=needed(naming, PricingDatabase),
        name=naming.name("report_news"),
        minimum_interval_seconds=EVERY_LOOP,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Materializes what has changed, each with its data version: latest values within seconds, and "
        "months of history when they lack nothing that can be fetched. Assets that depend on these run then, and only "
        "then. A confirmed price that is the same is no change.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        database = given(context, naming, PricingDatabase)
        with health.ticking(database.engine, "report_news"):
            changes.number(database.engine)
            with changes.turn_to_tell(database.engine) as connection:
                now, log = drains.outlook(connection).now_epoch, changes.log(connection)
                told = cursors.read(context, _Told)
                if told is None or told.log != log:
                    told = _Told(log, 0)
                if not types.keys() <= {*told.types}:
                    # What was stored of a new type before these definitions were loaded was passed over.
                    told = replace(told, version=0)
                told = replace(told, types=sorted(types))
                news = changes.since(connection, told.version, _AT_ONCE)
                filling = changes.filling(connection)
                known, is_look_again = told.incomplete, not 0 <= now - told.at < _LOOK_AGAIN_SECONDS
                months, told = _months_to_judge(news, told, filling, is_look_again=is_look_again)
                told = replace(told, at=now if is_look_again else told.at)
                latest = [version for version in news if version.month is None]
                events = [
                    event
                    for version in latest
                    if (type_ := types.get(version.data_type)) is not None
                    for event in _latest_events(context.instance, naming, connection, type_, version)
                ]
                until = monotonic() + _JUDGED_SECONDS
                for number, name in enumerate(name for name in months if name in types):
                    observed = known.get(name, [])
                    if number and monotonic() > until:
                        later = told.later | {name: _spelled(months[name])}
                        told = replace(told, later=later, incomplete=told.incomplete | {name: observed})
                        continue
                    judged, lacking = _month_events(
                        context.instance, naming, connection, name, months[name], observed
                    )
                    events += judged
                    lacking = sorted({*told.incomplete.get(name, ()), *lacking})
                    told = replace(told, incomplete=told.incomplete | {name: lacking})
                if is_look_again:
                    events += _empty_months(context.instance, connection, snapshot)
                for event in events:
                    context.instance.report_runless_asset_event(event)
            version = news[-1].version if news else told.version
            kept = replace(told, version=version, incomplete=_filled(told.incomplete))
            return dg.SensorResult(
                skip_reason=f"told of {len(events)} changes" if events else "nothing has changed",
                cursor=cursors.dump(kept),
            )

    return sensor


def _months_to_judge(
    news: Iterable[DataVersion], told: _Told, filling: set[str], *, is_look_again: bool
) -> tuple[dict[str, set[date]], _Told]:
    """The months to look at now, by data type, and what the cursor keeps for later."""
    changed: defaultdict[str, set[date]] = defaultdict(set)
    for name, months in told.later.items():
        changed[name].update(map(date.fromisoformat, months))
    for version in news:
        if version.month is not None:
            changed[version.data_type].add(version.month)
    later = {name: _spelled(changed.pop(name)) for name in filling & changed.keys()}
    if is_look_again:
        for name, months in told.incomplete.items():
            if name not in filling:
                changed[name].update(map(date.fromisoformat, months))
    # What is looked at now is judged anew.
    incomplete = {
        name: _spelled({*map(date.fromisoformat, months)} - changed.get(name, set()))
        for name, months in told.incomplete.items()
    }
    return changed, replace(told, later=later, incomplete=incomplete)


def _latest_events(
    instance: dg.DagsterInstance,
    naming: Naming,
    connection: Connection,
    type_: DataType,
    version: DataVersion,
) -> list[Event]:
    """The news about what is latest of a type; of other contents than prices it is all that is stored, too."""
    keys = [naming.latest_key(type_.data_type)]
    if type_.contents is not Contents.PRICES:
        keys.append(naming.stored_key(type_))
    events: list[Event] = []
    for key in keys:
        last = last_told(instance, key)
        if not last.is_of(version):
            metadata = {**sample(connection, type_), **plot(connection, type_)}
            events.append(materialization(key, version, last, metadata))
    return events


def _month_events(
    instance: dg.DagsterInstance,
    naming: Naming,
    connection: Connection,
    name: str,
    months: set[date],
    known: Collection[str],
) -> tuple[list[Event], list[str]]:
    """The news about months of a type, and those of them that lack days.

    A month that lacks days is observed once; `known` are those that were observed before.
    """
    versions = changes.current(connection, name, sorted(months))
    # A type that was deleted and made anew has not all of them.
    wanted = sorted(month for month in months if month in versions)
    lacking = quality.lacking(connection, name, wanted)
    # Nothing is said of a month that still lacks days: the current one may change in each tick.
    told = [month for month in wanted if not (lacking[month].symbols and month.isoformat() in known)]
    # Old months change rarely, and may be counted for some seconds.
    old = [month for month in told if months_after(month, 1) <= datetime.now(UTC).date()]
    stored = quality.month_rows(connection, name, [month for month in told if month not in old])
    stored |= quality.month_rows(connection, name, old, is_once=True)
    size = asset_size(connection, name) if told else {}
    events: list[Event] = []
    incomplete = []
    for month in wanted:
        key, partition = naming.history_key(name), month.isoformat()
        metadata = month_size(stored.get(month)) | lacking_metadata(lacking[month])
        if lacking[month].symbols:
            incomplete.append(partition)
            if partition not in known:
                events.append(dg.AssetObservation(key, partition=partition, metadata=metadata))
            continue
        last = last_told(instance, key, partition)
        if not last.is_of(versions[month]):
            metadata |= size if month == wanted[-1] else {}
            events.append(materialization(key, versions[month], last, metadata, partition))
    return events, incomplete


def _empty_months(
    instance: dg.DagsterInstance, connection: Connection, snapshot: RegistrySnapshot
) -> list[Event]:
    """Months that are over and will never have a value, of types without a history to fill.

    An asset downstream that depends on all months would wait for them for ever.
    """
    last = datetime.now(UTC).date().replace(day=1) - timedelta(days=1)
    events: list[Event] = []
    for type_ in snapshot.data_types:
        name, first = type_.data_type, snapshot.first_month(type_.data_type)
        if type_.contents is not Contents.PRICES or type_.history_from is not None or first > last:
            continue
        key = snapshot.naming.history_key(name)
        known = instance.get_materialized_partitions(key)
        untold = [month for month in months_of(Window(first, last)) if month.isoformat() not in known]
        changed = changes.current(connection, name, untold)
        events += [
            materialization(key, None, LastTold(), month_size(0), month.isoformat())
            for month in untold
            if month not in changed
        ]
    return events


def _spelled(months: Iterable[date]) -> list[str]:
    return [month.isoformat() for month in sorted(months)]


def _filled(months: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: spelled for name, spelled in months.items() if spelled}
