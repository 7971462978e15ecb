"""C4: the sandbox's UEX: its envelope, its plan, and a world in which amounts move prices."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from pricing_pipeline.sandbox.calls import Reply
from pricing_pipeline.sandbox.settings import SandboxSettings
from pricing_pipeline.sandbox.uex import Uex
from pricing_pipeline.sandbox.uex_world import TRADING, World

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
KEY = {"authorization": "Bearer sandbox-key"}


def uex(**settings: Any) -> Uex:
    return Uex(SandboxSettings(**settings))


def asked(provider: Uex, endpoint: str, at: datetime = NOON, key: dict[str, str] = KEY, **params: str) -> Reply:
    call = provider.read(endpoint, params, key, at)
    return provider.refusal(call, provider.charge(call)) or provider.answer(call)


def rows(reply: Reply) -> Any:
    body = json.loads(reply.body)
    assert (body["status"], body["http_code"], reply.status) == ("ok", 200, 200)
    return body["data"]


def test_c4_answers_are_envelopes_and_the_address_may_have_its_version() -> None:
    provider = uex()
    listed = rows(asked(provider, "2.0/commodities_prices", id_terminal="6,15"))
    assert {row["id_terminal"] for row in listed} == {6, 15}
    assert {row["game_version"] for row in listed} == {rows(asked(provider, "game_versions"))["live"]}
    assert rows(asked(provider, "commodities_prices", id_terminal="999")) == []
    for endpoint, status in (("commodities_prices", 400), ("nothing", 404)):
        reply = asked(provider, endpoint)
        assert (reply.status, json.loads(reply.body)["data"]) == (status, None)


def test_a6_ten_calls_a_minute_and_a_key() -> None:
    provider = uex()
    assert asked(provider, "terminals", key={}).status == 401
    statuses = [asked(provider, "game_versions", NOON + timedelta(seconds=second)).status for second in range(11)]
    assert statuses == [200] * 10 + [429]
    assert asked(provider, "game_versions", NOON + timedelta(seconds=60)).status == 200
    of_day = uex(uex_calls_per_minute=None, uex_calls_per_day=3)
    assert [asked(of_day, "game_versions").status for _ in range(4)] == [200] * 3 + [429]


def test_c4_where_there_is_much_it_is_cheap_and_all_of_it_moves() -> None:
    world, at = World(2013), int(NOON.timestamp())
    seen: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for hour in range(0, 240, 3):
        for place in list(TRADING.values())[:12]:
            for offer in world.offers(place, at + hour * 3600):
                assert (offer.buy == 0) != (offer.sell == 0)
                pair = (place.number, offer.good.number)
                seen.setdefault(pair, set()).add((offer.stock, offer.buy) if offer.buy else (-offer.demand, offer.sell))
    assert len(seen) > 100
    for offers in seen.values():
        by_amount = sorted(offers)
        assert by_amount[0][1] >= by_amount[-1][1], "it is dearer where there is more"
    assert sum(len(offers) > 5 for offers in seen.values()) > len(seen) * 0.9


def test_c4_a_patch_makes_all_prices_others_and_unknown_at_first() -> None:
    world, at = World(2013), int(NOON.timestamp())
    patch = next(moment for moment in range(at, at + 91 * 86400, 60) if world.version(moment) != world.version(at))
    places = list(TRADING.values())
    before = sum(len(world.offers(place, patch - 60)) for place in places)
    assert sum(len(world.offers(place, patch)) for place in places) < before / 10
    assert sum(len(world.offers(place, patch + 2 * 3600)) for place in places) == before
