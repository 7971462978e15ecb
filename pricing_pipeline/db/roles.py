"""Whether the rights of owner and worker are apart, and what an administrator does when they are not.

The rights themselves are in `grants.sql`.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection

from pricing_pipeline.db.query_loader import query


@dataclass(frozen=True, slots=True)
class RoleFault:
    """Why a connection may do more than a worker needs, and the SQL with which an administrator ends that."""

    fault: str
    remedy: str


def role_faults(connection: Connection) -> list[RoleFault]:
    """What keeps this connection from being held to a worker's rights; empty when the roles are separated."""
    return [RoleFault(row.fault, row.remedy) for row in connection.execute(query("roles.faults"))]
