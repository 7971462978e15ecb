"""What a data type consists of: Python and the database agree, and storage appears for each kind of contents."""

import pytest
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.domain.data_types import Contents, Fetcher
from pricing_pipeline.registry import data_type_registry
from pricing_pipeline_tests.fixtures.core import Core

PROFILE = "company_profile"
COLUMNS = ["symbol", "fetched_at", "provider", "call_id", "cache_ttl_minutes"]


def test_b1_python_and_the_database_know_the_same_fetchers_and_contents(core: Core) -> None:
    rows = core.rows("SELECT fetcher, contents FROM pricing.fetchers")
    assert {(row.fetcher, row.contents) for row in rows} == {
        (fetcher.value, fetcher.contents.value) for fetcher in Fetcher
    }
    assert {row.contents for row in rows} == {contents.value for contents in Contents}


def test_b1_a_type_of_slots_has_a_view_and_is_judged_by_it(core: Core) -> None:
    with core.owner.begin() as connection:
        data_type_registry.add_data_type(
            connection, "slots_week", fetcher="slots", asset_class="inventory", ttl_minutes=240, days_ahead=7
        )
        (kind,) = [kind for kind in data_type_registry.active_data_types(connection) if kind.data_type == "slots_week"]
    assert (kind.contents, kind.table_name, kind.has_own_table, kind.days_ahead) == (
        Contents.INVENTORY,
        "inventory_slots_week",
        False,
        7,
    )
    stale = "SELECT pricing.is_pair_stale('slots_week', 'TOUR')"
    assert core.one(stale)
    core.rows("SELECT pricing.confirm_pairs('slots_week', ARRAY['TOUR', 'TOUR'], 'octo', 7)")
    assert not core.one(stale)
    (row,) = core.rows("SELECT * FROM pricing.inventory_slots_week")
    assert list(row._mapping) == COLUMNS
    assert (row.symbol, row.provider, row.call_id) == ("TOUR", "octo", 7)
    with pytest.raises(DBAPIError, match="has data or is watched"):
        core.rows("DELETE FROM pricing.data_type_registry WHERE data_type = 'slots_week'")


@pytest.fixture
def profiles(core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes)"
        " VALUES ('company_profile', 'profile', 1440)"
    )


@pytest.mark.usefixtures("profiles")
def test_d1_what_another_answer_has_served_is_not_asked_for_again(core: Core) -> None:
    core.heartbeat("ann", (PROFILE, "AAPL"), (PROFILE, "MSFT"))
    assert core.statuses() == {"AAPL": "pending", "MSFT": "pending"}
    core.rows("SELECT pricing.confirm_pairs('company_profile', ARRAY['AAPL'], 'fmp', 7)")
    assert core.statuses() == {"AAPL": "completed", "MSFT": "pending"}
    assert core.enqueue_due() == 0
    (task,) = core.rows("SELECT symbol, status, call_id FROM pricing.api_call_queue WHERE status = 'completed'")
    assert (task.symbol, task.call_id) == ("AAPL", None)
    assert core.due_in(PROFILE, "AAPL") > 0


@pytest.mark.usefixtures("profiles")
def test_d1_a_task_that_is_in_work_is_its_own_workers(core: Core) -> None:
    core.heartbeat("ann", (PROFILE, "AAPL"))
    core.claim_one("fmp")
    core.rows("SELECT pricing.confirm_pairs('company_profile', ARRAY['AAPL'], 'fmp', 7)")
    assert core.statuses() == {"AAPL": "processing"}


def test_b1_what_a_type_of_other_contents_needs_is_said(core: Core) -> None:
    for fetcher, asset_class, days_ahead, fault in (
        ("slots", "inventory", None, "says how many days ahead"),
        ("quote", "equity", 7, "says how many days ahead"),
        ("slots", "inventory", 0, "1 to 731 days"),
        ("slots", "equity", 7, "only instruments of inventory"),
        ("terminal_prices", "equity", None, "only instruments of commodity"),
    ):
        with pytest.raises(Exception, match=fault), core.owner.begin() as connection:
            data_type_registry.add_data_type(
                connection,
                "other",
                fetcher=fetcher,
                asset_class=asset_class,
                ttl_minutes=60,
                days_ahead=days_ahead,
            )
