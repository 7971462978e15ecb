"""PriceHistoryIOManager: the months that an asset of others is made from, as the frame that it asks for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import Any

import dagster as dg
import pandas as pd
import pytest

from pricing_pipeline.dagster import PriceHistoryIOManager, PricingReader
from pricing_pipeline.errors import PricingError
from pricing_pipeline_tests.fixtures.core import DAILY, Core, midnight
from pricing_pipeline_tests.fixtures.dagster import an_empty_instance
from pricing_pipeline_tests.fixtures.database import TestServer
from pricing_pipeline_tests.fixtures.logins import a_login

MONTHS = dg.MonthlyPartitionsDefinition("2020-01-01", "2020-07-01")
UPSTREAM = dg.AssetSpec(["price_history", DAILY], partitions_def=MONTHS)
DAYS = [
    date(2020, 1, 31),
    date(2020, 2, 1),
    date(2020, 2, 29),
    date(2020, 3, 31),
    date(2020, 5, 4),
    date(2020, 7, 1),
]

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")


@pytest.fixture
def manager(
    server: TestServer, database_url: str, core: Core, monkeypatch: pytest.MonkeyPatch
) -> Iterator[PriceHistoryIOManager]:
    """An IO manager of a login that may only read, on a history of two shares."""
    for number, symbol in enumerate(("AAPL", "IBM")):
        for place, day in enumerate(DAYS):
            core.rows(
                "INSERT INTO pricing.price_history (data_type, symbol, observed_at, amount, scale, provider, call_id,"
                " fetched_at) VALUES ('equity_daily', :symbol, :at, :amount, 3, 'twelvedata', 1, :at)",
                symbol=symbol,
                at=midnight(day),
                amount=100_001 + 10_000 * number + place,
            )
    with a_login(server, database_url, "pricing_reader") as (_, url):
        monkeypatch.setenv("URL_OF_THEIRS", url)
        yield PriceHistoryIOManager(prices=PricingReader(url=dg.EnvVar("URL_OF_THEIRS")))


def loaded(
    manager: PriceHistoryIOManager, asset: dg.AssetsDefinition, upstream: dg.AssetSpec = UPSTREAM, **how: Any
) -> dg.ExecuteInProcessResult:
    """The run that makes an asset, which returns what it was given."""
    definitions = dg.Definitions(
        assets=[upstream, asset], resources={"history": manager, "io_manager": dg.mem_io_manager}
    )
    instance = an_empty_instance()
    return definitions.resolve_implicit_global_asset_job_def().execute_in_process(instance=instance, **how)


def days_of(frame: pd.DataFrame) -> list[tuple[str, date, Decimal]]:
    return [
        (symbol, at.date(), close)
        for symbol, at, close in zip(frame["symbol"], frame["observed_at"], frame["close"], strict=True)
    ]


def stored(*days: date) -> list[tuple[str, date, Decimal]]:
    return [
        (symbol, day, Decimal(100_001 + 10_000 * number + DAYS.index(day)).scaleb(-3))
        for number, symbol in enumerate(("AAPL", "IBM"))
        for day in days
    ]


def an_asset(
    key: list[str] = ["price_history", DAILY],  # noqa: B006
    annotation: Any = pd.DataFrame,
    metadata: dict[str, Any] | None = None,
    mapping: dg.PartitionMapping | None = None,
    **options: Any,
) -> dg.AssetsDefinition:
    def made(values: Any) -> dg.Output[Any]:
        return dg.Output(values, metadata={"kind": type(values).__name__})

    made.__annotations__ = {"values": annotation} if annotation is not None else {}
    wanted = dg.AssetIn(key=key, input_manager_key="history", metadata=metadata, partition_mapping=mapping)
    return dg.asset(name="made", ins={"values": wanted}, **options)(made)


def test_g8_a_month_of_theirs_gets_the_same_month_of_ours(manager: PriceHistoryIOManager) -> None:
    by_month = an_asset(partitions_def=MONTHS)
    for month, days in (("2020-02-01", DAYS[1:3]), ("2020-04-01", [])):
        run = loaded(manager, by_month, partition_key=month)
        assert days_of(run.output_for_node("made")) == stored(*days)


def test_g8_an_input_may_name_symbols_and_a_basis(core: Core, manager: PriceHistoryIOManager) -> None:
    core.rows(
        "INSERT INTO pricing.corporate_actions (asset_class, symbol, ex_on, kind, new_shares, old_shares, provider,"
        " call_id, recorded_at) VALUES ('equity', 'AAPL', '2020-03-01', 'split', 2, 1, 'fmp', 1, '2020-01-01')"
    )
    asked = an_asset(metadata={"symbols": ["aapl"], "adjust": "splits"})
    found = loaded(manager, asked).output_for_node("made")
    halved = [(symbol, day, close / 2 if day < date(2020, 3, 1) else close) for symbol, day, close in stored(*DAYS[:5])]
    assert days_of(found) == halved[:5]


def test_g8_a_key_with_a_prefix_is_the_same_history(manager: PriceHistoryIOManager) -> None:
    ours = dg.AssetSpec(["prices", "of", "theirs", *UPSTREAM.key.path], partitions_def=MONTHS)
    found = loaded(manager, an_asset(key=list(ours.key.path)), ours).output_for_node("made")
    assert days_of(found) == stored(*DAYS[:5])


def test_g8_what_it_cannot_load_is_told_in_a_sentence(manager: PriceHistoryIOManager) -> None:
    for asset, upstream, words in [
        (
            an_asset(key=["latest_price", DAILY]),
            dg.AssetSpec(["latest_price", DAILY]),
            "which is not a price history",
        ),
        (an_asset(key=["price_history"]), dg.AssetSpec("price_history"), "which is not a price history"),
        (an_asset(annotation=dict[str, int]), UPSTREAM, "Annotate it as pandas.DataFrame, polars"),
        (an_asset(metadata={"symbol": "AAPL"}), UPSTREAM, "has symbol; it may have symbols and adjust"),
        (
            an_asset(key=["price_history", "nothing"]),
            dg.AssetSpec(["price_history", "nothing"]),
            "no active data type",
        ),
    ]:
        with pytest.raises(PricingError, match=words):
            loaded(manager, asset, upstream)


def test_g8_a_month_is_not_made_of_all_months_unnoticed(manager: PriceHistoryIOManager) -> None:
    """A code location that does not know our months cannot ask for one of them."""
    with pytest.raises(PricingError, match="has no months here, so all of it would be loaded") as refused:
        loaded(manager, an_asset(partitions_def=MONTHS), dg.AssetSpec(UPSTREAM.key), partition_key="2020-02-01")
    assert "dg.MonthlyPartitionsDefinition(" in str(refused.value)


def test_g8_nobody_writes_prices_through_it(core: Core, manager: PriceHistoryIOManager) -> None:
    rows = core.one("SELECT count(*) FROM pricing.price_history")

    @dg.asset(key=["price_history", DAILY], io_manager_key="history")
    def forged() -> int:
        return 1

    with pytest.raises(PricingError, match=r"^price_history/equity_daily cannot be stored as price history: the pipe"):
        dg.materialize([forged], resources={"history": manager})
    assert core.one("SELECT count(*) FROM pricing.price_history") == rows
