"""Prices of a message as records of a table that a REST service keeps, such as Airtable's.

Records are written so that a repeat changes nothing: the service finds them by their key. So all requests are repeated
when one of them fails. A price that a newer message brings is left out, lest a late repeat bring the older one back.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Collection, Mapping
from typing import Any

from pydantic import SecretStr

from pricing_pipeline.errors import OperationFailed
from pricing_pipeline.operations.channels.posting import checked_url, origin_of, seconds_for, send_json
from pricing_pipeline.operations.channels.rest_table import RestTable, read_table
from pricing_pipeline.operations.operation_queue import Operation
from pricing_pipeline.providers.transport import Resolver


def send_to_table(
    operation: Operation,
    document: SecretStr,
    *,
    superseded: Collection[tuple[str, str]] = (),
    allow_private: bool = False,
    seconds: float | None = None,
    resolve: Resolver | None = None,
    ssl_context: ssl.SSLContext | None = None,
) -> dict[str, object]:
    """Write a message into the table of a document; returns its origin and how many records. Raises OperationFailed.

    A table of prices skips a message that has none. `superseded` are data types and symbols whose price a newer message
    brings. `seconds` bounds all requests together; without it, it is a little less than the operation's time limit.
    """
    deadline = time.monotonic() + (seconds_for(operation) if seconds is None else seconds)
    table = read_table(document.get_secret_value(), allow_private=allow_private)
    address = checked_url(table.url, allow_private=allow_private, what="the table's url")
    name = origin_of(address)
    rows = _rows(operation, table)
    if not rows:
        return {"to": name, "skipped": "the table takes prices, and the message has none"}
    current = [row for row in rows if not table.wants_prices or _pair(row) not in superseded]
    if not current:
        return {"to": name, "skipped": "newer messages bring all its prices"}
    bodies = [table.body(current[at : at + table.most]) for at in range(0, len(current), table.most)]
    for part, body in enumerate(bodies, start=1):
        headers = {**table.sent_headers(), "Idempotency-Key": f"{operation.idempotency_key}-{part}"}
        try:
            status = send_json(
                address,
                headers,
                body,
                method=table.method,
                seconds=max(deadline - time.monotonic(), 0.0),
                allow_private=allow_private,
                resolve=resolve,
                ssl_context=ssl_context,
            )
        except OperationFailed as error:
            if len(bodies) > 1:
                error.args = (f"{error}, in request {part} of {len(bodies)}",)
            raise
    sent = {"to": name, "status": status, "records": len(current), "requests": len(bodies)}
    return sent if len(current) == len(rows) else {**sent, "left_out": len(rows) - len(current)}


def _rows(operation: Operation, table: RestTable) -> list[Mapping[str, object]]:
    """What becomes a record each: prices, of each pair the last one, or the message itself."""
    payload = operation.payload
    message: dict[str, object] = {name: payload.get(name) for name in ("recipient", "title", "body")}
    if not table.wants_prices:
        return [message]
    data: Any = payload.get("data") or {}
    prices = data.get("prices", [])
    if not isinstance(prices, list) or not all(isinstance(price, Mapping) for price in prices):
        raise OperationFailed("data of the message holds no list of prices", is_permanent=True)
    return list({_pair(price): {**price, **message} for price in prices}.values())


def _pair(price: Mapping[str, object]) -> tuple[str, str]:
    return str(price.get("data_type")), str(price.get("symbol"))
