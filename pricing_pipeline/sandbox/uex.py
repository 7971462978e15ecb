"""UEX: versions of the game, terminals, commodities and their prices. `uex_world` makes up what is traded.

Every answer is an envelope. Charged is one call, refused ones included, against a minute and a day of each key. Where
recordings are silent (refusals for too many calls or a wrong key), the choice is a guess.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from pricing_pipeline.sandbox.calls import Admission, ProviderCall, Reply
from pricing_pipeline.sandbox.keys import key_name
from pricing_pipeline.sandbox.limits import UnitWindow
from pricing_pipeline.sandbox.prices import Market
from pricing_pipeline.sandbox.settings import MOST_KEYS, SandboxSettings
from pricing_pipeline.sandbox.uex_world import GOODS, PLACES, TRADING, Good, Offer, Place, World

MOST_TERMINALS = 10
_SERVED = {
    "game_versions": set[str](),
    "terminals": {"type"},
    "commodities": set[str](),
    "commodities_prices": {"id_terminal"},
    "commodities_prices_all": set[str](),
}
"""Parameters of each endpoint."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """What one key has used."""

    minute: UnitWindow
    day: UnitWindow


class Uex:
    """The provider as the accounts behind its keys see it."""

    name = "uex"

    def __init__(self, settings: SandboxSettings, market: Market) -> None:
        self._settings = settings
        self._world = World(settings.seed, settings.uex_patch_days)
        self._plans: dict[str, _Plan] = {}
        self._makers: dict[str, Callable[[ProviderCall], Reply]] = {
            "game_versions": self._versions,
            "terminals": self._terminals,
            "commodities": self._commodities,
            "commodities_prices": self._prices,
            "commodities_prices_all": self._all_prices,
        }

    def read(
        self, endpoint: str, params: Mapping[str, str], headers: Mapping[str, str], now: datetime
    ) -> ProviderCall:
        # Its address ends with /2.0; ours may, too.
        endpoint = endpoint.removeprefix("2.0/").strip("/")
        scheme, _, key = headers.get("authorization", "").partition(" ")
        asked = (part.strip() for part in params.get("id_terminal", "").split(","))
        symbols = tuple(symbol for symbol in asked if symbol)
        return ProviderCall(endpoint, params, symbols, key if scheme == "Bearer" else None, now)

    def admit(self, call: ProviderCall) -> Admission:
        name = key_name(call.key, self._settings.uex_key)
        plan = None if name is None else self._plan(name)
        if plan is None:
            return Admission(0, _refusal(401, "user_not_authenticated"))
        at = call.now.timestamp()
        used = plan.minute.charge(1, at)
        is_over = plan.minute.is_over(used) | plan.day.is_over(plan.day.charge(1, at))
        headers = {}
        if plan.minute.limit is not None:
            headers["X-RateLimit-Limit"] = str(plan.minute.limit)
            headers["X-RateLimit-Remaining"] = str(plan.minute.left(used))
        refusal = None
        if is_over:
            wait = 60 if not plan.minute.is_over(used) else 60 - int(at) % 60
            refusal = _refusal(429, "requests_limit_reached", {"Retry-After": str(wait)})
        return Admission(1, refusal, headers, is_over_limit=is_over, key_name=name)

    def _plan(self, name: str) -> _Plan | None:
        """The windows of a key, as of an account of its own; None when there are too many keys."""
        plan = self._plans.get(name)
        if plan is None and len(self._plans) < MOST_KEYS:
            plan = self._plans[name] = _Plan(
                UnitWindow(self._settings.uex_calls_per_minute, 60),
                UnitWindow(self._settings.uex_calls_per_day, 86_400),
            )
        return plan

    def answer(self, call: ProviderCall) -> Reply:
        maker = self._makers.get(call.endpoint)
        if maker is None:
            return _refusal(404, "resource_not_found")
        if unknown := call.params.keys() - _SERVED[call.endpoint]:
            # What the provider does with it is not known.
            return _refusal(400, f"invalid_parameter_{min(unknown)}")
        return maker(call)

    def plan(self) -> dict[str, object]:
        return {
            "calls_per_minute": self._settings.uex_calls_per_minute,
            "calls_per_day": self._settings.uex_calls_per_day,
            "patch_days": self._settings.uex_patch_days,
        }

    def reset(self) -> None:
        self._plans.clear()

    def _versions(self, call: ProviderCall) -> Reply:
        live = self._world.version(_at(call))
        return _content({"live": live, "ptu": f"{live}-ptu"})

    def _terminals(self, call: ProviderCall) -> Reply:
        kind = call.params.get("type")
        return _content([_place_row(place) for place in PLACES if kind in (None, place.kind)])

    def _commodities(self, call: ProviderCall) -> Reply:
        return _content([_good_row(good) for good in GOODS])

    def _prices(self, call: ProviderCall) -> Reply:
        if not call.symbols:
            return _refusal(400, "requires_id_terminal_or_id_commodity_or_slug")
        if len(call.symbols) > MOST_TERMINALS:
            return _refusal(400, "too_many_terminals")
        at = _at(call)
        version = self._world.version(at)
        rows: list[dict[str, object]] = []
        for symbol in dict.fromkeys(call.symbols):
            number = call.answers.get(symbol, symbol)
            place = TRADING.get(int(number)) if number.isdecimal() and len(number) < 10 else None
            if place is not None:
                rows += [_full_row(offer, version) for offer in self._world.offers(place, at)]
        return _content(rows)

    def _all_prices(self, call: ProviderCall) -> Reply:
        at = _at(call)
        return _content(
            [_row(offer) for place in TRADING.values() for offer in self._world.offers(place, at)]
        )


def _at(call: ProviderCall) -> int:
    return int(call.now.timestamp())


def _place_row(place: Place) -> dict[str, object]:
    return {
        "id": place.number,
        "name": place.name,
        "nickname": place.name.rpartition(" - ")[2],
        "code": place.code,
        "type": place.kind,
        "is_available": int(place.is_available),
        "is_available_live": int(place.is_available),
        "is_visible": 1,
        "date_added": 1_700_000_000 + place.number,
        "date_modified": 0 if place.number % 3 else 1_720_000_000 + place.number,
        "star_system_name": place.system,
        "planet_name": place.planet,
        "orbit_name": place.planet,
        "moon_name": place.moon,
        "space_station_name": place.station,
        "outpost_name": place.outpost,
        "city_name": place.city,
    }


def _good_row(good: Good) -> dict[str, object]:
    return {
        "id": good.number,
        "name": good.name,
        "code": good.code,
        "slug": good.slug,
        "kind": good.kind,
        "price_buy": good.worth,
        "price_sell": good.worth,
        "is_available": 1,
        "is_visible": 1,
        "date_added": 1_700_000_000,
        "date_modified": 0,
    }


def _row(offer: Offer) -> dict[str, object]:
    """A row of the list of all prices."""
    return {
        "id": offer.place.number * 1000 + offer.good.number,
        "id_commodity": offer.good.number,
        "id_terminal": offer.place.number,
        "price_buy": offer.buy,
        "price_buy_avg": offer.buy,
        "price_sell": offer.sell,
        "price_sell_avg": offer.sell,
        "scu_buy": offer.stock,
        "scu_buy_avg": offer.stock,
        "scu_sell": offer.demand,
        "scu_sell_avg": offer.demand,
        "scu_sell_stock": 0,
        "status_buy": offer.status if offer.buy else 0,
        "status_sell": offer.status if offer.sell else 0,
        "container_sizes": "1,2,4,8,16,24,32",
        "date_added": 1_703_514_825,
        "date_modified": offer.modified,
        "commodity_name": offer.good.name,
        "terminal_name": offer.place.name,
    }


def _full_row(offer: Offer, version: str) -> dict[str, object]:
    """A row of the prices of some terminals, which says more."""
    return _row(offer) | {
        "commodity_code": offer.good.code,
        "commodity_slug": offer.good.slug,
        "terminal_code": offer.place.code,
        "terminal_slug": offer.place.name.lower().replace(" ", "-"),
        "star_system_name": offer.place.system,
        "planet_name": offer.place.planet,
        "game_version": version,
    }


def _content(data: object) -> Reply:
    return _reply(200, "ok", data)


def _refusal(status: int, reason: str, headers: Mapping[str, str] | None = None) -> Reply:
    """Reasons stand in the status, and the message is empty."""
    return _reply(status, reason, None, headers)


def _reply(status: int, reason: str, data: object, headers: Mapping[str, str] | None = None) -> Reply:
    body = {"status": reason, "http_code": status, "message": "", "data": data}
    return Reply(status, json.dumps(body, separators=(",", ":")).encode(), headers=headers or {})
