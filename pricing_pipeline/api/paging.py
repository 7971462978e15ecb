"""Lists in pages: `limit` and `cursor`, the same for every list.

A cursor names the last row of a page by the columns that the list is sorted by, so the next page begins after it even
if that row is gone. No list is sorted by a value that changes, so no row that exists from the first page to the last is
skipped or repeated, whatever happens to it meanwhile.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Query
from pydantic import TypeAdapter, ValidationError

from pricing_pipeline.api.problems import Refused

Row = TypeVar("Row")

MOST_ROWS = 1000
USUAL_ROWS = 100
_LONGEST_CURSOR = 1000

Limit = Annotated[int, Query(ge=1, le=MOST_ROWS, description="The most rows in this page.")]
Cursor = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=_LONGEST_CURSOR,
        description="`next` of the previous page; default: the first page.",
    ),
]


@dataclass(frozen=True, slots=True)
class Page:
    """A page that is asked for: at most `limit` rows, after the row with the sort key `after` (None: from the top)."""

    keyset: Keyset[Any]
    limit: int
    after: tuple[Any, ...] | None

    @property
    def after_id(self) -> int | None:
        """The id to go on after, of a list that is sorted by ids; None from the top."""
        return None if self.after is None else int(self.after[0])

    @property
    def at_most(self) -> int:
        """How many rows to read: one more than the page shows, to find out whether there is a next page."""
        return self.limit + 1

    def cut(self, rows: Sequence[Row]) -> tuple[list[Row], str | None]:
        """The rows of this page, and the cursor of the next; None if this is the last one."""
        shown = list(rows[: self.limit])
        return shown, self.keyset.cursor(shown[-1]) if len(rows) > self.limit else None


class Keyset(Generic[Row]):
    """How a list is sorted: the sort key of a row, each part of a type. As a dependency of a route it is the Page.

    `noun` is the list's name; a cursor of another list is refused.
    """

    def __init__(self, noun: str, types: Sequence[Any], key: Callable[[Row], tuple[Any, ...]]) -> None:
        self._noun = noun
        self._key = key
        self._content: TypeAdapter[tuple[Any, ...]] = TypeAdapter(tuple[(str, *types)])  # type: ignore[valid-type]

    def __call__(self, limit: Limit = USUAL_ROWS, cursor: Cursor = None) -> Page:
        """The page that a request asks for. Raises Refused for a cursor of another list."""
        return Page(self, limit, None if cursor is None else self._read(cursor))

    def cursor(self, row: Row) -> str:
        """The cursor of the page after a row."""
        content = self._content.dump_json((self._noun, *self._key(row)))
        return base64.urlsafe_b64encode(content).rstrip(b"=").decode()

    def _read(self, cursor: str) -> tuple[Any, ...]:
        try:
            content = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
            noun, *key = self._content.validate_json(content)
        except (ValueError, binascii.Error, ValidationError):
            noun, key = None, []
        if noun != self._noun:
            raise Refused(
                422,
                "invalid-cursor",
                f"this cursor belongs to no page of {self._noun}. Send `next` of the previous page unchanged, or no "
                "cursor for the first page",
            )
        return tuple(key)
