"""Rate limits and quota of providers, shared by all workers through the database."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, text

from pricing_pipeline.db.query_loader import named


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a provider still allows. Bytes are of the last 720 hours; units are the provider's own."""

    provider: str
    quota_bytes: int
    used_bytes: int
    units_left: int
    units_limit: int | None
    blocked_seconds: float | None
    blocked_reason: str | None

    @property
    def quota_left_bytes(self) -> int:
        return max(0, self.quota_bytes - self.used_bytes)


def settle(
    connection: Connection,
    call_id: int,
    outcome: str,
    *,
    http_status: int | None,
    wire_bytes: int,
    error: str | None = None,
) -> None:
    """Close a call and book the bytes that crossed the wire, once."""
    connection.execute(
        text(named("limits.settle")),
        {
            "call_id": call_id,
            "outcome": outcome,
            "http_status": http_status,
            "wire_bytes": wire_bytes,
            "error": error,
        },
    )


def throttle(connection: Connection, provider: str, retry_after: float | None, reason: str) -> float:
    """Stop all workers' calls to a provider for a while; returns the pause in seconds."""
    parameters = {"provider": provider, "retry_after": retry_after, "reason": reason}
    return float(connection.execute(text(named("limits.throttle")), parameters).scalar_one())


def unthrottle(connection: Connection, provider: str) -> None:
    """The provider answers again: forget its growing pause."""
    connection.execute(text(named("limits.unthrottle")), {"provider": provider})


def allowances(connection: Connection) -> list[Allowance]:
    """What each active provider still allows."""
    return [Allowance(**row) for row in connection.execute(text(named("limits.quota"))).mappings()]
