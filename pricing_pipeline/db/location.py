"""Where the databases are: the settings' URLs, or the embedded server of the home."""

from __future__ import annotations

from pricing_pipeline.db.embedded import EmbeddedServer
from pricing_pipeline.settings import Settings


def worker_url(settings: Settings) -> str:
    """URL of the pricing database for everything but changes of tables and registry.

    Raises EmbeddedServerError when neither PRICING_DATABASE_URL is set nor a server was ever started here.
    """
    if settings.database_url is not None:
        return settings.database_url.get_secret_value()
    return EmbeddedServer(settings.home).url("pricing", "worker")


def owner_url(settings: Settings) -> str:
    """URL of the pricing database with the right to change tables and the registry."""
    if settings.owner_url is not None:
        return settings.owner_url.get_secret_value()
    if settings.database_url is not None:
        return settings.database_url.get_secret_value()
    return EmbeddedServer(settings.home).url("pricing", "owner")
