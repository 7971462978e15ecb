"""How requests name rows: by ids in the path or in the body."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field

_LARGEST = 2**63 - 1
MOST_IDS = 1000

Id = Annotated[int, Path(ge=1, le=_LARGEST, description="As the list shows it.")]


class Ids(BaseModel):
    """The rows that a request is about."""

    model_config = ConfigDict(extra="forbid")

    ids: list[Annotated[int, Field(ge=1, le=_LARGEST)]] = Field(
        min_length=1, max_length=MOST_IDS, examples=[[17, 18]]
    )
