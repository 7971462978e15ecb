"""The work of a run that a person starts: fill the months of its partitions, and for today, fetch watched pairs.

Documents have no months. A run that selects them fetches the watched and held ones, whatever its partitions.

A type without history in these months does not fail the run: a run may select types with different months, and
"Materialize all" asks for all that exist. If a type fails, the run fails, after all other types are done.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta

import dagster as dg
from psycopg import errors
from pydantic import Field
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.db.errors import reason
from pricing_pipeline.defs.reports import Reporter
from pricing_pipeline.defs.snapshot import RegistrySnapshot
from pricing_pipeline.demand import backfills, instruments, staleness
from pricing_pipeline.demand.backfills import Backfill, Progress
from pricing_pipeline.domain.data_types import Contents, DataType
from pricing_pipeline.domain.windows import Window, next_month
from pricing_pipeline.refresh.refresher import Refresher

_RANGE_TAGS = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")
_NOBODY = "Nobody watches or holds anything of this type, so nothing was asked for."


class BackfillConfig(dg.Config):
    """The options of a backfill beside its partitions. Drains ignore them."""

    symbols: list[str] = Field(
        default=[],
        description="Only these symbols, such as AAPL and IBM. Empty: for months, every instrument of the types; for "
        "what is fetched now, such as slots and documents, every pair that is watched or held.",
    )
    from_day: str | None = Field(
        default=None,
        description="Not before this day of the chosen months, such as 2013-02-15. Unset: from their first day.",
    )
    to_day: str | None = Field(
        default=None,
        description="Not after this day of the chosen months, such as 2013-02-28. Unset: to their last day.",
    )

    def chosen(self) -> list[str] | None:
        """The symbols to fetch; None = all."""
        chosen = sorted({symbol.strip() for symbol in self.symbols})
        if "" in chosen:
            raise dg.Failure("symbols has an empty name. Leave symbols out to ask for all, or name some, such as AAPL.")
        return chosen or None

    def window(self, first: date, last: date) -> Window:
        """The days of the partitions' months within from_day and to_day. Raises Failure if no day is left."""
        start, end = (
            max(first, _day("from_day", self.from_day, first)),
            min(last, _day("to_day", self.to_day, last)),
        )
        if start > end:
            raise dg.Failure(
                f"from_day and to_day leave no day of the partitions, which span {first} to {last}. "
                "Choose the partitions of those days."
            )
        return Window(start, end)


def backfill(
    context: dg.AssetExecutionContext,
    snapshot: RegistrySnapshot,
    config: BackfillConfig,
    engine: Engine,
    refresher: Refresher,
    reporter: Reporter,
) -> None:
    """Fill the months of the run's partitions, for the selected types.

    For the current month, and for types without prices, it also fetches the watched and held pairs of these types now.
    """
    chosen, naming = context.selected_asset_keys, snapshot.naming
    selected = (type_ for type_ in snapshot.data_types if naming.stored_key(type_) in chosen)
    types = sorted(selected, key=lambda type_: type_.data_type)
    wanted = _wanted(context, engine, types, config.chosen())
    types = [type_ for type_ in types if type_.data_type in wanted]
    prices = [type_ for type_ in types if type_.contents is Contents.PRICES]
    today = datetime.now(UTC).date()
    window = _window(context, config) if prices else Window(today, today)
    plans, faults, without_history = [], [], {}
    for type_ in prices:
        if no_history := _no_history(type_, window):
            without_history[type_.data_type] = no_history
            if window.start < today.replace(day=1):  # the current month gets the prices that are fetched now
                context.log.warning(no_history)
            continue
        try:
            plans.append(refresher.plan_backfill(type_.data_type, window, wanted[type_.data_type]))
        except DBAPIError as error:
            if not isinstance(error.orig, errors.InvalidParameterValue):
                raise
            faults.append(reason(error))  # the other types go on
    is_current = window.start <= today <= window.end
    for type_ in types:
        if is_current or type_.contents is not Contents.PRICES:
            fault = _fetch_now(context, engine, refresher, reporter, type_, wanted[type_.data_type])
            faults += [fault] if fault else []
    for name, no_history in without_history.items():
        if window.end >= snapshot.first_month(name):
            reporter.report_unfillable(name, _since(window, snapshot.first_month(name)), no_history)
    failures = {}
    for plan in plans:
        _say_what_is_planned(context, reporter, plan, window, wanted[plan.data_type])
        progress = refresher.backfill(plan, reporter.progress(plan))
        reporter.report_months(plan, _since(window, snapshot.first_month(plan.data_type)))
        cancelled = reporter.cancelled(plan) if progress.failed else 0
        failed = max(progress.failed - cancelled, 0)
        if cancelled:
            faults.append(
                f"the backfill of {plan.data_type} was cancelled: {cancelled} of {progress.tasks} tasks are left out. "
                "What is stored stays, and another backfill goes on from there"
            )
        if failed:
            faults.append(f"{failed} of {progress.tasks} tasks of {plan.data_type} failed")
            failures[f"failures_{plan.data_type}"] = reporter.failures(plan)
    if failures:
        faults.append("the rest is stored. `pricing-pipeline task list --status failed` shows why")
    if faults:
        raise dg.Failure("; ".join(fault.rstrip(".") for fault in faults) + ".", metadata=failures)


def _wanted(
    context: dg.AssetExecutionContext, engine: Engine, types: Sequence[DataType], symbols: list[str] | None
) -> Mapping[str, list[str] | None]:
    """The data types to fetch, with those of the symbols that they have; None = all.

    Raises Failure, before anything is queued, for a symbol that none of the types has.
    """
    names = [type_.data_type for type_ in types]
    if symbols is None:
        return dict.fromkeys(names)
    try:
        with engine.connect() as connection:
            known = instruments.symbols_by_type(connection, names, symbols)
    except DBAPIError as error:
        if not isinstance(error.orig, errors.InvalidParameterValue):
            raise
        raise dg.Failure(f"{reason(error)}. Nothing was asked for.") from None
    if without := [name for name in names if not known[name]]:
        context.log.info(f"{', '.join(without)}: none of the symbols is of this type, so nothing is asked for.")
    return {name: spelled for name, spelled in known.items() if spelled}


def _fetch_now(
    context: dg.AssetExecutionContext,
    engine: Engine,
    refresher: Refresher,
    reporter: Reporter,
    type_: DataType,
    symbols: list[str] | None,
) -> str | None:
    """Fetch the watched and held pairs of a type; returns the fault, if any.

    It does not wait for a provider that is stopped for minutes: two such runs would keep all that people start waiting.
    """
    name, is_price = type_.data_type, type_.contents is Contents.PRICES
    with engine.begin() as connection:
        tasks = staleness.fetch_now(connection, name, symbols)
        # What a person asks for and does not get: a named symbol, or everything that is watched or held.
        is_lacking = not is_price and (symbols or not tasks)
        unasked = staleness.unasked(connection, name, symbols, tasks) if is_lacking else None
    steps = reporter.steps(name, lambda asking: staleness.waits_for(asking, name))
    done = refresher.follow(lambda connection: Progress(*staleness.progress(connection, tasks)), steps.is_stopped)
    if done.open:
        return (
            f"{done.open} of {done.tasks} watched or held pairs of {name} wait: {'; '.join(steps.stops)}. "
            "They stay queued, and drains fetch them when that ends"
        )
    if tasks and not is_price and not done.failed:
        reporter.report_records(type_, done.tasks)
    if not tasks:
        say = context.log.warning if type_.history_from is None else context.log.info
        say(f"{name}: no watched or held pair can be fetched now")
        if not is_price and not unasked:
            reporter.report_nothing_fetched(type_, _NOBODY)
    else:
        context.log.info(f"{name}: fetched {done.tasks - done.failed} of {done.tasks} watched or held")
    if unasked:
        more = f" (and {unasked.pairs - 1} more)" if unasked.pairs > 1 else ""
        return f"{unasked.symbol}{more} of {name} is not fetched: {unasked.why}"
    if not done.failed:
        return None
    return (
        f"{done.failed} of {done.tasks} watched or held pairs of {name} could not be fetched: "
        "`pricing-pipeline task list --status failed` shows why"
    )


def _since(window: Window, first_month: date) -> Window:
    """The days of a window that are in partitions of a type."""
    return Window(max(window.start, first_month), window.end)


def _no_history(type_: DataType, window: Window) -> str | None:
    """Why a type has nothing to fill in these days; None if it may have something."""
    if type_.history_from is None:
        return (
            f"{type_.data_type} keeps no history that could be backfilled, so nothing of it is asked for. "
            f"{backfills.way_to_history(type_)}"
        )
    if window.end < type_.history_from:
        return f"there is no history of {type_.data_type} before {type_.history_from}, so nothing of it is asked for."
    return None


def _say_what_is_planned(
    context: dg.AssetExecutionContext,
    reporter: Reporter,
    plan: Backfill,
    window: Window,
    symbols: Sequence[str] | None,
) -> None:
    context.log.info(
        f"{plan.data_type}: {plan.tasks} gap(s) to fill between {window.start} and {window.end}"
        if plan.tasks
        else f"{plan.data_type}: {reporter.nothing_words(plan, window, symbols)}"
    )
    if words := backfills.left_out_words(plan.left_out):
        context.log.warning(f"{plan.data_type}: {words}")


def _window(context: dg.AssetExecutionContext, config: BackfillConfig) -> Window:
    # By the run's tags: the context refuses to tell the partitions of assets whose months begin differently.
    tags = context.run.tags
    first, last = (tags.get(tag, tags.get("dagster/partition")) for tag in _RANGE_TAGS)
    if first is None or last is None:
        raise dg.Failure("This run names no partitions, so it does not say which days to fetch. Choose months.")
    after = next_month(date.fromisoformat(last))
    return config.window(date.fromisoformat(first), after - timedelta(days=1))


def _day(name: str, text: str | None, otherwise: date) -> date:
    if text is None:
        return otherwise
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise dg.Failure(f"{name} is {text!r}, which is no day. Write it as 2013-02-28.") from None
