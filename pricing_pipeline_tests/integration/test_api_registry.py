"""What else there is to read over HTTP: documents, actions, gaps, data types, providers, instruments."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from fastapi import FastAPI

from pricing_pipeline.api import description
from pricing_pipeline.domain.answers import Answer, Dividend, Document, Split
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.prices import actions
from pricing_pipeline.providers.configured import configured_clients
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.refresh import settling
from pricing_pipeline.settings import Settings
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, NAV, QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.api_server import RunningApi, running_api
from pricing_pipeline_tests.support.patience import PATIENCE

pytestmark = pytest.mark.usefixtures("still")

EARNINGS = "company_earnings"


def add_earnings(core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes)"
        f" VALUES ('{EARNINGS}', 'earnings', 60)"
    )


def bring(core: Core, eps: str) -> None:
    core.enqueue(EARNINGS, "AAPL")
    report = Document("AAPL", date(2026, 7, 30), {"symbol": "AAPL", "eps": Decimal(eps), "is_estimate": False})
    settling.settle_answer(core.engine, core.claim_one("fmp"), Fetched(Answer(records=[report]), 200, 700))


def test_b29_documents_are_read_and_asked_for(api: RunningApi, core: Core, clock: Clock) -> None:
    add_earnings(core)
    caller = api.caller(Scope.READ)
    answer = caller.get(f"documents/{EARNINGS}/aapl")
    assert (answer["symbol"], answer["documents"], answer["fetched_at"]) == ("AAPL", [], None)
    asked = core.rows("SELECT symbol FROM pricing.pair_requests WHERE kind = 'read'")
    assert {row.symbol for row in [*asked, *core.tasks()]} == {"AAPL"}
    bring(core, "1.640")
    then = core.clock()
    clock.advance(60)
    bring(core, "1.65")
    answer = caller.get(f"documents/{EARNINGS}/AAPL")
    (document,) = answer["documents"]
    assert (document["period"], answer["fresh"]) == ("2026-07-30", True)
    assert document["body"] == {"symbol": "AAPL", "eps": "1.65", "is_estimate": False}
    past = caller.get(f"documents/{EARNINGS}/AAPL", as_of=then.isoformat())
    assert past["documents"][0]["body"]["eps"] == "1.640"
    assert (past["fresh"], past["fetched_at"]) == (None, None)


def test_f3_actions_are_read_as_they_were_believed(api: RunningApi, core: Core, clock: Clock, cli: CommandLine) -> None:
    before = core.clock()
    clock.advance(60)
    with core.owner.begin() as connection:
        actions.enter(
            connection, "equity", Split("AAPL", date(2010, 3, 2), Decimal(4), Decimal(1)), "ann", "it says so"
        )
        actions.enter(connection, "equity", Dividend("AAPL", date(2010, 3, 3), Decimal("0.250"), "USD"), "ann")
    caller = api.caller(Scope.READ)
    answer = caller.get("actions/AAPL")
    told = [{name: value for name, value in one.items() if value is not None} for one in answer["actions"]]
    said = cli("action", "list", "AAPL", "--json").json["actions"]
    assert told == [{name: value for name, value in one.items() if value is not None} for one in said]
    assert [(one["kind"], one.get("new_shares"), one.get("amount")) for one in told] == [
        ("dividend", None, "0.25"),
        ("split", "4", None),
    ]
    assert caller.get("actions/AAPL", as_of=before.isoformat())["actions"] == []


def test_f8_gaps_are_those_of_the_command(api: RunningApi, core: Core, cli: CommandLine) -> None:
    core.rows("SELECT pricing.store_own_sessions('24/7', '2010-01-01', '2010-12-31')")
    core.rows("UPDATE pricing.instruments SET calendar = '24/7' WHERE symbol = 'AAPL'")
    days = {"from": "2010-03-01", "to": "2010-03-31"}
    answer = api.caller(Scope.READ).get(f"gaps/{DAILY}/AAPL", **days)
    said = cli("price", "gaps", "AAPL", "--type", DAILY, "--from", days["from"], "--to", days["to"], "--json").json
    assert [{"data_type": DAILY, **gap} for gap in answer["gaps"]] == said["gaps"] != []
    assert (answer["from"], answer["to"]) == (days["from"], days["to"])
    assert answer["market_closed"] == said["market_closed"][DAILY]


def test_the_catalog_is_what_the_commands_tell(core: Core, cli: CommandLine) -> None:
    core.rows(f"UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = '{QUOTE}'")
    with running_api(core.engine, core.owner, settings=Settings(home=cli.home)) as api:
        reader = api.caller(Scope.READ)
        for path, command in (
            ("types", ("type", "list")),
            ("types?retired=true", ("type", "list", "--retired")),
            (f"types/{DAILY}", ("type", "show", DAILY)),
            ("providers", ("provider", "list")),
            ("providers/twelvedata", ("provider", "show", "twelvedata")),
            ("instruments?asset_class=fund", ("instrument", "list", "--asset-class", "fund")),
            ("instruments/AAPL", ("instrument", "show", "AAPL")),
            ("instruments/eur/usd", ("instrument", "show", "EUR/USD")),
        ):
            said = cli(*command, "--json").json
            told = reader.ask("GET", path).json()
            assert has_all(told, said), (told, said)


@pytest.mark.parametrize("is_sandbox", [True, False])
def test_where_calls_go_is_told_as_they_go(core: Core, is_sandbox: bool) -> None:
    settings = Settings(sandbox=is_sandbox, sandbox_url="http://127.0.0.1:8123")
    with running_api(core.engine, core.owner, settings=settings) as api:
        told = api.caller(Scope.READ).get("providers/twelvedata")
        (listed,) = [
            one for one in api.caller(Scope.READ).get("providers")["providers"] if one["provider"] == "twelvedata"
        ]
    with configured_clients(settings, {"twelvedata": told["base_url"]}) as clients:
        assert told["call_url"] == listed["call_url"] == clients["twelvedata"].base_url
    assert told["is_sandbox"] == listed["is_sandbox"] == is_sandbox
    assert (told["call_url"] == told["base_url"]) is not is_sandbox


def has_all(told: Any, said: Any) -> bool:
    """Whether an answer has what a command says; it may have more, and leaves out what only Python needs."""
    if isinstance(said, dict):
        return all(has_all(told[name], value) for name, value in said.items() if name != "table_name")
    if isinstance(said, list):
        return len(told) == len(said) and all(map(has_all, told, said))
    return bool(told == said)


def test_instruments_come_in_pages(api: RunningApi, core: Core) -> None:
    caller = api.caller(Scope.READ)
    whole = caller.get("instruments", limit=1000)
    assert whole["next"] is None
    found: list[Any] = []
    cursor: dict[str, str] = {}
    while True:
        page = caller.get("instruments", limit=3, **cursor)
        found += page["instruments"]
        assert len(page["instruments"]) <= 3
        if page["next"] is None:
            break
        cursor = {"cursor": page["next"]}
    assert found == whole["instruments"]
    assert len({(one["asset_class"], one["symbol"]) for one in found}) == len(found) > 3


def test_an_answer_that_the_client_has_is_not_sent_again(api: RunningApi, core: Core) -> None:
    caller = api.caller(Scope.READ)
    for path in ("types", f"types/{DAILY}", "actions/AAPL"):
        first = caller.ask("GET", path)
        again = caller.ask("GET", path, headers={"If-None-Match": first.headers["etag"]})
        assert (first.status_code, again.status_code, again.content) == (200, 304, b"")
    tag = caller.ask("GET", "types").headers["etag"]
    core.rows(f"UPDATE pricing.data_type_registry SET default_ttl_minutes = 7 WHERE data_type = '{QUOTE}'")
    assert caller.ask("GET", "types", headers={"If-None-Match": tag}).status_code == 200
    for path in ("providers", "instruments", "prices?symbols=AAPL"):
        assert "etag" not in caller.ask("GET", path).headers


BAD = [
    ("documents/nosuch/AAPL", {}, 404, "no active data type"),
    (f"documents/{QUOTE}/AAPL", {}, 404, "is a type of prices"),
    (f"documents/{EARNINGS}/NOSUCH", {}, 404, "is called 'NOSUCH'"),
    (f"documents/{EARNINGS}/AAPL", {"as_of": "yesterday"}, 422, "write a time like"),
    ("actions/NOSUCH", {}, 404, "is called 'NOSUCH'"),
    ("actions/AAPL", {"asset_class": "fund"}, 404, "funds have the numbers of their schemes"),
    ("actions/AAPL", {"as_of": "2010"}, 422, "write a time like"),
    ("gaps/nosuch/AAPL", {}, 404, "no active data type"),
    (f"gaps/{DAILY}/NOSUCH", {}, 404, "is called 'NOSUCH'"),
    (f"gaps/{QUOTE}/AAPL", {}, 422, ""),
    (f"gaps/{EARNINGS}/AAPL", {}, 404, "/v1/documents"),
    (f"gaps/{DAILY}/AAPL", {"from": "2010-03-02", "to": "2010-03-01"}, 422, "ends before it begins"),
    (f"gaps/{DAILY}/AAPL", {"from": "x"}, 422, "write a day like"),
    ("types/nosuch", {}, 404, "is called 'nosuch'"),
    ("types", {"retired": "x"}, 422, "retired"),
    (f"types/{'x' * 64}", {}, 422, "48"),
    ("providers/nosuch", {}, 404, "Known: fmp"),
    ("instruments/NOSUCH", {}, 404, "is called 'NOSUCH'"),
    ("instruments", {"limit": "0"}, 422, "limit"),
    ("instruments", {"cursor": "x"}, 422, "cursor"),
    ("instruments/AAPL", {"asset_class": "fund"}, 404, "funds have the numbers of their schemes"),
    ("instruments/AAPL%20MSFT", {}, 404, "it looks like a symbol of no data type"),
    ("instruments/A%00", {}, 422, "NUL"),
]


def test_bad_requests_are_refused_in_words(api: RunningApi, core: Core) -> None:
    add_earnings(core)
    caller = api.caller(Scope.READ)
    for path, params, status, words in BAD:
        problem = caller.refusal("GET", path, params=params)
        assert (problem["status"], words in problem["detail"]) == (status, True), (path, problem)


def test_b14_a_type_with_a_schedule_is_queued_at_once_by_operators(api: RunningApi, core: Core, clock: Clock) -> None:
    core.rows("DELETE FROM pricing.instruments WHERE asset_class = 'fund' AND symbol <> '119551'")
    operator = api.caller(Scope.OPERATE)
    assert operator.post(f"types/{NAV}/refresh") == {"data_type": NAV, "queued": 1}
    clock.advance(60)
    assert operator.post(f"types/{NAV}/refresh")["queued"] == 0, "it waits already"
    assert core.statuses() == {"119551": "pending"}
    problem = operator.refusal("POST", f"types/{QUOTE}/refresh")
    assert (problem["status"], "has no schedule" in problem["detail"]) == (422, True)


@pytest.fixture
def described(monkeypatch: pytest.MonkeyPatch) -> list[FastAPI]:
    """Whose descriptions were spelled, which takes a second of each that is not this short one."""
    found: list[FastAPI] = []

    def document(app: FastAPI) -> dict[str, Any]:
        found.append(app)
        return {"openapi": "3.1.0"}

    monkeypatch.setattr(description, "_document", document)
    return found


def test_b7_others_are_answered_while_the_description_is_spelled(
    api: RunningApi, described: list[FastAPI], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes seconds, and the first who asks needs no token."""
    spell, may_spell = description._spelled, threading.Event()
    has_begun = threading.Event()

    def spell_late(app: FastAPI) -> description._Description:
        has_begun.set()
        assert may_spell.wait(PATIENCE)
        return spell(app)

    monkeypatch.setattr(description, "_spelled", spell_late)
    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(api.client.get, "/openapi.json") for _ in range(3)]
        assert has_begun.wait(PATIENCE)
        assert api.client.get("/livez").text == "ok\n"
        assert not any(future.done() for future in asked)
        may_spell.set()
        assert {future.result().status_code for future in asked} == {200}
    assert described == [api.app]


def test_b7_a_description_that_could_not_be_spelled_is_tried_again(
    api: RunningApi, described: list[FastAPI], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread may not have started, and may start in a moment."""

    def fail(app: FastAPI) -> description._Description:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as broken:
        broken.setattr(description, "_spelled", fail)
        assert api.client.get("/openapi.json").status_code == 500
    assert api.client.get("/openapi.json").status_code == 200


def test_b7_the_description_is_spelled_once_for_all(api: RunningApi, described: list[FastAPI]) -> None:
    first = api.client.get("/openapi.json", headers={"Accept-Encoding": "identity"})
    zipped = api.client.get("/openapi.json", headers={"Accept-Encoding": "gzip"})
    assert (first.headers.get("content-encoding"), zipped.headers["content-encoding"]) == (None, "gzip")
    assert first.json() == zipped.json()
    tag = first.headers["etag"]
    assert api.client.get("/openapi.json", headers={"If-None-Match": tag}).status_code == 304
    assert described == [api.app]
