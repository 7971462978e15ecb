"""`/v1/documents`: what providers say about a company, as it is or was believed. Nothing here waits for a provider."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field
from sqlalchemy import Connection

from pricing_pipeline.api.access import Database, Reader
from pricing_pipeline.api.bodies import Shape
from pricing_pipeline.api.parameters import Moment, SymbolName, TypeName, require_instrument
from pricing_pipeline.api.tags import TaggedRoute
from pricing_pipeline.demand import instruments
from pricing_pipeline.domain.data_types import Contents, DataType
from pricing_pipeline.errors import UnknownDataType
from pricing_pipeline.prices import documents
from pricing_pipeline.prices.documents import Reading
from pricing_pipeline.registry import data_type_registry

router = APIRouter(tags=["documents"], route_class=TaggedRoute)


class Document(Shape):
    """A document, believed since `recorded_at` (UTC)."""

    period: date | None
    """The day it is about, such as the end of a fiscal year; null where a company has only one."""
    recorded_at: datetime
    provider: str
    body: dict[str, Any] = Field(examples=[{"name": "Apple Inc.", "eps_actual": "1.64"}])
    """What it says. Numbers with decimals are strings, because they are exact."""


class Documents(Shape):
    """The documents of a symbol, the newest period first."""

    symbol: str
    data_type: str = Field(examples=["company_profile"])
    as_of: datetime | None
    """As they were believed then; null = as they are now."""
    fetched_at: datetime | None
    """When a provider last confirmed them; null if none has, and for a time in the past."""
    fresh: bool | None
    documents: list[Document]


@router.get("/documents/{data_type}/{symbol:path}")
def read_documents(
    database: Database,
    caller: Reader,
    data_type: TypeName,
    symbol: SymbolName,
    as_of: Annotated[Moment | None, Query(description="As they were believed at this time.")] = None,
) -> Documents:
    """The documents of a symbol. Missing and stale ones are queued, unless `as_of` asks for the past."""
    with database.begin() as connection:
        type_ = _type_of_documents(connection, data_type)
        symbol = instruments.spelled_anywhere(connection, symbol)
        require_instrument(connection, type_, symbol)
        if as_of is None:
            reading = documents.read(connection, data_type, symbol, caller.user_or_none)
        else:
            stored = documents.as_of(connection, data_type, symbol, as_of)
            reading = Reading(stored, None, None, False, False)
    return Documents(
        symbol=symbol,
        data_type=data_type,
        as_of=as_of,
        fetched_at=reading.fetched_at,
        fresh=reading.fresh if as_of is None else None,
        documents=[Document.model_validate(document, from_attributes=True) for document in reading.documents],
    )


def _type_of_documents(connection: Connection, name: str) -> DataType:
    type_ = data_type_registry.active_data_type(connection, name)
    if type_.contents is Contents.DOCUMENTS:
        return type_
    known = data_type_registry.active_data_types(connection)
    others = [other.data_type for other in known if other.contents is Contents.DOCUMENTS]
    raise UnknownDataType(
        f"{name} is a type of {type_.contents}, which /v1/types describes. Types of documents are: "
        f"{', '.join(others) or 'none yet'}."
    )
