"""The formats of an answer, and which of them a request wants: by `?format=`, or else by the header Accept."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import Annotated, Any

from fastapi import Query

from pricing_pipeline.api.problems import Refused
from pricing_pipeline.domain.cells import Decimals


class Format(StrEnum):
    """How an answer is written."""

    JSON = "json"
    CSV = "csv"
    ARROW = "arrow"
    PARQUET = "parquet"


MEDIA_TYPES = {
    Format.JSON: "application/json",
    Format.CSV: "text/csv; charset=utf-8",
    Format.ARROW: "application/vnd.apache.arrow.stream",
    Format.PARQUET: "application/vnd.apache.parquet",
}
BINARY = (MEDIA_TYPES[Format.ARROW], MEDIA_TYPES[Format.PARQUET])
"""Media types that gain nothing from gzip."""
NOT_ACCEPTABLE: dict[int | str, dict[str, Any]] = {406: {"description": "None of the formats that Accept names"}}
_ANY = ("", "*/*", "application/json")

Wanted = Annotated[Format | None, Query(description="Instead of the header Accept.")]
Decimal = Annotated[
    Decimals,
    Query(description="For CSV: with `comma`, numbers have decimal commas, and cells have semicolons between them."),
]
Currency = Annotated[
    str | None,
    Query(
        max_length=5,
        description="Prices in this currency, by stored rates; also a part such as GBX.",
        examples=["EUR"],
    ),
]


def chosen(accept: str, named: Format | None, offered: Collection[Format]) -> Format:
    """The format that a request names, or that its header Accept likes best. Raises Refused if it takes none of those
    that are offered.
    """
    if named is None:
        liked = Format.JSON if accept in _ANY else _liked(accept, offered)
    else:
        liked = named if named in offered else None
    if liked is None:
        raise Refused(
            406,
            "not-acceptable",
            f"this is one of: {', '.join(MEDIA_TYPES[one] for one in offered)}. Name one as Accept, or by ?format=",
        )
    return liked


def _liked(accept: str, offered: Collection[Format]) -> Format | None:
    liked: list[tuple[float, Format]] = []
    for entry in accept.split(","):
        media, *parameters = (part.strip().lower() for part in entry.split(";"))
        quality = next((part[2:] for part in parameters if part.startswith("q=")), "1")
        for one in offered:
            plain = MEDIA_TYPES[one].partition(";")[0]
            if media in (plain, f"{plain.partition('/')[0]}/*", "*/*"):
                liked.append((_number(quality), one))
                break
    best = max(liked, key=lambda choice: choice[0], default=(0.0, None))
    return best[1] if best[0] > 0 else None


def _number(quality: str) -> float:
    try:
        return float(quality)
    except ValueError:
        return 0.0
