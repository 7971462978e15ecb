"""Months of price history as the inputs of other people's assets.

No postponed annotations here: Dagster reads the fields of a resource when its class is made.
"""

from collections.abc import Iterable
from datetime import date, timedelta
from typing import Any

import dagster as dg

from pricing_pipeline.dagster.reader import Prices, PricingReader
from pricing_pipeline.domain.windows import next_month
from pricing_pipeline.errors import PricingError

_HISTORY = "price_history"
_OPTIONS = ("symbols", "adjust")


class PriceHistoryIOManager(dg.ConfigurableIOManager):
    """Loads the months of `price_history/<data_type>` that an asset uses, as the type of frame in its annotation.

    Without an annotation that is a frame of pandas. The input's metadata may name `symbols` (a list) and `adjust`.
    """

    prices: PricingReader

    def load_input(self, context: dg.InputContext) -> Any:
        """The values of the upstream's months, or all. Raises PricingError for an asset that is not a price history."""
        asset = context.asset_key.to_user_string()
        found = self._history(context)
        wanted = context.dagster_type.typing_type
        library = getattr(wanted, "__module__", "").partition(".")[0]
        match library, getattr(wanted, "__name__", ""):
            case ("typing", "Any") | ("pandas", "DataFrame"):
                return found.pandas()
            case "polars", "DataFrame":
                return found.polars()
            case "pyarrow", "Table":
                return found.arrow()
        raise PricingError(
            f"the input {context.name} is {asset}, which cannot be loaded as {wanted}. Annotate it as "
            "pandas.DataFrame, polars.DataFrame or pyarrow.Table."
        )

    def handle_output(self, context: dg.OutputContext, obj: object) -> None:
        """Raises PricingError: prices come from providers."""
        name = context.asset_key.to_user_string() if context.has_asset_key else context.name
        raise PricingError(
            f"{name} cannot be stored as price history: the pipeline alone writes prices, from what providers answer. "
            "Give the asset another IO manager, and this one to its input: dg.AssetIn(..., input_manager_key=...)."
        )

    def _history(self, context: dg.InputContext) -> Prices:
        asset, path = context.asset_key.to_user_string(), context.asset_key.path
        if path[-2:-1] != [_HISTORY]:
            raise PricingError(
                f"the input {context.name} is {asset}, which is not a price history. PriceHistoryIOManager loads "
                f"assets whose key ends with {_HISTORY}/<data type>."
            )
        options = context.definition_metadata or {}
        if unknown := sorted(options.keys() - {*_OPTIONS}):
            raise PricingError(
                f"the metadata of the input {context.name} has {', '.join(unknown)}; it may have "
                f"{' and '.join(_OPTIONS)}."
            )
        if context.has_asset_partitions:
            spans = _spans(map(date.fromisoformat, context.asset_partition_keys))
        elif context.has_partition_key:
            raise PricingError(
                f"the run is of {context.partition_key}, and {asset} has no months here, so all of it would be loaded. "
                f"Tell this code location of them: dg.AssetSpec({path}, partitions_def="
                'dg.MonthlyPartitionsDefinition("2020-01-01", end_offset=1)), with the first month that you need.'
            )
        else:
            spans = [(date(1, 1, 1), None)]
        return self.prices.history_of_spans(path[-1], options.get("symbols"), spans, adjust=options.get("adjust"))


def _spans(months: Iterable[date]) -> list[tuple[date, date | None]]:
    """Spans of days, each of as many months as follow one another."""
    spans: list[tuple[date, date | None]] = []
    for month in sorted(months):
        last = next_month(month) - timedelta(days=1)
        if spans and spans[-1][1] == month - timedelta(days=1):
            spans[-1] = (spans[-1][0], last)
        else:
            spans.append((month, last))
    return spans
