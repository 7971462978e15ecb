"""Tokens of the HTTP API: make, find, list and remove them.

A token has 256 random bits and is shown once. The database has its SHA-256, from which nobody can make the token.
The token of a feed may be in a URL, so it reads the prices of its own pairs and nothing else.
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

from pricing_pipeline.db.query_loader import call_sql, query
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.errors import PricingError, UnknownToken

if TYPE_CHECKING:
    from sqlalchemy import Connection, RowMapping

_SHAPE = re.compile("pp_[A-Za-z0-9_-]{43}")

FEED_DAYS = 90
"""So long the token of a feed lasts, unless somebody says otherwise."""
MOST_PAIRS = 500
"""Pairs of a feed: what one request for prices reads."""

Pair = tuple[str, str]
"""A data type and a symbol."""


@dataclass(frozen=True, slots=True)
class ApiToken:
    """A token without its secret. `user_id` is the user that it acts for; None = each request names one.
    A feed's token has no scopes; without `user_id` it acts for nobody.

    Times are UTC; `last_used_at` is exact to a minute, None = never used. `expires_at` None: it lasts until it is
    removed; `seconds_left` until then, when it was read, are negative after it has expired.
    """

    token_id: int
    name: str
    scopes: frozenset[Scope]
    is_feed: bool
    user_id: str | None
    list: str | None
    """Of a feed: the list of its user that it reads; None = it has pairs of its own."""
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
    """Make a token that lasts a number of hours, or until it is removed. Return it: it cannot be shown again.

    It takes the place of one of the same name that has expired. Raises PricingError when the name is taken. Tokens that
    expired 30 days ago are removed.
    """
    _, token = _add(connection, name, scopes, user_id, None, hours, is_feed=False)
    return token


def add_feed(
    connection: Connection,
    name: str,
    pairs: Collection[Pair],
    user_id: str | None,
    hours: float | None = FEED_DAYS * 24,
) -> SecretStr:
    """Make a token that reads the prices and histories of these pairs, as `add` makes others; None = for ever.

    Symbols are spelled as their instruments are. Its reads request prices for `user_id`, within the user's caps.
    """
    if not 0 < len(pairs) <= MOST_PAIRS:
        raise PricingError(f"a feed has 1 to {MOST_PAIRS} pairs of a data type and a symbol, not {len(pairs)}")
    token_id, token = _add(connection, name, (), user_id, None, hours, is_feed=True)
    parameters = {
        "token_id": token_id,
        "data_types": [data_type for data_type, _ in pairs],
        "symbols": [symbol for _, symbol in pairs],
    }
    connection.execute(query("api_tokens.fill_feed"), parameters)
    return token


def add_feed_of_list(
    connection: Connection, name: str, user_id: str, list_name: str, hours: float | None = FEED_DAYS * 24
) -> SecretStr:
    """Make a token that reads what a list of this user has at the time of each read, and watches it, as `add_feed`."""
    _, token = _add(connection, name, (), user_id, list_name, hours, is_feed=True)
    return token


def feed(connection: Connection, token_id: int) -> list[Pair]:
    """The pairs that the token of a feed reads, by data type and symbol."""
    rows = connection.execute(query("api_tokens.feed"), {"token_id": token_id})
    return [(row.data_type, row.symbol) for row in rows]


def _add(
    connection: Connection,
    name: str,
    scopes: Collection[Scope],
    user_id: str | None,
    list_name: str | None,
    hours: float | None,
    *,
    is_feed: bool,
) -> tuple[int, SecretStr]:
    connection.execute(query("api_tokens.forget"))
    token = SecretStr(f"pp_{secrets.token_urlsafe(32)}")
    parameters = {
        "name": name,
        "secret_hash": hash_of(token.get_secret_value()),
        "scopes": sorted(scopes),
        "is_feed": is_feed,
        "user_id": user_id,
        "list": list_name,
        "seconds": None if hours is None else hours * 3600,
    }
    token_id = connection.execute(query("api_tokens.add"), parameters).scalar_one_or_none()
    if token_id is None:
        raise PricingError(
            f"a token {name!r} already exists. Choose another name, or remove that one: "
            f"pricing-pipeline token remove {name}"
        )
    connection.execute(query("api_tokens.empty_feed"), {"token_id": token_id})  # of the one that has expired
    return token_id, token


def by_hash(connection: Connection) -> dict[bytes, ApiToken]:
    """All tokens, including expired ones, in order of name, by their `hash_of`."""
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
    call_sql(connection, "note_token_uses", token_ids)


def hash_of(token: str) -> bytes | None:
    """The hash under which a token is stored; None for a text that cannot be a token."""
    return hashlib.sha256(token.encode()).digest() if _SHAPE.fullmatch(token) else None


def _token(row: RowMapping) -> ApiToken:
    facts = {name: value for name, value in row.items() if name != "secret_hash"}
    return ApiToken(**facts | {"scopes": frozenset(map(Scope, facts["scopes"]))})
