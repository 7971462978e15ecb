"""Tells this Dagster instance which stored data has changed.

The database numbers changes (`pricing.data_versions`), and each instance follows them with a cursor of its own: it is
told every change once, wherever it was fetched. A tick that dies after it has told and before its cursor is kept would
tell twice, so the instance's last event of an asset is looked at first. Runs and other ticks may look
and tell at the same time, so one has the turn, and the daemon would tell after it.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from time import monotonic

import dagster as dg
from sqlalchemy import Connection, Engine

from pricing_pipeline.defs import cursors
from pricing_pipeline.defs.cursors import Moment
from pricing_pipeline.defs.news import LastReport, last_report, materialization
from pricing_pipeline.defs.reports import asset_size, lacking_metadata, month_size
from pricing_pipeline.defs.samples import plot, sample
from pricing_pipeline.defs.snapshot import RegistrySnapshot
from pricing_pipeline.domain.data_types import Contents
from pricing_pipeline.domain.windows import Window, months_of
from pricing_pipeline.prices import changes, quality
from pricing_pipeline.prices.changes import DataVersion

_AT_ONCE = 200
"""Versions reported in a tick. A new instance reports all that is stored, step by step."""
_JUDGED_SECONDS = 15.0
"""After this time a tick leaves the months of further types to the next one: a code server answers within a minute."""
_LOOK_AGAIN_SECONDS = 600.0
"""How often months that are not complete are looked at again: a day may turn out to have no value."""
_THIS_MONTH_SECONDS = 300.0
"""How often the current month is looked at, which changes all the time: with 5,000 symbols a look takes a second."""

Event = dg.AssetMaterialization | dg.AssetObservation
Months = Mapping[str, Set[date]]
"""Months by data type, as their first days."""


@dataclass(frozen=True)
class ReportedNews:
    """What is kept between ticks: the last version that the instance was told, and in which log.

    `types` stands for the data types that were told. `incomplete` has the months that changed and lack days, last
    looked at in Unix seconds `at`; `later` those that are to be looked at in another tick, such as those that a
    backfill changes now. `this_month_at` has the times when the current month of a type was last looked at.
    """

    log: str = ""
    version: int = 0
    types: str = ""
    incomplete: dict[str, set[date]] = field(default_factory=dict)
    later: dict[str, set[date]] = field(default_factory=dict)
    this_month_at: dict[str, Moment] = field(default_factory=dict)
    at: Moment = 0.0


def tell(
    instance: dg.DagsterInstance, engine: Engine, snapshot: RegistrySnapshot, told: ReportedNews, now: float
) -> tuple[ReportedNews, int]:
    """Materialize what has changed, latest values and complete months; returns what to keep, and how many events.

    `now` is the database's time, in Unix seconds.
    """
    changes.number(engine)
    with changes.turn_to_tell(engine) as connection:
        teller = _Teller(instance, connection, snapshot, now)
        told = teller.continued(told)
        news = changes.since(connection, told.version, _AT_ONCE)
        events = teller.latest(news)
        is_look_again = not 0 <= now - told.at < _LOOK_AGAIN_SECONDS
        months = _merged(told.later, _months_of(news), told.incomplete if is_look_again else {})
        if months:
            judged, told = teller.judged(months, told)
            events += judged
        if is_look_again:
            events += teller.empty_months()
            told = replace(told, at=now)
        for event in events:
            instance.report_runless_asset_event(event)
    return replace(told, version=news[-1].version) if news else told, len(events)


def _months_of(news: Iterable[DataVersion]) -> Months:
    months: defaultdict[str, set[date]] = defaultdict(set)
    for version in news:
        if version.month is not None:
            months[version.data_type].add(version.month)
    return months


def _merged(*several: Months) -> Months:
    merged: defaultdict[str, set[date]] = defaultdict(set)
    for months in several:
        for name, firsts in months.items():
            merged[name] |= firsts
    return merged


@dataclass(frozen=True, slots=True)
class _Teller:
    """Makes the events of one tick, within its turn to tell."""

    instance: dg.DagsterInstance
    connection: Connection
    snapshot: RegistrySnapshot
    now: float

    @property
    def this_month(self) -> date:
        return datetime.fromtimestamp(self.now, UTC).date().replace(day=1)

    def continued(self, told: ReportedNews) -> ReportedNews:
        """The previous state, or an empty one if it is about another log of versions."""
        log, names = changes.log(self.connection), sorted(self.snapshot.names())
        types = cursors.digest(names)
        if told.log != log:
            return ReportedNews(log, types=types)
        return replace(
            told,
            types=types,
            # Values of a new type that were stored before these definitions were loaded were skipped.
            version=told.version if types == told.types else 0,
            incomplete={name: told.incomplete[name] for name in names if name in told.incomplete},
            later={name: told.later[name] for name in names if name in told.later},
            this_month_at={name: told.this_month_at[name] for name in names if name in told.this_month_at},
        )

    def latest(self, news: Iterable[DataVersion]) -> list[Event]:
        """The news about the latest values of types; for contents other than prices these are all that is stored."""
        types = {type_.data_type: type_ for type_ in self.snapshot.data_types}
        events: list[Event] = []
        for version in news:
            type_ = types.get(version.data_type)
            if version.month is not None or type_ is None:
                continue
            keys = [self.snapshot.naming.latest_key(version.data_type)]
            if type_.contents is not Contents.PRICES:
                keys.append(self.snapshot.naming.stored_key(type_))
            untold = {key: last for key in keys if not (last := last_report(self.instance, key)).is_of(version)}
            if untold:
                metadata = {**sample(self.connection, type_), **plot(self.connection, type_)}
                events += [materialization(key, version, last, metadata) for key, last in untold.items()]
        return events

    def judged(self, months: Months, told: ReportedNews) -> tuple[list[Event], ReportedNews]:
        """The news about months; months that a backfill still changes are kept for later."""
        filling, known = changes.filling(self.connection), self.snapshot.names()
        looked_at = {name: at for name, at in told.this_month_at.items() if 0 <= self.now - at < _THIS_MONTH_SECONDS}
        later: dict[str, set[date]] = {}
        incomplete = dict(told.incomplete)
        events: list[Event] = []
        until, is_first = monotonic() + _JUDGED_SECONDS, True
        for name in [name for name in months if name in known]:
            early = {self.this_month} if name in looked_at else set()
            if name in filling or not (is_first or monotonic() < until):
                early = {*months[name]}
            later[name] = {*months[name]} & early
            if ready := months[name] - early:
                is_first = False
                observed = incomplete.get(name, set())
                news, lacking = self._month_events(name, ready, observed)
                events += news
                incomplete[name] = (observed - ready) | lacking
                if self.this_month in ready:
                    looked_at[name] = self.now
        kept = replace(told, incomplete=_filled(incomplete), later=_filled(later), this_month_at=looked_at)
        return events, kept

    def _month_events(self, name: str, months: Set[date], observed: Set[date]) -> tuple[list[Event], set[date]]:
        """The news about months of a type, and those of them that lack days.

        A month that lacks days is observed once; `observed` are those that were before.
        """
        versions = changes.current(self.connection, name, sorted(months))
        # A type that was deleted and made again lacks some of them.
        wanted = sorted(month for month in months if month in versions)
        lacking = quality.lacking(self.connection, name, wanted)
        told = [month for month in wanted if not (lacking[month].symbols and month in observed)]
        # Old months change rarely, and may be counted for some seconds.
        old = [month for month in told if month < self.this_month]
        stored = quality.month_rows(self.connection, name, [month for month in told if month not in old])
        stored |= quality.month_rows(self.connection, name, old, is_once=True)
        size = asset_size(self.connection, name) if told else {}
        key = self.snapshot.naming.history_key(name)
        events: list[Event] = []
        for month in told:
            partition = month.isoformat()
            metadata = month_size(stored.get(month)) | lacking_metadata(lacking[month])
            last = last_report(self.instance, key, partition)
            if lacking[month].symbols:
                events.append(dg.AssetObservation(key, partition=partition, metadata=metadata))
            elif not last.is_of(versions[month]):
                metadata |= size if month == wanted[-1] else {}
                events.append(materialization(key, versions[month], last, metadata, partition))
        return events, {month for month in wanted if lacking[month].symbols}

    def empty_months(self) -> list[Event]:
        """Months that are over and will never have a value, of types without a history to fill.

        An asset downstream that depends on all months would wait for them for ever.
        """
        last = self.this_month - timedelta(days=1)
        events: list[Event] = []
        for type_ in self.snapshot.data_types:
            name, first = type_.data_type, self.snapshot.first_month(type_.data_type)
            if type_.contents is not Contents.PRICES or type_.history_from is not None or first > last:
                continue
            key = self.snapshot.naming.history_key(name)
            known = self.instance.get_materialized_partitions(key)
            untold = [month for month in months_of(Window(first, last)) if month.isoformat() not in known]
            changed = changes.current(self.connection, name, untold)
            events += [
                materialization(key, None, LastReport(), month_size(0), month.isoformat())
                for month in untold
                if month not in changed
            ]
        return events


def _filled(months: Months) -> dict[str, set[date]]:
    return {name: {*firsts} for name, firsts in months.items() if firsts}
