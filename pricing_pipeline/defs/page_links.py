"""Links from Dagster to the operations page, which shows more. None while the page's address is unknown."""

import dagster as dg

from pricing_pipeline.defs.tables import Metadata
from pricing_pipeline.processes import home
from pricing_pipeline.settings import Settings


def page_address(settings: Settings) -> str | None:
    """The page's address for people; None if unknown. Reads only files of the home."""
    return settings.page_url or home.urls(settings.home).get("api")


def page_link(address: str | None, place: str) -> Metadata:
    """A link to a place of the page at an address, by the id of its element."""
    if address is None:
        return {}
    return {"operations_page": dg.MetadataValue.url(f"{address.rstrip('/')}/#{place}")}
