"""Where the prices of a database come from: the sandbox or the real providers, never both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pricing_pipeline.db.query_loader import call_sql
from pricing_pipeline.errors import SettingsError
from pricing_pipeline.settings import Settings, kind_asked_for

if TYPE_CHECKING:
    from sqlalchemy import Engine


def require_prices_from(engine: Engine, settings: Settings) -> None:
    """Check that a database holds prices from the source in the settings; its first worker decides.

    Raises SettingsError if it belongs to the other kind. Several hosts share a database, and a home of one of them
    knows nothing of the others.
    """
    wanted = kind_asked_for(settings)
    with engine.begin() as connection:
        decided = call_sql(connection, "decide_prices_from", wanted).scalar_one()
    if decided != wanted:
        raise SettingsError(
            f"the prices of this database come from the {decided}, and PRICING_SANDBOX="
            f"{str(settings.sandbox).lower()} asks for the {wanted}; their prices must not mix. "
            "Set PRICING_DATABASE_URL to another database, or PRICING_SANDBOX as it was."
        )
