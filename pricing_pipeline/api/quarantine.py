"""`/v1/quarantine`: values that are not believed; releasing and rejecting them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response
from pydantic import Field
from sqlalchemy import Connection

from pricing_pipeline.api.access import Caller, Database, Operator, Reader
from pricing_pipeline.api.bodies import Shape
from pricing_pipeline.api.ids import Id, Ids
from pricing_pipeline.api.numbers import Exact
from pricing_pipeline.api.paging import Keyset, Page
from pricing_pipeline.api.parameters import LONGEST_NAME, LONGEST_SYMBOL
from pricing_pipeline.domain.states import Decided
from pricing_pipeline.errors import UnknownValue
from pricing_pipeline.quarantine import opinions, quarantined_values, reviews
from pricing_pipeline.quarantine.quarantined_values import QuarantinedValue

router = APIRouter(prefix="/quarantine", tags=["quarantine"])

_BYTES = "application/octet-stream"


class Opinion(Shape):
    """What another provider says about a quarantined value; `ratio` is that value divided by this one."""

    provider: str
    call_id: int
    asked_at: datetime
    answered_at: datetime | None
    observed_at: datetime | None
    value: Exact | None
    currency: str | None
    adjustment: str | None
    ratio: Exact | None
    verdict: str | None = Field(examples=["agrees"])
    failure: str | None


class Value(Shape):
    """A value that is not believed. `value` is the source's own spelling; times are UTC."""

    value_id: int
    data_type: str = Field(examples=["equity_quote"])
    symbol: str = Field(examples=["AAPL"])
    provider: str
    observed_at: datetime | None
    """The source's time; null if it names none that can be."""
    kind: str = Field(examples=["unit"])
    value: str
    reason: str
    times: int
    """In how many answers it came."""
    recorded_at: datetime
    last_seen_at: datetime
    call_id: int
    has_body: bool
    """Whether the answer that brought it is kept."""
    status: str = Field(examples=["quarantined"])
    resolved_at: datetime | None
    resolved_by: str | None
    resolution: str | None
    bar: dict[str, str] | None
    """All parts of the value; null if it could not be read."""
    opinions: list[Opinion]


class Values(Shape):
    """Values that are not believed."""

    values: list[Value]
    next: str | None
    """The cursor of the next page; null on the last one."""


class Neighbour(Shape):
    """A believed value to compare with; `place` is before, same, after or other type."""

    place: str
    data_type: str
    observed_at: datetime
    price: Exact
    currency: str | None
    provider: str


class WholeValue(Value):
    """A value that is not believed, and what helps to decide on it."""

    level: list[int]
    """The values on its level: mostly only itself."""
    around: list[Neighbour]
    body: str | None
    """The answer that brought it; null if it is not kept any more."""


class Decision(Ids):
    """The values on which somebody decides, and why."""

    level: bool = False
    """Also all quarantined values beside each: in a row, on the same level."""
    reason: str | None = Field(None, max_length=1000)


class AskedValue(Shape):
    """A value, and the provider that is asked about it."""

    value_id: int
    provider: str = Field(examples=["yahoo"])


class AskedValues(Shape):
    """The values about which other providers are asked. Each value shows what they say."""

    asked: list[AskedValue]


class ValueOutcome(Shape):
    """What has become of a value: `outcome` is released, rejected, released_already or rejected_already.

    `is_latest`: it is the pair's newest price now. `revised`: it took the place of another value.
    """

    value_id: int
    outcome: str
    is_latest: bool
    revised: bool


class ValueOutcomes(Shape):
    """What has become of values, and how many of each outcome there are."""

    values: list[ValueOutcome]
    counts: dict[str, int]


_VALUES: Keyset[QuarantinedValue] = Keyset("values", (int,), lambda row: (row.value_id,))


@router.get("")
def list_values(
    database: Database,
    _: Reader,
    page: Annotated[Page, Depends(_VALUES)],
    data_type: Annotated[str | None, Query(max_length=LONGEST_NAME)] = None,
    symbol: Annotated[str | None, Query(max_length=LONGEST_SYMBOL)] = None,
    status: Decided = Decided.QUARANTINED,
) -> Values:
    """Values that a provider sent and that are not believed, sorted by when they first came, newest first.

    A value that comes again between two pages keeps its place.
    """
    state = None if status is Decided.ALL else status.value
    with database.connect() as connection:
        rows = quarantined_values.listed(
            connection,
            data_type,
            symbol,
            page.at_most,
            state,
            by_id=True,
            after=page.after_id,
        )
        shown, following = page.cut(rows)
        return Values(values=[Value(**content) for content in _contents(connection, shown)], next=following)


@router.get("/{value_id:int}")
def show_value(database: Database, _: Reader, value_id: Id) -> WholeValue:
    """One value: why it is not believed, the values stored around it, second opinions, and its provider's answer."""
    with database.connect() as connection:
        value = _find(connection, value_id)
        body = quarantined_values.body(connection, value_id)
        (content,) = _contents(connection, [value])
        return WholeValue(
            **content,
            level=quarantined_values.level(connection, value_id),
            around=[Neighbour(**asdict(near)) for near in quarantined_values.neighbours(connection, value_id)],
            body=None if body is None else body.decode("utf-8", "replace"),
        )


@router.get(
    "/{value_id:int}/body",
    response_class=Response,
    responses={200: {"content": {_BYTES: {"schema": {"type": "string", "format": "binary"}}}}},
)
def download_body(database: Database, _: Operator, value_id: Id) -> Response:
    """The answer that brought a value, byte for byte, as a file; of a long one its first megabyte.

    It comes from a provider and may hold anything, so no browser shows it.
    """
    with database.connect() as connection:
        value = _find(connection, value_id)
        body = quarantined_values.body(connection, value_id)
    if body is None:
        raise UnknownValue(
            f"the answer that brought value {value.value_id} is no longer kept: answers are kept 90 days."
        )
    headers = {
        "Content-Disposition": f'attachment; filename="quarantined-{value_id}.bin"',
        "Content-Security-Policy": "sandbox; default-src 'none'",
    }
    return Response(body, media_type=_BYTES, headers=headers)


@router.post("/ask", status_code=202)
def ask_about_values(database: Database, _: Operator, body: Ids) -> AskedValues:
    """Ask the next provider of each value's route about it: all of the values, or none.

    The next drain asks, within the limits and behind waiting tasks; it tries four times in all.
    """
    with database.begin() as connection:
        asked = opinions.ask_soon(connection, body.ids)
    return AskedValues(asked=[AskedValue(value_id=key, provider=whom) for key, whom in asked.items()])


@router.post("/release")
def release_values(database: Database, caller: Operator, body: Decision) -> ValueOutcomes:
    """Believe values after all: each is stored exactly as its provider sent it. All of them, or none."""
    return _decide(database, caller, body, "released")


@router.post("/reject")
def reject_values(database: Database, caller: Operator, body: Decision) -> ValueOutcomes:
    """Keep values out for good. All of them, or none."""
    return _decide(database, caller, body, "rejected")


def _decide(database: Database, caller: Caller, body: Decision, decision: str) -> ValueOutcomes:
    decisions = reviews.decide(
        database, body.ids, decision, caller.token.name, body.reason, with_levels=body.level, is_strict=True
    )
    return ValueOutcomes(
        values=[ValueOutcome.model_validate(decided, from_attributes=True) for decided in decisions],
        counts=dict(Counter(decided.outcome for decided in decisions)),
    )


def _find(connection: Connection, value_id: int) -> QuarantinedValue:
    value = quarantined_values.show(connection, value_id)
    if value is None:
        raise UnknownValue(f"there is no quarantined value {value_id}. The list with status=all shows all of them.")
    return value


def _contents(connection: Connection, values: Sequence[QuarantinedValue]) -> list[dict[str, Any]]:
    """The values with what other providers say about them."""
    by_value = opinions.of(connection, [value.value_id for value in values])
    return [
        {**asdict(value), "opinions": [asdict(opinion) for opinion in by_value.get(value.value_id, [])]}
        for value in values
    ]
