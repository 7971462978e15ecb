"""docs/api.md names every route of the API and no other, and its figures are those of the code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import signature

import pytest

from pricing_client import PricingClient, client
from pricing_pipeline.api import (
    access,
    app,
    demand,
    limits,
    live_stream,
    paging,
    parameters,
    stream,
    stream_hub,
)
from pricing_pipeline.processes import connections
from pricing_pipeline.settings import Settings
from pricing_pipeline_tests.support.api_routes import ROUTES
from pricing_pipeline_tests.support.pages import ROOT

PAGE = " ".join((ROOT / "docs/api.md").read_text().split())
STREAM_SQL = (ROOT / "pricing_pipeline/db/functions/demand/stream.sql").read_text()
NOT_ON_THE_PAGE = {"GET /v1/page"}  # of the operations page alone
WORDS = {"two": 2, "four": 4, "five": 5, "eight": 8, "ten": 10}


def plain(route: str) -> str:
    """A route, whatever its parameters are called."""
    return re.sub(r"\{\w+\}", "{}", route)


def named() -> Iterator[set[str]]:
    """Of each route that the page names, what it may mean: of `/cancel` after `POST /v1/tasks/retry`, two paths."""
    method, base = "", ""
    for words in re.findall(r"`((?:(?:GET|POST) )?/[a-z0-9_/{}.-]+)[?`]", PAGE):
        given, _, path = words.rpartition(" ")
        method = given or method
        if path.startswith("/v1/"):
            base = path
            yield {plain(f"{method} {path}")}
        elif method and base and path.count("/") == 1:
            yield {plain(f"{method} {base}{path}"), plain(f"{method} {base.rpartition('/')[0]}{path}")}


def test_b7_the_page_names_every_route_and_no_other() -> None:
    routes = {plain(name) for name in ROUTES if " /v1/" in name and name not in NOT_ON_THE_PAGE}
    found = set()
    for meant in named():
        found |= meant & routes
    assert routes - found == set()
    written = re.findall(r"`((?:GET|POST) /v1/[^`? ]+)", PAGE)
    assert {plain(route) for route in written} - routes == set()


OVER_HTTP = {
    "subscription": {"watch": "POST heartbeat", "end": "POST unsubscribe", "list": "GET subscriptions"},
    "holding": {
        "open": "POST hold",
        "import": "POST holdings/import",
        "close": "POST release",
        "list": "GET holdings",
    },
    "list": {"add": "POST lists/add", "show": "GET lists/{name}", "remove": "POST lists/remove"},
    "price": {
        "show": "GET prices",
        "why": "GET why",
        "history export": "GET history/{data_type}/{symbol}",
        "gaps": "GET gaps/{data_type}/{symbol}",
    },
    "document": {"show": "GET documents/{data_type}/{symbol}"},
    "product": {
        "list": "GET products",
        "show": "GET products/{symbol}",
        "availability": "GET products/{symbol}/availability",
    },
    "commodity": {
        "list": "GET commodities",
        "show": "GET commodities/{slug}/prices",
        "terminal": "GET terminals/{terminal}/prices",
        "routes": "GET trade-routes",
    },
    "backfill": {
        "start": "POST backfills",
        "list": "GET backfills",
        "show": "GET backfills/{backfill_id}",
        "cancel": "POST backfills/{backfill_id}/cancel",
    },
    "instrument": {
        "list": "GET instruments",
        "show": "GET instruments/{symbol}",
        "pause": "POST instruments/pause",
        "resume": "POST instruments/resume",
    },
    "type": {
        "list": "GET types",
        "show": "GET types/{data_type}",
        "refresh": "POST types/{data_type}/refresh",
    },
    "task": {
        "list": "GET tasks",
        "show": "GET tasks/{task_id}",
        "retry": "POST tasks/retry",
        "forget": "POST tasks/forget",
        "cancel": "POST tasks/cancel",
    },
    "provider": {"list": "GET providers", "show": "GET providers/{provider}"},
    "route": {"list": "GET types/{data_type}"},
    "limit": {"list": "GET providers/{provider}"},
    "quarantine": {
        "list": "GET quarantine",
        "show": "GET quarantine/{value_id}",
        "release": "POST quarantine/release",
        "reject": "POST quarantine/reject",
    },
    "action": {"list": "GET actions/{symbol}"},
    "alert": {
        "list": "GET alerts",
        "show": "GET alerts/{alert_id}",
        "acknowledge": "POST alerts/acknowledge",
        "silence": "POST alerts/silence",
        "unsilence": "POST alerts/unsilence",
    },
    "price-alert": {
        "add": "POST price-alerts",
        "list": "GET price-alerts",
        "show": "GET price-alerts/{price_alert_id}",
        "remove": "POST price-alerts/remove",
    },
    "operation": {
        "list": "GET operations",
        "show": "GET operations/{operation_id}",
        "status": "GET operations/status",
        "retry": "POST operations/retry",
        "cancel": "POST operations/cancel",
    },
}
"""The route that does what a command does."""


ONLY_ON_THE_COMMAND_LINE = {
    "up": "",
    "sandbox": "",
    "page": "",
    "db": "upgrade backup restore url psql",
    "status": "",
    "token": "add list remove",
    "key": "set list change remove rotate",
    "recipient": "add list show change remove",
    "notify": "test log",
    "operation-type": "add list show change remove",
    "provider": "declare undeclare symbols use undo change probe record try draft",
    "route": "add remove",
    "limit": "set remove set-caps",
    "instrument": "find add change spell merge remove",
    "commodity": "sync",
    "export": "list run move",
    "type": "add change set-ttl retire revive",
    "product": "set-zone",
    "calendar": "list add-session close-day undo",
    "action": "add remove show",
}
"""What belongs to the owner of the pipeline, by noun: no token may do it."""


def test_b7_each_command_has_a_route_or_belongs_to_the_owner_alone() -> None:
    routes = {
        f"{noun} {verb}": route
        for noun, verbs in OVER_HTTP.items()
        for words, route in verbs.items()
        for verb in words.split()
    }
    assert {route.replace(" ", " /v1/") for route in routes.values()} <= ROUTES.keys()
    alone = [
        f"{noun} {verb}".strip() for noun, verbs in ONLY_ON_THE_COMMAND_LINE.items() for verb in verbs.split() or [""]
    ]
    commands = re.findall(r"^## `pricing-pipeline (.+)`$", (ROOT / "docs/cli.md").read_text(), re.MULTILINE)
    assert sorted([*routes, *alone]) == sorted(commands)


def in_sql(pattern: str) -> int:
    """A number of stream.sql."""
    (number,) = re.findall(pattern, STREAM_SQL)
    return int(number)


FIGURES = {
    r"removes one: the API refuses it within (\S+) seconds": access.REMEMBERED_SECONDS,
    r"a user looks at these pairs now, at most (\S+) ": demand._MOST_PAIRS,
    r"the stored prices of up to (\S+) symbols": parameters.MOST_SYMBOLS,
    r"`pairs` names up to (\S+) pairs": stream._MOST_PAIRS,
    r"the stream follows within (\S+) seconds": stream_hub._UPKEEP_SECONDS,
    r"A pair counts as stale (\S+) seconds after its TTL": in_sql(r"grace interval := interval '(\d+) seconds'"),
    r"- Events come within about (a) second": 2 * stream_hub.PACE_SECONDS,
    r"The log goes back (\S+) minutes": in_sql(r"o\.noted_at < now_ - interval '(\d+) minutes'"),
    r"The log goes back \S+ minutes, or (\S+) events": in_sql(r"stream_head h\) - (\d+)\)"),
    r"gets `missed` when (\S+) events wait": live_stream.MOST_PENDING,
    r"One that reads nothing for (a) minute is disconnected": stream._PATIENCE_SECONDS / 60,
    r"a comment comes every (\S+) seconds": stream._COMMENT_SECONDS,
    r"neither event nor comment comes for (\S+) seconds": client._SILENCE_SECONDS,
    r"A user can have (\S+) streams with one token": stream_hub.MOST_OF_USER,
    r"streams with one token, a token (\d+),": stream_hub.MOST_OF_TOKEN,
    r"streams with one token, a token \d+, and a server (\d+);": stream_hub.MOST_STREAMS,
    r"database fails or hangs for (\S+) seconds, streams end": stream_hub._OUTAGE_SECONDS,
    r"A stream ends within (\S+) seconds after its token": access.REMEMBERED_SECONDS,
    r"try again for up to (\S+) seconds \(`patience`\)": signature(PricingClient).parameters["patience"].default,
    r"A list takes `limit` \((\d+) rows": paging.USUAL_ROWS,
    r"rows, at most (\S+)\) and answers `next`": paging.MOST_ROWS,
    r"the body takes longer than (\S+) s to arrive": connections.BODY_SECONDS,
    r"no `Content-Length`, or more than (\S+) bytes": connections.LONGEST_BODY,
    r"requests a second \((\S+)\), and after a pause as many": Settings.model_fields["api_requests_per_second"].default,
    r"one more request for each (\S+) bytes": limits._BYTES_OF_ONE,
    r"- (\S+) requests processed at a time": app.AT_ONCE_OF_ONE,
    r"of (\S+) that the process can handle": app.AT_ONCE,
    r"- (\S+) requests that are being read, waiting": limits._MOST_UNDER_WAY,
    r"unread answer, and (\S+) MB of bodies": limits._MOST_BYTES_UNDER_WAY / 1_000_000,
}


@pytest.mark.parametrize("sentence", FIGURES)
def test_b7_b27_the_figures_of_the_page_are_those_of_the_code(sentence: str) -> None:
    (given,) = re.findall(sentence, PAGE)
    number = 1 if given == "a" else WORDS.get(given.lower()) or float(given.replace(",", ""))
    assert number == FIGURES[sentence]
