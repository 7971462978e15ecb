"""Operating over HTTP: what a person does about tasks, side effects, quarantined values, backfills and alerts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Engine

from pricing_pipeline.api import backfills
from pricing_pipeline.demand import dagster_runs
from pricing_pipeline.demand.dagster_runs import Location, Webserver
from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import DagsterUnreachable
from pricing_pipeline.operations import operation_queue
from pricing_pipeline.providers.fetched import MAX_EVIDENCE
from pricing_pipeline.quarantine import opinions
from pricing_pipeline.settings import Settings
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core, observation
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.api_server import Caller, RunningApi, running_api
from pricing_pipeline_tests.support.fake_dagster import RUN, FakeDagster, fake_dagster
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until
from pricing_pipeline_tests.support.quarantining import BODY, bring, one_call

pytestmark = pytest.mark.usefixtures("still")


@pytest.fixture
def operator(api: RunningApi) -> Caller:
    """A program that may operate and read."""
    return api.caller(Scope.OPERATE, Scope.READ)


def statuses(core: Core, *symbols: str) -> list[str]:
    known = core.statuses()
    return [known[symbol] for symbol in symbols]


# Tasks


def test_e4_tasks_are_listed_by_state_shown_cancelled_and_retried(operator: Caller, core: Core) -> None:
    core.enqueue(QUOTE, "AAPL", priority=2)
    core.enqueue(QUOTE, "MSFT")
    core.enqueue(DAILY, "AAPL", priority=-1)
    listed = operator.get("tasks")["tasks"]
    assert [(task["symbol"], task["data_type"]) for task in listed] == [
        ("AAPL", DAILY),
        ("MSFT", QUOTE),
        ("AAPL", QUOTE),
    ], "the newest first"
    first = listed[-1]
    outcome = operator.post("tasks/cancel", {"ids": [first["id"]]})
    assert outcome == {
        "tasks": [{"task_id": first["id"], "outcome": "cancelled", "live_id": None, "sentence": "cancelled."}],
        "counts": {"cancelled": 1},
    }
    assert [task["id"] for task in operator.get("tasks", status="cancelled")["tasks"]] == [first["id"]]
    shown = operator.get(f"tasks/{first['id']}")
    assert (shown["status"], shown["finished_at"][-1], shown["errors"][-1]["kind"]) == (
        "cancelled",
        "Z",
        "cancelled",
    )
    again = operator.post("tasks/retry", {"ids": [first["id"]]})["tasks"][0]
    assert (again["outcome"], again["sentence"]) == ("retried", "pending again, with all its attempts.")
    for statuses in (["pending", "failed"], "pending,failed", ["pending,failed", "cancelled"]):
        assert operator.get("tasks", status=statuses)["tasks"][0]["symbol"] == "AAPL"


def test_e4_all_failed_tasks_of_a_type_are_retried_together(operator: Caller, core: Core) -> None:
    call = core.claimed(QUOTE, "AAPL", "MSFT")
    core.fail(call, FailureKind.UNKNOWN_SYMBOL)
    assert operator.post("tasks/retry", {"all_failed": True, "data_type": DAILY})["tasks"] == []
    assert operator.refusal("POST", "tasks/retry", json={"all_failed": True, "data_type": "nosuch"})["status"] == 404
    assert operator.refusal("POST", "tasks/retry", json={"all_failed": True, "provider": "nosuch"})["status"] == 404
    told = operator.post("tasks/retry", {"all_failed": True, "data_type": QUOTE, "provider": "twelvedata"})
    assert told["counts"] == {"retried": 2}
    assert statuses(core, "AAPL", "MSFT") == ["pending", "pending"]


def test_e4_forgotten_tasks_count_no_longer_and_their_pairs_back_off_as_before(operator: Caller, core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "MSFT"))
    core.fail(core.claim_one(), FailureKind.UNKNOWN_SYMBOL)
    core.enqueue(QUOTE, "IBM")
    first, second, live = (core.task(symbol).id for symbol in ("AAPL", "MSFT", "IBM"))
    backoff = core.demand_of(QUOTE, "AAPL")
    sentence = "forgotten: it no longer counts."
    told = operator.post("tasks/forget", {"ids": [first]})
    assert told["tasks"] == [{"task_id": first, "outcome": "forgotten", "live_id": None, "sentence": sentence}]
    assert operator.post("tasks/forget", {"all_failed": True, "data_type": QUOTE})["tasks"][0]["task_id"] == second
    assert operator.post("tasks/forget", {"ids": [first, second, live]})["counts"] == {"settled": 2, "not_dead": 1}
    assert operator.post("tasks/retry", {"all_failed": True})["tasks"] == []
    assert core.demand_of(QUOTE, "AAPL") == backoff
    assert statuses(core, "AAPL", "MSFT", "IBM") == ["failed", "failed", "pending"]


def test_e4_tasks_are_changed_together_or_not_at_all(operator: Caller, core: Core) -> None:
    core.enqueue(QUOTE, "AAPL")
    task = core.task("AAPL")
    for path in ("cancel", "retry", "forget"):
        problem = operator.refusal("POST", f"tasks/{path}", json={"ids": [task.id, 999_999]})
        assert (problem["status"], problem["type"]) == (404, "urn:pricing-pipeline:unknown-task")
        assert "999999" in problem["detail"]
        assert "Nothing has changed" in problem["detail"]
    assert core.task("AAPL").status == "pending"


def test_e4_what_names_no_tasks_is_refused(operator: Caller) -> None:
    for body in (
        *({}, {"ids": []}, {"ids": [1], "all_failed": True}, {"ids": [0]}, {"ids": [2**63]}, {"ids": ["x"]}),
        *({"ids": [1], "data_type": QUOTE}, {"ids": [1], "force": True}, {"ids": list(range(1, 1002))}),
    ):
        assert operator.refusal("POST", "tasks/retry", json=body)["status"] == 422


# Side effects


def test_e4_side_effects_are_listed_shown_counted_cancelled_and_retried(operator: Caller, core: Core) -> None:
    with core.owner.begin() as connection:
        core.rows("INSERT INTO pricing.recipients (recipient, channel, created_at) VALUES ('ann', 'log', now())")
        payload = {"recipient": "ann", "title": "AAPL", "body": "late"}
        ids = [operation_queue.enqueue(connection, "log", payload) for _ in range(2)]
    assert [row["id"] for row in operator.get("operations")["operations"]] == ids[::-1]
    assert operator.get("operations", operation_type="webhook")["operations"] == []
    assert operator.get(f"operations/{ids[0]}")["payload"] == payload
    told = operator.post("operations/cancel", {"ids": [ids[0]]})
    assert told["operations"] == [{"id": ids[0], "outcome": "cancelled", "sentence": "cancelled."}]
    (again,) = operator.post("operations/cancel", {"ids": [ids[0]]})["operations"]
    assert again["outcome"] == "over"
    counts = operator.get("operations/status")
    assert {row["status"]: row["operations"] for row in counts["operations"]} == {
        "cancelled": 1,
        "pending": 1,
    }
    (retried,) = operator.post("operations/retry", {"ids": [ids[0]]})["operations"]
    assert retried["outcome"] == "retried"
    problem = operator.refusal("POST", "operations/cancel", json={"ids": [ids[1], 999_999]})
    assert (problem["status"], "Nothing has changed" in problem["detail"]) == (404, True)
    assert operator.get(f"operations/{ids[1]}")["status"] == "pending"
    assert operator.post("operations/retry", {"all_failed": True})["operations"] == []


# The quarantine


@pytest.fixture
def doubted(core: Core) -> int:
    """A quarantined price of AAPL beside a believed one; its id."""
    bring(core, one_call(core, QUOTE, "AAPL"), observation("AAPL", "72.50", core.clock()))
    bring(core, one_call(core, QUOTE, "AAPL"), observation("AAPL", "7250", core.clock()))
    value_id: int = core.one("SELECT value_id FROM pricing.quarantined_values")
    return value_id


def test_f6_a_quarantined_value_is_shown_with_its_neighbours_and_its_answer(
    operator: Caller, core: Core, doubted: int
) -> None:
    (listed,) = operator.get("quarantine", symbol="AAPL", data_type=QUOTE)["values"]
    assert (listed["value_id"], listed["value"], listed["kind"]) == (doubted, "7250", "unit")
    assert operator.get("quarantine", symbol="MSFT")["values"] == []
    shown = operator.get(f"quarantine/{doubted}")
    assert {key: shown[key] for key in listed} == listed
    assert shown["around"][0]["price"] == "72.50"
    assert (shown["body"], shown["opinions"], shown["level"]) == (BODY.decode(), [], [doubted])


UNSHOWN = {
    "content-type": "application/octet-stream",
    "x-content-type-options": "nosniff",
    "content-security-policy": "sandbox; default-src 'none'",
    "content-disposition": "",
    "cache-control": "no-store",
}
HOSTILE = b"<html><script>alert(1)</script>\x00\xff\r\nSet-Cookie: a=b\r\n\r\n%PDF-1.4 \x1b[2J"


@pytest.mark.parametrize("body", [HOSTILE, b"\x1f\x8b\x08", b"\x00" * 3_000_000])
def test_f6_the_answer_is_a_file_that_no_browser_shows_whatever_is_in_it(
    api: RunningApi, operator: Caller, core: Core, body: bytes
) -> None:
    for price in ("72.50", "7250"):
        bring(core, one_call(core, QUOTE, "AAPL"), observation("AAPL", price, core.clock()), body=body)
    value_id = core.one("SELECT value_id FROM pricing.quarantined_values")
    answer = operator.ask("GET", f"quarantine/{value_id}/body")
    assert answer.status_code == 200
    assert answer.content == body[:MAX_EVIDENCE]
    headers = {name: answer.headers.get(name) for name in UNSHOWN}
    assert headers == {**UNSHOWN, "content-disposition": f'attachment; filename="quarantined-{value_id}.bin"'}
    assert "set-cookie" not in answer.headers
    assert api.caller(Scope.READ).ask("GET", f"quarantine/{value_id}/body").status_code == 403
    core.rows("DELETE FROM pricing.quarantined_bodies")
    problem = operator.refusal("GET", f"quarantine/{value_id}/body")
    assert (problem["status"], "is no longer kept" in problem["detail"]) == (404, True)


def test_f6_another_provider_is_asked_by_the_next_drain(operator: Caller, core: Core, doubted: int) -> None:
    def problem(*ids: int) -> str:
        return str(operator.refusal("POST", "quarantine/ask", json={"ids": ids})["detail"])

    def due() -> list[str]:
        with core.engine.begin() as connection:
            return opinions.due(connection)

    assert "no other provider than twelvedata is routed to equity_quote" in problem(doubted)
    core.rows("INSERT INTO pricing.provider_routing (data_type, provider, rank) VALUES ('equity_quote', 'yahoo', 2)")
    core.rows("UPDATE pricing.quarantined_values SET ask_at = NULL, asked = 4")
    assert "no quarantined value 999999" in problem(doubted, 999_999)
    assert due() == [], "nobody is asked about one if not about all"
    told = operator.post("quarantine/ask", {"ids": [doubted, doubted]})
    assert told == {"asked": [{"value_id": doubted, "provider": "yahoo"}]}
    assert due() == ["yahoo"]
    with core.engine.begin() as connection:
        assert opinions.claim(connection, "yahoo", "worker", ["default"])
    (opinion,) = operator.get(f"quarantine/{doubted}")["opinions"]
    assert (opinion["provider"], opinion["answered_at"]) == ("yahoo", None)
    assert core.one("SELECT asked FROM pricing.quarantined_values") == 1, "so a failure is tried again"
    operator.post("quarantine/reject", {"ids": [doubted]})
    assert f"value {doubted}: it is rejected already" in problem(doubted)


@pytest.mark.parametrize("decision", ["release", "reject"])
def test_f6_a_decision_is_noted_with_the_name_of_the_token(
    operator: Caller, core: Core, doubted: int, decision: str
) -> None:
    wanted = {"ids": [doubted], "reason": "checked with the exchange"}
    done = f"{decision}d".replace("rejectd", "rejected")
    told = operator.post(f"quarantine/{decision}", wanted)
    assert [(row["value_id"], row["outcome"]) for row in told["values"]] == [(doubted, done)]
    row = core.rows("SELECT status, resolved_by, resolution FROM pricing.quarantined_values")[0]
    assert (row.status, row.resolution) == (done, "checked with the exchange")
    assert row.resolved_by == core.one("SELECT name FROM pricing.api_tokens")
    price = core.latest("AAPL")
    assert price is not None
    assert str(price.price) == ("7250.00" if decision == "release" else "72.50")
    again = operator.post(f"quarantine/{decision}", wanted)
    assert again["counts"] == {f"{done}_already": 1}


def test_f6_values_are_decided_on_together_or_not_at_all(operator: Caller, core: Core, doubted: int) -> None:
    for decision in ("release", "reject"):
        problem = operator.refusal("POST", f"quarantine/{decision}", json={"ids": [doubted, 999_999]})
        assert (problem["status"], problem["type"]) == (404, "urn:pricing-pipeline:unknown-value")
    assert core.one("SELECT status FROM pricing.quarantined_values") == "quarantined"
    operator.post("quarantine/release", {"ids": [doubted], "level": True})
    problem = operator.refusal("POST", "quarantine/reject", json={"ids": [doubted]})
    assert (problem["status"], "released already" in problem["detail"]) == (422, True)


# Alerts


@pytest.fixture
def alert_id(core: Core) -> int:
    """An open alert about twelvedata."""
    made: int = core.one(
        "INSERT INTO pricing.alerts (rule, subject, severity, says, since, last_seen_at, raised_at)"
        " SELECT 'breaker_open', 'twelvedata', 'P1', 'All calls are stopped.', t, t, t FROM pricing.clock() t"
        " RETURNING alert_id"
    )
    return made


def test_b21_an_alert_is_looked_after_under_the_name_of_the_token(
    api: RunningApi, operator: Caller, core: Core, alert_id: int
) -> None:
    (listed,) = operator.get("alerts")["alerts"]
    assert (listed["alert_id"], listed["acknowledged_by"]) == (alert_id, None)
    assert operator.post("alerts/acknowledge", {"ids": [alert_id]}) == {"acknowledged": [alert_id]}
    shown = operator.get(f"alerts/{alert_id}")
    assert shown["acknowledged_by"] == core.one("SELECT name FROM pricing.api_tokens")
    assert (shown["runbook"], shown["messages"]) == ("docs/runbook.md#breaker_open", [])
    assert api.caller(Scope.READ).get(f"alerts/{alert_id}")["messages"] is None, "who was told is for operators"
    problem = operator.refusal("POST", "alerts/acknowledge", json={"ids": [alert_id, 999_999]})
    assert (problem["status"], "999999" in problem["detail"]) == (404, True)


def test_b21_a_kind_of_alert_is_silenced_and_told_again(
    operator: Caller, core: Core, alert_id: int, clock: Clock
) -> None:
    wanted = {"alert": "breaker_open", "hours": 2, "subject": "twelvedata", "reason": "maintenance"}
    told = operator.post("alerts/silence", wanted)
    assert (told["is_open"], told["open_subjects"]) == (True, ["twelvedata"])
    (silence,) = operator.get(f"alerts/{alert_id}")["silences"]
    assert silence["reason"] == "maintenance"
    assert silence["silenced_by"] == core.one("SELECT name FROM pricing.api_tokens")
    assert operator.get("alerts")["alerts"][0]["silenced_until"] == told["until"]
    clock.advance(3600)
    assert operator.post("alerts/unsilence", {"alert": "breaker_open"})["ended"] == 1
    assert operator.get(f"alerts/{alert_id}")["silences"] == []
    for path, more in (("silence", {"hours": 1}), ("unsilence", {})):
        problem = operator.refusal("POST", f"alerts/{path}", json={"alert": "nosuch", **more})
        assert (problem["status"], "breaker_open" in problem["detail"]) == (404, True)


def test_b21_a_silence_has_an_end(operator: Caller, core: Core) -> None:
    for hours in (
        0,
        -1,
        1e9,
        "x",
        None,
    ):
        body = {"alert": "breaker_open", "hours": hours}
        assert operator.refusal("POST", "alerts/silence", json=body)["status"] == 422
        assert core.rows("SELECT FROM pricing.alert_silences") == []


# Instruments


def test_d5_instruments_are_paused_and_resumed_together_or_not_at_all(operator: Caller, core: Core) -> None:
    told = operator.post("instruments/pause", {"symbols": ["aapl", "AAPL", "MSFT"]})["instruments"]
    assert [(row["symbol"], row["changed"]) for row in told] == [("AAPL", True), ("MSFT", True)]
    (again,) = operator.post("instruments/pause", {"symbols": ["AAPL"]})["instruments"]
    assert again["changed"] is False
    problem = operator.refusal("POST", "instruments/resume", json={"symbols": ["AAPL", "NOSUCH"]})
    assert (problem["status"], "'NOSUCH'" in problem["detail"]) == (404, True)
    modes = core.rows("SELECT update_mode FROM pricing.instruments WHERE symbol IN ('AAPL', 'MSFT')")
    assert len(modes) == 2
    assert "api" not in {row.update_mode for row in modes}
    (resumed,) = operator.post("instruments/resume", {"symbols": ["AAPL"], "asset_class": "equity"})["instruments"]
    assert resumed["changed"] is True


# Backfills


@pytest.fixture
def dagster() -> Iterator[FakeDagster]:
    with fake_dagster() as running:
        yield running


@pytest.fixture
def with_dagster(engine: Engine, owner_engine: Engine, cli: CommandLine, dagster: FakeDagster) -> Iterator[RunningApi]:
    """The API in a home where Dagster runs."""
    with (
        cli.running(urls={"dagster": dagster.url}),
        running_api(engine, owner_engine, settings=Settings(home=cli.home)) as running,
    ):
        yield running


WINTER = {"data_type": DAILY, "first_day": "2013-01-10", "last_day": "2013-02-05"}


def test_g6_a_backfill_is_started_and_followed_from_its_run_to_its_tasks(
    with_dagster: RunningApi, dagster: FakeDagster, core: Core
) -> None:
    operator = with_dagster.caller(Scope.OPERATE, Scope.READ)
    answer = operator.ask("POST", "backfills", json={**WINTER, "symbols": ["aapl"]})
    run: dict[str, Any] = answer.json()
    assert (answer.status_code, run["run_id"], run["backfill_id"]) == (202, RUN, None)
    (launched,) = dagster.launched
    config = launched["runConfigData"]["ops"]["refresh_prices"]["config"]
    assert config == {"from_day": "2013-01-10", "to_day": "2013-02-05", "symbols": ["AAPL"]}
    tags = {tag["key"]: tag["value"] for tag in launched["executionMetadata"]["tags"]}
    assert tags["pricing/asked-by"] == core.one("SELECT name FROM pricing.api_tokens")
    assert operator.get(f"backfills/runs/{RUN}")["status"] == "QUEUED"
    plan = core.one(
        "INSERT INTO pricing.backfills (data_type, window_start, window_end, symbols, run_id)"
        f" VALUES ('{DAILY}', '2013-01-10', '2013-02-05', '{{AAPL}}', '{RUN}') RETURNING backfill_id"
    )
    core.enqueue(DAILY, "AAPL", days=None)
    core.rows("UPDATE pricing.api_call_queue_live SET backfill_id = :plan", plan=plan)
    core.rows("UPDATE pricing.backfills SET tasks = 1")
    assert UUID(operator.get(f"backfills/runs/{RUN}")["backfill_id"]) == plan
    (listed,) = operator.get("backfills")["backfills"]
    shown = operator.get(f"backfills/{plan}")
    assert (listed["state"], shown["state"], shown["open"], shown["waits_for"]) == (
        "running",
        "running",
        1,
        [],
    )
    assert operator.post(f"backfills/{plan}/cancel")["cancelled"] == 1
    assert operator.get(f"backfills/{plan}")["state"] == "cancelled"
    assert operator.post(f"backfills/{plan}/cancel")["cancelled"] == 0


def test_g6_a_run_that_fails_before_it_has_planned_says_why(with_dagster: RunningApi, dagster: FakeDagster) -> None:
    operator = with_dagster.caller(Scope.OPERATE, Scope.READ)
    operator.ask("POST", "backfills", json=WINTER)
    dagster.statuses[RUN], dagster.failure = "FAILURE", "dagster.Failure: 5 bytes are left."
    run = operator.get(f"backfills/runs/{RUN}")
    assert (run["status"], run["failure"]) == ("FAILURE", "5 bytes are left.")
    problem = operator.refusal("GET", "backfills/runs/0b5e2f7a")
    assert (problem["status"], problem["type"]) == (404, "urn:pricing-pipeline:unknown-run")


def test_g6_a_backfill_that_makes_no_sense_starts_no_run(with_dagster: RunningApi, dagster: FakeDagster) -> None:
    operator = with_dagster.caller(Scope.OPERATE, Scope.READ)
    for more, words in (
        ({"first_day": "2013-03-01"}, "ends before it begins"),
        ({"data_type": QUOTE}, "no history"),
        ({"data_type": "nosuch"}, "nosuch"),
        ({"symbols": ["NOSUCH"]}, "NOSUCH"),
        ({"first_day": "0001-01-01", "last_day": "0001-01-02"}, "no history of"),
        ({"first_day": "9999-12-31", "last_day": None}, "no history of"),
    ):
        problem = operator.refusal("POST", "backfills", json={**WINTER, **more})
        assert (problem["status"] in (404, 422), words in problem["detail"]) == (True, True), problem
        assert dagster.launched == []


def test_g6_a_dagster_that_hangs_keeps_nobody_else_waiting(
    with_dagster: RunningApi, dagster: FakeDagster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dagster_runs, "QUESTION_SECONDS", PATIENCE)
    askers = [with_dagster.caller(Scope.OPERATE, Scope.READ) for _ in range(4)]
    other = with_dagster.caller(Scope.READ)
    dagster.answers.clear()
    with ThreadPoolExecutor(16) as threads:
        waiting = [threads.submit(asker.ask, "GET", f"backfills/runs/{RUN}") for asker in askers for _ in range(4)]
        wait_until(lambda: len(dagster.authorizations) == backfills.AT_ONCE)
        assert other.get("backfills")["backfills"] == []
        assert not any(asked.done() for asked in waiting)
        dagster.answers.set()
        assert {asked.result().status_code for asked in waiting} == {404}


def test_g6_a_question_to_dagster_is_given_up_before_a_launch_is(
    dagster: FakeDagster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that nobody knows of would be worse than a wait."""
    monkeypatch.setattr(dagster_runs, "QUESTION_SECONDS", 0.05)
    place = Location("r", "l", ("2000-01-01", "2100-01-01"), "refresh_prices")
    dagster.answers.clear()
    with Webserver(dagster.url) as webserver, ThreadPoolExecutor(1) as threads:
        launch = threads.submit(webserver.launch, place, DAILY, Window(date(2013, 1, 10), date(2013, 2, 5)))
        questions: list[Callable[[], object]] = [
            lambda: webserver.find(DAILY),
            lambda: webserver.status(RUN),
            lambda: webserver.failure(RUN),
        ]
        for ask in questions:
            with pytest.raises(DagsterUnreachable, match="does not answer"):
                ask()
        assert not launch.done()
        dagster.answers.set()
        assert launch.result() == RUN


def test_g8_a_backfill_is_asked_for_under_the_prefix(dagster: FakeDagster) -> None:
    with Webserver(dagster.url, asset_prefix="eu/prices") as webserver:
        place = webserver.find(DAILY)
        assert place is not None
        webserver.launch(place, DAILY, Window(date(2013, 1, 10), date(2013, 2, 5)))
    (params,) = dagster.launched
    key = {"path": ["eu", "prices", "price_history", DAILY]}
    assert dagster.found == [key]
    assert params["selector"]["assetSelection"] == [key]
    assert params["runConfigData"]["ops"].keys() == {"refresh_prices"}, "the step that Dagster has named"


def test_f10_a_backfill_is_costed_without_dagster(operator: Caller, core: Core) -> None:
    cost = operator.get("backfills/cost", **WINTER, symbols="AAPL,MSFT")
    assert (cost["symbols"], cost["tasks"], cost["fits"]) == (["AAPL", "MSFT"], 2, True)
    assert cost["calls"] == sum(row["calls"] for row in cost["providers"])
    one = operator.get("backfills/cost", **WINTER, symbols="AAPL")
    assert operator.get("backfills/cost", **WINTER, symbols="aapl,AAPL") == one, "however it is spelled"
    core.use_quota(10**15)
    assert operator.get("backfills/cost", **WINTER)["fits"] is False
    assert core.tasks() == []


def test_g6_without_dagster_a_backfill_is_refused_and_the_rest_goes_on(
    api: RunningApi, engine: Engine, owner_engine: Engine, cli: CommandLine
) -> None:
    """No home, a home where nothing runs, and one whose webserver is away."""
    with running_api(engine, owner_engine, settings=Settings(home=cli.home)) as idle:
        for running in (api, idle):
            operator = running.caller(Scope.OPERATE, Scope.READ)
            problem = operator.refusal("POST", "backfills", json=WINTER)
            assert (problem["status"], problem["type"]) == (503, "urn:pricing-pipeline:dagster-unreachable")
            assert "pricing-pipeline up" in problem["detail"]
            assert operator.get("backfills")["backfills"] == []
        with cli.running(urls={"dagster": "http://127.0.0.1:9"}):
            answer = operator.ask("POST", "backfills", json=WINTER)
            assert (answer.status_code, "does not answer" in answer.json()["detail"]) == (503, True)
            assert int(answer.headers["retry-after"]) >= 1
