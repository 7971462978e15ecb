"""UEX: versions of the game, terminals, commodities and their prices. `uex_world` makes up what is traded.

Every answer is an envelope. Charged is one call, refused ones included, against a minute and a day of each key. Where
recordings are silent (refusals for too many calls or a wrong key), the choice is a guess.
"""

from __future__ import annotations

from collections.abc import Mapping

from pricing_pipeline.sandbox.calls import Dialect, ProviderCall, Refused, Reply, bearer, json_reply, listed
from pricing_pipeline.sandbox.limits import MINUTE, Charge, Plan
from pricing_pipeline.sandbox.settings import SandboxSettings
from pricing_pipeline.sandbox.uex_world import GOODS, PLACES, TRADING, Good, Offer, Place, World

MOST_TERMINALS = 10

Row = dict[str, object]


class Uex(Dialect):
    name = "uex"
    roots = ("2.0/",)

    def __init__(self, settings: SandboxSettings) -> None:
        super().__init__(Plan(settings.key, settings.uex_calls_per_minute, settings.uex_calls_per_day))
        self._world = World(settings.seed)

    def symbols(self, endpoint: str, params: Mapping[str, str]) -> tuple[str, ...]:
        return listed(params.get("id_terminal", ""))

    def key(self, params: Mapping[str, str], headers: Mapping[str, str]) -> str | None:
        return bearer(headers)

    def limit_headers(self, charge: Charge) -> Mapping[str, str]:
        left = self.plan.left_in_minute(charge)
        if left is None:
            return {}
        return {"X-RateLimit-Limit": str(self.plan.per_minute), "X-RateLimit-Remaining": str(left)}

    def wrong_key(self, call: ProviderCall) -> Reply:
        return _envelope(401, "user_not_authenticated")

    def over_limit(self, charge: Charge, call: ProviderCall) -> Reply:
        wait = MINUTE if charge.exceeds == "day" else MINUTE - int(call.now.timestamp()) % MINUTE
        return _envelope(429, "requests_limit_reached", headers={"Retry-After": str(wait)})

    def answered(self, call: ProviderCall) -> Reply:
        at = int(call.now.timestamp())
        live = self._world.version(at)
        match call.endpoint:
            case "game_versions":
                return _envelope(data={"live": live, "ptu": f"{live}-ptu"})
            case "terminals":
                kind = call.params.get("type")
                return _envelope(data=[_place_row(place) for place in PLACES if kind in (None, place.kind)])
            case "commodities":
                return _envelope(data=[_good_row(good) for good in GOODS])
            case "commodities_prices":
                rows = [_full_row(offer, live) for place in _asked(call) for offer in self._world.offers(place, at)]
                return _envelope(data=rows)
            case "commodities_prices_all":
                places = TRADING.values()
                return _envelope(data=[_row(offer) for place in places for offer in self._world.offers(place, at)])
        return _envelope(404, "resource_not_found")


def _asked(call: ProviderCall) -> list[Place]:
    """The terminals asked for, without those that are not known."""
    if not call.symbols:
        raise Refused(_envelope(400, "requires_id_terminal_or_id_commodity_or_slug"))
    if len(call.symbols) > MOST_TERMINALS:
        raise Refused(_envelope(400, "too_many_terminals"))
    numbers = [call.answers.get(symbol, symbol) for symbol in dict.fromkeys(call.symbols)]
    found = (TRADING.get(int(number)) for number in numbers if number.isdecimal() and len(number) < 10)
    return [place for place in found if place is not None]


def _place_row(place: Place) -> Row:
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


def _good_row(good: Good) -> Row:
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


def _row(offer: Offer) -> Row:
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


def _full_row(offer: Offer, version: str) -> Row:
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


def _envelope(
    status: int = 200, reason: str = "ok", data: object = None, headers: Mapping[str, str] | None = None
) -> Reply:
    """The status has the reason of a refusal, and the message is empty."""
    body = {"status": reason, "http_code": status, "message": "", "data": data}
    return json_reply(body, status, headers)
