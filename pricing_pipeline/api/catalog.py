"""`/v1/types`, `/v1/providers` and `/v1/instruments`: what can be priced, who is asked, and a type queued at once."""

from __future__ import annotations

from dataclasses import asdict
from datetime import date, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request
from pydantic import BaseModel, Field
from sqlalchemy import Connection

from pricing_pipeline.api.access import Database, Operator, Reader
from pricing_pipeline.api.numbers import Exact
from pricing_pipeline.api.paging import Keyset, Page
from pricing_pipeline.api.parameters import LONGEST_NAME, AssetClass, SymbolName, TypeName
from pricing_pipeline.api.tags import TaggedRoute
from pricing_pipeline.demand import instruments, schedules
from pricing_pipeline.demand.instruments import Bounds, Instrument
from pricing_pipeline.errors import UnknownDataType
from pricing_pipeline.keys import credentials
from pricing_pipeline.providers.configured import call_url
from pricing_pipeline.queue import forecast, limits
from pricing_pipeline.queue.forecast import Forecast
from pricing_pipeline.queue.limits import Key, ProviderState
from pricing_pipeline.registry import data_type_registry, declarations, plans, provider_rules, spellings
from pricing_pipeline.registry.provider_rules import Batch, Limit, Route
from pricing_pipeline.registry.spellings import Spelled
from pricing_pipeline.settings import Settings

router = APIRouter()
_tagged = APIRouter(tags=["data types"], route_class=TaggedRoute)


class TypeSummary(BaseModel):
    """A data type. TTLs are in minutes."""

    data_type: str = Field(examples=["equity_daily"])
    description: str
    fetcher: str
    """The kind of request to providers, such as quote."""
    contents: str
    """What it consists of: prices, documents, inventory or commodities."""
    asset_class: str
    """It applies to the instruments of this class."""
    ttl_minutes: int
    """The age at which a watched price is due again."""
    background_ttl_minutes: int
    """The age at which a held price that nobody watches is due again."""
    strategy: str
    schedule: str | None
    timezone: str
    history_from: date | None
    """Its history begins here; null if it has none to backfill."""
    owner: str | None
    days_ahead: int | None
    """For how many days slots are asked for; null for other fetchers."""
    has_own_table: bool
    """Whether a table or view of the user's own has its values."""


class Types(BaseModel):
    """Active data types by name; `retired` is null unless the request asks for it."""

    data_types: list[TypeSummary]
    retired: list[TypeSummary] | None


class TypeDetails(TypeSummary):
    """Everything about a data type."""

    is_active: bool
    staleness_function: str
    thin_after_days: int | None
    thin_to_minutes: int
    keep_months: int | None
    created_at: datetime
    instruments: int
    lowest: Exact | None
    """A lower price is quarantined, unless its instrument has bounds of its own."""
    highest: Exact | None
    jumps_trusted_until: datetime | None
    routes: list[Route]
    """Providers that serve it, in the order in which they are asked."""


@_tagged.get("/types")
def list_types(
    database: Database,
    caller: Reader,
    retired: Annotated[bool, Query(description="Retired ones, too.")] = False,
) -> Types:
    """The active data types, and with `retired` also the retired ones."""
    with database.connect() as connection:
        active = data_type_registry.active_data_types(connection)
        old = data_type_registry.retired_data_types(connection) if retired else None
    return Types(
        data_types=[TypeSummary(**data_type_registry.content_of(type_)) for type_ in active],
        retired=None
        if old is None
        else [TypeSummary(**data_type_registry.content_of(type_)) for type_ in old],
    )


@_tagged.get("/types/{data_type}")
def show_type(database: Database, caller: Reader, data_type: TypeName) -> TypeDetails:
    """Everything about one data type, also a retired one."""
    with database.connect() as connection:
        about = data_type_registry.about(connection, data_type)
        if about is None:
            raise UnknownDataType(
                f"no data type is called {data_type!r}. GET /v1/types?retired=true lists them."
            )
        bounds = instruments.bounds_of_type(connection, data_type)
        routes = provider_rules.routes(connection, data_type)
    return TypeDetails.model_validate({**about, **bounds, "routes": routes})


class Queued(BaseModel):
    """How many tasks of a data type are new. If it has more instruments, they follow."""

    data_type: str = Field(examples=["mf_nav"])
    queued: int


@router.post("/types/{data_type}/refresh", tags=["data types"])
def refresh_type(database: Database, _: Operator, data_type: TypeName) -> Queued:
    """Queue the instruments of a type with a schedule now, behind what is watched and held; not what is fresh."""
    with database.begin() as connection:
        return Queued(data_type=data_type, queued=schedules.refresh(connection, data_type))


class ProviderSummary(BaseModel):
    """A source of prices, and what stops it now."""

    provider: str = Field(examples=["twelvedata"])
    description: str
    base_url: str
    """Its own address."""
    call_url: str | None
    """Where calls go: to its own address, or to the sandbox that answers in its place; null if the sandbox has nobody
    in the place of a declared provider, which is not called then."""
    is_sandbox: bool
    is_active: bool
    fetchers: list[str]
    data_types: list[str]
    """The active data types that it serves."""
    max_in_flight: int
    request_delay_ms: int
    throttle_pause_seconds: int
    quota_bytes: int
    used_bytes: int
    """Of the quota, in the last 30 days."""
    state: str | None = Field(examples=["rate_limited"])
    """Why it is not called now, as one word; null while it may be called."""
    standing: str
    """The same as a sentence."""
    units_used: str
    """How much of its limits is used, as text for people."""
    quota_used: str
    forecast: Forecast | None
    """Of an active provider."""


class Providers(BaseModel):
    """Providers by name, switched off ones too."""

    providers: list[ProviderSummary]


class ProviderDetails(ProviderSummary):
    """Everything about a provider but its keys' secrets, which nothing shows."""

    plan: str | None
    limits: list[Limit]
    batches: list[Batch]
    keys: list[Key]
    routes: list[Route]


@router.get("/providers", tags=["providers"])
def list_providers(request: Request, database: Database, caller: Reader) -> Providers:
    """Providers, their limits and quota, and what stops them now."""
    settings = request.app.state.settings
    with database.connect() as connection:
        contents = _providers(connection, settings, None)
        return Providers(providers=[ProviderSummary(**content) for content in contents])


@router.get("/providers/{provider}", tags=["providers"])
def show_provider(
    request: Request,
    database: Database,
    caller: Reader,
    provider: Annotated[str, Path(max_length=LONGEST_NAME)],
) -> ProviderDetails:
    """Everything about one provider."""
    with database.connect() as connection:
        credentials.require_provider(connection, provider)
        (about,) = _providers(connection, request.app.state.settings, provider)
        return ProviderDetails(
            **about,
            plan=plans.in_use(connection).get(provider),
            limits=provider_rules.limits(connection, provider),
            batches=provider_rules.batches(connection, provider),
            keys=[key for key in limits.keys(connection) if key.provider == provider],
            routes=provider_rules.routes(connection, provider=provider),
        )


def _providers(
    connection: Connection, settings: Settings | None, provider: str | None
) -> list[dict[str, Any]]:
    known = provider_rules.providers(connection, provider)
    names = [rules.provider for rules in known]
    standings = {standing.provider: standing for standing in limits.standings(connection, names)}
    forecasts = {ahead.provider: ahead for ahead in forecast.forecasts(connection)}
    services = declarations.known_providers(connection)
    return [
        {
            **asdict(rules),
            **_standing(standings[rules.provider]),
            "call_url": rules.base_url
            if settings is None or rules.provider not in services
            else call_url(settings, services[rules.provider], rules.base_url),
            "is_sandbox": settings is not None and settings.sandbox,
            "forecast": forecasts.get(rules.provider),
        }
        for rules in known
    ]


def _standing(standing: ProviderState) -> dict[str, Any]:
    return {
        "used_bytes": standing.used_bytes,
        "state": standing.state,
        "standing": standing.words,
        "units_used": standing.units_words,
        "quota_used": standing.quota_words,
    }


class Instruments(BaseModel):
    """Instruments by class and symbol, a page of them."""

    instruments: list[Instrument]
    next: str | None
    """The cursor of the next page; null on the last."""


class InstrumentDetails(BaseModel):
    """Everything about an instrument."""

    asset_class: str
    symbol: str
    name: str | None
    currency: str | None
    scale: int
    """The least number of decimals with which it is stored."""
    calendar: str | None
    listed_on: date | None
    created_at: datetime
    verified_at: datetime | None
    state: str
    viewers: int
    holders: int
    data_types: list[str]
    bounds: list[Bounds]
    spellings: list[Spelled]
    """Its spelling at each provider."""


class AboutSymbol(BaseModel):
    """The instruments of a symbol: mostly one, and one for each class that has it."""

    instruments: list[InstrumentDetails]


_INSTRUMENTS: Keyset[Instrument] = Keyset(
    "instruments", (str, str), lambda row: (row.asset_class, row.symbol)
)


@router.get("/instruments", tags=["instruments"])
def list_instruments(
    database: Database,
    caller: Reader,
    page: Annotated[Page, Depends(_INSTRUMENTS)],
    asset_class: AssetClass = None,
) -> Instruments:
    """Instruments, and how many users watch and hold each."""
    with database.connect() as connection:
        rows = instruments.listed(connection, None, asset_class, page.at_most, after=page.after)
    shown, following = page.cut(rows)
    return Instruments(instruments=shown, next=following)


@router.get("/instruments/{symbol:path}", tags=["instruments"])
def show_instruments(
    database: Database, caller: Reader, symbol: SymbolName, asset_class: AssetClass = None
) -> AboutSymbol:
    """Everything about the instruments of a symbol."""
    with database.connect() as connection:
        symbol = instruments.spelled_anywhere(connection, symbol)
        stored = instruments.about(connection, symbol, asset_class)
        if not stored:
            raise data_type_registry.unknown_symbol(connection, symbol, asset_class=asset_class)
        listed = {
            row.asset_class: row for row in instruments.listed(connection, [symbol], asset_class, len(stored))
        }
        return AboutSymbol(
            instruments=[
                InstrumentDetails.model_validate(
                    {
                        **row,
                        "state": listed[row["asset_class"]].state,
                        "viewers": listed[row["asset_class"]].viewers,
                        "holders": listed[row["asset_class"]].holders,
                        "bounds": instruments.bounds(connection, row["asset_class"], symbol),
                        "spellings": spellings.of(connection, row["asset_class"], symbol),
                    }
                )
                for row in stored
            ]
        )


router.include_router(_tagged)
