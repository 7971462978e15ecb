"""A8, G2, F4: what is trouble and what a symbol's own fault, whom an outage waits for, and how back-offs end early."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import text

from pricing_pipeline.demand import freshness
from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import QUOTE, TWELVEDATA, Core, symbols
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.examples import is_thorough
from pricing_pipeline_tests.support.outage_world import OutageWorld, freeze, fresh_world

Make = Callable[..., OutageWorld]


@pytest.fixture
def world(core: Core) -> Make:
    return lambda count, batch_size=1: fresh_world(core, count, batch_size)


def why(core: Core, symbol: str) -> freshness.Why:
    with core.engine.connect() as connection:
        (found,) = freshness.why(connection, symbol, QUOTE)
    return found


# A few bad symbols


@pytest.mark.parametrize(("bad", "minutes"), [(2, 20), (5, 11), *([(5, 20)] if is_thorough() else []), (10, 15)])
def test_a8_bad_symbols_keep_a_well_provider_from_nobody(world: Make, bad: int, minutes: int) -> None:
    """The invariant: the good are fresh soon after the provider's return, and stay so.

    The bad ones are those that most watch, so that a probe by viewers would ask for nothing else.
    """
    there = world(20)
    there.trouble = "provider_down"
    spoiled = there.symbols[:bad]
    for _ in range(minutes):
        there.core.heartbeat("bob", *((QUOTE, symbol) for symbol in spoiled))
        there.pass_by(60, step=10)
    there.trouble, there.poisoned = None, set(spoiled)
    there.pass_by(120, step=5)
    for _ in range(90):
        states = there.states()
        assert {states[symbol] for symbol in there.symbols[bad:]} <= {"fresh", "due"}
        there.core.heartbeat("bob", *((QUOTE, symbol) for symbol in spoiled))
        there.pass_by(10, step=10)


def test_b16_symbols_that_fail_again_and_again_open_no_breaker(world: Make) -> None:
    """What a provider fails while it answers others does not count, however often it is tried."""
    there = world(20)
    there.poisoned = set(there.symbols[:12])
    there.pass_by(300, step=5)
    for _ in range(120 if is_thorough() else 60):
        there.pass_by(20, step=5)
        assert there.core.allowance().breaker == "closed"


def test_b16_one_bad_symbol_of_a_type_that_is_seldom_asked_for_delays_nobody(world: Make) -> None:
    """Where prices are asked for every 15 minutes, one bad symbol makes most of all calls."""
    there = world(20)
    there.core.rows("UPDATE pricing.data_type_registry SET default_ttl_minutes = 15 WHERE data_type = 'equity_quote'")
    there.poisoned = {"S0003"}
    for _ in range(180):
        there.pass_by(30, step=10)
        assert {state for symbol, state in there.states().items() if symbol != "S0003"} <= {"fresh", "due"}


def test_b16_probes_take_turns_between_data_types(core: Core) -> None:
    """A data type that stays broken keeps the others from being asked no longer than for every second probe."""
    freeze(core)
    core.lift_limits(batch_size=1)
    core.heartbeat("ann", ("fx_rate", "EUR/USD"), *((QUOTE, symbol) for symbol in symbols(20)))
    core.heartbeat("bob", *((QUOTE, symbol) for symbol in symbols(20)))
    there = OutageWorld(core, symbols(20))
    there.trouble = "provider_down"
    core.rows("DELETE FROM pricing.provider_keys")
    asked = []
    core.one("SELECT pricing.open_breaker('twelvedata', 'as a test')")
    for _ in range(6):
        there.move(61)
        core.promote()
        call = core.claim_one()
        asked.append(call.data_type)
        there._answer(call)
    assert asked.count("fx_rate") == 3, asked


# Refused requests


def test_a8_a_400_to_one_symbol_alone_is_its_fault(world: Make) -> None:
    there = world(3)
    there.refused = {"S0001"}
    there.pass_by(400, step=5)
    assert there.states() == {"S0000": "fresh", "S0001": "refused", "S0002": "fresh"}
    dead = there.core.tasks("S0001")[-1]
    assert dead.failure_kind == "unknown_symbol"
    assert "it is refused alone, while others are answered: twelvedata answered 400" in dead.errors[-1]["message"]
    assert sum("S0001" in asked for _, asked in there.asked) <= 5
    assert there.freshness().is_calm


def test_a8_a_symbol_that_the_second_provider_does_not_know_waits_for_the_first(core: Core, clock: Clock) -> None:
    """Only if nobody who could be asked serves it is a symbol at fault."""
    clock.stop()
    core.rows("DELETE FROM pricing.provider_routing WHERE rank > 1")
    core.rows("INSERT INTO pricing.provider_routing (data_type, provider, rank) VALUES ('equity_quote', 'yahoo', 2)")
    core.rows("UPDATE pricing.data_collectors SET is_active = true")
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh()
    clock.advance(61)
    core.enqueue_due()
    core.fail(core.claim_one(), FailureKind.ENDPOINT_RESTRICTED, "403: your plan has ended.")
    core.fail(core.claim_one("yahoo"), FailureKind.UNKNOWN_SYMBOL, "yahoo has no AAPL.")
    clock.advance(31)
    (pair,) = core.rows("SELECT state FROM pricing.watched_pairs()")
    assert pair.state == "late"
    found = why(core, "AAPL")
    assert found.state == "endpoint_restricted"
    assert "twelvedata cannot be asked (403: your plan has ended), and yahoo does not serve it" in found.sentence
    assert ".." not in found.sentence
    clock.advance(60)
    core.enqueue_due()
    assert core.claim_one().symbols == ["AAPL"], "the first is asked again"


def test_a8_a_symbol_that_no_provider_knows_is_at_fault(core: Core, clock: Clock) -> None:
    clock.stop()
    core.rows("DELETE FROM pricing.provider_routing WHERE rank > 1")
    core.rows("INSERT INTO pricing.provider_routing (data_type, provider, rank) VALUES ('equity_quote', 'yahoo', 2)")
    core.rows("UPDATE pricing.data_collectors SET is_active = true")
    core.heartbeat("ann", (QUOTE, "NOPE"))
    core.fail(core.claim_one(), FailureKind.UNKNOWN_SYMBOL, "twelvedata has no NOPE")
    core.fail(core.claim_one("yahoo"), FailureKind.UNKNOWN_SYMBOL, "yahoo has no NOPE")
    clock.advance(31)
    (pair,) = core.rows("SELECT state FROM pricing.watched_pairs()")
    assert pair.state == "refused"


# Held pairs


def old_and_held(core: Core, clock: Clock) -> None:
    """A pair of a minute that only hal holds, judged for nobody, and five hours old."""
    clock.stop()
    core.hold("hal", (QUOTE, "AAPL"))
    core.refresh()
    clock.advance(5 * 3600)
    core.enqueue_due()
    assert core.due_in(QUOTE, "AAPL") > 3600


def look(core: Core, *users: str) -> None:
    for user in users:
        core.rows(f"SELECT pricing.heartbeat('{user}', '{{equity_quote}}', '{{AAPL}}', false)")


def test_b6_a_held_pair_is_judged_for_two_clients_who_come_at_once(core: Core, clock: Clock) -> None:
    old_and_held(core, clock)
    look(core, "ann", "bob")
    assert [row.state for row in core.rows("SELECT state FROM pricing.watched_pairs()")] == ["due"]
    assert why(core, "AAPL").state == "due"
    assert core.enqueue_due() == 1
    clock.advance(31)
    assert [row.state for row in core.rows("SELECT state FROM pricing.watched_pairs()")] == ["late"]
    core.refresh()
    assert [row.state for row in core.rows("SELECT state FROM pricing.watched_pairs()")] == ["fresh"]


def test_b6_a_viewer_sees_a_held_pair_as_its_own_judge_does(core: Core, clock: Clock) -> None:
    """Whatever its due_at says: that is by the TTL of holders."""
    core.judge_by("SELECT stamp <= pricing.clock() - make_interval(mins => ttl_minutes)", QUOTE)
    old_and_held(core, clock)
    with core.engine.connect() as other:
        other.execute(text("SELECT FROM pricing.demand FOR UPDATE"))
        look(core, "ann")
        core.enqueue_due()
    assert [row.state for row in core.rows("SELECT state FROM pricing.watched_pairs()")] == ["due"]


def test_b6_a_held_pair_that_was_locked_at_the_first_look_is_judged_within_a_minute(core: Core, clock: Clock) -> None:
    old_and_held(core, clock)
    with core.engine.connect() as other:
        other.execute(text("SELECT FROM pricing.demand FOR UPDATE"))
        look(core, "ann")
        assert core.enqueue_due() == 0
    clock.advance(31)
    look(core, "ann")
    assert [row.state for row in core.rows("SELECT state FROM pricing.watched_pairs()")] == ["late"], (
        "whatever its due_at says"
    )
    clock.advance(30)
    core.call("SELECT pricing.run_duties()")
    assert core.claim_one().symbols == ["AAPL"]


def test_b6_a_viewer_of_a_pair_that_others_watch_writes_nothing_to_it(core: Core, clock: Clock) -> None:
    clock.stop()
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh()
    place = "SELECT xmin::text FROM pricing.demand"
    before = core.one(place)
    look(core, "bob", "cat")
    core.enqueue_due()
    assert core.one(place) == before


# Trouble of ours


@pytest.mark.parametrize("trouble", ["client_fault", "endpoint_restricted", "misconfigured"])
def test_a8_an_answer_brings_back_all_that_died_of_trouble_of_ours(world: Make, trouble: str) -> None:
    there = world(6)
    there.trouble = trouble
    there.pass_by(1900, step=10)
    assert set(there.states().values()) == {"late"}
    there.core.rows("UPDATE pricing.demand SET due_at = pricing.clock() + interval '2 min' WHERE symbol = 'S0004'")
    there.trouble = None
    there.pass_by(135, step=5)
    assert set(there.states().values()) == {"fresh"}


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        (
            "UPDATE pricing.data_collectors SET quota_bytes = 1 WHERE provider = 'twelvedata'",
            "UPDATE pricing.data_collectors SET quota_bytes = 21474836480 WHERE provider = 'twelvedata'",
        ),
        (
            "DELETE FROM pricing.provider_capabilities WHERE fetcher = 'daily_bars';"
            " UPDATE pricing.data_type_registry SET fetcher = 'daily_bars' WHERE data_type = 'equity_quote'",
            "UPDATE pricing.data_type_registry SET fetcher = 'quote' WHERE data_type = 'equity_quote'",
        ),
        (
            "DELETE FROM pricing.provider_capabilities WHERE provider = 'twelvedata' AND fetcher = 'quote'",
            "INSERT INTO pricing.provider_capabilities (provider, fetcher, batch_size, units_per_symbol)"
            " VALUES ('twelvedata', 'quote', 1, 1)",
        ),
        (
            "UPDATE pricing.provider_capabilities SET units_per_symbol = 5;"
            " UPDATE pricing.provider_limits SET units = 1",
            "UPDATE pricing.provider_limits SET units = 1000000",
        ),
    ],
    ids=["quota", "fetcher", "capability", "limit"],
)
def test_a8_setting_right_what_was_wrong_ends_the_back_off(world: Make, wrong: str, right: str) -> None:
    there = world(3)
    for statement in wrong.split("; "):
        there.core.rows(statement)
    for _ in range(20):
        there.pass_by(60, step=10)
        there.core.call("SELECT pricing.run_duties()")
    assert set(there.states().values()) == {"late"}
    there.core.rows(right)
    there.pass_by(5)
    assert set(there.states().values()) == {"fresh"}


# What people are told


def test_f4_status_and_why_say_an_outage_in_the_same_words(world: Make, cli: CommandLine) -> None:
    there = world(2)
    there.trouble = "provider_down"
    there.pass_by(90, step=5)
    words = "no answer for equity_quote since 2026-03-10 15:01:0"
    assert words in there.core.allowance().outages
    assert ", asked about once a minute" in there.core.allowance().stop
    assert f"; twelvedata: {words}" in why(there.core, "S0000").sentence
    assert words in cli("status").stdout
    there.trouble = None
    there.pass_by(60)
    assert there.core.allowance().outages is None


def test_f4_an_open_breaker_is_said_to_be_probed_when_it_is(world: Make) -> None:
    there = world(20)
    there.trouble = "provider_down"
    there.pass_by(600, step=5)
    allowance = there.core.allowance()
    assert allowance.breaker == "open"
    assert allowance.breaker_seconds <= 45
    assert allowance.breaker_reason.startswith("the last probe failed: twelvedata answered 503")
    found = why(there.core, "S0000")
    assert found.next_at <= there.now + timedelta(seconds=45)


def test_f4_attempts_are_counted_in_english(core: Core) -> None:
    said = [core.one("SELECT pricing.format_ordinal(:n)", n=n) for n in (1, 2, 3, 4, 10, 11, 12, 13, 21, 22, 23, 101)]
    assert said == [
        "1st",
        "2nd",
        "3rd",
        "4th",
        "10th",
        "11th",
        "12th",
        "13th",
        "21st",
        "22nd",
        "23rd",
        "101st",
    ]
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.fail(core.claim_one(TWELVEDATA), FailureKind.PROVIDER_DOWN, "it answered 503.")
    found = why(core, "AAPL")
    assert "provider_down (it answered 503); it is tried again" in found.sentence
    assert "for the 2nd time of 4. All failures" in found.sentence
