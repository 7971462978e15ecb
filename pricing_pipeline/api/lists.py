"""`/v1/lists`: pairs of a user under one name, which are read, and watched, together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field

from pricing_pipeline.api.access import Database, Watcher
from pricing_pipeline.api.bodies import Body, Shape
from pricing_pipeline.api.demand import Pair, Pairs
from pricing_pipeline.api.parameters import LONGEST_NAME, SymbolList
from pricing_pipeline.demand import lists
from pricing_pipeline.domain.data_types import Contents
from pricing_pipeline.errors import UnknownDataType
from pricing_pipeline.registry import data_type_registry

router = APIRouter(prefix="/lists", tags=["watching"])

_Name = Annotated[str, Field(min_length=1, max_length=48, examples=["mine"])]


class More(Pairs):
    """Pairs to put on a list."""

    list: _Name


class Fewer(Body):
    """Symbols to take off a list."""

    list: _Name
    symbols: SymbolList | None = None
    """Without symbols, the whole list is removed."""


class Listed(Shape):
    """A list of a user, and its pairs by data type and symbol."""

    list: str
    pairs: Sequence[Pair]


class Lists(Shape):
    """The lists of a user."""

    lists: list[Listed]


class TakenOff(Shape):
    """How many pairs were taken off a list."""

    removed: int


@router.get("")
def list_lists(database: Database, caller: Watcher) -> Lists:
    """The lists of a user, by name. Unlike `GET /v1/prices?list=NAME`, this does not watch their pairs."""
    user = caller.user
    with database.connect() as connection:
        found = lists.of_user(connection, user)
    return Lists(lists=[_listed(name, pairs) for name, pairs in found.items()])


@router.get("/{name}")
def show_list(database: Database, caller: Watcher, name: Annotated[str, Path(max_length=LONGEST_NAME)]) -> Listed:
    """One list of a user."""
    user = caller.user
    with database.connect() as connection:
        found = lists.of_user(connection, user)
        if name not in found:
            raise lists.unknown(connection, user, name)
    return _listed(name, found[name])


@router.post("/add")
def add_to_list(database: Database, caller: Watcher, body: More) -> Listed:
    """Put pairs on a list of a user, all of them or none, and watch them. A new name makes a new list."""
    user = caller.user
    with database.begin() as connection:
        for name in dict.fromkeys(pair.data_type for pair in body.pairs):
            if data_type_registry.active_data_type(connection, name).contents is not Contents.PRICES:
                raise UnknownDataType(f"{name} has no prices. A list takes only data types of prices.")
        return _listed(body.list, lists.add(connection, user, body.list, body.as_tuples()))


@router.post("/remove")
def remove_from_list(database: Database, caller: Watcher, body: Fewer) -> TakenOff:
    """Take symbols off a list of a user; without symbols, remove the list."""
    user = caller.user
    with database.begin() as connection:
        return TakenOff(removed=lists.remove(connection, user, body.list, body.symbols))


def _listed(name: str, pairs: list[lists.Pair]) -> Listed:
    return Listed(list=name, pairs=[Pair(data_type=data_type, symbol=symbol) for data_type, symbol in pairs])
