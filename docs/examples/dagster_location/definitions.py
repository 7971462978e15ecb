"""A code location beside the pipeline's. What it makes follows new prices, and nothing else."""

from decimal import Decimal

import dagster as dg
import pandas as pd

from pricing_pipeline.dagster import PriceHistoryIOManager, PricingReader

QUOTES = dg.AssetKey(["latest_price", "equity_quote"])
BARS = dg.AssetKey(["price_history", "equity_daily"])
MONTHS = dg.MonthlyPartitionsDefinition("2010-01-01", end_offset=1)
SHARES = {"AAPL": 10, "IBM": 4}
# Dagster repeats a run that fails. What follows changes would otherwise be old until the next one.
REPEATED = {"dagster/max_retries": "3"}

condition = dg.AutomationCondition
# A run after each change of an upstream asset, in any month. eager() is only for the newest month, and
# forgets a change that comes while its run is on the way.
EACH_CHANGE = (
    condition.any_deps_match(condition.newly_updated()).since(condition.newly_requested())
    & ~condition.any_deps_missing()
    & ~condition.in_progress()
)

# The pipeline's own asset: this location must know that it has months, and which one is the first here.
bars_by_month = dg.AssetSpec(BARS, partitions_def=MONTHS)


@dg.asset(
    partitions_def=MONTHS,
    ins={"bars": dg.AssetIn(BARS, input_manager_key="price_history")},
    automation_condition=EACH_CHANGE,
)
def month_ends(bars: pd.DataFrame) -> pd.DataFrame:
    """The last close of each share in a month."""
    return bars.groupby("symbol", as_index=False).last()[["symbol", "observed_at", "close"]]


@dg.asset(deps=[QUOTES], automation_condition=condition.eager())
def portfolio_value(prices: PricingReader) -> dg.MaterializeResult[None]:
    """What the shares are worth, to the last digit."""
    quotes = prices.latest("equity_quote", list(SHARES)).pandas()
    value = sum((SHARES[row.symbol] * row.price for row in quotes.itertuples() if row.currency == "USD"), Decimal(0))
    return dg.MaterializeResult(metadata={"value": str(value)})


@dg.asset_check(asset=portfolio_value)
def every_price_is_fresh(prices: PricingReader) -> dg.AssetCheckResult:
    """A value of old prices is not a value of today."""
    quotes = prices.latest("equity_quote", list(SHARES)).pandas()
    fresh = set(quotes.loc[quotes["state"] == "fresh", "symbol"])
    return dg.AssetCheckResult(passed=fresh == SHARES.keys(), metadata={"not_fresh": sorted(SHARES.keys() - fresh)})


@dg.op
def say_what_came(context: dg.OpExecutionContext, prices: PricingReader) -> None:
    """Tell the log the newest prices."""
    for row in prices.latest("equity_quote").pandas().itertuples():
        context.log.info(f"{row.symbol} {row.price} {row.currency}")


@dg.job(tags=REPEATED)
def tell() -> None:
    """For what is no asset: a message, a cache, a call to another program."""
    say_what_came()


@dg.asset_sensor(asset_key=QUOTES, job=tell, default_status=dg.DefaultSensorStatus.RUNNING)
def on_new_quotes(context: dg.SensorEvaluationContext, _event: dg.EventLogEntry) -> dg.RunRequest:
    """One run for what came since the last tick."""
    return dg.RunRequest(run_key=context.cursor)


_prices = PricingReader(url=dg.EnvVar("PRICING_READER_URL"))

defs = dg.Definitions(
    assets=[bars_by_month, month_ends, portfolio_value],
    asset_checks=[every_price_is_fresh],
    jobs=[tell],
    sensors=[
        on_new_quotes,
        # Dagster's own sensor for conditions is off until somebody turns it on.
        dg.AutomationConditionSensorDefinition(
            "follow_prices",
            target=dg.AssetSelection.all(),
            default_status=dg.DefaultSensorStatus.RUNNING,
            run_tags=REPEATED,
        ),
    ],
    # A process less for each run: its steps are short.
    executor=dg.in_process_executor,
    resources={"prices": _prices, "price_history": PriceHistoryIOManager(prices=_prices)},
)
