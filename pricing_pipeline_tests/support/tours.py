"""The sandbox's tours as tests of inventory use them: calls without a client, and what an answer must come to."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC
from typing import Any

from pricing_pipeline.domain.answers import Answer, FailureKind
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.inventory import PaxOffer, ProductDays, SlotStatus
from pricing_pipeline.domain.inventory import Slot as StoredSlot
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.providers.base import Dialogue, Request
from pricing_pipeline.providers.headout import DEFAULT_CURRENCY, Headout
from pricing_pipeline.providers.octo import Octo
from pricing_pipeline.sandbox.headout import converted, variant_id
from pricing_pipeline.sandbox.instruments import pick
from pricing_pipeline.sandbox.octo import octo_id
from pricing_pipeline.sandbox.service import Sandbox
from pricing_pipeline.sandbox.slots import CUTOFF, Slot
from pricing_pipeline.sandbox.tours import Tour
from pricing_pipeline_tests.support.sandbox_server import Asked

OCTO, HEADOUT = Octo(), Headout()
Answering = Callable[[Request], Response]


def responded(status: int, body: object, **headers: str) -> Response:
    """A response; a body that is no bytes is written as JSON."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Response(status, headers, raw, len(raw))


def driven(dialogue: Dialogue, answer: Answering) -> tuple[Answer, list[Request]]:
    """A whole call: each request gets its answer. Returns the call's answer, and what was asked."""
    asked: list[Request] = []
    try:
        request = next(dialogue)
        while True:
            asked.append(request)
            request = dialogue.send(answer(request))
    except StopIteration as end:
        return end.value, asked


def days_of(answer: Answer) -> ProductDays:
    """The slots in an answer."""
    (days,) = (one for one in answer.records if isinstance(one, ProductDays))
    return days


def kinds(answer: Answer) -> list[FailureKind]:
    """The failures of an answer that has nothing else."""
    assert not answer.records
    return [one.kind for one in answer.failures]


def scripted(*answers: Response) -> Answering:
    """Answers in their order."""
    rest = iter(answers)
    return lambda _: next(rest)


def answering(asked: Asked, provider: Octo | Headout, key: str | None = None) -> Answering:
    """The sandbox as it answers a request, without a server between."""
    sent = provider.authorize(key or asked.settings.key)

    def answer(request: Request) -> Response:
        body = request.json or {}
        assert isinstance(body, dict)
        headers = {name.lower(): value for name, value in (*request.headers, *sent.items())}
        reply = asked.ask(
            provider.name, request.path.strip("/"), {**dict(request.params), **body}, headers, request.method
        )
        return Response(reply.status, {k.lower(): v for k, v in reply.headers.items()}, reply.body, len(reply.body))

    return answer


def symbol_of(provider: str, number: int) -> str:
    return octo_id(number) if provider == "octo" else str(5000 + number)


def true_days(sandbox: Sandbox, provider: str, number: int, window: Window, now: Any) -> ProductDays:
    """What a partner has of a tour on these days, by the sandbox's own state."""
    tour = sandbox.tours.tour(number)
    assert tour is not None
    found = [
        _octo_slot(tour, slot) if provider == "octo" else _headout_slot(tour, slot, place)
        for place, option in enumerate(tour.options)
        for slot in sandbox.tours.slots(tour, option, window.start, window.end, now)
    ]
    return ProductDays(symbol_of(provider, number), window, tuple(found))


def _octo_slot(tour: Tour, slot: Slot) -> StoredSlot:
    names = {unit.unit_id: unit.name for unit in tour.units}
    most = 9 if slot.seats is None else min(slot.seats, 9)
    start, end = slot.start.utcoffset(), slot.end.utcoffset()
    return StoredSlot(
        slot_id=slot.start.isoformat(),
        option_id=slot.option_id,
        local_start=slot.start.replace(tzinfo=None, fold=0),
        local_end=slot.end.replace(tzinfo=None, fold=0),
        utc_offset=start,
        end_utc_offset=None if start == end else end,
        status=_octo_status(slot),
        remaining=0 if slot.is_closed and slot.left is not None else slot.left,
        capacity=slot.seats,
        currency=tour.place.currency,
        currency_scale=tour.place.digits,
        offers=tuple(
            PaxOffer(
                *(price.unit_id, names[price.unit_id], price.retail, price.original),
                minimum=1,
                maximum=most,
                is_primary=n == 0,
            )
            for n, price in enumerate(slot.prices)
        ),
        bookable_until=(slot.start - CUTOFF).astimezone(UTC),
    )


def _octo_status(slot: Slot) -> SlotStatus:
    if slot.is_closed:
        return SlotStatus.CLOSED
    if slot.seats is None or slot.left is None:
        return SlotStatus.FREESALE
    if slot.left == 0:
        return SlotStatus.SOLD_OUT
    return SlotStatus.LIMITED if slot.left * 5 <= slot.seats else SlotStatus.AVAILABLE


def _headout_slot(tour: Tour, slot: Slot, place: int) -> StoredSlot:
    units = {unit.unit_id: unit for unit in tour.units}
    offers = []
    for n, price in enumerate(slot.prices):
        unit = units[price.unit_id]
        retail, original = (
            converted(one, tour.place.currency, DEFAULT_CURRENCY) for one in (price.retail, price.original)
        )
        group = (f"GROUP_{unit.pax}", f"Group of up to {unit.pax}")
        named = group if tour.is_by_group else (unit.kind, unit.name)
        if tour.is_by_group:
            offers.append(PaxOffer(*named, retail, original, 1, 1, pax_count=unit.pax))
        else:
            youngest, oldest = unit.ages
            offer = PaxOffer(*named, retail, original, is_primary=n == 0)
            offers.append(replace(offer, age_from=youngest, age_to=oldest))
    if slot.is_closed:
        status = SlotStatus.CLOSED
    elif slot.left is None:
        status = SlotStatus.FREESALE
    else:
        status = SlotStatus.AVAILABLE if slot.left else SlotStatus.SOLD_OUT
    return StoredSlot(
        slot_id=str(pick(f"headout:{slot.key}", 10**8, 10**9)),
        option_id=str(variant_id(tour.number, place)),
        local_start=slot.start.replace(tzinfo=None, fold=0),
        local_end=slot.end.replace(tzinfo=None, fold=0),
        utc_offset=None,
        status=status,
        remaining=None if slot.left is None and not slot.is_closed else slot.left or 0,
        capacity=None,
        currency=DEFAULT_CURRENCY,
        currency_scale=2,
        offers=tuple(offers),
    )
