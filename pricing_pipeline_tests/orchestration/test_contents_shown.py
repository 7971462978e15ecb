"""How Dagster shows slots and commodities: assets, tables, plots and checks (G1, D1, C4)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import dagster as dg
import pytest
from sqlalchemy import Connection

from pricing_pipeline.commodities import storage as commodities
from pricing_pipeline.db.query_loader import call_sql
from pricing_pipeline.defs import checks, samples, verdicts
from pricing_pipeline.defs.reports import Reporter
from pricing_pipeline.defs.resources import Allowances, PricingDatabase
from pricing_pipeline.defs.snapshot import EMPTY
from pricing_pipeline.demand import staleness
from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.calls import Call, Task
from pricing_pipeline.domain.commodities import CommodityPrice, TerminalPrices
from pricing_pipeline.domain.data_types import DataType, Fetcher
from pricing_pipeline.domain.inventory import (
    Option,
    PaxCategory,
    PaxOffer,
    Product,
    ProductDays,
    Slot,
    SlotStatus,
)
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.inventory import storage as inventory
from pricing_pipeline.registry import data_type_registry
from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.fixtures.dagster import Stage, an_instance, said
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox

WEEK, PRODUCTS, GOODS = "slots_week", "product_details", "commodity_price"
TOUR, MORNING = "TOUR", "MORNING"


@pytest.fixture(autouse=True)
def kinds(core: Core, stage: Stage) -> dict[str, DataType]:
    with core.owner.begin() as connection:
        for name, fetcher, asset_class, days in (
            (WEEK, "slots", "inventory", 7),
            (PRODUCTS, "product", "inventory", None),
            (GOODS, "terminal_prices", "commodity", None),
        ):
            if data_type_registry.about(connection, name) is None:
                data_type_registry.add_data_type(
                    connection,
                    name,
                    fetcher=fetcher,
                    asset_class=asset_class,
                    ttl_minutes=240,
                    days_ahead=days,
                )
        known = {kind.data_type: kind for kind in data_type_registry.active_data_types(connection)}
    stage.reload()
    return known


def call(fetcher: Fetcher, data_type: str, symbol: str, number: int) -> Call:
    task = Task(number, symbol, 0, 1)
    return Call(number, "octo", "default", data_type, fetcher, None, (task,), uuid4(), datetime.now(UTC))


def slot(number: int, day: datetime, remaining: int) -> Slot:
    start = day.replace(hour=9, minute=0, second=0, microsecond=0, tzinfo=None)
    offer = PaxOffer("adult", "Adult", final=2500 + 100 * number, original=3000, is_primary=True)
    return Slot(
        f"S{number}", "DEFAULT", start, start + timedelta(hours=2), timedelta(0),
        SlotStatus.AVAILABLE if remaining else SlotStatus.SOLD_OUT, remaining, 10, "EUR", 2, (offer,),
    )  # fmt: skip


def store_days(connection: Connection, number: int, slots: list[Slot], today: datetime) -> None:
    window = Window(today.date(), today.date() + timedelta(days=6))
    record = ProductDays(TOUR, window, tuple(slots))
    inventory.store(connection, call(Fetcher.SLOTS, WEEK, TOUR, number), Answer(records=(record,)))


@pytest.fixture
def tour(core: Core) -> datetime:
    """A product with a slot on each of seven days, fuller from day to day; returns today."""
    today = core.one("SELECT pricing.clock()")
    product = Product(
        TOUR,
        "Amazon River Tour",
        "UTC",
        (Option("DEFAULT", "Morning", True),),
        (PaxCategory("adult", "Adult"),),
    )
    with core.engine.begin() as connection:
        inventory.store(connection, call(Fetcher.PRODUCT, PRODUCTS, TOUR, 1), Answer(records=(product,)))
        days = [slot(n, today + timedelta(days=n), max(0, 9 - 2 * n)) for n in range(7)]
        store_days(connection, 2, days, today)
    return today


def test_g1_a_type_of_slots_has_assets_without_months(stage: Stage) -> None:
    latest, kept = stage.spec("latest_price", WEEK), stage.spec("inventory", WEEK)
    assert (kept.group_name, kept.partitions_def, latest.group_name) == (
        "inventory",
        None,
        "latest_inventory",
    )
    assert kept.metadata["dagster/table_name"] == "pricing.slots"
    assert latest.metadata["dagster/table_name"] == "pricing.inventory_slots_week"
    assert stage.spec("freshness", WEEK).freshness_policy == dg.FreshnessPolicy.time_window(
        fail_window=timedelta(hours=8), warn_window=timedelta(hours=4)
    )
    assert "What can be booked now" in (latest.description or "")
    assert stage.spec("commodity", GOODS).group_name == "commodities"


def test_g1_a_type_of_products_is_shown_as_products(stage: Stage) -> None:
    latest, kept = stage.spec("latest_price", PRODUCTS), stage.spec("inventory", PRODUCTS)
    assert kept.metadata["dagster/table_name"] == "pricing.products"
    assert (kept.description or "").startswith("Products of type product_details. A changed product leaves")
    assert "options and categories of each symbol" in (latest.description or "")


def test_d4_slots_are_shown_as_a_table_and_a_plot(core: Core, kinds: dict[str, DataType], tour: datetime) -> None:
    with core.engine.connect() as connection:
        (row,) = samples.sample(connection, kinds[WEEK])["latest_slots"].records
        (described,) = samples.sample(connection, kinds[PRODUCTS])["products"].records
        plot = samples.plot(connection, kinds[WEEK])["occupancy_plot"]
        assert samples.plot(connection, kinds[PRODUCTS]) == {}
    assert (row.data["symbol"], row.data["slots"], row.data["places left"]) == (TOUR, 7, "25 of 70")
    assert row.data["bookable"] in (4, 5), "two are sold out, and today's may have begun"
    assert (described.data["name"], described.data["options"], described.data["categories"]) == (
        "Amazon River Tour",
        1,
        "Adult",
    )
    assert "Amazon River Tour, 7 slots" in plot.value
    assert len(plot.value) < 1000


@pytest.mark.parametrize("gone", ["products", "product_options"])
def test_d4_what_is_gone_is_not_bookable_and_fails_its_check(
    core: Core, kinds: dict[str, DataType], tour: datetime, gone: str
) -> None:
    """By the rule by which availability is sellable. The slots themselves still say that they are available."""
    assert vanished_slots(core).passed
    core.rows(f"UPDATE pricing.{gone} SET is_listed = false, recorded_at = pricing.clock()")
    assert core.rows("SELECT FROM pricing.availability(:tour, only_sellable => true)", tour=TOUR) == []
    with core.engine.connect() as connection:
        (row,) = samples.sample(connection, kinds[WEEK])["latest_slots"].records
    assert (row.data["slots"], row.data["bookable"]) == (7, 0)
    failed = vanished_slots(core)
    assert not failed.passed
    assert failed.metadata["examples"].value == TOUR
    core.rows(f"UPDATE pricing.{gone} SET recorded_at = recorded_at - interval '25 h'")
    assert vanished_slots(core).passed, "a day later"


def test_d4_a_slot_that_takes_no_more_bookings_is_not_bookable(
    core: Core, kinds: dict[str, DataType], tour: datetime
) -> None:
    core.rows("UPDATE pricing.slots SET bookable_until = pricing.clock() - interval '1 min'")
    with core.engine.connect() as connection:
        (row,) = samples.sample(connection, kinds[WEEK])["latest_slots"].records
    assert row.data["bookable"] == 0


def test_d4_the_plot_shows_a_product_that_says_how_many_places_it_has(
    core: Core, kinds: dict[str, DataType], tour: datetime
) -> None:
    """The first product by its symbol may be one whose provider never says it."""
    with core.engine.begin() as connection:
        window = Window(tour.date(), tour.date() + timedelta(days=6))
        days = tuple(replace(slot(n, tour + timedelta(days=n), 5), capacity=None) for n in range(7))
        answer = Answer(records=(ProductDays("ANOTHER", window, days),))
        inventory.store(connection, call(Fetcher.SLOTS, WEEK, "ANOTHER", 3), answer)
        assert "Amazon River Tour" in samples.plot(connection, kinds[WEEK])["occupancy_plot"].value


def vanished_slots(core: Core) -> dg.AssetCheckEvaluation:
    check = next(check for check in checks.CHECKS if check.name == "vanished_slots")
    with core.engine.connect() as connection:
        (found,) = checks._evaluations(connection, check, EMPTY, [WEEK], lambda key: True)
    return found


def test_d4_a_product_that_loses_its_slots_fails_its_check(core: Core, tour: datetime) -> None:
    assert vanished_slots(core).passed
    with core.engine.begin() as connection:
        store_days(connection, 3, [slot(0, tour, 9)], tour)
    failed = vanished_slots(core)
    assert not failed.passed
    assert failed.metadata["examples"].value == TOUR
    assert "Slots have vanished" in str(failed.metadata["what_to_do"].value)


def price(number: int, buy: int | None, sell: int | None, version: str) -> CommodityPrice:
    now = datetime(2026, 11, 20, tzinfo=UTC)
    return CommodityPrice(
        number, f"Good {number}", None, None, buy, sell, 5 if buy else None, 4 if sell else None, version, now
    )


def test_c4_commodities_are_shown_as_routes_and_a_spread(core: Core, kinds: dict[str, DataType]) -> None:
    terminals = (
        TerminalPrices("UEX:1", (price(1, 100, None, "4.1"), price(2, 7, None, "4.1")), "Area 18"),
        TerminalPrices("UEX:2", (price(1, None, 130, "4.1"), price(2, None, 8, "4.1")), "Lorville"),
    )
    with core.engine.begin() as connection:
        commodities.store_prices(connection, "uex", 1, terminals)
        call_sql(connection, "go_live", "4.1")
        first, second = samples.sample(connection, kinds[GOODS])["best_routes"].records
        plot = samples.plot(connection, kinds[GOODS])["spread_plot"]
        verdict = verdicts.game_version(connection, [GOODS])[GOODS]
    assert list(first.data.values()) == ["Good 1", "Area 18", "Lorville", "100", "130", 4, "120"]
    assert second.data["earns"] == "4"
    assert "Good 1 at 2 terminals" in plot.value
    assert (verdict.is_fault, verdict.sentence[:9]) == (False, "4 of 4 pr")
    with core.engine.begin() as connection:
        call_sql(connection, "go_live", "4.2")
        assert verdicts.game_version(connection, [GOODS])[GOODS].is_fault
        assert samples.sample(connection, kinds[GOODS]) == {}, "no route is of the new version"


def test_g2_the_lists_stay_an_asset_while_their_provider_is_switched_off(
    stage: Stage, core: Core, tmp_path: Path
) -> None:
    """They grow old just then, and that has to show. Nobody is asked meanwhile."""
    off = "Uex is switched off; `pricing-pipeline provider change uex --active` switches it on."
    core.rows("UPDATE pricing.data_collectors SET is_active = false WHERE provider = 'uex'")
    stage.reload()
    assert stage.repository.asset_graph.get(dg.AssetKey("commodity_lists")).freshness_policy
    assert stage.slot("sync_commodities", core.clock()).skip_message == off
    job = stage.definitions.resolve_job_def("sync_commodities")
    run = job.execute_in_process(instance=stage.instance, raise_on_error=False)
    (failure,) = [event for event in run.all_events if event.is_step_failure]
    assert failure.step_failure_data.user_failure_data.description == off
    core.rows("UPDATE pricing.data_collectors SET is_active = true WHERE provider = 'uex'")
    with an_instance(tmp_path) as stage.instance:
        assert len(stage.slot("sync_commodities", core.clock()).run_requests or ()) == 1


@pytest.fixture
def terminals(core: Core) -> list[str]:
    """Two terminals that are known; somebody watches the first."""
    prices = (price(1, 100, None, "4.1"),)
    with core.engine.begin() as connection:
        commodities.store_prices(connection, "uex", 1, [TerminalPrices(name, prices, name) for name in TERMINALS])
    core.rows(
        "INSERT INTO pricing.instruments (asset_class, symbol) SELECT 'commodity', unnest(CAST(:names AS text[]))"
        " ON CONFLICT DO NOTHING",
        names=TERMINALS,
    )
    core.heartbeat("ann", (GOODS, TERMINALS[0]))
    core.rows("DELETE FROM pricing.api_call_queue_live")
    return TERMINALS


TERMINALS = ["UEX:1", "UEX:2"]
OF_NOBODY = "nobody watches or holds it, so it is not fetched. This fetches it once: pricing-pipeline"


def test_g3_contents_that_share_a_table_have_no_row_count(stage: Stage, core: Core, kinds: dict[str, DataType]) -> None:
    """They said 0 rows: the count is of histories and documents."""
    events: list[dg.AssetMaterialization] = []
    context: Any = SimpleNamespace(log_event=events.append, instance=stage.instance)
    for data_type in (WEEK, PRODUCTS, GOODS):
        Reporter(context, core.engine, Allowances(PricingDatabase())).report_records(kinds[data_type], 3)
    assert [said(event) for event in events] == [{"pairs_confirmed": 3, "changes": 0, "changes_ever": 0}] * 3


@pytest.mark.parametrize(
    ("arranged", "reason"),
    [
        ("paused", "is paused. This resumes it: pricing-pipeline instrument resume"),
        ("off", "no active provider serves commodity_price"),
        ("refused", "its last task failed, and it is not asked for before"),
        ("spent", "quota"),
    ],
)
def test_g3_what_a_person_wants_and_cannot_get_has_its_reason(
    core: Core, terminals: list[str], arranged: str, reason: str
) -> None:
    if arranged == "paused":
        core.pause(terminals[0])
    elif arranged == "off":
        core.rows("UPDATE pricing.data_collectors SET is_active = false WHERE provider = 'uex'")
    elif arranged == "refused":
        core.rows("UPDATE pricing.demand SET backoff_until = pricing.clock() + interval '1 h'")
    else:
        core.rows("UPDATE pricing.data_collectors SET quota_bytes = 100000000 WHERE provider = 'uex'")
        core.use_quota(100_000_000, "uex")
    with core.engine.begin() as connection:
        assert staleness.fetch_now(connection, GOODS, None) == []
        unasked = staleness.unasked(connection, GOODS, None, [])
    assert unasked is not None
    assert (unasked.symbol, unasked.pairs) == (terminals[0], 1)
    assert reason in unasked.why


@pytest.mark.parametrize(("named", "fetched"), [([1], 0), ([0, 1], 1)])
def test_g3_materialize_fails_with_the_reason_when_it_cannot_fetch_what_a_person_wants(
    stage: Stage, core: Core, sandbox: RunningSandbox, terminals: list[str], named: list[int], fetched: int
) -> None:
    """It was green, with a new materialization, and had asked for nothing."""
    run = stage.backfill(GOODS, config={"symbols": [terminals[place] for place in named]}, raise_on_error=False)
    assert not run.success
    said_why = run.failure_data_for_node("refresh_prices").user_failure_data.description
    assert said_why.startswith(f"{terminals[1]} of {GOODS} is not fetched: {OF_NOBODY}")
    assert len(stage.materializations("commodity", GOODS)) == fetched


def test_g3_materialize_of_what_nobody_watches_is_green_and_says_so(
    stage: Stage, core: Core, terminals: list[str]
) -> None:
    core.unsubscribe("ann", (GOODS, terminals[0]))
    assert stage.backfill(GOODS).success
    (event,) = stage.materializations("commodity", GOODS)
    assert "Nobody watches or holds anything" in said(event)["nothing_to_fetch"]


def test_b1_a_type_that_was_added_after_the_load_is_reported_by_a_drain(
    stage: Stage, core: Core, sandbox: RunningSandbox
) -> None:
    with core.owner.begin() as connection:
        data_type_registry.add_data_type(connection, "late_profile", fetcher="profile", ttl_minutes=1440)
    core.heartbeat("ann", ("late_profile", "AAPL"), (QUOTE, "AAPL"))
    (request,) = stage.tick("refresh_watched").run_requests or ()
    assert stage.drain(tags=request.tags).success
    assert len(stage.observations("latest_price", "late_profile")) == 1
