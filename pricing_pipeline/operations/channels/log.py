"""The channel of the sample. Nothing leaves the machine: the result shows what another channel would have sent."""

from __future__ import annotations

from pricing_pipeline.operations.operation_queue import Operation


def send_to_log(operation: Operation) -> dict[str, object]:
    """What would have been sent, which is kept as the operation's result."""
    payload = operation.payload
    return {"to": payload["recipient"], "title": payload["title"], "body": payload["body"]}
