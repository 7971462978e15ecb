"""What OCTO's and Headout's parsers read is what the sandbox has: every tour, any days, pages of any size (D4)."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pricing_pipeline.domain.answers import Record
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.inventory import Product, ProductDays
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.providers.base import Question, Request
from pricing_pipeline.providers.headout import Headout
from pricing_pipeline.providers.inventory import days_where
from pricing_pipeline.providers.octo import Octo
from pricing_pipeline.sandbox.slots import SlotChange
from pricing_pipeline.sandbox.tours import MOST_TOURS
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.sandbox_server import Asked
from pricing_pipeline_tests.support.tours import (
    HEADOUT,
    OCTO,
    Answering,
    answering,
    driven,
    symbol_of,
    true_days,
)

NOW = datetime(2026, 11, 20, 15, 0, 30, tzinfo=UTC)
UNLIMITED = {"partner_calls_per_minute": None}
both = pytest.mark.parametrize("provider", [OCTO, HEADOUT], ids=lambda provider: provider.name)


@pytest.fixture(scope="module")
def asked() -> Asked:
    return Asked(NOW, **UNLIMITED)


def in_pages(answer: Answering, size: int) -> Answering:
    """Headout with smaller pages than are asked for, which its answers tell by their offsets."""

    def smaller(request: Request) -> Response:
        params = tuple((name, str(size) if name == "limit" else value) for name, value in request.params)
        return answer(replace(request, params=params))

    return smaller


@both
@settings(max_examples=examples(30), deadline=None)
@given(
    number=st.integers(1, MOST_TOURS),
    start=st.dates(date(2026, 10, 20), date(2027, 4, 10)),
    days=st.integers(1, 9),
    page=st.integers(1, 30),
    percent=st.sampled_from([0, 5, 60]),
    is_known=st.booleans(),
)
def test_d4_what_is_read_is_what_the_partner_has(
    asked: Asked,
    provider: Octo | Headout,
    number: int,
    start: date,
    days: int,
    page: int,
    percent: int,
    is_known: bool,
) -> None:
    asked.sandbox.tours.reset()
    asked.sandbox.tours.change(SlotChange(percent=percent, seed=days))
    symbol, window = symbol_of(provider.name, number), Window(start, start + timedelta(days=days - 1))
    answer = in_pages(answering(asked, provider), page)
    known = {}
    if is_known:
        (product,) = driven(provider.ask(Question(Fetcher.PRODUCT, [symbol], None, NOW)), answer)[0].records
        assert isinstance(product, Product)
        known[symbol] = {"time_zone": product.time_zone}
    got, requests = driven(provider.ask(Question(Fetcher.SLOTS, [symbol], window, NOW, known)), answer)
    assert not got.failures
    first, read = got.records
    if not is_known:
        window = where_it_is(first, window)
    assert read == true_days(asked.sandbox, provider.name, number, window, NOW)
    assert len({repr(request) for request in requests}) == len(requests), "nothing is asked twice"


def where_it_is(product: Record, window: Window) -> Window:
    """Days that were reckoned in UTC, moved to where the product is."""
    assert isinstance(product, Product)
    zone = ZoneInfo(product.time_zone or "UTC")
    ahead = NOW.astimezone(zone).date() - NOW.astimezone(UTC).date()
    return Window(window.start + ahead, window.end + ahead)


def test_d1_the_days_are_those_of_where_the_product_is() -> None:
    """Reckoned in the zone that was known, which may be another one by now; what a person has set stays."""
    evening = datetime(2026, 11, 20, 20, 0, tzinfo=UTC)
    known, today = (
        Window(date(2026, 11, 21), date(2026, 11, 27)),
        Window(date(2026, 11, 20), date(2026, 11, 26)),
    )
    product = Product("OCT-7", "A walk", "America/New_York")
    facts = {"time_zone": "Asia/Tokyo", "is_zone_set": False}
    assert days_where(product, facts, known, evening) == today
    assert days_where(product, facts | {"is_zone_set": True}, known, evening) == known
    assert days_where(replace(product, time_zone=None), facts, known, evening) == known
    assert days_where(replace(product, time_zone="Asia/Tokyo"), {}, today, evening) == known


@both
def test_d4_every_product_is_read(asked: Asked, provider: Octo | Headout) -> None:
    asked.sandbox.tours.reset()
    for number in range(1, MOST_TOURS + 1):
        symbol, tour = symbol_of(provider.name, number), asked.sandbox.tours.tour(number)
        assert tour is not None
        answer, requests = driven(
            provider.ask(Question(Fetcher.PRODUCT, [symbol], None, NOW)), answering(asked, provider)
        )
        (product,) = answer.records
        assert isinstance(product, Product)
        assert len(requests) == 1
        assert (product.symbol, product.name, product.time_zone) == (symbol, tour.name, tour.place.zone)
        assert [option.is_default for option in product.options] == [n == 0 for n in range(len(tour.options))]
        if provider is OCTO:
            assert [(one.category_id, one.name, one.kind, one.pax_count) for one in product.categories] == [
                (unit.unit_id, unit.name, unit.kind, unit.pax) for unit in tour.units
            ]


def test_d4_a_night_when_clocks_change_has_each_slot_once(asked: Asked) -> None:
    """In New York 01:30 comes twice on 2026-11-01, and 02:30 does not come on 2027-03-14."""
    asked.sandbox.tours.reset()
    for day, first in ((date(2026, 11, 1), 8), (date(2027, 3, 14), 3)):
        window = Window(day, day)
        got, _ = driven(OCTO.ask(Question(Fetcher.SLOTS, [symbol_of("octo", 12)], window, NOW)), answering(asked, OCTO))
        days = got.records[1]
        assert isinstance(days, ProductDays)
        assert days == true_days(asked.sandbox, "octo", 12, window, NOW)
        night = [slot for slot in days.slots if slot.local_start.hour < 4]
        instants = {slot.local_start - (slot.utc_offset or timedelta()) for slot in night}
        assert len(instants) == len(night)
        assert len(night) in (first, first - 1)


def test_d4_octo_is_asked_for_each_option_by_post_with_prices(asked: Asked) -> None:
    symbol, window = symbol_of("octo", 1), Window(date(2026, 11, 20), date(2026, 11, 26))
    known = {symbol: {"time_zone": "Europe/London"}}
    _, (_, *requests) = driven(OCTO.ask(Question(Fetcher.SLOTS, [symbol], window, NOW, known)), answering(asked, OCTO))
    assert [(one.method, one.path, one.headers) for one in requests] == [
        ("POST", "/availability", (("Octo-Capabilities", "octo/pricing"),))
    ] * 2
    assert json.loads(json.dumps(requests[1].json)) == {
        "productId": symbol,
        "optionId": "OPTION_1",
        "localDateStart": "2026-11-20",
        "localDateEnd": "2026-11-26",
    }
