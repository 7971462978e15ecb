"""Report on the sources of lineage: the subscriptions, and the state of each provider.

A sensor observes them, because no run sees a provider that may not be called, or a viewer whose prices are fresh.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg

from pricing_pipeline.defs import cursors
from pricing_pipeline.defs.resources import PricingDatabase, given, needed
from pricing_pipeline.defs.snapshot import RegistrySnapshot
from pricing_pipeline.defs.tables import Metadata, named_table
from pricing_pipeline.demand import drains, viewers
from pricing_pipeline.demand.viewers import Watching
from pricing_pipeline.queue import limits
from pricing_pipeline.queue.limits import ProviderState

_EVERY_SECONDS = 30
_COUNTED_EVERY_SECONDS = 300.0
"""How often the units of a provider are reported while its state does not change."""
BIGGEST = 10
"""How many clients the table of the biggest has."""
NOT_ASKED = "It is not asked while the sandbox is on, because nobody there stands for it."
_MOMENTARY = "rate_limited"
"""A state that comes and goes within a window of the limit: it is not reported."""


@dataclass(frozen=True)
class _Reported:
    """The cursor of the sensor: the last reported counts, and the last report on each provider with its Unix time."""

    watching: list[tuple[str | None, str | None, int]]
    providers: dict[str, tuple[list[Any], cursors.Moment]]


def report_sources(snapshot: RegistrySnapshot) -> dg.SensorDefinition:
    """The sensor that observes subscriptions when they change, and providers when their state or use changes."""

    naming = snapshot.naming

    @dg.sensor(
        required_resource_keys=needed(naming, PricingDatabase),
        name=naming.name("report_sources"),
        minimum_interval_seconds=_EVERY_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Reports the subscriptions when they change, and for each provider its state and how much of its "
        "limits is used.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        database = given(context, naming, PricingDatabase)
        reported = cursors.read(context, _Reported) or _Reported([], {})
        with database.engine.connect() as connection:
            now = drains.outlook(connection).now_epoch
            watching = viewers.watching(connection)
            standings = limits.standings(connection, snapshot.providers)
        is_sandbox = database.settings.sandbox
        events: list[dg.AssetObservation] = []
        shown = [row for row in watching if row.user_id is None] + _biggest(watching)
        counts = [(row.data_type, row.user_id, row.subscriptions) for row in shown]
        if counts != reported.watching:
            events.append(dg.AssetObservation(naming.subscriptions, metadata=watching_metadata(watching)))
        after = {}
        for standing in standings:
            is_asked = not is_sandbox or standing.provider in snapshot.called_at
            news: list[Any] = [
                None if standing.state == _MOMENTARY else standing.state,
                standing.outages,
                is_asked,
                standing.units_words,
                standing.quota_words,
            ]
            last, at = reported.providers.get(standing.provider, ([], 0.0))
            is_due = not 0 <= now - at < _COUNTED_EVERY_SECONDS
            if last[:3] != news[:3] or (is_due and last != news):
                metadata = provider_metadata(standing, is_asked=is_asked)
                events.append(dg.AssetObservation(naming.provider_key(standing.provider), metadata=metadata))
                last, at = news, now
            after[standing.provider] = (last, at)
        named = [event.asset_key.path[-1] for event in events]
        return dg.SensorResult(
            asset_events=events,
            # A tick without requests of runs skips for Dagster, also when it has reported.
            skip_reason=f"reported: {', '.join(named)}" if named else "nothing has changed",
            cursor=cursors.dump(_Reported(counts, after)),
        )

    return sensor


def watching_metadata(watching: Sequence[Watching]) -> Metadata:
    """Counts in total, by data type, and of the clients with the most subscriptions."""
    total = next(row for row in watching if row.data_type is None and row.user_id is None)
    types = [row for row in watching if row.data_type is not None]
    return {
        "dagster/row_count": dg.MetadataValue.int(total.subscriptions),
        "clients": dg.MetadataValue.int(total.clients),
        "watched": dg.MetadataValue.int(total.pairs),
        **named_table(
            "by_data_type",
            ["data type", "clients", "watched", "subscriptions"],
            [[row.data_type, row.clients, row.pairs, row.subscriptions] for row in types],
        ),
        **named_table(
            "biggest_clients",
            ["client", "subscriptions", "last heartbeat (UTC)"],
            [
                [row.user_id, row.subscriptions, f"{row.seen_at:%Y-%m-%d %H:%M:%S}"]
                for row in _biggest(watching)
            ],
        ),
    }


def _biggest(watching: Sequence[Watching]) -> list[Watching]:
    return [row for row in watching if row.user_id is not None][:BIGGEST]


def provider_metadata(standing: ProviderState, *, is_asked: bool = True) -> Metadata:
    """The state of a provider, and its used units and quota, in words."""
    is_stopped = standing.state is not None or standing.outages is not None
    return {
        "state": dg.MetadataValue.text(standing.words if is_asked or is_stopped else NOT_ASKED),
        "units": dg.MetadataValue.text(standing.units_words),
        "quota": dg.MetadataValue.text(standing.quota_words),
    }


def url_metadata(base_url: str, called_at: str | None, *, is_sandbox: bool) -> Metadata:
    """Where calls to a provider go: to the provider, or to the sandbox. None = nobody in the sandbox stands for it."""
    if not is_sandbox:
        return {"url": dg.MetadataValue.text(base_url)}
    if called_at is None:
        return {"url": dg.MetadataValue.text(base_url), "sandbox": dg.MetadataValue.text(NOT_ASKED)}
    return {
        "url": dg.MetadataValue.url(called_at),
        "sandbox": dg.MetadataValue.text(f"The sandbox answers in place of {base_url}."),
    }
