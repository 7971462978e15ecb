"""What an answer about products and slots may say, and what cannot be true (D4)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from pricing_pipeline.domain.inventory import (
    Option,
    PaxCategory,
    PaxOffer,
    Product,
    ProductDays,
    Slot,
    SlotStatus,
)
from pricing_pipeline.domain.time_zones import is_time_zone
from pricing_pipeline.domain.windows import Window

DAY = date(2031, 3, 3)
START = datetime(2031, 3, 3, 9)
SLOT = Slot(
    "A",
    "DEFAULT",
    START,
    START + timedelta(hours=2),
    timedelta(hours=1),
    SlotStatus.AVAILABLE,
    9,
    10,
    "EUR",
    2,
)
ADULT = PaxOffer("ADULT", "Adult", 2500, 3000, 1, 9, 9)
HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    "change",
    [
        {"local_end": START},
        {"local_end": START - HOUR, "end_utc_offset": -HOUR},
        {"status": SlotStatus.SOLD_OUT},
        {"remaining": None, "capacity": None},
        {"remaining": 10},
        {"currency": None, "offers": ()},
        {"offers": (replace(ADULT, final=3500),)},
        {"offers": (replace(ADULT, final=0, original=None),)},
        {"offers": (replace(ADULT, minimum=None, maximum=None, remaining=None),)},
        {"utc_offset": None},
        {"bookable_until": datetime(2031, 3, 3, tzinfo=UTC)},
    ],
)
def test_d4_what_looks_odd_and_may_be_true_is_believed(change: dict[str, Any]) -> None:
    changed = replace(replace(SLOT, offers=(ADULT,)), **change)
    assert {name: getattr(changed, name) for name in change} == change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"local_end": START - HOUR}, "before it starts"),
        ({"local_end": START + HOUR, "end_utc_offset": timedelta(hours=3)}, "before it starts"),
        ({"local_start": datetime(2031, 3, 3, 9, tzinfo=UTC)}, "local times are naive"),
        ({"utc_offset": None, "end_utc_offset": HOUR}, "its start has none"),
        ({"utc_offset": timedelta(hours=19)}, "its offset from UTC is"),
        ({"bookable_until": START}, "no time zone"),
        ({"remaining": 11}, "11 places are left of 10"),
        ({"remaining": -1}, "remaining is -1"),
        ({"capacity": 2**31}, "capacity is 2147483648"),
        ({"status": SlotStatus.VANISHED}, "lists no vanished slots"),
        ({"currency": None, "offers": (ADULT,)}, "prices and no currency"),
        ({"currency": "eur"}, "'eur' is not a currency"),
        ({"currency_scale": 19}, "scale of its currency"),
        ({"offers": (ADULT, ADULT)}, "'ADULT' comes twice"),
        ({"slot_id": ""}, "1 to 255 printable characters"),
        ({"option_id": "a\0b"}, "1 to 255 printable characters"),
    ],
)
def test_d4_a_slot_that_cannot_be_true_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        replace(SLOT, **change)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"final": -1}, "the final price is -1"),
        ({"original": 10**18}, "the original price is"),
        ({"minimum": 10}, "minimum 10 is above maximum 9"),
        ({"remaining": -1}, "remaining is -1"),
        ({"name": "x" * 501}, "at most 500 characters"),
    ],
)
def test_d4_an_offer_that_cannot_be_true_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        replace(ADULT, **change)


def test_d4_a_product_that_cannot_be_true_is_refused() -> None:
    option, adult = Option("A", "Morning"), PaxCategory("ADULT", "Adult", age_from=18, age_to=99)
    assert Product("TOUR", "Tour", None, (option,), (adult,)).time_zone is None
    for wrong, words in (
        (lambda: Product("TOUR", "Tour", "Europe/Nowhere"), "not a time zone"),
        (lambda: Product("TOUR", "Tour", None, (option, option)), "option 'A' comes twice"),
        (lambda: Product("TOUR", "Tour", None, (), (adult, adult)), "category 'ADULT' comes twice"),
        (lambda: replace(adult, age_to=17), "age_from 18 is above age_to 17"),
        (lambda: replace(adult, pax_count=0), "pax_count is 0"),
        (lambda: Product("", "Tour", None), "a product has the id"),
    ):
        with pytest.raises(ValueError, match=words):
            wrong()


def test_d4_days_list_each_slot_once_and_none_outside() -> None:
    days = ProductDays("TOUR", Window(DAY, DAY), (SLOT, replace(SLOT, option_id="VIP")))
    assert not days.needs_zone
    assert replace(days, slots=(replace(SLOT, utc_offset=None),)).needs_zone
    for slots, words in (
        ((SLOT, SLOT), "comes twice"),
        ((replace(SLOT, local_start=START - timedelta(days=1)),), "outside of 2031-03-03 to 2031-03-03"),
        (
            (replace(SLOT, local_start=START + timedelta(days=1), local_end=START + timedelta(days=2)),),
            "outside",
        ),
    ):
        with pytest.raises(ValueError, match=words):
            replace(days, slots=slots)
    with pytest.raises(ValueError, match="before they start"):
        ProductDays("TOUR", Window(DAY, DAY - timedelta(days=1)), ())
    for change, words in (
        ({"kept": frozenset({(SLOT.option_id, SLOT.slot_id)})}, "believed and kept"),
        ({"unread": frozenset({DAY})}, "which is not read"),
        ({"slots": (), "unread": frozenset({DAY + timedelta(days=1)})}, "not asked for cannot be unread"),
    ):
        with pytest.raises(ValueError, match=words):
            replace(days, **change)


@pytest.mark.parametrize(
    "name",
    ["", "Europe", "../UTC", "/etc/passwd", "Mars/Phobos", "Europe/London\0", "localtime", "posix/UTC"],
)
def test_d4_what_is_no_time_zone(name: str) -> None:
    assert not is_time_zone(name)
    assert is_time_zone("Europe/London")
