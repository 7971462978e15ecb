"""Tokens of the HTTP API: make, find, list and remove them.

A token has 256 random bits and is shown once. The database has its SHA-256, from which nobody can make the token.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import SecretStr
from sqlalchemy import Connection, Row

from pricing_pipeline.db.query_loader import query
from pricing_pipeline.errors import PricingError, UnknownToken

_SHAPE = re.compile("pp_[A-Za-z0-9_-]{43}")


class Scope(StrEnum):
    """What a token allows. `admin` includes the others."""

    READ = "read"
    """Prices, history, and who serves them."""
    WATCH = "watch"
    """Heartbeats and holdings."""
    OPERATE = "operate"
    """The queue, the quarantine, backfills, alerts."""
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class ApiToken:
    """A token without its secret. `user_id` is the user that it acts for; None = it names one in each request.

    Times are UTC; `last_used_at` is exact to a minute, None = never used.
    """

    token_id: int
    name: str
    scopes: frozenset[Scope]
    user_id: str | None
    created_at: datetime
    last_used_at: datetime | None

    def allows(self, scope: Scope) -> bool:
        """Whether it may do what needs this scope."""
        return scope in self.scopes or Scope.ADMIN in self.scopes


def add(connection: Connection, name: str, scopes: Collection[Scope], user_id: str | None) -> SecretStr:
    """Make a token, and return it: it cannot be shown again. Raises PricingError when the name is taken."""
    token = SecretStr(f"pp_{secrets.token_urlsafe(32)}")
    parameters = {
        "name": name,
        "secret_hash": _hash(token.get_secret_value()),
        "scopes": sorted(scopes),
        "user_id": user_id,
    }
    if connection.execute(query("api_tokens.add"), parameters).scalar_one_or_none() is None:
        raise PricingError(
            f"a token {name!r} is there already. Choose another name, or remove that one: "
            f"pricing-pipeline token remove {name}"
        )
    return token


def find(connection: Connection, token: str) -> ApiToken | None:
    """What a token allows; None if it is none of ours."""
    if not _SHAPE.fullmatch(token):
        return None
    row = connection.execute(query("api_tokens.find"), {"secret_hash": _hash(token)}).one_or_none()
    return None if row is None else _token(row)


def stored(connection: Connection) -> list[ApiToken]:
    """All tokens, by name."""
    return [_token(row) for row in connection.execute(query("api_tokens.all"))]


def remove(connection: Connection, name: str) -> None:
    """Remove a token: requests with it are refused from then on. Raises UnknownToken."""
    if connection.execute(query("api_tokens.remove"), {"name": name}).scalar_one_or_none() is None:
        names = ", ".join(token.name for token in stored(connection)) or "none yet"
        raise UnknownToken(f"no token is called {name!r}. There are: {names}.")


def note_uses(connection: Connection, token_ids: Sequence[int]) -> None:
    """Note that requests have just come with these tokens."""
    connection.execute(query("api_tokens.note_uses"), {"token_ids": token_ids})


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _token(row: Row[Any]) -> ApiToken:
    facts = dict(row._mapping)
    return ApiToken(**facts | {"scopes": frozenset(map(Scope, facts["scopes"]))})
