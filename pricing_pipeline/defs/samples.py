"""Small tables and plots of a data type's stored data, shown with its assets."""

from collections.abc import Callable, Mapping, Sequence

from sqlalchemy import Connection

from pricing_pipeline.db.query_loader import query
from pricing_pipeline.defs.plots import occupancy_plot, price_plot, spread_plot
from pricing_pipeline.defs.tables import Metadata, named_table
from pricing_pipeline.domain.data_types import Contents, DataType, Fetcher
from pricing_pipeline.prices import documents, price_reader, quality

SAMPLE_ROWS = 8
"""Rows of each table."""


def sample(connection: Connection, type_: DataType) -> Metadata:
    """A table of a data type's latest values; None if nothing is stored."""
    return _TABLES[type_.contents](connection, type_)


def plot(connection: Connection, type_: DataType) -> Metadata:
    """A plot of the most-watched pair; None if there is too little to draw."""
    return _PLOTS[type_.contents](connection, type_)


def latest_table(rows: Sequence[price_reader.SampleRow]) -> Metadata:
    """A table of latest prices."""
    cells: list[list[object]] = [
        [
            row.symbol,
            f"{row.price} {row.currency or ''}".strip(),
            f"{row.observed_at:%Y-%m-%d %H:%M:%S}",
            row.provider,
        ]
        for row in rows
    ]
    return named_table("latest_prices", ["symbol", "price", "observed (UTC)", "provider"], cells)


def _prices(connection: Connection, type_: DataType) -> Metadata:
    return latest_table(price_reader.sample(connection, type_.data_type, SAMPLE_ROWS))


def _documents(connection: Connection, type_: DataType) -> Metadata:
    cells: list[list[object]] = [
        [row.symbol, row.period or "", f"{row.recorded_at:%Y-%m-%d %H:%M:%S}", row.provider]
        for row in documents.sample(connection, type_.data_type, SAMPLE_ROWS)
    ]
    return named_table("latest_documents", ["symbol", "period", "since (UTC)", "provider"], cells)


def _inventory(connection: Connection, type_: DataType) -> Metadata:
    parameters = {"data_type": type_.data_type, "at_most": SAMPLE_ROWS}
    cells: list[list[object]]
    if type_.fetcher is Fetcher.PRODUCT:
        cells = [
            [row.symbol, row.name or "", row.time_zone or "", row.options, row.categories or ""]
            for row in connection.execute(query("samples.products"), parameters)
        ]
        return named_table("products", ["symbol", "name", "time zone", "options", "categories"], cells)
    cells = [
        [
            row.symbol,
            row.name or "",
            f"{row.first_day} to {row.last_day}",
            row.slots,
            row.bookable,
            _places(row.remaining, row.capacity),
            f"{row.fetched_at:%Y-%m-%d %H:%M:%S}",
        ]
        for row in connection.execute(query("samples.inventory"), parameters)
    ]
    header = ["symbol", "name", "days", "slots", "bookable", "places left", "confirmed (UTC)"]
    return named_table("latest_slots", header, cells)


def _places(remaining: int | None, capacity: int | None) -> str:
    if remaining is None:
        return "not said"
    return str(remaining) if capacity is None else f"{remaining} of {capacity}"


def _commodities(connection: Connection, type_: DataType) -> Metadata:
    cells: list[list[object]] = [
        [
            row.commodity,
            row.from_terminal,
            row.to_terminal,
            f"{row.buy:f}",
            f"{row.sell:f}",
            "not said" if row.quantity is None else row.quantity,
            "not said" if row.total is None else f"{row.total:f}",
        ]
        for row in connection.execute(query("samples.trade_routes"), {"at_most": SAMPLE_ROWS})
    ]
    header = ["commodity", "buy at", "sell at", "costs", "brings", "SCU", "earns"]
    return named_table("best_routes", header, cells)


def _price_plot(connection: Connection, type_: DataType) -> Metadata:
    return price_plot(quality.plot_series(connection, type_.data_type))


def _no_plot(connection: Connection, type_: DataType) -> Metadata:
    return {}


def _occupancy_plot(connection: Connection, type_: DataType) -> Metadata:
    if type_.fetcher is Fetcher.PRODUCT:
        return {}
    of_type = {"data_type": type_.data_type}
    product = connection.execute(query("samples.product_with_places"), of_type).one_or_none()
    if product is None:
        return {}
    of_product = {"data_type": type_.data_type, "symbol": product.symbol}
    days = connection.execute(query("samples.days_of_product"), of_product).all()
    return occupancy_plot(product.name or product.symbol, days)


def _spread_plot(connection: Connection, type_: DataType) -> Metadata:
    best = connection.execute(query("samples.trade_routes"), {"at_most": 1}).one_or_none()
    if best is None:
        return {}
    of_commodity = {"commodity_id": best.commodity_id}
    terminals = connection.execute(query("samples.terminals_of_commodity"), of_commodity).all()
    return spread_plot(best.commodity, terminals)


_TABLES: Mapping[Contents, Callable[[Connection, DataType], Metadata]] = {
    Contents.PRICES: _prices,
    Contents.DOCUMENTS: _documents,
    Contents.INVENTORY: _inventory,
    Contents.COMMODITIES: _commodities,
}
_PLOTS: Mapping[Contents, Callable[[Connection, DataType], Metadata]] = {
    Contents.PRICES: _price_plot,
    Contents.DOCUMENTS: _no_plot,
    Contents.INVENTORY: _occupancy_plot,
    Contents.COMMODITIES: _spread_plot,
}
