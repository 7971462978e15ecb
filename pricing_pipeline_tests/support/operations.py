"""Operations that nobody has claimed, for tests of channels, which know no database."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID, uuid4

from pricing_pipeline.operations.operation_queue import Operation


def an_operation(*, key: UUID | None = None, attempt: int = 1, seconds: int = 30) -> Operation:
    return Operation(
        id=7,
        operation_type="alert",
        payload={"recipient": "ann", "title": "AAPL is late", "body": "for an hour"},
        idempotency_key=key or uuid4(),
        attempt=attempt,
        max_attempts=5,
        time_limit_seconds=seconds,
        enqueued_at=datetime(2026, 11, 20, 15, 0, tzinfo=UTC),
        claim_token=uuid4(),
    )
