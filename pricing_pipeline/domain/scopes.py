"""The scopes of tokens of the HTTP API."""

from __future__ import annotations

from enum import StrEnum


class Scope(StrEnum):
    """A right that a token gives. `admin` includes the others."""

    READ = "read"
    """Prices, history, and who serves them."""
    WATCH = "watch"
    """Heartbeats and holdings."""
    OPERATE = "operate"
    """The queue, the quarantine, backfills, alerts."""
    ADMIN = "admin"
