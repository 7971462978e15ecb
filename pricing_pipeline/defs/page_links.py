"""Links from Dagster to the operations page, which tells more. Nothing while nobody knows where people open it."""

import dagster as dg

from pricing_pipeline.defs.reports import Metadata
from pricing_pipeline.processes import home
from pricing_pipeline.settings import load_settings


def page_link(place: str) -> Metadata:
    """A link to a place of the page, by the id of its element. Looks into files of the home only."""
    settings = load_settings()
    address = settings.page_url or home.urls(settings.home).get("api")
    if address is None:
        return {}
    return {"operations_page": dg.MetadataValue.url(f"{address.rstrip('/')}/#{place}")}
