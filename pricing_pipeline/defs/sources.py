"""Report on the sources of lineage: the subscriptions, and the state of each provider, with a check.

A sensor observes and judges them, because no run sees a provider that may not be called, or a viewer whose prices are
fresh.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import dagster as dg

from pricing_pipeline.defs import cursors
from pricing_pipeline.defs.checks import as_result, what_to_do
from pricing_pipeline.defs.markdown import escaped
from pricing_pipeline.defs.naming import Naming
from pricing_pipeline.defs.resources import PricingDatabase, given, needed
from pricing_pipeline.defs.snapshot import RegistrySnapshot
from pricing_pipeline.defs.tables import Metadata, named_table
from pricing_pipeline.demand import drains, viewers
from pricing_pipeline.demand.viewers import Watching
from pricing_pipeline.queue import limits
from pricing_pipeline.queue.limits import ProviderState

AVAILABLE = "available"
"""The check of providers."""
_EVERY_SECONDS = 30
_JUDGED_EVERY_SECONDS = 3600.0
"""How often the check of a provider is evaluated while its state does not change."""
_COUNTED_EVERY_SECONDS = 900.0
"""How often the units of a provider are reported while its state does not change."""
BIGGEST = 10
"""How many clients the table of the biggest has."""
NOT_ASKED = "It is not asked while the sandbox is on, because the sandbox does not imitate it."
_MOMENTARY = "rate_limited"
"""A state that comes and goes within a window of the limit: it is not reported."""
_PASSES_SOON = "throttled"
_NO_FAULT = frozenset({_MOMENTARY, "provider_off"})
"""States that are meant: a limit that is kept, and a person's wish."""
_ANCHORS = {
    "key_refused": "a-provider-is-throttled-or-blocked",
    _PASSES_SOON: "a-provider-is-throttled-or-blocked",
    "breaker_open": "a-breaker-is-open",
    "quota_spent": "the-quota-is-nearly-used",
    "no_client": "the-limits-are-too-small-for-the-watched-pairs",
}


@dataclass(frozen=True)
class _Reported:
    """The cursor of the sensor: the last reported counts, and the last report on each provider with its Unix time.

    `judged` has the Unix times when the checks were evaluated.
    """

    watching: list[tuple[str | None, str | None, int]]
    providers: dict[str, tuple[list[Any], cursors.Moment]]
    judged: dict[str, cursors.Moment] = field(default_factory=dict)


def report_sources(snapshot: RegistrySnapshot) -> dg.SensorDefinition:
    """The sensor that observes subscriptions when they change, and providers when their state or use changes."""

    naming = snapshot.naming

    @dg.sensor(
        required_resource_keys=needed(naming, PricingDatabase),
        name=naming.name("report_sources"),
        minimum_interval_seconds=_EVERY_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Reports the subscriptions when they change, and for each provider its state and how much of its "
        "limits is used. Evaluates the check of a provider when its state changes, and every hour.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        database = given(context, naming, PricingDatabase)
        reported = cursors.read(context, _Reported) or _Reported([], {})
        with database.engine.connect() as connection:
            now = drains.outlook(connection).now_epoch
            watching = viewers.watching(connection)
            standings = limits.standings(connection, snapshot.providers)
        is_sandbox = database.settings.sandbox
        events: list[dg.AssetObservation | dg.AssetCheckEvaluation] = []
        shown = [row for row in watching if row.user_id is None] + _biggest(watching)
        counts = [(row.data_type, row.user_id, row.subscriptions) for row in shown]
        if counts != reported.watching:
            events.append(dg.AssetObservation(naming.subscriptions, metadata=watching_metadata(watching)))
        after, judged = {}, {}
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
            judged_at = reported.judged.get(standing.provider, 0.0)
            if last[:3] != news[:3] or not 0 <= now - judged_at < _JUDGED_EVERY_SECONDS:
                events.append(availability(naming, standing, is_asked=is_asked))
                judged_at = now
            judged[standing.provider] = judged_at
            if last[:3] != news[:3] or (is_due and last != news):
                metadata = provider_metadata(standing, is_asked=is_asked)
                events.append(dg.AssetObservation(naming.provider_key(standing.provider), metadata=metadata))
                last, at = news, now
            after[standing.provider] = (last, at)
        named = [event.asset_key.path[-1] for event in events if isinstance(event, dg.AssetObservation)]
        return dg.SensorResult(
            asset_events=events,
            # A tick without requests of runs skips for Dagster, also when it has reported.
            skip_reason=f"reported: {', '.join(named)}" if named else "nothing has changed",
            cursor=cursors.dump(_Reported(counts, after, judged)),
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
            [[row.user_id, row.subscriptions, f"{row.seen_at:%Y-%m-%d %H:%M:%S}"] for row in _biggest(watching)],
        ),
    }


def _biggest(watching: Sequence[Watching]) -> list[Watching]:
    return [row for row in watching if row.user_id is not None][:BIGGEST]


def provider_metadata(standing: ProviderState, *, is_asked: bool = True) -> Metadata:
    """The state of a provider, and its used units and quota, in words."""
    return {
        "state": dg.MetadataValue.text(_words(standing, is_asked=is_asked)),
        "units": dg.MetadataValue.text(standing.units_words),
        "quota": dg.MetadataValue.text(standing.quota_words),
    }


def _words(standing: ProviderState, *, is_asked: bool) -> str:
    is_stopped = standing.state is not None or standing.outages is not None
    return standing.words if is_asked or is_stopped else NOT_ASKED


def availability(naming: Naming, standing: ProviderState, *, is_asked: bool = True) -> dg.AssetCheckEvaluation:
    """The check of a provider now. It passes if nothing stops the provider that is not meant to, and it answers."""
    is_stopped = is_asked and standing.state is not None and standing.state not in _NO_FAULT
    is_passing = standing.state == _PASSES_SOON and standing.outages is None
    anchor = _ANCHORS.get(standing.state or "", "a-provider-does-not-answer")
    return dg.AssetCheckEvaluation(
        check_name=AVAILABLE,
        asset_key=naming.provider_key(standing.provider),
        passed=not is_stopped and standing.outages is None,
        severity=dg.AssetCheckSeverity.WARN if is_passing else dg.AssetCheckSeverity.ERROR,
        description=escaped(_words(standing, is_asked=is_asked)),
        metadata={"what_to_do": what_to_do(anchor)},
    )


def provider_checks(snapshot: RegistrySnapshot) -> dg.AssetChecksDefinition:
    """The checks of all providers, for who evaluates them by hand; the sensor does without a run."""
    naming = snapshot.naming

    @dg.multi_asset_check(
        name=naming.name("check_providers"),
        required_resource_keys=needed(naming, PricingDatabase),
        specs=[
            dg.AssetCheckSpec(
                AVAILABLE,
                asset=naming.provider_key(name),
                description="It answers, and may be called: no breaker is open, no key is refused, no quota is "
                "spent, and some worker has a client for it.",
            )
            for name in snapshot.providers
        ],
        can_subset=True,
    )
    def check_providers(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        database = given(context, naming, PricingDatabase)
        is_sandbox = database.settings.sandbox
        wanted = [key.asset_key.path[-1] for key in context.selected_asset_check_keys]
        with database.engine.connect() as connection:
            standings = limits.standings(connection, wanted)
        for standing in standings:
            is_asked = not is_sandbox or standing.provider in snapshot.called_at
            yield as_result(availability(naming, standing, is_asked=is_asked))

    return check_providers


def url_metadata(base_url: str, called_at: str | None, *, is_sandbox: bool) -> Metadata:
    """Where calls to a provider go: to the provider, or to the sandbox. None = the sandbox does not imitate it."""
    if not is_sandbox:
        return {"url": dg.MetadataValue.text(base_url)}
    if called_at is None:
        return {"url": dg.MetadataValue.text(base_url), "sandbox": dg.MetadataValue.text(NOT_ASKED)}
    return {
        "url": dg.MetadataValue.url(called_at),
        "sandbox": dg.MetadataValue.text(f"The sandbox answers in place of {base_url}."),
    }
