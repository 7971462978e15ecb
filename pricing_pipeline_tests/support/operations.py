"""Operations that nobody has claimed, for tests of channels, which know no database."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID, uuid4

from pricing_pipeline.operations.operation_queue import Operation


def an_operation(
    *, key: UUID | None = None, attempt: int = 1, title: str = "AAPL is late", body: str = "for an hour"
) -> Operation:
    return Operation(
        id=7,
        operation_type="alert",
        payload={"recipient": "ann", "title": title, "body": body},
        idempotency_key=key or uuid4(),
        attempt=attempt,
        max_attempts=5,
        time_limit_seconds=30,
        enqueued_at=datetime(2026, 11, 20, 15, 0, tzinfo=UTC),
        claim_token=uuid4(),
    )
