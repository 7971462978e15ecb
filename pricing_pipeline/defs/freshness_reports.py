"""Reports that what people watch of each data type is fresh."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import dagster as dg
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.defs.checks import first_evaluations, on_time_evaluations
from pricing_pipeline.defs.cursors import Moment
from pricing_pipeline.defs.naming import Naming
from pricing_pipeline.defs.plots import freshness_plot
from pricing_pipeline.defs.reports import describe_service, idle, serving
from pricing_pipeline.defs.resources import PricingDatabase
from pricing_pipeline.defs.snapshot import RegistrySnapshot
from pricing_pipeline.defs.tables import Metadata
from pricing_pipeline.demand import drains, freshness
from pricing_pipeline.domain.data_types import DataType
from pricing_pipeline.prices import quality

_REPORTED_AT_LEAST_SECONDS = 30.0
# Two ticks 30 s apart may come a little earlier.
_TICK_JITTER_SECONDS = 1.0


@dataclass(frozen=True)
class Reported:
    """What is kept between ticks: when each type was last reported, in Unix seconds, and the late types.

    `at` is 0 of a type that is to be reported as soon as it is fresh; an event of earlier says that it was.

    `idle` are the types with no watched pair that can be fetched. `paused` counts the watched pairs that are paused.
    `checked` are the types whose checks were evaluated after their first prices.
    """

    at: dict[str, Moment] = field(default_factory=dict)
    late: list[str] = field(default_factory=list)
    idle: list[str] = field(default_factory=list)
    paused: dict[str, int] = field(default_factory=dict)
    checked: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class FreshnessReport:
    """The events of a tick, what it found in words, and what is kept for the next one."""

    events: Sequence[dg.AssetMaterialization | dg.AssetObservation | dg.AssetCheckEvaluation]
    words: str
    reported: Reported


def report(
    context: dg.SensorEvaluationContext,
    database: PricingDatabase,
    snapshot: RegistrySnapshot,
    reported: Reported,
    outlook: drains.Outlook,
) -> FreshnessReport:
    """What there is to report about the freshness of each watched type."""
    naming, types = snapshot.naming, {type_.data_type: type_ for type_ in snapshot.data_types}
    now, watched = outlook.now_epoch, sorted(types.keys() & set(outlook.watched_types or ()))
    with database.engine.connect() as connection:
        rows = [row for row in freshness.measure(connection, watched) if row.watched] if watched else []
        late = sorted(row.data_type for row in rows if not row.is_on_time)
        idle_rows = {row.data_type: row for row in rows if row.is_idle}
        paused = {row.data_type: row.paused for row in rows if row.paused}
        turned = sorted(_turned(reported, late, [*idle_rows], paused) & types.keys())
        judged = on_time_evaluations(connection, snapshot, turned) if turned else []
    ready = [row for row in rows if row.is_calm]
    calm = [row for row in ready if not 0 <= now - reported.at.get(row.data_type, 0.0) < _pause(types[row.data_type])]
    # One in a tick: a type may come with years of history.
    first = [row.data_type for row in ready if row.data_type not in reported.checked][:1]
    for name in first:
        judged = [one for one in judged if one.asset_key != naming.latest_key(name)]
        judged += _first_checks(context, database, snapshot, types[name])
    # A type in trouble is reported at once when it is fresh again. Its old claim stands until then, and turns red.
    troubled = {row.data_type for row in rows if not (row.is_calm or row.is_merely_due)}
    unwatched = [name for name in reported.at if name not in watched]
    if unwatched:
        # Nothing is claimed of them any more: an old claim would turn red.
        context.instance.wipe_assets(list(map(naming.freshness_key, unwatched)))
    at = {name: 0.0 if name in troubled else at for name, at in reported.at.items() if name in watched}
    return FreshnessReport(
        events=[
            *judged,
            *(idle(naming, row) for name, row in idle_rows.items() if name not in reported.idle),
            *(_calm(database, naming, row) for row in calm),
        ],
        words=_describe_tick(calm, [row for row in rows if not row.is_calm], len(types) - len(rows)),
        reported=Reported(
            at | {row.data_type: now for row in calm},
            late,
            sorted(idle_rows),
            paused,
            sorted({*reported.checked, *first} & types.keys()),
        ),
    )


def _turned(reported: Reported, late: Sequence[str], idle_types: Sequence[str], paused: Mapping[str, int]) -> set[str]:
    """The types whose check on_time would say something else than at the last tick."""
    resumed_or_paused = {name for name, _ in paused.items() ^ reported.paused.items()}
    return ({*late} ^ {*reported.late}) | ({*idle_types} ^ {*reported.idle}) | resumed_or_paused


def _pause(type_: DataType) -> float:
    """Seconds between two reports of a data type: about half its TTL."""
    return max(_REPORTED_AT_LEAST_SECONDS, type_.default_ttl_minutes * 60 / 2) - _TICK_JITTER_SECONDS


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
        shown["not_shown"] = dg.MetadataValue.text(f"the database cannot show the plot now: {error.orig}"[:500])
    return dg.AssetMaterialization(
        naming.freshness_key(row.data_type),
        metadata={"reason": describe_service(row), **serving(row), **shown},
    )


def _describe_tick(calm: Sequence[freshness.Freshness], troubled: Sequence[freshness.Freshness], unwatched: int) -> str:
    late = [f"{row.data_type} ({row.late})" for row in troubled if row.late]
    waiting = [f"{row.data_type} ({row.due})" for row in troubled if row.due and not row.late]
    refused = [row.data_type for row in troubled if not (row.late or row.due)]
    states = {
        "on time": [row.data_type for row in calm],
        "late, so nothing is reported": late,
        "being fetched, so nothing is reported": waiting,
        "none can be fetched, so nothing is reported": refused,
        "nobody watches": [f"{unwatched} data type{'s' if unwatched > 1 else ''}"] if unwatched else [],
    }
    return "; ".join(f"{state}: {', '.join(names)}" for state, names in states.items() if names) or "nothing to say yet"
