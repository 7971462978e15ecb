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
from typing import TYPE_CHECKING

from pydantic import SecretStr

from pricing_pipeline.db.query_loader import query
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.errors import PricingError, UnknownToken

if TYPE_CHECKING:
    from sqlalchemy import Connection, RowMapping

_SHAPE = re.compile("pp_[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True)
class ApiToken:
    """A token without its secret. `user_id` is the user that it acts for; None = it names one in each request.

    Times are UTC; `last_used_at` is exact to a minute, None = never used. `expires_at` None: it lasts until it is
    removed; `seconds_left` until then, when it was read, are negative after it has expired.
    """

    token_id: int
    name: str
    scopes: frozenset[Scope]
    user_id: str | None
    created_at: datetime
    last_used_at: datetime | None
    expires_at: datetime | None
    seconds_left: float | None

    @property
    def has_expired(self) -> bool:
        """Whether it had expired when it was read."""
        return self.seconds_left is not None and self.seconds_left <= 0

    def allows(self, scope: Scope) -> bool:
        """Whether it may do what needs this scope."""
        return scope in self.scopes or Scope.ADMIN in self.scopes


def add(
    connection: Connection,
    name: str,
    scopes: Collection[Scope],
    user_id: str | None,
    hours: float | None = None,
) -> SecretStr:
    """Make a token that lasts so many hours, or until it is removed. Return it: it cannot be shown again.

    It takes the place of one of the same name that has expired. Raises PricingError when the name is taken. Tokens that
    expired 30 days ago are removed.
    """
    connection.execute(query("api_tokens.forget"))
    token = SecretStr(f"pp_{secrets.token_urlsafe(32)}")
    parameters = {
        "name": name,
        "secret_hash": hash_of(token.get_secret_value()),
        "scopes": sorted(scopes),
        "user_id": user_id,
        "seconds": None if hours is None else hours * 3600,
    }
    if connection.execute(query("api_tokens.add"), parameters).scalar_one_or_none() is None:
        raise PricingError(
            f"a token {name!r} is there already. Choose another name, or remove that one: "
            f"pricing-pipeline token remove {name}"
        )
    return token


def by_hash(connection: Connection) -> dict[bytes, ApiToken]:
    """All tokens, also expired ones, by name, under what `hash_of` gives for them."""
    rows = connection.execute(query("api_tokens.all")).mappings()
    return {bytes(row["secret_hash"]): _token(row) for row in rows}


def stored(connection: Connection) -> list[ApiToken]:
    """All tokens, also expired ones, by name."""
    return list(by_hash(connection).values())


def remove(connection: Connection, name: str) -> None:
    """Remove a token: requests with it are refused from then on. Raises UnknownToken."""
    if connection.execute(query("api_tokens.remove"), {"name": name}).scalar_one_or_none() is None:
        names = ", ".join(token.name for token in stored(connection)) or "none yet"
        raise UnknownToken(f"no token is called {name!r}. There are: {names}.")


def note_uses(connection: Connection, token_ids: Sequence[int]) -> None:
    """Note that requests have just come with these tokens."""
    connection.execute(query("api_tokens.note_uses"), {"token_ids": token_ids})


def hash_of(token: str) -> bytes | None:
    """Under what a token is stored; None for a text that can be no token."""
    return hashlib.sha256(token.encode()).digest() if _SHAPE.fullmatch(token) else None


def _token(row: RowMapping) -> ApiToken:
    facts = {name: value for name, value in row.items() if name != "secret_hash"}
    return ApiToken(**facts | {"scopes": frozenset(map(Scope, facts["scopes"]))})
