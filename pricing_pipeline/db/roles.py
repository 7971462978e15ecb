"""Check that owner and worker have separate rights, and give the SQL for an administrator if not.

`grants.sql` has the rights themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pricing_pipeline.db.query_loader import query

if TYPE_CHECKING:
    from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class RoleFault:
    """A right of a connection that a worker does not need, and the SQL with which an administrator removes it."""

    fault: str
    remedy: str


def role_faults(connection: Connection) -> list[RoleFault]:
    """Why this connection has more than a worker's rights; empty if the roles are separate."""
    return [RoleFault(row.fault, row.remedy) for row in connection.execute(query("roles.faults"))]
