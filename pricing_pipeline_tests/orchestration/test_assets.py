"""The asset graph: what the registry's rows look like in Dagster."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy.exc import DBAPIError

from pricing_pipeline import sample
from pricing_pipeline.api.page.reading import read
from pricing_pipeline.api.page.rendering import sections
from pricing_pipeline.dagster.building import assembled
from pricing_pipeline.db.migrate import run_script
from pricing_pipeline.defs.snapshot import RegistrySnapshot
from pricing_pipeline.domain.data_types import Contents, DataType, Fetcher
from pricing_pipeline.registry import data_type_registry
from pricing_pipeline.settings import Settings, SettingsSource, load_settings
from pricing_pipeline_tests.fixtures.core import DAILY, FX, NAV, QUOTE, Core
from pricing_pipeline_tests.fixtures.dagster import Stage
from pricing_pipeline_tests.fixtures.home import running_in

TYPES = (DAILY, QUOTE, FX, NAV)
PROVIDERS = {
    dg.AssetKey(["provider", name]) for name in ("mfapi", "twelvedata", "yahoo", "fmp", "uex", "octo", "headout")
}
SUBSCRIPTIONS = dg.AssetKey("active_subscriptions")


def history(data_type: str) -> dg.AssetKey:
    return dg.AssetKey(["price_history", data_type])


def latest(data_type: str) -> dg.AssetKey:
    return dg.AssetKey(["latest_price", data_type])


def keys(stage: Stage) -> set[dg.AssetKey]:
    return {spec.key for spec in stage.definitions.resolve_all_asset_specs()}


def freshness(data_type: str) -> dg.AssetKey:
    return dg.AssetKey(["freshness", data_type])


def graph(stage: Stage) -> dg.AssetGraph:
    return stage.definitions.resolve_asset_graph()


def test_g1_every_row_has_a_history_a_latest_price_and_a_freshness(stage: Stage) -> None:
    of_types = {key for name in TYPES for key in (history(name), latest(name), freshness(name))}
    assert keys(stage) == of_types | PROVIDERS | {SUBSCRIPTIONS}
    assert graph(stage).materializable_asset_keys == {history(name) for name in TYPES}
    assert graph(stage).external_asset_keys == keys(stage) - {history(name) for name in TYPES}


def months_of(stage: Stage, data_type: str) -> dg.MonthlyPartitionsDefinition:
    months = graph(stage).get(history(data_type)).partitions_def
    assert isinstance(months, dg.MonthlyPartitionsDefinition)
    return months


def first_month(stage: Stage, data_type: str) -> str:
    return str(months_of(stage, data_type).get_partition_keys()[0])


def test_g1_histories_are_partitioned_by_utc_month_up_to_the_current_one(stage: Stage) -> None:
    for now, newest in (
        (datetime(2026, 12, 31, 23, 59, tzinfo=UTC), "2026-12-01"),
        (datetime(2027, 1, 1, 0, 0, tzinfo=UTC), "2027-01-01"),
        (datetime(2026, 12, 31, 23, 30, tzinfo=UTC) + timedelta(hours=1), "2027-01-01"),
    ):
        found = months_of(stage, DAILY).get_partition_keys(current_time=now)
        assert (found[0], found[-1]) == ("2000-01-01", newest)
    assert all(graph(stage).get(latest(name)).partitions_def is None for name in TYPES)


def test_g1_months_of_a_type_begin_with_its_own_history(stage: Stage, core: Core) -> None:
    """They began with the earliest history of all types, so that most of them could never be filled."""
    assert {name: first_month(stage, name) for name in (DAILY, NAV)} == {
        DAILY: "2000-01-01",
        NAV: "2006-04-01",
    }
    core.rows("UPDATE pricing.data_type_registry SET history_from = '1987-10-19' WHERE data_type = :t", t=NAV)
    stage.reload()
    assert {name: first_month(stage, name) for name in (DAILY, NAV)} == {
        DAILY: "2000-01-01",
        NAV: "1987-10-01",
    }


def store(core: Core, data_type: str, symbol: str, at: datetime) -> None:
    core.rows(
        "INSERT INTO pricing.price_history (data_type, symbol, observed_at, amount, scale, provider, call_id,"
        " fetched_at) VALUES (:data_type, :symbol, :at, 1, 2, 'twelvedata', 1, pricing.clock())",
        data_type=data_type,
        symbol=symbol,
        at=at,
    )


def test_g1_months_of_a_type_without_history_begin_with_its_first_price_and_stay(
    stage: Stage, core: Core, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime.now(UTC)
    assert first_month(stage, QUOTE) in {f"{now:%Y-%m-01}", f"{datetime.now(UTC):%Y-%m-01}"}
    # The last minute of a month where the price is from, and of UTC.
    store(core, QUOTE, "MSFT", datetime(2026, 5, 1, 0, 30, tzinfo=UTC))
    store(core, QUOTE, "AAPL", datetime(2026, 3, 31, 23, 59, tzinfo=UTC))
    stage.reload()
    assert first_month(stage, QUOTE) == "2026-03-01"
    store(core, QUOTE, "AAPL", datetime(2026, 6, 2, tzinfo=UTC))
    stage.reload()
    assert first_month(stage, QUOTE) == "2026-03-01"
    # What has left the database for files counts, too.
    core.rows("DELETE FROM pricing.price_history WHERE observed_at < '2026-05-01'")
    core.rows(
        "INSERT INTO pricing.exported_months (data_type, month, versions, changes, file_bytes, sha256, exported_at,"
        " moved_at, price_whole, price_decimals, volume_whole, volume_decimals)"
        " VALUES (:t, '2026-03-01', 1, 0, 1, '', pricing.clock(), pricing.clock(), 12, 6, 18, 0)",
        t=QUOTE,
    )
    stage.reload()
    assert first_month(stage, QUOTE) == "2026-03-01"
    # And without the database, what was stored when it was last there.
    monkeypatch.setenv("PRICING_DATABASE_URL", "postgresql://worker@127.0.0.1:9/pricing")
    stage.reload()
    assert first_month(stage, QUOTE) == "2026-03-01"


def test_g1_a_history_that_begins_in_the_future_keeps_no_definitions_from_loading(stage: Stage, core: Core) -> None:
    core.rows("UPDATE pricing.data_type_registry SET history_from = '2999-12-31' WHERE data_type = :t", t=NAV)
    stage.reload()
    assert first_month(stage, NAV) == f"{datetime.now(UTC):%Y-%m-01}"


def test_g1_g6_a_range_of_months_is_one_run(stage: Stage) -> None:
    for name in TYPES:
        assert graph(stage).get(history(name)).backfill_policy == dg.BackfillPolicy.single_run()


def test_g1_g5_lineage_starts_at_subscriptions_and_the_providers_that_serve(stage: Stage, core: Core) -> None:
    twelvedata, mfapi = dg.AssetKey(["provider", "twelvedata"]), dg.AssetKey(["provider", "mfapi"])
    served_by = {DAILY: twelvedata, QUOTE: twelvedata, FX: twelvedata, NAV: mfapi}
    for name, provider in served_by.items():
        assert graph(stage).get(history(name)).parent_keys == {provider, SUBSCRIPTIONS}
        assert graph(stage).get(latest(name)).parent_keys == {history(name)}
        assert graph(stage).get(freshness(name)).parent_keys == {latest(name)}
    assert not any(graph(stage).get(key).parent_keys for key in PROVIDERS | {SUBSCRIPTIONS})

    core.rows("INSERT INTO pricing.provider_routing VALUES ('equity_daily', 'IBM', 'mfapi')")
    stage.reload()
    assert graph(stage).get(history(DAILY)).parent_keys == {twelvedata, mfapi, SUBSCRIPTIONS}


def test_g1_assets_say_what_they_are(stage: Stage, core: Core) -> None:
    described = dict(core.rows("SELECT data_type, description FROM pricing.data_type_registry"))
    for name in TYPES:
        for spec, group, kinds in (
            (stage.spec("price_history", name), "price_history", {"python", "postgres"}),
            (stage.spec("latest_price", name), "latest_price", {"postgres", "table"}),
        ):
            assert (spec.group_name, spec.kinds) == (group, kinds)
            assert spec.description.startswith(described[name])
    assert "2000-01-01 can be backfilled" in stage.spec("price_history", DAILY).description
    assert "none to backfill" in stage.spec("price_history", QUOTE).description
    assert "15 minutes after it was fetched" in stage.spec("latest_price", FX).description


def page_links(stage: Stage) -> dict[str, str]:
    """The links to the operations page, by asset."""
    return {
        spec.key.to_user_string(): spec.metadata["operations_page"].value
        for spec in stage.definitions.resolve_all_asset_specs()
        if "operations_page" in spec.metadata
    }


def test_g5_each_asset_leads_to_its_place_on_the_operations_page(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert page_links(stage) == {}, "nobody knows where people open it"
    with running_in(tmp_path, urls={"api": "http://127.0.0.1:8123"}):
        stage.reload()
    links = page_links(stage)
    assert {dg.AssetKey.from_user_string(key) for key in links} == keys(stage)
    assert links[f"latest_price/{QUOTE}"] == f"http://127.0.0.1:8123/#type-{QUOTE}"
    assert links["provider/twelvedata"] == "http://127.0.0.1:8123/#provider-twelvedata"
    monkeypatch.setenv("PRICING_PAGE_URL", "https://prices.example.com/ops/")
    stage.reload()
    assert page_links(stage)["active_subscriptions"] == "https://prices.example.com/ops/#watched"


def test_g5_the_places_that_assets_lead_to_are_on_the_page(
    stage: Stage, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRICING_PAGE_URL", "https://prices.example.com")
    stage.reload()
    with core.engine.begin() as connection:
        html = sections(read(connection), ui_url=None, may_operate=False)
    for link in page_links(stage).values():
        assert f' id="{link.partition("#")[2]}"' in html


def test_g1_column_schemas_are_those_of_the_database(stage: Stage, core: Core) -> None:
    for name in TYPES:
        for kind, unsaid in (("price_history", {"data_type"}), ("latest_price", set[str]())):
            spec = stage.spec(kind, name)
            said = {column.name: column.type for column in spec.metadata["dagster/column_schema"].columns}
            assert said == {
                column: "timestamptz" if of_type == "timestamp with time zone" else of_type
                for column, of_type in core.rows(
                    "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
                    " WHERE attrelid = to_regclass(:table) AND attnum > 0 AND NOT attisdropped",
                    table=spec.metadata["dagster/table_name"],
                )
                if column not in unsaid
            }
            assert all(column.description for column in spec.metadata["dagster/column_schema"].columns)


def test_g1_a_table_of_the_users_own_is_not_given_our_columns(stage: Stage, core: Core) -> None:
    core.rows("CREATE TABLE pricing.own (ticker text PRIMARY KEY, seen_at timestamptz, cache_ttl_minutes integer)")
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes, table_name,"
        " symbol_column, timestamp_column) VALUES ('own_quote', 'quote', 5, 'own', 'ticker', 'seen_at')"
    )
    stage.reload()
    metadata = stage.spec("latest_price", "own_quote").metadata
    assert metadata["dagster/table_name"] == "pricing.own"
    assert "dagster/column_schema" not in metadata


@pytest.mark.parametrize("minutes", [1, 1440])
def test_g2_the_policy_warns_at_the_ttl_and_fails_at_twice(stage: Stage, core: Core, minutes: int) -> None:
    core.rows("UPDATE pricing.data_type_registry SET default_ttl_minutes = :ttl", ttl=minutes)
    stage.reload()
    for name in TYPES:
        policy = stage.spec("freshness", name).freshness_policy
        assert policy == dg.FreshnessPolicy.time_window(
            warn_window=timedelta(minutes=minutes), fail_window=timedelta(minutes=2 * minutes)
        )
        assert policy.fail_window.to_timedelta() >= timedelta(minutes=2)
        for others in ("price_history", "latest_price"):
            assert stage.spec(others, name).freshness_policy is None


@pytest.mark.parametrize("owner", ["a.b+c@x-y.co.uk", "team:quants", None])
def test_g1_the_owner_of_a_type_owns_its_assets(stage: Stage, core: Core, owner: str | None) -> None:
    core.rows("UPDATE pricing.data_type_registry SET owner = :owner WHERE data_type = 'fx_rate'", owner=owner)
    stage.reload()
    for group in ("price_history", "latest_price", "freshness"):
        assert stage.spec(group, FX).owners == ([owner] if owner else [])
        assert stage.spec(group, QUOTE).owners == []


def test_g1_who_can_be_no_owner_is_refused(core: Core) -> None:
    """One bad row must not take all others down: Dagster would load nothing."""
    for owner in ("", "ann", "team:", "ann@", "@x.org", "two words@x.org", "ann@x.org, bob@x.org"):
        with pytest.raises(DBAPIError, match="owner_is_email_or_team"):
            core.rows("UPDATE pricing.data_type_registry SET owner = :owner WHERE data_type = 'fx_rate'", owner=owner)


@pytest.fixture
def whole_stage(stage: Stage, core: Core) -> Stage:
    """With data types of all kinds of contents."""
    with core.owner.begin() as connection:
        for script in ("inventory", "commodities"):
            run_script(connection, (Path(sample.__file__).parent / f"{script}.sql").read_text())
        data_type_registry.add_data_type(connection, "company_profile", fetcher="profile", ttl_minutes=1440)
    assert core.one("SELECT count(DISTINCT contents) FROM pricing.data_type_registry") == len(Contents)
    stage.reload()
    return stage


def test_g5_each_asset_leads_to_the_code_that_makes_it(whole_stage: Stage) -> None:
    for spec in whole_stage.definitions.resolve_all_asset_specs():
        references = spec.metadata["dagster/code_references"].code_references
        assert references
        assert all(Path(one.file_path).is_file() for one in references)


def test_g5_the_tables_that_assets_name_exist(whole_stage: Stage, core: Core) -> None:
    for spec in whole_stage.definitions.resolve_all_asset_specs():
        named = {spec.metadata["dagster/table_name"]} | set(re.findall(r"pricing\.\w+", spec.description or ""))
        for table in named:
            assert core.one("SELECT to_regclass(:name)", name=table) is not None, (spec.key, table)


def test_g1_loading_many_types_reads_the_settings_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading them for each asset took nine tenths of the load of 500 types."""
    reads: list[None] = []

    def counted(source: SettingsSource) -> Settings:
        reads.append(None)
        return load_settings()

    monkeypatch.setattr(SettingsSource, "settings", counted)
    kinds = tuple(
        DataType(
            f"type_{n}",
            "",
            Fetcher.QUOTE,
            "equity",
            f"latest_price_type_{n}",
            5,
            "on-demand",
            None,
            "UTC",
            None,
        )
        for n in range(50)
    )
    routes = {kind.data_type: ["twelvedata"] for kind in kinds}
    assert assembled(RegistrySnapshot(1, kinds, {"twelvedata": "https://api.example.com"}, routes))
    assert len(reads) <= 5
