"""Plans of providers: their limits, batches and data types, and how fresh prices can be with them.

plans.toml holds the figures of the providers of the code with their sources, and a declaration those of its provider.
This module reads both, and writes a plan into the registry.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from pricing_pipeline.db.query_loader import query
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.errors import PricingError, UnknownPlan
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.declaration import Declaration, DeclaredType, endpoints_of
from pricing_pipeline.providers.declared import DeclaredProvider
from pricing_pipeline.registry import data_type_registry, provider_rules
from pricing_pipeline.registry.declarations import provider_named
from pricing_pipeline.registry.provider_rules import Limit

if TYPE_CHECKING:
    from sqlalchemy import Connection

_FILE = Path(__file__).with_name("plans.toml")
SESSION_MINUTES = 405
"""A session of New York, and a quarter of an hour in which its closing prices come."""
PACED_SHARE = 0.8
"""The share of a day's units that come during trading hours (`pricing.paced_units`)."""
_DAY = 86_400
_Positive = Annotated[int, Field(gt=0)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PlannedLimit(_Strict):
    """Units in a number of seconds, or in a calendar day of a time zone."""

    name: str
    units: _Positive
    seconds: _Positive | None = None
    day: str | None = None

    @property
    def words(self) -> str:
        window = f"a day of {self.day}" if self.day else f"{self.seconds} s"
        return f"{self.units} units in {window}"


class KnownType(_Strict):
    """A data type as `type add` would add it."""

    description: str
    asset_class: str
    fetcher: str
    staleness_function: str
    history_from: date | None = None
    days_ahead: _Positive | None = None


class PlannedType(_Strict):
    """A data type of a plan; `at_least` is the shortest TTL in minutes."""

    at_least: _Positive
    about: KnownType


class QuoteCost(_Strict):
    """The units that a call for quotes costs, and each of its symbols; `batch` symbols fit into one call."""

    per_call: int = 0
    per_symbol: int = 1
    batch: _Positive = 1

    def units(self, symbols: int) -> int:
        """The cost of quotes of this number of symbols."""
        return math.ceil(symbols / self.batch) * self.per_call + symbols * self.per_symbol


class Check(_Strict):
    """The one call that tries a key."""

    type: str
    symbol: str


class Source(_Strict):
    """Where a figure comes from: a page and the day on which it was read, if there is one."""

    what: str
    url: str | None = None
    read: date | None = None

    @property
    def words(self) -> str:
        return self.what if self.url is None else f"{self.what} ({self.url}, read {self.read})"


class Plan(_Strict):
    """A plan. `asks`: the limits whose units the user has to name. `check` is None where no symbol is known to all."""

    title: str
    limits: Sequence[PlannedLimit] = ()
    asks: Sequence[str] = ()
    batch: Mapping[str, _Positive] = {}
    types: Mapping[str, PlannedType]
    check: Check | None = None
    quotes: QuoteCost = QuoteCost()
    sources: Sequence[Source] = Field(min_length=1)

    def with_limits(self, *, minute: int | None, day: int | None) -> Plan:
        """The plan with limits that the user has named; they replace those of the same name."""
        named = [PlannedLimit(name="minute", units=minute, seconds=60)] if minute else []
        named += [PlannedLimit(name="day", units=day, day="UTC")] if day else []
        names = {limit.name for limit in named}
        return self.model_copy(
            update={"limits": (*(limit for limit in self.limits if limit.name not in names), *named)}
        )

    @property
    def missing(self) -> list[str]:
        """The limits whose units the user has yet to name."""
        return [name for name in self.asks if name not in {limit.name for limit in self.limits}]

    def refresh_minutes(self, symbols: int) -> int:
        """How often, in minutes, a quote of each of this number of symbols can be fetched while its market trades."""
        units = self.quotes.units(symbols)
        pace = max((units / _units_a_minute(limit) for limit in self.limits), default=0.0)
        return max(1, math.ceil(pace))


def _units_a_minute(limit: PlannedLimit) -> float:
    seconds = limit.seconds or _DAY
    if seconds >= _DAY:
        return limit.units * _DAY / seconds * PACED_SHARE / SESSION_MINUTES
    return limit.units * 60 / seconds


class TypeSettings(_Strict):
    """A plan's decision about a data type."""

    ttl_minutes: _Positive
    staleness_function: str
    is_active: bool = True


class KeyLimit(_Strict):
    """The units that one key has instead of those of a limit."""

    key_name: str
    name: str
    units: _Positive


class Settings(_Strict):
    """A plan's decision about a provider. A type that is None does not exist, or is retired.

    `batch_from` stays as it is for fetchers that it does not name. `routes` are those of the `types` that the provider
    serves. A plan is that of each key, so no key has limits of its own beside it.
    """

    is_active: bool
    limits: Mapping[str, PlannedLimit]
    key_limits: Sequence[KeyLimit] = ()
    batch: Mapping[str, _Positive]
    batch_from: Mapping[str, _Positive] = {}
    types: Mapping[str, TypeSettings | None]
    routes: Sequence[str] = ()

    def words(self) -> dict[str, str]:
        """Each setting and its value, for people."""
        words = {"provider": "in use" if self.is_active else "not in use"}
        words |= {f"limit {name}": limit.words for name, limit in self.limits.items()}
        words |= {f"limit {own.name} of key {own.key_name}": f"{own.units} units" for own in self.key_limits}
        words |= {f"symbols in a call, {fetcher}": str(size) for fetcher, size in self.batch.items()}
        words |= {
            f"shared calls from, {fetcher}": f"{size} symbols" for fetcher, size in self.batch_from.items() if size > 1
        }
        for name, type_ in self.types.items():
            if type_ is not None:
                words[f"{name}, TTL"] = f"{type_.ttl_minutes} min"
                words[f"{name}, judged by"] = type_.staleness_function
        words |= {f"{name}, served": "yes" for name in self.routes}
        return words


_NO_TYPES: Mapping[str, KnownType] = {}


class Change(NamedTuple):
    """A setting that a plan has changed: its values before and after (None = no value)."""

    setting: str
    before: str | None
    after: str | None


@cache
def _read() -> tuple[dict[str, dict[str, Plan]], dict[str, KnownType]]:
    content: dict[str, Any] = tomllib.loads(_FILE.read_text())
    types = {name: KnownType(**facts) for name, facts in content.pop("types").items()}
    plans = {
        provider: {name: _plan(facts, types) for name, facts in plans.items()} for provider, plans in content.items()
    }
    return plans, types


def _plan(facts: Mapping[str, Any], known: Mapping[str, KnownType]) -> Plan:
    types = {name: PlannedType(about=known[name], **type_) for name, type_ in facts["types"].items()}
    return Plan(**{**facts, "types": types})


def plans_of(connection: Connection, provider: str) -> Mapping[str, Plan]:
    """The plans of a provider by name; empty for one that has none."""
    if provider in PROVIDERS:
        return _read()[0].get(provider, {})
    known = provider_named(connection, provider)
    return declared_plans(known.declared.declaration) if isinstance(known, DeclaredProvider) else {}


def declared_plans(about: Declaration) -> Mapping[str, Plan]:
    """The plans in a declaration."""
    return {
        name: Plan(
            title=plan.title,
            limits=[
                PlannedLimit(name=limit, units=one.units, seconds=one.seconds, day=one.day)
                for limit, one in plan.limits.items()
            ],
            batch=plan.batch,
            types={data_type: _planned(data_type, type_) for data_type, type_ in plan.types.items()},
            check=plan.check and Check(type=plan.check.type, symbol=plan.check.symbol),
            quotes=_quote_cost(about, plan.batch.get("quote")),
            sources=[Source(what=f"the declaration of {about.name}")],
        )
        for name, plan in about.plans.items()
    }


def _quote_cost(about: Declaration, batch: int | None) -> QuoteCost:
    asked = about.fetchers.quote
    if asked is None:
        return QuoteCost()
    most = max(endpoint.most for endpoint in endpoints_of(asked).values())
    return QuoteCost(per_call=asked.units_per_call, per_symbol=asked.units_per_symbol, batch=min(batch or most, most))


def _planned(name: str, declared: DeclaredType) -> PlannedType:
    is_daily = Fetcher(declared.fetcher) is not Fetcher.QUOTE
    about = KnownType(
        description=declared.description,
        asset_class=declared.asset_class,
        fetcher=declared.fetcher,
        staleness_function="is_market_stale" if is_daily else "is_data_stale",
        history_from=declared.history_from,
    )
    return PlannedType(at_least=declared.at_least, about=about)


def known_type(name: str) -> KnownType:
    """A data type of plans.toml."""
    return _read()[1][name]


def plan_of(connection: Connection, provider: str, name: str | None) -> tuple[str, Plan]:
    """A plan and its name; without a name the only one. Raises UnknownPlan, which lists them."""
    plans = plans_of(connection, provider)
    if not plans:
        raise UnknownPlan(
            f"{provider} has no plans. `pricing-pipeline limit set` and `type add` set it up by hand, or `plans` in "
            "its declaration."
        )
    if name is None and len(plans) == 1:
        name = next(iter(plans))
    if name is None or name not in plans:
        listed = ", ".join(f"--plan {known} ({plan.title})" for known, plan in plans.items())
        problem = f"has no plan {name!r}" if name else "has several plans"
        raise UnknownPlan(f"{provider} {problem}. Say one of: {listed}.")
    return name, plans[name]


def target_of(plan: Plan, symbols: int) -> Settings:
    """The settings of a plan when this number of symbols is watched."""
    pace = plan.refresh_minutes(symbols)
    return Settings(
        is_active=True,
        limits={limit.name: limit for limit in plan.limits},
        batch=plan.batch,
        types={
            name: TypeSettings(
                ttl_minutes=max(type_.at_least, pace) if type_.about.fetcher == "quote" else type_.at_least,
                staleness_function=type_.about.staleness_function,
            )
            for name, type_ in plan.types.items()
        },
        routes=sorted(plan.types),
    )


def use(connection: Connection, provider: str, name: str, plan: Plan, symbols: int) -> list[Change]:
    """Write a plan for this number of symbols and switch its provider on, as the owner; returns what changed.

    Limits that the plan does not have are removed. A type that another plan in use serves, too, keeps the longer TTL.
    `undo` restores what was before the first plan.
    """
    target = target_of(plan, symbols)
    before = _settings(connection, provider, target)
    target = _with_longer_ttls(target, before, _types_of_others(connection, provider))
    _apply(connection, provider, target, {name: type_.about for name, type_ in plan.types.items()})
    # All plans that serve a type keep its settings from before the first of them; undoing the last one restores those.
    known = connection.execute(query("plans.types_before"), {"provider": provider}).scalar_one()
    content = before.model_dump(mode="json")
    content["types"] |= {data_type: type_ for data_type, type_ in known.items() if data_type in before.types}
    parameters = {"provider": provider, "plan": name, "symbols": symbols, "before": json.dumps(content)}
    connection.execute(query("plans.keep"), parameters)
    return _changes(before, _settings(connection, provider, target))


def undo(connection: Connection, provider: str) -> list[Change]:
    """Restore the settings from before the plan in use, as the owner; returns what changed.

    Types that another plan in use serves, too, stay as they are. Raises UnknownPlan if no plan is in use.
    """
    kept = connection.execute(query("plans.forget"), {"provider": provider}).scalar_one_or_none()
    if kept is None:
        raise UnknownPlan(f"no plan of {provider} is in use, so nothing can be undone.")
    target = Settings.model_validate(kept)
    before = _settings(connection, provider, target)
    shared = _types_of_others(connection, provider)
    types = {name: before.types[name] if name in shared else type_ for name, type_ in target.types.items()}
    _apply(connection, provider, target.model_copy(update={"types": types}))
    return _changes(before, _settings(connection, provider, target))


def routes_of_symbols(connection: Connection, provider: str) -> list[tuple[str, str]]:
    """The routes of single symbols to a provider, by data type and symbol: no plan has made them."""
    rows = connection.execute(query("plans.routes_of_symbols"), {"provider": provider})
    return [(row.data_type, row.symbol) for row in rows]


def _types_of_others(connection: Connection, provider: str) -> set[str]:
    """The data types that the plans of other providers serve."""
    plans = [plans_of(connection, other).get(name) for other, name in in_use(connection).items() if other != provider]
    return {name for plan in plans if plan is not None for name in plan.types}


def _with_longer_ttls(target: Settings, before: Settings, shared: Collection[str]) -> Settings:
    types = {
        name: type_.model_copy(update={"ttl_minutes": max(type_.ttl_minutes, old.ttl_minutes)})
        if name in shared and type_ is not None and (old := before.types[name]) is not None
        else type_
        for name, type_ in target.types.items()
    }
    return target.model_copy(update={"types": types})


def in_use(connection: Connection) -> dict[str, str]:
    """The plan of each provider that has one, by provider."""
    return {row.provider: row.plan for row in connection.execute(query("plans.in_use"))}


def _settings(connection: Connection, provider: str, wanted: Settings) -> Settings:
    """The settings in the database that `wanted` decides about."""
    parameters = {"provider": provider, "fetchers": list(wanted.batch), "data_types": list(wanted.types)}
    row = connection.execute(query("plans.settings"), parameters).mappings().one()
    return Settings(
        is_active=row["is_active"],
        limits={limit["name"]: PlannedLimit(**limit) for limit in row["limits"]},
        key_limits=row["key_limits"],
        batch=row["batch"],
        batch_from=row["batch_from"],
        types={name: row["types"].get(name) for name in wanted.types},
        routes=row["routes"],
    )


def _apply(connection: Connection, provider: str, target: Settings, known: Mapping[str, KnownType] = _NO_TYPES) -> None:
    connection.execute(query("plans.activate"), {"provider": provider, "is_active": target.is_active})
    for limit in provider_rules.limits(connection, provider):
        if limit.key_name is None and limit.name not in target.limits:
            provider_rules.remove_limit(connection, provider, limit.name, None)
    for wanted in target.limits.values():
        limit = Limit(provider, wanted.name, None, wanted.units, wanted.seconds, wanted.day)
        provider_rules.set_limit(connection, limit)
    for limit in provider_rules.limits(connection, provider):
        if limit.key_name is not None:
            provider_rules.remove_limit(connection, provider, limit.name, limit.key_name)
    for own in target.key_limits:
        provider_rules.set_limit(connection, Limit(provider, own.name, own.key_name, own.units, None, None))
    for fetcher, size in target.batch.items():
        changes = {"batch_size": size}
        if fetcher in target.batch_from:
            changes["batch_from"] = min(target.batch_from[fetcher], size)
        provider_rules.change_batch(connection, provider, fetcher, changes)
    for name, type_ in target.types.items():
        is_new = name in known and data_type_registry.about(connection, name) is None
        _apply_type(connection, name, type_, known.get(name))
        if is_new and provider not in PROVIDERS:
            _take_routes(connection, name)
        if name in target.routes:
            provider_rules.add_route(connection, provider, name, None, None)
        else:
            provider_rules.remove_route(connection, provider, name, None)


def _apply_type(connection: Connection, name: str, type_: TypeSettings | None, known: KnownType | None) -> None:
    if type_ is None:
        data_type_registry.set_active(connection, name, is_active=False)
        return
    about = data_type_registry.about(connection, name)
    if known is not None and about is None:
        data_type_registry.add_data_type(
            connection,
            name,
            description=known.description,
            asset_class=known.asset_class,
            fetcher=known.fetcher,
            history_from=known.history_from,
            ttl_minutes=type_.ttl_minutes,
            staleness_function=type_.staleness_function,
            days_ahead=known.days_ahead,
        )
    elif known is not None and about is not None:
        _require_same(name, about, known)
    connection.execute(query("plans.set_type"), {"data_type": name, **type_.model_dump()})


def _take_routes(connection: Connection, data_type: str) -> None:
    """A type that a declaration has named is for its provider: a new type has routes to all that could serve it."""
    for route in provider_rules.routes(connection, data_type):
        provider_rules.remove_route(connection, route.provider, data_type, None)


def _require_same(name: str, about: Mapping[str, Any], known: KnownType) -> None:
    if (about["asset_class"], about["fetcher"]) != (known.asset_class, known.fetcher):
        raise PricingError(
            f"{name} is a data type of {about['asset_class']} from the fetcher {about['fetcher']} already, and in the "
            f"plan of {known.asset_class} from {known.fetcher}. Give it another name in the plan. Nothing has changed."
        )


def _changes(before: Settings, after: Settings) -> list[Change]:
    old, new = before.words(), after.words()
    settings = dict.fromkeys([*new, *old])
    return [Change(name, old.get(name), new.get(name)) for name in settings if old.get(name) != new.get(name)]
