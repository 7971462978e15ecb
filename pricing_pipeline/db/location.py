"""Where the databases are: the settings' URLs, or the embedded server of the home."""

from __future__ import annotations

from pydantic import SecretStr

from pricing_pipeline.db.embedded import EmbeddedServer
from pricing_pipeline.db.engine import checked_url
from pricing_pipeline.settings import Settings


def worker_url(settings: Settings) -> str:
    """URL of the pricing database for everything but changes of tables and registry.

    Raises EmbeddedServerError when neither PRICING_DATABASE_URL is set nor a server was ever started here.
    """
    if settings.database_url is not None:
        return settings.database_url.get_secret_value()
    return EmbeddedServer(settings.home).url("pricing", "worker")


def listen_url(settings: Settings) -> str:
    """URL by which wake-ups come, past a pooler if there is one."""
    if settings.listen_url is not None:
        return _checked(settings.listen_url, "PRICING_LISTEN_URL")
    return worker_url(settings)


def replica_url(settings: Settings) -> str | None:
    """URL of a streaming replica that reads may use; None if none is set."""
    return None if settings.replica_url is None else _checked(settings.replica_url, "PRICING_REPLICA_URL")


def reader_url(settings: Settings) -> str:
    """URL for other people's assets that read prices. Raises what `worker_url` raises."""
    if settings.reader_url is not None:
        return _checked(settings.reader_url, "PRICING_READER_URL")
    return worker_url(settings)


def owner_url(settings: Settings) -> str:
    """URL of the pricing database with the right to change tables and the registry."""
    if settings.owner_url is not None:
        return settings.owner_url.get_secret_value()
    if settings.database_url is not None:
        return settings.database_url.get_secret_value()
    return EmbeddedServer(settings.home).url("pricing", "owner")


def _checked(url: SecretStr, setting: str) -> str:
    checked_url(url.get_secret_value(), setting)
    return url.get_secret_value()
