"""Every route of the HTTP API with the scope that it needs and a request that it takes: one line for each.

A route without a line fails tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE

PAIR = {"pairs": [{"data_type": QUOTE, "symbol": "AAPL"}]}
NOWHERE = "00000000-0000-4000-8000-000000000000"


@dataclass(frozen=True)
class Route:
    """What a route needs (None: no token), a request, and the status of its answer in an empty pipeline."""

    needs: Scope | None
    status: int = 200
    params: Mapping[str, str] = field(default_factory=dict)
    body: object = None
    of_user: bool = False
    """Whether it is about one user, who must be named."""
    needs_too: Scope | None = None
    """A second scope that it needs."""
    is_endless: bool = False
    """Whether its answer lasts until the caller goes."""


READ, WATCH, OPERATE = Scope.READ, Scope.WATCH, Scope.OPERATE
NONE_SUCH = 999_999_999
COLUMNS = {"column": "symbol=Ticker"}
IDS = {"ids": [NONE_SUCH]}
PRICE_ALERT = {
    "recipient": "nosuch",
    "data_type": QUOTE,
    "symbol": "AAPL",
    "condition": "above",
    "threshold": "200",
}

ROUTES: Mapping[str, Route] = {
    "GET /livez": Route(None),
    "GET /healthz": Route(None),
    "GET /metrics": Route(READ),
    "GET /v1/prices": Route(READ, params={"symbols": "AAPL"}),
    "GET /v1/why": Route(READ, params={"symbols": "AAPL"}),
    "GET /v1/history/{data_type}": Route(READ, 404, params={"symbols": "AAPL"}),
    "GET /v1/history/{data_type}/{symbol}": Route(READ, 404),
    "GET /v1/documents/{data_type}/{symbol}": Route(READ, 404),
    "GET /v1/products": Route(READ),
    "GET /v1/products/{symbol}": Route(READ, 404),
    "GET /v1/products/{symbol}/availability": Route(READ, 404),
    "GET /v1/commodities": Route(READ),
    "GET /v1/commodities/{slug}/prices": Route(READ, 404),
    "GET /v1/terminals/{terminal}/prices": Route(READ, 404),
    "GET /v1/trade-routes": Route(READ),
    "GET /v1/actions/{symbol}": Route(READ, 404),
    "GET /v1/gaps/{data_type}/{symbol}": Route(READ, 404),
    "GET /v1/types": Route(READ),
    "GET /v1/types/{data_type}": Route(READ, 404),
    "POST /v1/types/{data_type}/refresh": Route(OPERATE, 404),
    "GET /v1/providers": Route(READ),
    "GET /v1/providers/{provider}": Route(READ, 404),
    "GET /v1/instruments": Route(READ),
    "GET /v1/instruments/{symbol}": Route(READ, 404),
    "GET /v1/stream": Route(WATCH, params={"pairs": f"{QUOTE}:AAPL"}, of_user=True, needs_too=READ, is_endless=True),
    "POST /v1/heartbeat": Route(WATCH, body=PAIR, of_user=True),
    "POST /v1/unsubscribe": Route(WATCH, body=PAIR, of_user=True),
    "POST /v1/hold": Route(WATCH, body=PAIR, of_user=True),
    "POST /v1/release": Route(WATCH, body=PAIR, of_user=True),
    "GET /v1/subscriptions": Route(WATCH, of_user=True),
    "GET /v1/holdings": Route(WATCH, of_user=True),
    "POST /v1/holdings/import": Route(WATCH, body=b"Ticker,Shares\nMSFT,1\n", params=COLUMNS, of_user=True),
    "GET /v1/lists": Route(WATCH, of_user=True),
    "GET /v1/lists/{name}": Route(WATCH, 404, of_user=True),
    "POST /v1/lists/add": Route(WATCH, body={"list": "mine", **PAIR}, of_user=True),
    "POST /v1/lists/remove": Route(WATCH, 404, body={"list": "nosuch"}, of_user=True),
    "GET /v1/page": Route(READ),
    "GET /v1/tasks": Route(READ),
    "GET /v1/tasks/{task_id}": Route(READ, 404),
    "POST /v1/tasks/retry": Route(OPERATE, 404, body=IDS),
    "POST /v1/tasks/forget": Route(OPERATE, 404, body=IDS),
    "POST /v1/tasks/cancel": Route(OPERATE, 404, body=IDS),
    "GET /v1/operations": Route(OPERATE),
    "GET /v1/operations/status": Route(OPERATE),
    "GET /v1/operations/{operation_id}": Route(OPERATE, 404),
    "POST /v1/operations/retry": Route(OPERATE, 404, body=IDS),
    "POST /v1/operations/cancel": Route(OPERATE, 404, body=IDS),
    "GET /v1/quarantine": Route(READ),
    "GET /v1/quarantine/{value_id}": Route(READ, 404),
    "GET /v1/quarantine/{value_id}/body": Route(OPERATE, 404),
    "POST /v1/quarantine/ask": Route(OPERATE, 404, body=IDS),
    "POST /v1/quarantine/release": Route(OPERATE, 404, body=IDS),
    "POST /v1/quarantine/reject": Route(OPERATE, 404, body=IDS),
    "GET /v1/backfills": Route(READ),
    "POST /v1/backfills": Route(OPERATE, 503, body={"data_type": DAILY, "first_day": "2013-01-10"}),
    "GET /v1/backfills/cost": Route(READ, params={"data_type": DAILY, "first_day": "2013-01-10"}),
    "GET /v1/backfills/runs/{run_id}": Route(READ, 503),
    "GET /v1/backfills/{backfill_id}": Route(READ, 404),
    "POST /v1/backfills/{backfill_id}/cancel": Route(OPERATE, 404),
    "GET /v1/alerts": Route(READ),
    "GET /v1/alerts/{alert_id}": Route(READ, 404),
    "POST /v1/alerts/acknowledge": Route(OPERATE, 404, body=IDS),
    "POST /v1/alerts/silence": Route(OPERATE, body={"alert": "breaker_open", "hours": 1}),
    "POST /v1/alerts/unsilence": Route(OPERATE, body={"alert": "breaker_open"}),
    "GET /v1/price-alerts": Route(WATCH, of_user=True),
    "GET /v1/price-alerts/{price_alert_id}": Route(WATCH, 404, of_user=True),
    "POST /v1/price-alerts": Route(WATCH, 404, body=PRICE_ALERT, of_user=True),
    "POST /v1/price-alerts/remove": Route(WATCH, 404, body=IDS, of_user=True),
    "POST /v1/instruments/pause": Route(OPERATE, body={"symbols": ["AAPL"]}),
    "POST /v1/instruments/resume": Route(OPERATE, body={"symbols": ["AAPL"]}),
}

_PLACES = {"{backfill_id}": NOWHERE, "{run_id}": NOWHERE}


def request_of(name: str) -> tuple[str, str, dict[str, Any]]:
    """Method, path and request of a route."""
    method, _, path = name.partition(" ")
    parts = [_PLACES.get(part, str(NONE_SUCH)) if part.startswith("{") else part for part in path.split("/")]
    route = ROUTES[name]
    request: dict[str, Any] = {"params": dict(route.params)}
    if route.body is not None:
        request["content" if isinstance(route.body, bytes) else "json"] = route.body
    return method, "/".join(parts), request
