"""PricingReader: prices for other people's assets, exact in every library, and no secret in what Dagster keeps."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import dagster as dg
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pytest
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster._serdes import serialize_value
from sqlalchemy import make_url

from pricing_pipeline.dagster import PriceHistoryIOManager, PricingReader, reader
from pricing_pipeline.errors import (
    DatabaseError,
    InvalidAdjustment,
    InvalidCurrency,
    InvalidRange,
    PricingError,
    SettingsError,
    UnknownDataType,
)
from pricing_pipeline_tests.fixtures.core import DAILY, FX, QUOTE, Core
from pricing_pipeline_tests.fixtures.dagster import an_empty_instance
from pricing_pipeline_tests.fixtures.database import TestServer
from pricing_pipeline_tests.fixtures.logins import a_login
from pricing_pipeline_tests.support.patience import wait_until

VARIABLE = "URL_OF_THEIRS"
MONTH = {"first_day": date(2020, 2, 1), "last_day": date(2020, 2, 29)}


@pytest.fixture
def url(server: TestServer, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a login that may only read, in a variable of the environment."""
    with a_login(server, database_url, "pricing_reader") as (_, url):
        monkeypatch.setenv(VARIABLE, url)
        yield url


@pytest.fixture
def prices(url: str) -> PricingReader:
    return PricingReader(url=url)


def told(frame: Any) -> list[dict[str, Any]]:
    """The rows of a frame of any library, with None for what is missing and times in UTC."""
    if isinstance(frame, pd.DataFrame):
        rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    else:
        rows = frame.to_dicts() if isinstance(frame, pl.DataFrame) else frame.to_pylist()
    return [
        {
            name: value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value
            for name, value in row.items()
        }
        for row in rows
    ]


def test_g8_latest_prices_are_the_same_decimals_in_every_library(core: Core, prices: PricingReader) -> None:
    assert reader.dg is dg, "our package of that name hides nobody's"
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "IBM"), (DAILY, "IBM"))
    core.refresh(price="146.5500001")
    found = prices.latest(QUOTE)
    expected = [
        {"data_type": QUOTE, "symbol": symbol, "price": Decimal("146.5500001"), "currency": "USD"}
        for symbol in ("AAPL", "IBM")
    ]
    for rows in (told(found.pandas()), told(found.polars()), told(found.arrow())):
        assert [{name: row[name] for name in expected[0]} for row in rows] == expected
        assert {type(row["price"]) for row in rows} == {Decimal}
        assert {row["state"] for row in rows} == {"fresh"}
    assert found.polars().schema["price"] == pl.Decimal(18, 7)
    assert found.arrow().schema.field("price").type == pa.decimal128(18, 7)
    pandas, polars, arrow = (
        [row | {"age_seconds": None} for row in told(frame)]  # each read has its own
        for frame in (found.pandas(), found.polars(), found.arrow())
    )
    assert pandas == polars == arrow
    (row,) = told(prices.latest(QUOTE, ["ibm", "IBM"]).pandas())
    assert row["symbol"] == "IBM", "as its instrument is spelled, and once"
    core.heartbeat("ann", (QUOTE, "MSFT"))
    core.refresh()
    assert len(found.pandas()) == 3, "each call reads anew"


@pytest.mark.usefixtures("still")
def test_g8_e9_prices_in_another_currency_name_their_rate_in_every_library(core: Core, prices: PricingReader) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"), (FX, "EUR/USD"))
    core.refresh(price="4")
    for found in (prices.latest(QUOTE, currency="EUR"), prices.history(QUOTE, ["AAPL"], currency="EUR")):
        for rows in (told(found.pandas()), told(found.polars()), told(found.arrow())):
            (row,) = rows
            assert (row.get("price") or row["close"], row["currency"]) == (Decimal(1), "EUR")
            assert row["rate"].startswith("EUR/USD 4")
    (row,) = told(prices.latest(QUOTE, currency="SEK").arrow())
    assert row["price"] is None
    assert row["rate"].startswith("No rate USD/SEK is stored")
    assert list(prices.history(QUOTE, [], currency="EUR").pandas().columns)[-1] == "rate"
    with pytest.raises(InvalidCurrency):
        prices.latest(QUOTE, currency="EURO")


def test_g8_digits_survive_that_no_binary_float_has(core: Core, prices: PricingReader) -> None:
    exact = Decimal("0.123456789012345678")
    core.rows(
        "INSERT INTO pricing.price_history (data_type, symbol, observed_at, amount, scale, provider, call_id,"
        " fetched_at) VALUES ('equity_daily', 'AAPL', '2020-02-03Z', 123456789012345678, 18, 'twelvedata', 1, now()),"
        " ('equity_daily', 'AAPL', '2020-02-04Z', 999999999999999999, 0, 'twelvedata', 1, now())"
    )
    found = prices.history(DAILY, ["AAPL"], **MONTH)
    for frame in (found.pandas(), found.polars(), found.arrow()):
        assert [row["close"] for row in told(frame)] == [exact, Decimal(10**18 - 1)]
    assert [str(close) for close in found.pandas()["close"]] == [str(exact), "999999999999999999"]


def test_g8_a_symbol_whose_values_have_all_been_revised_away_is_there_as_of_then(
    core: Core, prices: PricingReader
) -> None:
    core.rows(
        "INSERT INTO pricing.price_revisions (data_type, symbol, observed_at, amount, scale, provider, call_id,"
        " recorded_at, revised_at, revised_by) VALUES ('equity_daily', 'IBM', '2020-02-03Z', 150, 2, 'twelvedata', 1,"
        " '2020-02-04Z', '2020-02-06Z', 2)"
    )
    (row,) = told(prices.history(DAILY, **MONTH, as_of=datetime(2020, 2, 5, tzinfo=UTC)).pandas())
    assert (row["symbol"], row["close"]) == ("IBM", Decimal("1.50"))
    assert prices.history(DAILY, **MONTH, as_of=datetime(2020, 2, 7, tzinfo=UTC)).arrow().num_rows == 0
    assert prices.history(DAILY, **MONTH).arrow().num_rows == 0


def test_g8_what_cannot_be_read_is_refused_in_a_sentence(core: Core, prices: PricingReader) -> None:
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes, asset_class)"
        " VALUES ('facts', 'profile', 60, 'equity')"
    )
    for read, fault, words in [
        (prices.latest("equity_qoute"), UnknownDataType, "no active data type 'equity_qoute'; there are: .*equity_q"),
        (prices.history("facts"), UnknownDataType, "facts is a type of documents, not of prices"),
        (prices.latest(QUOTE, ["NOPE"]), PricingError, "no equity instrument is called NOPE"),
        (prices.latest(QUOTE, "AAPL"), PricingError, r"Give a list: \['AAPL'\]"),
        (prices.history(DAILY, ["AAPL"], **MONTH, adjust="both"), InvalidAdjustment, "adjust='both' is unknown"),
        (
            prices.history(DAILY, ["AAPL"], first_day=date(2021, 1, 2), last_day=date(2021, 1, 1)),
            InvalidRange,
            "ends before it begins",
        ),
        (prices.history(DAILY, ["AAPL"], **MONTH, as_of=datetime(2021, 1, 1)), InvalidRange, "has no zone"),
        (prices.history(DAILY, first_day=datetime(2021, 1, 1)), InvalidRange, r"datetime\(2021, 1, 1, .*is not a day"),
        (prices.history(DAILY, last_day="2021-01-01"), InvalidRange, "'2021-01-01' is not a day"),  # type: ignore[arg-type]
    ]:  # fmt: skip
        with pytest.raises(fault, match=words):
            read.pandas()
    core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = 'equity_daily'")
    assert prices.history(DAILY).pandas().empty, "of a retired type the past is there"


@pytest.mark.parametrize(("missing", "form"), [("polars", "polars"), ("pyarrow", "arrow")])
def test_g8_a_library_that_is_not_there_is_named(
    core: Core, prices: PricingReader, monkeypatch: pytest.MonkeyPatch, missing: str, form: str
) -> None:
    importing = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] == missing:
            raise ImportError(name)
        return importing(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    for read in (prices.latest(QUOTE), prices.history(QUOTE)):
        with pytest.raises(PricingError, match=f"needs? {missing}, which is not installed.* pip install"):
            getattr(read, form)()
        assert read.pandas().empty


def test_g8_a_read_writes_nothing_whatever_the_role_may(core: Core, database_url: str) -> None:
    with PricingReader(url=database_url)._connection() as connection:
        driver = connection.connection.driver_connection
        assert isinstance(driver, psycopg.Connection)
        connection.begin()
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            driver.execute("DELETE FROM pricing.warnings")


@pytest.mark.own_database  # sessions of a lent one are kept
def test_g8_a_read_leaves_no_session(core: Core, prices: PricingReader, url: str) -> None:
    prices.latest(QUOTE).pandas()
    with pytest.raises(UnknownDataType):
        prices.history("nothing").pandas()
    sessions = "SELECT count(*) FROM pg_stat_activity WHERE usename = :name"
    wait_until(lambda: core.one(sessions, name=make_url(url).username) == 0)


# ── The address ──────────────────────────────────────────────────────────────────────────────────────────


@dg.asset
def theirs(prices: PricingReader) -> int:
    return len(prices.latest(QUOTE).pandas())


def test_g8_the_address_is_nowhere_in_what_dagster_shows_and_keeps(core: Core, url: str) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh()
    password = str(make_url(url).password)
    reader = PricingReader(url=dg.EnvVar(VARIABLE))
    definitions = dg.Definitions(assets=[theirs], resources={"prices": reader})
    shown = serialize_value(RepositorySnap.from_def(definitions.get_repository_def()))
    assert VARIABLE in shown, "the name of the variable is what is shown"
    instance = an_empty_instance()
    run = dg.materialize([theirs], instance=instance, resources={"prices": reader})
    kept = "".join(serialize_value(entry) for entry in instance.all_logs(run.run_id))
    kept += serialize_value(instance.get_run_by_id(run.run_id))
    assert run.output_for_node("theirs") == 1
    assert password not in shown + kept + repr(reader) + repr(PricingReader(url=url)) + str(PricingReader(url=url))


def test_g8_an_address_with_a_password_is_refused_where_dagster_would_keep_it(url: str) -> None:
    for spelled in (url, url + "&password=canary" if "?" in url else url + "?password=canary"):
        with pytest.raises(SettingsError, match="has a password in it") as refused:
            dg.Definitions(assets=[theirs], resources={"prices": PricingReader(url=spelled)}).get_repository_def()
        assert str(make_url(url).password) not in str(refused.value)
    bare = PricingReader(url="postgresql://ann@127.0.0.1/prices")
    assert dg.Definitions(assets=[theirs], resources={"prices": bare}).get_repository_def()


@pytest.mark.parametrize("is_named", [True, False])
def test_b2_a_run_cannot_point_the_reader_to_another_database(
    core: Core, url: str, monkeypatch: pytest.MonkeyPatch, is_named: bool
) -> None:
    monkeypatch.setenv("PRICING_READER_URL", url)
    reader = PricingReader(url=dg.EnvVar("PRICING_READER_URL")) if is_named else PricingReader()

    @dg.asset
    def found(prices: PricingReader) -> None:
        prices.latest(QUOTE).pandas()

    resources = {"prices": reader, "months": PriceHistoryIOManager(prices=reader)}
    job = dg.Definitions(assets=[found], resources=resources).resolve_implicit_global_asset_job_def()
    assert job.execute_in_process().success
    theirs = {"resources": {"prices": {"config": {"url": "postgresql://127.0.0.1:1/theirs"}}}}
    with pytest.raises(dg.DagsterResourceFunctionError) as error:
        job.execute_in_process(theirs)
    assert "which only the code may give" in str(error.value.__cause__)


def test_g8_an_error_about_the_address_shows_no_password(core: Core) -> None:
    with pytest.raises(SettingsError, match="the url of PricingReader is not a database URL") as refused:
        PricingReader(url="postgresql://ann:canary@db:x/prices").latest(QUOTE).pandas()
    assert "canary" not in str(refused.value)
    with pytest.raises(DatabaseError, match=r"does not answer.*that the url of PricingReader is right") as lost:
        PricingReader(url="postgresql://ann:canary@127.0.0.1:9/prices").latest(QUOTE).pandas()
    assert "canary" not in "".join(map(str, [lost.value, lost.value.__cause__]))


def test_g8_without_an_address_it_is_that_of_the_settings(
    core: Core, url: str, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRICING_DATABASE_URL", database_url)
    assert PricingReader().latest(QUOTE).pandas().empty
    monkeypatch.setenv("PRICING_READER_URL", "postgresql://ann:canary@127.0.0.1:9/prices")
    with pytest.raises(DatabaseError, match=r"127\.0\.0\.1:9"):
        PricingReader().latest(QUOTE).pandas()
    monkeypatch.setenv("PRICING_READER_URL", url)
    assert PricingReader().latest(QUOTE).pandas().empty
