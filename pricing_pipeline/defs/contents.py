"""How Dagster shows the assets of each kind of contents: groups, tables, columns and sentences."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import dagster as dg

from pricing_pipeline.domain.data_types import Contents, DataType, Fetcher

_HISTORY_COLUMNS = dg.TableSchema(
    columns=[
        dg.TableColumn("symbol", "text", description="The instrument's symbol."),
        dg.TableColumn("observed_at", "timestamptz", description="Source's time; midnight UTC for daily values."),
        dg.TableColumn("amount", "bigint", description="Close, NAV or quote in minor units: price x 10^scale."),
        dg.TableColumn("open_amount", "bigint", description="Open, where the source has bars."),
        dg.TableColumn("high_amount", "bigint", description="High, where the source has bars."),
        dg.TableColumn("low_amount", "bigint", description="Low, where the source has bars."),
        dg.TableColumn("scale", "smallint", description="Decimals of the amounts."),
        dg.TableColumn("currency", "text", description="ISO 4217, or a coin."),
        dg.TableColumn("volume", "numeric", description="Traded volume, where the source has it."),
        dg.TableColumn("provider", "text", description="Who said so."),
        dg.TableColumn("call_id", "bigint", description="The call that brought it, in pricing.calls."),
        dg.TableColumn("fetched_at", "timestamptz", description="When it was stored."),
        dg.TableColumn("adjustment", "text", description="raw = as traded; splits = divided by later splits."),
        dg.TableColumn(
            "quality",
            "text",
            description="The parts of the bar that cannot be true and were dropped, and why.",
        ),
        dg.TableColumn("source_text", "text", description="The source's spelling, where it is not the stored digits."),
    ]
)
_LATEST_COLUMNS = dg.TableSchema(
    columns=[
        dg.TableColumn("symbol", "text", description="The instrument's symbol."),
        dg.TableColumn("amount", "bigint", description="Price in minor units: price x 10^scale."),
        dg.TableColumn("scale", "smallint", description="Decimals of the amount."),
        dg.TableColumn("currency", "text", description="ISO 4217, or a coin."),
        dg.TableColumn("observed_at", "timestamptz", description="Source's time."),
        dg.TableColumn("fetched_at", "timestamptz", description="When a provider last confirmed it."),
        dg.TableColumn("provider", "text", description="Who said so."),
        dg.TableColumn("call_id", "bigint", description="The call that brought it, in pricing.calls."),
        dg.TableColumn("source_text", "text", description="The price as the source spelled it."),
        dg.TableColumn("cache_ttl_minutes", "integer", description="TTL of this pair, if it has its own."),
        dg.TableColumn("price", "numeric", description="The price, exact: amount / 10^scale."),
    ]
)


_DOCUMENTS_COLUMNS = dg.TableSchema(
    columns=[
        dg.TableColumn("symbol", "text", description="Whom it is about."),
        dg.TableColumn("period", "date", description="The day it is filed under; -infinity for none."),
        dg.TableColumn("body", "jsonb", description="As it was checked; NULL = withdrawn."),
        dg.TableColumn("provider", "text", description="Who said so."),
        dg.TableColumn("call_id", "bigint", description="The call that brought it, in pricing.calls."),
        dg.TableColumn("recorded_at", "timestamptz", description="Since when we believe it."),
    ]
)
_DOCUMENT_COLUMNS = dg.TableSchema(
    columns=[
        dg.TableColumn("symbol", "text", description="Whom they are about."),
        dg.TableColumn("documents", "jsonb", description="Current documents, the newest period first."),
        dg.TableColumn("fetched_at", "timestamptz", description="When a provider last confirmed them."),
        dg.TableColumn("provider", "text", description="Who did."),
        dg.TableColumn("call_id", "bigint", description="The call that was answered, in pricing.calls."),
        dg.TableColumn("cache_ttl_minutes", "integer", description="TTL of this pair, if it has its own."),
    ]
)


_CONFIRMED_COLUMNS = dg.TableSchema(
    columns=[
        dg.TableColumn("symbol", "text", description="The symbol."),
        dg.TableColumn("fetched_at", "timestamptz", description="When a provider last confirmed it."),
        dg.TableColumn("provider", "text", description="Who did."),
        dg.TableColumn("call_id", "bigint", description="The call that was answered, in pricing.calls."),
        dg.TableColumn("cache_ttl_minutes", "integer", description="TTL of this pair, if it has its own."),
    ]
)


@dataclass(frozen=True)
class Shown:
    """How Dagster shows the two assets of a data type, by the contents of the type.

    `table` is where its values are, with the data type at `{}`; `noun` names them, `latest` their current state in a
    sentence; `history` says how their past is kept. `file` has the rules.
    """

    noun: str
    latest: str
    history: str
    table: str
    stored_group: str
    latest_group: str
    file: str
    latest_columns: dg.TableSchema
    stored_columns: dg.TableSchema | None = None


SHOWN: Mapping[Contents, Shown] = {
    Contents.PRICES: Shown(
        noun="Prices",
        latest="The newest price",
        history="",
        table="pricing.price_history_{}",
        stored_group="price_history",
        latest_group="latest_price",
        file="db/functions/prices/prices.sql",
        latest_columns=_LATEST_COLUMNS,
        stored_columns=_HISTORY_COLUMNS,
    ),
    Contents.DOCUMENTS: Shown(
        noun="Documents",
        latest="The current documents",
        history="A changed document leaves a revision in pricing.revisions; there is nothing to backfill. ",
        table="pricing.documents",
        stored_group="documents",
        latest_group="latest_document",
        file="db/functions/prices/documents.sql",
        latest_columns=_DOCUMENT_COLUMNS,
        stored_columns=_DOCUMENTS_COLUMNS,
    ),
    Contents.INVENTORY: Shown(
        noun="Slots",
        latest="What can be booked now",
        history="A changed slot leaves a revision in pricing.revisions; its provider tells nothing of the past. ",
        table="pricing.slots",
        stored_group="inventory",
        latest_group="latest_inventory",
        file="db/functions/inventory/slots.sql",
        latest_columns=_CONFIRMED_COLUMNS,
    ),
    Contents.COMMODITIES: Shown(
        noun="Prices of commodities",
        latest="What is bought and sold now",
        history="A changed price leaves a revision in pricing.revisions. ",
        table="pricing.commodity_prices",
        stored_group="commodities",
        latest_group="latest_commodity",
        file="db/functions/commodities/prices.sql",
        latest_columns=_CONFIRMED_COLUMNS,
    ),
}
_PRODUCTS = replace(
    SHOWN[Contents.INVENTORY],
    noun="Products",
    latest="What is known of its options and categories",
    history="A changed product leaves a revision in pricing.revisions. ",
    table="pricing.products",
    file="db/functions/inventory/products.sql",
)


def shown(type_: DataType) -> Shown:
    """How Dagster shows a data type. One of products has tables of its own beside those of slots."""
    return _PRODUCTS if type_.fetcher is Fetcher.PRODUCT else SHOWN[type_.contents]
