"""How requests name rows: by ids in the path or in the body."""

from __future__ import annotations

from typing import Annotated, Self

from fastapi import Path
from pydantic import Field, model_validator

from pricing_pipeline.api.bodies import Body

_LARGEST = 2**63 - 1
MOST_IDS = 1000
"""Of one request."""

Id = Annotated[int, Path(ge=1, le=_LARGEST, description="As the list shows it.")]
_List = Annotated[
    list[Annotated[int, Field(ge=1, le=_LARGEST)]],
    Field(min_length=1, max_length=MOST_IDS, fail_fast=True, examples=[[17, 18]]),
]


class Ids(Body):
    """The rows that a request is about."""

    ids: _List


class FailedIds(Body):
    """The failed rows that a request is about: those of `ids`, or all."""

    ids: _List | None = None
    all_failed: bool = False

    @model_validator(mode="after")
    def _names_some(self) -> Self:
        if bool(self.ids) == self.all_failed:
            raise ValueError("name rows by ids, or set all_failed; not both")
        return self
