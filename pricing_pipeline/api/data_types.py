"""`/v1/types`: data types as the registry has them, and asking for a scheduled one now."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from pricing_pipeline.api.access import Database, Operator, Reader
from pricing_pipeline.api.bodies import Shape
from pricing_pipeline.api.numbers import Exact
from pricing_pipeline.api.parameters import TypeName
from pricing_pipeline.api.tags import TaggedRoute
from pricing_pipeline.demand import instruments, schedules
from pricing_pipeline.errors import UnknownDataType
from pricing_pipeline.registry import data_type_registry, provider_rules
from pricing_pipeline.registry.provider_rules import Route

router = APIRouter()
_tagged = APIRouter(tags=["data types"], route_class=TaggedRoute)


class TypeSummary(Shape):
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


class Types(Shape):
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
        retired=None if old is None else [TypeSummary(**data_type_registry.content_of(type_)) for type_ in old],
    )


@_tagged.get("/types/{data_type}")
def show_type(database: Database, caller: Reader, data_type: TypeName) -> TypeDetails:
    """Everything about one data type, also a retired one."""
    with database.connect() as connection:
        about = data_type_registry.about(connection, data_type)
        if about is None:
            raise UnknownDataType(f"no data type is called {data_type!r}. GET /v1/types?retired=true lists them.")
        bounds = instruments.bounds_of_type(connection, data_type)
        routes = provider_rules.routes(connection, data_type)
    return TypeDetails.model_validate({**about, **bounds, "routes": routes})


class Queued(Shape):
    """How many tasks of a data type are new. If it has more instruments, they follow."""

    data_type: str = Field(examples=["mf_nav"])
    queued: int


@router.post("/types/{data_type}/refresh", tags=["data types"])
def refresh_type(database: Database, _: Operator, data_type: TypeName) -> Queued:
    """Queue the instruments of a type with a schedule now, behind what is watched and held; not what is fresh."""
    with database.begin() as connection:
        return Queued(data_type=data_type, queued=schedules.refresh(connection, data_type))


router.include_router(_tagged)
