"""F4: why is this price old? One sentence for each cause, the most specific one first."""

from __future__ import annotations

import re
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from pricing_pipeline.demand import freshness
from pricing_pipeline.domain.answers import Answer, FailureKind
from pricing_pipeline.domain.observations import Rows
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.quarantine import quarantined_values
from pricing_pipeline.refresh import settling
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, MFAPI, NAV, QUOTE, TWELVEDATA, Core, observation
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.pages import ROOT
from pricing_pipeline_tests.support.patience import wait_until
from pricing_pipeline_tests.support.quarantining import reject
from pricing_pipeline_tests.support.sessions import wait_for_locks

pytestmark = pytest.mark.usefixtures("still")


OPEN = datetime(2026, 6, 10, 15, 0, tzinfo=UTC)
"""A Wednesday, in the middle of a session in New York."""


@pytest.fixture(autouse=True)
def session(clock: Clock, still: None) -> None:
    clock.set(OPEN)


def sessions(core: Core) -> None:
    """Two sessions of New York: that of the Wednesday, and the next, as if Thursday were a holiday."""
    core.rows(
        "INSERT INTO pricing.calendar_sessions (calendar, session, opens_at, closes_at) VALUES"
        " ('XNYS', '2026-06-09', '2026-06-09 13:30Z', '2026-06-09 20:00Z'),"
        " ('XNYS', '2026-06-10', '2026-06-10 13:30Z', '2026-06-10 20:00Z'),"
        " ('XNYS', '2026-06-12', '2026-06-12 13:30Z', '2026-06-12 20:00Z') ON CONFLICT DO NOTHING"
    )
    core.rows("DELETE FROM pricing.calendar_sessions WHERE session = '2026-06-11'")


def why(core: Core, data_type: str = QUOTE, symbol: str = "AAPL") -> freshness.Why:
    with core.engine.connect() as connection:
        (found,) = freshness.why(connection, symbol, data_type)
    assert "%" not in found.sentence
    assert not found.sentence.endswith(".")
    return found


def test_f4_a_price_that_comes_meanwhile_makes_no_old_one_fresh(core: Core, clock: Clock) -> None:
    """A live stream told an old price as not fresh, and as the reason `fresh`, because of the new one."""
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh()
    clock.advance(120)
    before = why(core).state
    wait_for_locks(core)
    told: list[tuple[bool, str]] = []

    def ask() -> None:
        asked = (
            "SELECT pricing.is_stale(l.data_type, l.symbol, l.fetched_at, 1), w.state FROM"
            " (SELECT p.*, pg_advisory_xact_lock_shared(4711)::text AS waited FROM pricing.latest_prices p OFFSET 0) l"
            " CROSS JOIN LATERAL pricing.why_old(l.data_type, l.symbol || l.waited) w"
        )
        told.extend((row[0], row[1]) for row in core.rows(asked))

    with core.owner.connect() as other:
        other.execute(text("SELECT pg_advisory_lock(4711)"))
        asking = threading.Thread(target=ask)
        asking.start()
        wait_until(lambda: core.one("SELECT count(*) FROM pg_locks WHERE objid = 4711 AND NOT granted") == 1)
        core.enqueue(QUOTE, "AAPL")
        core.refresh(price="2")
        other.execute(text("SELECT pg_advisory_unlock(4711)"))
        asking.join()
    assert told == [(True, before)]
    assert why(core).state == "fresh"


def bring(core: Core, price: str, seconds_old: float = 1) -> None:
    """What a worker does with an answer for the one task of AAPL."""
    core.rows("DELETE FROM pricing.api_call_queue_live")
    core.enqueue(QUOTE, "AAPL")
    row = observation("AAPL", price, core.clock() - timedelta(seconds=seconds_old))
    fetched = Fetched(Answer(observations=Rows([row])), 200, 4, body=b"body")
    settling.settle_answer(core.engine, core.claim_one(), fetched)


def watched(core: Core, clock: Clock, price: str = "72.50") -> None:
    """AAPL has a price, somebody watches it, and its TTL has just passed."""
    core.lift_limits()
    core.heartbeat("ann", (QUOTE, "AAPL"))
    bring(core, price)
    clock.advance(61)


def queued(core: Core, clock: Clock) -> None:
    """The same, with a task, and a worker at the queue."""
    watched(core, clock)
    core.enqueue_due()
    core.call("SELECT pricing.begin_drain('w', NULL, 120)")


def test_f4_a_symbol_or_type_that_is_not_known(core: Core) -> None:
    assert why(core, "no_such_type").state == "unknown_type"
    found = why(core, symbol="NOPE")
    assert (found.state, "subscription watch NOPE --type equity_quote" in found.sentence) == (
        "unknown_symbol",
        True,
    )


def test_f4_a_price_that_is_fresh(core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh()
    found = why(core)
    assert found.state == "fresh"
    assert found.fetched_at is not None
    assert found.next_at == found.fetched_at + timedelta(minutes=1)


def test_f4_a_type_that_is_retired_and_an_instrument_that_is_paused(core: Core, clock: Clock) -> None:
    watched(core, clock)
    core.pause("AAPL")
    found = why(core)
    assert (found.state, "instrument resume AAPL" in found.sentence) == ("paused", True)
    core.rows("UPDATE pricing.instruments SET is_active = false WHERE symbol = 'AAPL'")
    assert "AAPL is retired: it was removed, and its history stays. This resumes it: " in why(core).sentence
    core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = 'equity_quote'")
    assert why(core).state == "retired"


def test_f4_a_source_that_has_nothing_newer(core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    bring(core, "72.50", seconds_old=7200)
    found = why(core)
    assert (found.state, found.since) == ("source_old", found.observed_at)
    assert "twelvedata has nothing newer than" in found.sentence


def test_f4_a_fund_whose_nav_stands_for_a_month_is_told_alike_everywhere(core: Core, cli: CommandLine) -> None:
    """`price show` called it fresh, and `price why` said that its source is old."""
    core.heartbeat("ann", (NAV, "118632"))
    core.finish(core.claim_one(MFAPI), seconds_old=30 * 86400)
    assert why(core, NAV, "118632").state == "source_old"
    (price,) = cli("price", "show", "118632", "--json").json["prices"]
    assert (price["state"], price["fresh"]) == ("source_old", False)
    assert "source old" in cli("price", "show", "118632").stdout
    counts = cli("status", "--json").json["types"][NAV]
    assert (counts["fresh"], counts["late"], counts["source_old"]) == (0, 0, 1)
    answer = core.one("SELECT (p.prices)::jsonb -> 0 FROM pricing.prices_to_read('{118632}', '{mf_nav}') p")
    assert (answer["fresh"], answer["why"]["state"]) == (False, "source_old")
    with core.engine.connect() as connection:
        (served,) = freshness.measure(connection, [NAV])
    assert (served.is_calm, served.is_on_time) == (True, True), "its provider is asked in time"
    assert (core.read("118632").requested, core.enqueue_due()) == (0, 0), "nothing newer is to be had"


def test_f4_a_source_that_stands_still(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    bring(core, "72.50")
    clock.advance(25 * 3600)
    bring(core, "72.50")
    assert why(core).state == "source_frozen"


def test_f4_f7_a_closed_market_is_no_fault(core: Core, clock: Clock) -> None:
    sessions(core)
    core.heartbeat("ann", (QUOTE, "AAPL"))
    clock.set(OPEN.replace(hour=20, minute=20))
    bring(core, "72.50", seconds_old=1200)
    found = why(core)
    assert found.state == "market_closed", "confirmed just now, and of the close"
    assert (found.since, found.next_at) == (OPEN.replace(hour=20), OPEN.replace(day=12, hour=13, minute=30))
    clock.advance(3600)
    assert why(core).state == "due", "by its TTL it is asked for again"
    core.rows("UPDATE pricing.data_type_registry SET staleness_function = 'is_market_stale'")
    assert "its market (XNYS) has been closed since 2026-06-10 20:00:00 UTC" in why(core).sentence
    clock.set(OPEN.replace(day=12, hour=14))
    assert why(core).state == "due"


def test_f4_f7_a_source_without_the_close_is_old_all_the_same(core: Core, clock: Clock) -> None:
    sessions(core)
    core.heartbeat("ann", (QUOTE, "AAPL"))
    clock.set(OPEN.replace(hour=20, minute=20))
    bring(core, "72.50", seconds_old=6 * 3600)
    assert why(core).state == "source_old"


def test_f4_f7_a_daily_value_is_as_new_as_the_last_session_that_was_published(core: Core, clock: Clock) -> None:
    sessions(core)
    core.lift_limits()
    core.heartbeat("ann", (DAILY, "AAPL"))
    for day, hour, state in ((9, 15, "fresh"), (9, 23, "source_old"), (10, 23, "fresh")):
        clock.set(OPEN.replace(hour=hour))
        core.rows("DELETE FROM pricing.api_call_queue_live")
        core.enqueue(DAILY, "AAPL")
        row = observation("AAPL", "72.50", datetime(2026, 6, day, tzinfo=UTC))
        fetched = Fetched(Answer(observations=Rows([row])), 200, 4, body=b"body")
        settling.settle_answer(core.engine, core.claim_one(), fetched)
        assert why(core, DAILY).state == state, (day, hour)
    core.unsubscribe("ann", (DAILY, "AAPL"))
    clock.set(OPEN.replace(day=12, hour=15))
    found = why(core, DAILY)
    assert (found.state, "by the trading days of XNYS" in found.sentence) == ("market_closed", True)


def test_f4_nobody_watches(core: Core, clock: Clock) -> None:
    watched(core, clock)
    core.unsubscribe("ann", (QUOTE, "AAPL"))
    core.rows("DELETE FROM pricing.api_call_queue_live")
    found = why(core)
    assert (found.state, "subscription watch AAPL --type equity_quote" in found.sentence) == (
        "unwatched",
        True,
    )


def test_f4_what_is_only_held_has_the_slow_ttl_and_must_be_looked_at(core: Core, clock: Clock) -> None:
    core.hold("ann", (QUOTE, "AAPL"))
    core.refresh()
    clock.advance(3600)
    found = why(core)
    assert (found.state, found.fetched_at) == (
        "background",
        (found.next_at or found.since) - timedelta(days=1),
    )  # type: ignore[operator]
    clock.advance(3 * 86_400)
    core.rows("DELETE FROM pricing.pair_views")
    found = why(core)
    assert (found.state, "pricing-pipeline price show AAPL" in found.sentence) == ("unseen", True)


def test_f4_a_scheduled_type_waits_for_its_schedule(core: Core, clock: Clock) -> None:
    core.rows("INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('fund', '100001') ON CONFLICT DO NOTHING")
    found = why(core, NAV, "100001")
    assert (found.state, "30 23 * * *, Asia/Kolkata" in found.sentence) == ("scheduled", True)
    assert found.sentence == (
        "nothing was ever fetched: nobody watches it, so it is refreshed by its schedule (30 23 * * *, Asia/Kolkata). "
        "To queue all of the type now: pricing-pipeline type refresh mf_nav"
    )
    core.rows(
        "UPDATE pricing.schedule_walks SET served_slot = pricing.clock(), next_slot = '2026-06-10 18:00Z'"
        " WHERE data_type = :type",
        type=NAV,
    )
    found = why(core, NAV, "100001")
    assert "(30 23 * * *, Asia/Kolkata), next at 2026-06-10 18:00:00 UTC. To queue" in found.sentence
    assert found.next_at == datetime(2026, 6, 10, 18, tzinfo=UTC)
    clock.set(datetime(2026, 6, 10, 18, 1, tzinfo=UTC))
    assert "Asia/Kolkata), due since 2026-06-10 18:00:00 UTC. To queue" in why(core, NAV, "100001").sentence
    core.rows(
        "INSERT INTO pricing.price_history (data_type, symbol, observed_at, amount, scale, provider, call_id,"
        " fetched_at) VALUES (:type, '100001', '2020-01-01Z', 1, 2, 'mfapi', 1, pricing.clock())",
        type=NAV,
    )
    assert why(core, NAV, "100001").sentence.startswith("its history is stored, but no latest price: ")


def test_f4_what_is_due_and_not_queued_yet(core: Core, clock: Clock) -> None:
    watched(core, clock)
    found = why(core)
    assert (found.state, found.since) == ("due", core.demand_of(QUOTE, "AAPL").due_at)  # type: ignore[union-attr]


def test_f4_what_its_own_judge_calls_fresh_is_looked_at_again(core: Core, clock: Clock) -> None:
    watched(core, clock)
    core.rows("UPDATE pricing.demand SET due_at = pricing.clock() + interval '30 seconds'")
    assert why(core).state == "not_due"


def test_f4_what_its_own_judge_fails_on(core: Core, clock: Clock) -> None:
    """Anyone who reads the price is told that it is stale, so this must not say that it is fresh."""
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.break_judge(QUOTE)
    core.refresh()
    (price,) = core.read("AAPL").prices
    found = why(core)
    assert (price.fresh, found.state, "pricing.own_judge" in found.sentence) == (False, "unjudged", True)
    assert found.next_at == core.demand_of(QUOTE, "AAPL").due_at  # type: ignore[union-attr]


def test_f4_no_provider_is_routed(core: Core, clock: Clock) -> None:
    watched(core, clock)
    core.rows("DELETE FROM pricing.provider_routing WHERE data_type = 'equity_quote'")
    assert why(core).state == "misconfigured"
    core.enqueue_due()
    found = why(core)
    assert (found.state, "pricing-pipeline route add" in found.sentence) == ("misconfigured", True)
    assert found.next_at == core.demand_of(QUOTE, "AAPL").backoff_until  # type: ignore[union-attr]


def test_f4_no_provider_is_in_use(core: Core, cli: CommandLine) -> None:
    """Adding a route was the advice, although there was nobody whom a route leads to."""
    way = (
        "no provider is in use: choose one of `pricing-pipeline provider list` with "
        "`pricing-pipeline provider use NAME`"
    )
    core.rows("UPDATE pricing.data_collectors SET is_active = false")
    core.heartbeat("ann", (QUOTE, "AAPL"))
    found = why(core)
    assert found.state == "misconfigured"
    assert f"(no active provider serves this pair; {way})" in found.sentence
    assert "route add" not in found.sentence
    (task,) = core.rows("SELECT errors FROM pricing.api_call_queue_dead")
    assert task.errors[-1]["message"] == f"no active provider serves equity_quote AAPL; {way}"
    assert f"no active provider serves equity_quote MSFT; {way}" in why(core, symbol="MSFT").sentence
    assert f"hint:        {way}." in cli("status").stdout
    assert cli("status", "--json").json["no_provider"] == way
    core.rows("UPDATE pricing.data_type_registry SET is_active = false")
    assert f"the registry is empty; {way}." in cli("type", "list").stdout
    core.rows("UPDATE pricing.data_collectors SET is_active = true")
    assert cli("status", "--json").json["no_provider"] is None
    assert "the registry is empty; `pricing-pipeline type add --help`" in cli("type", "list").stdout


def test_f4_waiting_in_the_queue(core: Core, clock: Clock) -> None:
    watched(core, clock)
    core.enqueue_due()
    assert why(core).state == "no_worker"
    core.call("SELECT pricing.begin_drain('w', NULL, 120)")
    core.enqueue(DAILY, "IBM", "MSFT", priority=9)
    found = why(core)
    assert (found.state, found.since) == (
        "queued",
        core.one("SELECT enqueued_at FROM pricing.api_call_queue_live WHERE symbol = 'AAPL'"),
    )
    assert "as number 3 in the queue of twelvedata" in found.sentence


def test_f4_being_asked_for(core: Core, clock: Clock) -> None:
    queued(core, clock)
    core.claim_one()
    assert why(core).state == "asking"


def test_f4_a_failed_attempt_is_tried_again(core: Core, clock: Clock) -> None:
    queued(core, clock)
    core.fail(core.claim_one(), FailureKind.PROVIDER_DOWN, "no answer in 10 s")
    found = why(core)
    task = core.tasks("AAPL")[-1]
    assert (found.state, found.next_at) == ("retrying", task.run_after)
    assert "provider_down (no answer in 10 s)" in found.sentence
    assert f"task show {task.id}" in found.sentence


@pytest.mark.parametrize(
    ("kind", "state"),
    [
        (FailureKind.UNKNOWN_SYMBOL, "unknown_symbol"),
        (FailureKind.PLAN_RESTRICTED, "plan_restricted"),
    ],
)
def test_f4_dead_tasks_hold_their_pair_off(core: Core, clock: Clock, kind: FailureKind, state: str) -> None:
    core.rows("DELETE FROM pricing.provider_routing WHERE rank > 1")
    queued(core, clock)
    core.fail(core.claim_one(), kind, "so it said")
    found = why(core)
    assert found.state == state
    assert f"as {kind} (so it said)" in found.sentence
    assert found.next_at == core.demand_of(QUOTE, "AAPL").backoff_until  # type: ignore[union-attr]


def test_f4_cancelled_by_hand(core: Core, clock: Clock) -> None:
    queued(core, clock)
    core.rows("SELECT pricing.cancel_tasks(ARRAY[(SELECT id FROM pricing.api_call_queue_live)])")
    assert why(core).state == "cancelled"


def test_f4_a_breaker_goes_before_the_failure_that_opened_it(core: Core, clock: Clock) -> None:
    queued(core, clock)
    core.fail(core.claim_one(), FailureKind.PROVIDER_DOWN)
    core.one("SELECT pricing.open_breaker('twelvedata', '10 of 10 calls failed')")
    found = why(core)
    until = core.one("SELECT breaker_until FROM pricing.provider_state WHERE provider = 'twelvedata'")
    assert (found.state, found.next_at) == ("breaker_open", until)
    assert "10 of 10 calls failed" in found.sentence


@pytest.mark.parametrize(
    ("kind", "state"), [(FailureKind.THROTTLED, "throttled"), (FailureKind.KEY_REFUSED, "key_refused")]
)
def test_f4_refusals_for_speed_or_of_the_key(core: Core, clock: Clock, kind: FailureKind, state: str) -> None:
    queued(core, clock)
    call = core.claim_one()
    core.settle(call, outcome="failed", kind=kind)
    core.throttle(TWELVEDATA, 90)
    core.fail(call, kind, retry_after=90)
    found = why(core)
    assert (found.state, "too fast" in found.sentence) == (state, True)
    assert found.next_at == core.one("SELECT blocked_until FROM pricing.provider_keys")


def test_f4_what_came_is_not_believed(core: Core, clock: Clock) -> None:
    watched(core, clock)
    bring(core, "7250")
    found = why(core)
    with core.engine.connect() as connection:
        (value,) = quarantined_values.listed(connection, None, None, 9)
    assert (found.state, found.since) == ("quarantined", value.last_seen_at)
    assert (
        f"(7250) is not believed: {value.reason}. Decide on it: pricing-pipeline quarantine show {value.value_id}"
        in found.sentence
    )
    assert found.next_at == core.tasks("AAPL")[-1].run_after

    reject(core, value.value_id, "ann")
    assert "ann has rejected it" in why(core).sentence
    bring(core, "72.60", 0)
    assert why(core).state == "fresh"


def test_f4_people_ask_by_command(cli: CommandLine, core: Core, clock: Clock) -> None:
    watched(core, clock)
    said = cli("price", "why", "AAPL", "--type", QUOTE)
    assert said.exit_code == 0
    assert said.stdout.startswith("equity_quote: due. Last confirmed 6")
    reasons: list[dict[str, Any]] = cli("price", "why", "AAPL", "--json").json["reasons"]
    assert {one["data_type"]: one["state"] for one in reasons} == {DAILY: "unwatched", QUOTE: "due"}
    watching = "watching it adds it: pricing-pipeline subscription watch NOPE --type TYPE."
    sane = "it looks like a symbol of no data type; `pricing-pipeline type list` lists them."
    for command in ("why", "show"):
        assert cli("price", command, "NOPE").error == f"no instrument is called 'NOPE'; {watching}"
        assert cli("price", command, "AAPL MSFT").error == f"no instrument is called 'AAPL MSFT'; {sane}"
    assert "no equity instrument is called NOPE" in cli("price", "why", "NOPE", "--type", QUOTE).error
    assert "there is no active data type" in cli("price", "why", "AAPL", "--type", "nope").error
    assert core.one("SELECT count(*) FROM pricing.pair_views WHERE symbol = 'AAPL'") == 0, "asking is no look"


def test_f4_why_viewers_wait_is_told_for_the_longest_first(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    clock.advance(5)
    core.heartbeat("ann", (QUOTE, "IBM"), (QUOTE, "MSFT"))
    clock.advance(32)
    with core.engine.connect() as connection:
        found = freshness.why_late(connection, QUOTE, 2)
    assert [(one.symbol, one.state) for one in found] == [("AAPL", "no_worker"), ("IBM", "no_worker")]


def test_f4_a_reader_may_ask(core: Core) -> None:
    assert core.one(
        "SELECT has_function_privilege('pricing_reader',"
        " 'pricing.why_old(text,text,pricing.provider_stop[])', 'EXECUTE')"
    ), "it changes nothing"


def test_f4_the_runbook_lists_every_state() -> None:
    """The states of the page are those that the functions give, no more and no fewer."""
    source = (ROOT / "pricing_pipeline/db/functions/demand/why.sql").read_text()
    given = set(re.findall(r"state := '(\w+)'", source)) | {
        "unknown_symbol",
        "plan_restricted",
        "cancelled",
        "failed",
        "endpoint_restricted",
        "backing_off",
    }
    page = (ROOT / "docs/operations.md").read_text()
    (listing,) = re.findall(r"^The states for programs.*?\n\n(- .*?)\n\n", page, re.MULTILINE | re.DOTALL)
    listed = set(re.findall(r"`(\w+)`", listing))
    assert listed == given


def test_f4_every_sentence_is_said_somewhere_and_none_is_missing() -> None:
    folder = ROOT / "pricing_pipeline/db/functions/demand"
    kinds = re.findall(r"^        \('(\w+)', '", (folder / "sentences.sql").read_text(), re.MULTILINE)
    decisions = (folder / "why.sql").read_text()
    said = set(re.findall(r"why_sentence\(\s*'(\w+)'", decisions))
    # Where the state is the kind.
    said |= {"key_refused", "throttled"} if "why_sentence(state, wanted_provider" in decisions else set()
    assert sorted(kinds) == sorted(said)
