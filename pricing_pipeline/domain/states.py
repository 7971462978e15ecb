"""The states of rows that wait for a worker or a person, as commands and the HTTP API name them."""

from __future__ import annotations

from enum import StrEnum


class TaskStatus(StrEnum):
    """The states of a task."""

    PENDING = "pending"
    PROCESSING = "processing"
    SCHEDULED = "scheduled"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class OperationStatus(StrEnum):
    """The states of a side effect."""

    PENDING = "pending"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Decided(StrEnum):
    """The states of a quarantined value, and all of them."""

    QUARANTINED = "quarantined"
    RELEASED = "released"
    REJECTED = "rejected"
    ALL = "all"


LIVE_AND_FAILED_TASKS = [TaskStatus.PENDING, TaskStatus.PROCESSING, TaskStatus.SCHEDULED, TaskStatus.FAILED]
"""What people look at: what is still to happen, and what did not."""
LIVE_AND_FAILED_OPERATIONS = [OperationStatus.PENDING, OperationStatus.PROCESSING, OperationStatus.FAILED]
