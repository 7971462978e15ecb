"""Slots end to end: the queue asks real clients, these the sandbox; the database has the partner's slots (D1-D4)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox, running_sandbox
from pricing_pipeline_tests.support.slots_synced import (
    MONTH,
    NOON,
    PRODUCT,
    TODAY,
    UNLIMITED,
    WEEK,
    database,
    load_types,
    partner,
    sell,
    sync,
)


@pytest.fixture(autouse=True)
def types(core: Core) -> None:
    """The sample's types of inventory."""
    load_types(core)


@pytest.fixture(autouse=True)
def noon(clock: Clock) -> None:
    clock.set(NOON)
    clock.stop()


@pytest.fixture
def sandbox(core: Core) -> Iterator[RunningSandbox]:
    """A sandbox without limits that goes by the database's clock, which the tests move."""
    with running_sandbox(clock=core.clock, **UNLIMITED) as sandbox:
        yield sandbox


def test_d4_slots_of_a_product_that_was_never_fetched_bring_the_product_along(
    core: Core, sandbox: RunningSandbox
) -> None:
    """Headout's slots have no offset: only the product's zone can place them."""
    symbols = sell(core, "headout", [4]) + sell(core, "octo", [4])
    sync(core, sandbox, TODAY, symbols)
    for provider in ("headout", "octo"):
        stored = database(core, sandbox, [4], provider, 1).fields
        assert stored == partner(core, sandbox, provider, [4], 1)
        assert stored
    zones = core.rows("SELECT symbol, time_zone FROM pricing.products ORDER BY 1")
    assert [tuple(one) for one in zones] == [("5004", "Asia/Tokyo"), ("OCT-1004", "Asia/Tokyo")]
    confirmed = core.rows("SELECT DISTINCT data_type FROM pricing.confirmed_pairs")
    assert [tuple(one) for one in confirmed] == [(TODAY,)]


def test_g8_slots_that_one_type_has_fetched_are_news_of_all_that_share_them(
    core: Core, sandbox: RunningSandbox
) -> None:
    sync(core, sandbox, TODAY, sell(core, "octo", [4]))
    # A duty of a slow drain has numbered them already.
    noted = core.rows("SELECT data_type FROM pricing.data_changes UNION SELECT data_type FROM pricing.data_versions")
    assert {MONTH, WEEK, TODAY} <= {row.data_type for row in noted}


def test_d6_what_is_sold_to_groups_can_be_booked_by_each_of_them(core: Core, sandbox: RunningSandbox) -> None:
    """The ninth tour is for groups of 1 to 4 and of 5 to 8."""
    (symbol,) = sell(core, "headout", [9])
    sync(core, sandbox, WEEK, [symbol])
    sizes = (1, 4, 5, 8, 9, 2**31 - 1)
    slots = [
        core.one(
            "SELECT count(DISTINCT slot_id) FROM pricing.availability(:s, pax => :n, only_sellable => true)",
            s=symbol,
            n=size,
        )
        for size in sizes
    ]
    assert all(slots[:4])
    assert slots[4:] == [0, 0]


def test_d4_zone_currency_and_names_follow_the_partner(core: Core, sandbox: RunningSandbox) -> None:
    symbols = sell(core, "octo", [1])
    sync(core, sandbox, PRODUCT, symbols)
    sync(core, sandbox, WEEK, symbols)
    sandbox.change_tour(1, zone="Asia/Tokyo", currency="JPY", unit_names={"adult": "Grown-up"}, options=["OPTION_1"])
    sync(core, sandbox, WEEK, symbols)
    # Its slots tell of an option that is gone, so the same call has asked for the product.
    product = core.rows("SELECT time_zone FROM pricing.products")
    assert [tuple(one) for one in product] == [("Asia/Tokyo",)]
    names = core.rows("SELECT name FROM pricing.pax_categories WHERE category_id = 'adult'")
    assert [tuple(one) for one in names] == [("Grown-up",)]
    sync(core, sandbox, WEEK, symbols)
    assert database(core, sandbox, [1], "octo", 7).fields == partner(core, sandbox, "octo", [1], 7)
    currencies = core.rows(
        "SELECT DISTINCT p.currency, p.scale FROM pricing.slot_prices p JOIN pricing.slots s USING (slot_key)"
        " WHERE s.status <> 'vanished'"
    )
    assert [tuple(one) for one in currencies] == [("JPY", 0)]
