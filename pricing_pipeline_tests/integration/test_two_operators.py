"""Two people act on the same thing in one moment: the second is told what has become of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from html import unescape
from typing import Any

import pytest
from sqlalchemy import Connection, text

from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.operations import operation_queue
from pricing_pipeline.quarantine import quarantined_values
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core, observation
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.api_server import Caller, RunningApi
from pricing_pipeline_tests.support.patience import wait_until
from pricing_pipeline_tests.support.quarantining import bring, one_call

pytestmark = pytest.mark.usefixtures("still")


@pytest.fixture
def operator(api: RunningApi) -> Caller:
    return api.caller(Scope.OPERATE, Scope.READ)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


@pytest.fixture
def beside(core: Core, threads: ThreadPoolExecutor) -> Callable[..., Any]:
    """Do the first thing, ask the second while that is not committed, and return the answer."""

    def done(first: Callable[[Connection], object], second: Callable[[], Any]) -> Any:
        with core.engine.begin() as connection:
            mine = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
            first(connection)
            asked = threads.submit(second)
            waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND :mine = ANY (pg_blocking_pids(pid))"
            wait_until(lambda: core.one(waits, mine=mine) or asked.done())
        return asked.result()

    return done


# Quarantined values


@pytest.fixture
def doubted(core: Core) -> int:
    """A quarantined value."""
    for value in ("72.50", "7250"):
        bring(core, one_call(core, QUOTE, "AAPL"), observation("AAPL", value, core.clock()))
    made: int = core.one("SELECT value_id FROM pricing.quarantined_values")
    return made


def test_f6_who_rejects_what_another_releases_is_told_that_it_is_a_price(
    operator: Caller, core: Core, doubted: int, beside: Callable[..., Any]
) -> None:
    problem = beside(
        lambda bob: quarantined_values.decide(bob, [doubted], "released", "bob", None),
        lambda: operator.refusal("POST", "quarantine/reject", json={"ids": [doubted]}),
    )
    assert (problem["status"], "released already" in problem["detail"]) == (422, True)
    row = core.rows("SELECT status, resolved_by FROM pricing.quarantined_values")[0]
    assert (row.status, row.resolved_by) == ("released", "bob")


@pytest.mark.parametrize("decision", ["release", "reject"])
def test_f6_who_decides_what_another_decides_alike_is_told_so(
    operator: Caller, doubted: int, beside: Callable[..., Any], decision: str
) -> None:
    done = {"release": "released", "reject": "rejected"}[decision]
    told = beside(
        lambda bob: quarantined_values.decide(bob, [doubted], done, "bob", None),
        lambda: operator.post(f"quarantine/{decision}", {"ids": [doubted]}),
    )
    assert told["counts"] == {f"{done}_already": 1}


def test_f6_a_page_that_is_not_anew_decides_on_what_it_shows(
    operator: Caller, core: Core, clock: Clock, doubted: int
) -> None:
    def doubt(value: str) -> None:
        clock.advance(60)
        core.rows("DELETE FROM pricing.api_call_queue_live")
        bring(core, one_call(core, QUOTE, "AAPL"), observation("AAPL", value, core.clock()))

    doubt("7260")
    page = operator.ask("GET", "page").text
    (label, content) = re.findall(r'id="release-all-\d+".*? data-content="(.*?)".*?>(.*?)</button>', page)[0][::-1]
    assert label == "Release all 2"
    for value in ("8900", "11000", "14000"):
        doubt(value)
    assert len(operator.get(f"quarantine/{doubted}")["level"]) > 2, "the level has grown"
    assert operator.post("quarantine/release", json.loads(unescape(content)))["counts"] == {"released": 2}


# Side effects


@pytest.fixture
def message(core: Core) -> int:
    """A message that waits."""
    core.rows("INSERT INTO pricing.recipients (recipient, channel, created_at) VALUES ('ann', 'log', now())")
    with core.owner.begin() as connection:
        return operation_queue.enqueue(connection, "log", {"recipient": "ann", "title": "AAPL", "body": "late"})


def claim(connection: Connection) -> operation_queue.Operation:
    (claimed,) = operation_queue.claim(connection, ["log"], 10, "worker")
    return claimed


def test_e4_who_cancels_what_is_claimed_in_that_moment_is_told_that_it_may_have_happened(
    operator: Caller, message: int, beside: Callable[..., Any]
) -> None:
    told = beside(claim, lambda: operator.post("operations/cancel", {"ids": [message]}))
    assert told["operations"][0]["outcome"] == "cancelled_under_way"


def test_e4_who_cancels_what_is_sent_in_that_moment_is_told_that_it_is_sent(
    operator: Caller, core: Core, message: int, beside: Callable[..., Any]
) -> None:
    with core.engine.begin() as worker:
        token = claim(worker).claim_token
    told = beside(
        lambda worker: operation_queue.complete(worker, token, {message: None}),
        lambda: operator.post("operations/cancel", {"ids": [message]}),
    )
    (outcome,) = told["operations"]
    assert (outcome["outcome"], "(completed)" in outcome["sentence"]) == ("over", True)


def test_e4_who_retries_what_another_retries_is_told_that_it_waits_again(
    operator: Caller, message: int, beside: Callable[..., Any]
) -> None:
    operator.post("operations/cancel", {"ids": [message]})
    told = beside(
        lambda bob: operation_queue.retry(bob, [message]),
        lambda: operator.post("operations/retry", {"ids": [message]}),
    )
    (outcome,) = told["operations"]
    assert (outcome["outcome"], "(pending)" in outcome["sentence"]) == ("not_dead", True)


# Alerts


@pytest.fixture
def alerts_of(core: Core) -> Callable[..., list[int]]:
    """Open alerts about some providers whose breakers are open."""

    def made(*providers: str) -> list[int]:
        return [
            core.one(
                "INSERT INTO pricing.alerts (rule, subject, severity, says, since, last_seen_at, raised_at)"
                " SELECT 'breaker_open', :provider, 'P1', 'All calls are stopped.', t, t, t"
                " FROM pricing.clock() t RETURNING alert_id",
                provider=provider,
            )
            for provider in providers
        ]

    return made


def test_b21_an_alert_keeps_the_name_of_whoever_acknowledged_it_first(
    api: RunningApi, operator: Caller, clock: Clock, alerts_of: Callable[..., list[int]]
) -> None:
    (alert,) = alerts_of("twelvedata")
    told = []
    for one in (operator, api.caller(Scope.OPERATE, Scope.READ)):
        assert one.post("alerts/acknowledge", {"ids": [alert]}) == {"acknowledged": [alert]}
        shown = one.get(f"alerts/{alert}")
        told.append((shown["acknowledged_by"], shown["acknowledged_at"]))
        clock.advance(60)
    assert told[0] == told[1]


def test_b21_who_is_told_again_of_one_subject_leaves_the_silences_of_others(
    operator: Caller, alerts_of: Callable[..., list[int]]
) -> None:
    alerts_of("twelvedata", "yahoo")

    def silence(**about: str) -> str:
        until: str = operator.post("alerts/silence", {"alert": "breaker_open", "hours": 8, **about})["until"]
        return until

    silence(subject="yahoo")
    silence(subject="twelvedata")
    (content,) = re.findall(
        r'data-post="/v1/alerts/unsilence" data-content="([^"]*twelvedata[^"]*)"',
        operator.ask("GET", "page").text,
    )
    told = operator.post("alerts/unsilence", json.loads(unescape(content)))
    assert (told["ended"], told["silenced_until"], told["sentence"]) == (
        1,
        None,
        "recipients are notified again.",
    )
    silenced = {alert["subject"] for alert in operator.get("alerts")["alerts"] if alert["silenced_until"]}
    assert silenced == {"yahoo"}
    until = silence()
    told = operator.post("alerts/unsilence", {"alert": "breaker_open", "subject": "yahoo"})
    assert (told["ended"], told["silenced_until"]) == (1, until)
    assert "all alerts of this kind are silenced" in told["sentence"]
    assert operator.post("alerts/unsilence", {"alert": "breaker_open"})["ended"] == 1
    again = operator.post("alerts/unsilence", {"alert": "breaker_open", "subject": "yahoo"})
    assert (again["ended"], "was not silenced" in again["sentence"]) == (0, True)


# Backfills


def test_g6_who_cancels_a_backfill_is_told_what_has_become_of_it(operator: Caller, core: Core, clock: Clock) -> None:
    core.lift_limits()

    def plan(symbols: str) -> str:
        made = core.one(
            "SELECT backfill_id FROM pricing.plan_backfill(:type, :first, :last, CAST(:symbols AS text[]))",
            type=DAILY,
            first=date(2013, 1, 10),
            last=date(2013, 2, 5),
            symbols=symbols,
        )
        return f"backfills/{made}"

    ended = plan("{AAPL}")
    core.complete(core.claim_one())
    told = operator.post(f"{ended}/cancel")
    assert (told["cancelled"], told["sentence"]) == (0, "nothing to do: it has ended.")
    assert operator.get(ended)["state"] == "done"
    clock.advance(60)
    open_ = plan("{IBM,MSFT}")
    told = operator.post(f"{open_}/cancel")
    assert told["sentence"] == "2 tasks are cancelled, and what was fetched stays."
    again = operator.post(f"{open_}/cancel")
    assert (again["cancelled"], again["sentence"]) == (0, "it is cancelled; it had no tasks left.")
