"""A real table behind a REST interface on loopback, as Airtable's: a record is found by a field, or made."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pricing_pipeline_tests.support.receivers import Post, Receiver, receiving

KEY = "canary-of-a-table"
MOST = 10


@dataclass
class RestTable:
    """Records by their key field. `fault` says what goes wrong with the next request; None is nothing."""

    fault: Callable[[], str | None] = lambda: None
    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    taken: list[str] = field(default_factory=list)
    """Idempotency keys of the requests that were done."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, post: Post) -> None:
        fault = self.fault()
        match fault:
            case "drop":
                return None
            case "hang":
                return post.hang()
            case "429":
                return post.answer(429, b"slow down", Retry_After="1")
            case "500":
                return post.answer(500, str(post.headers).encode())
        status = self._write(post)
        if fault == "written, then dropped":
            return None
        if fault == "written, then 503":
            return post.answer(503)
        return post.answer(status, b'{"records": []}')

    def _write(self, post: Post) -> int:
        if post.headers.get("Authorization") != f"Bearer {KEY}":
            return 401
        sent = json.loads(post.body)
        if post.command != "PATCH" or sent["performUpsert"] != {"fieldsToMergeOn": ["Symbol"]}:
            return 422
        if not 0 < len(sent["records"]) <= MOST:
            return 422
        with self.lock:
            self.taken.append(post.headers["Idempotency-Key"])
            for record in sent["records"]:
                self.records[record["fields"]["Symbol"]] = record["fields"]
        return 200


@contextmanager
def rest_table(fault: Callable[[], str | None] = lambda: None) -> Iterator[tuple[RestTable, Receiver]]:
    """A table while the block lasts."""
    table = RestTable(fault)
    with receiving(table) as receiver:
        yield table, receiver


def document(url: str, /, **changes: Any) -> str:
    """The address of a recipient of the channel `rest` whose table is there."""
    return json.dumps(
        {
            "url": url,
            "method": "PATCH",
            "key": KEY,
            "records": "records",
            "most": MOST,
            "record": {"fields": {"Symbol": "$symbol", "Price": "$price:number", "At": "$observed_at"}},
            "with": {"performUpsert": {"fieldsToMergeOn": ["Symbol"]}},
            **changes,
        }
    )
