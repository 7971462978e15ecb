"""Green means fresh: a pair's life through whatever happens to its provider, against a model that knows only the truth.

The model knows when each price was confirmed, since when somebody waits for it, and what came of its last attempt. It
knows nothing of due times, tasks, back-offs and outages.
"""

from __future__ import annotations

from datetime import timedelta

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.machines import run_machine
from pricing_pipeline_tests.support.outage_world import GRACE, START, TROUBLE, TTL, OutageWorld, freeze

PAIRS = ("AAPL", "META", "IBM")
SECOND = timedelta(seconds=1)


class PairMachine(RuleBasedStateMachine):
    """Three watched pairs and one provider. Time passes by whole seconds, and a drain works all the while."""

    core: Core

    def __init__(self) -> None:
        super().__init__()
        self.core.rows(
            "TRUNCATE pricing.api_call_queue, pricing.collector_call_log, pricing.demand, pricing.active_subscriptions,"
            " pricing.holdings, pricing.latest_prices, pricing.price_history, pricing.outages, pricing.check_marks,"
            " pricing.price_revisions, pricing.pair_views, pricing.user_allowances"
        )
        self.core.rows(
            "UPDATE pricing.provider_state SET claims = 0, breaker = 'closed', breaker_since = :start,"
            " breaker_until = NULL, breaker_openings = 0, probe_call = NULL, last_call_at = NULL",
            start=START,
        )
        self.core.rows("DELETE FROM pricing.provider_keys")
        self.core.rows("DELETE FROM pricing.limit_counts")
        self.core.rows("UPDATE pricing.instruments SET update_mode = 'api'")
        self.world = OutageWorld(self.core, PAIRS)
        self.world.move(0)
        self.owed_at_the_earliest = dict.fromkeys(PAIRS, START)
        self.paused: set[str] = set()

    @initialize()
    def begin_fresh(self) -> None:
        self.world.pass_by(2)
        assert self.world.freshness().is_calm

    # What happens

    @rule(kind=st.sampled_from([None, None, *TROUBLE]))
    def the_provider_is(self, kind: str | None) -> None:
        self.world.trouble = kind

    @rule(symbols=st.sets(st.sampled_from(PAIRS)))
    def these_are_unknown(self, symbols: set[str]) -> None:
        self.world.unknown = symbols

    @rule(symbols=st.sets(st.sampled_from(PAIRS), max_size=1))
    def these_spoil_their_answer(self, symbols: set[str]) -> None:
        self.world.poisoned = symbols

    @rule(symbols=st.sets(st.sampled_from(PAIRS), max_size=2))
    def requests_for_these_are_refused(self, symbols: set[str]) -> None:
        self.world.refused = symbols

    @rule(seconds=st.sampled_from([3, 15, 40, 70, 200, 700]))
    def time_passes(self, seconds: int) -> None:
        self.world.pass_by(seconds, step=1 if seconds < 40 else 5)

    @rule(symbol=st.sampled_from(PAIRS))
    def pause_or_resume(self, symbol: str) -> None:
        self.core.pause(symbol, paused=symbol not in self.paused)
        if symbol in self.paused:
            self.owed_at_the_earliest[symbol] = self.world.now
        self.paused ^= {symbol}

    @rule(symbol=st.sampled_from(PAIRS), seconds=st.sampled_from([5, 100, 400]))
    def leave_and_come_back(self, symbol: str, seconds: int) -> None:
        self.core.unsubscribe("ann", (QUOTE, symbol))
        self.world.symbols.remove(symbol)
        self.world.pass_by(seconds, step=5)
        self.core.call("SELECT pricing.clean_subscriptions()")
        self.core.heartbeat("ann", (QUOTE, symbol))
        self.world.symbols.append(symbol)
        self.owed_at_the_earliest[symbol] = self.world.now

    @rule(symbol=st.sampled_from(PAIRS), seconds=st.sampled_from([70, 400]))
    def it_is_only_held_and_then_two_clients_look_at_once(self, symbol: str, seconds: int) -> None:
        self.core.hold("hal", (QUOTE, symbol))
        self.core.unsubscribe("ann", (QUOTE, symbol))
        self.core.unsubscribe("bob", (QUOTE, symbol))
        self.world.symbols.remove(symbol)
        self.world.pass_by(seconds, step=5)
        for user in ("ann", "bob"):
            self.world.look_as_client(user, symbol)
        self.world.symbols.append(symbol)
        self.owed_at_the_earliest[symbol] = self.world.now

    @rule()
    def nobody_works_for_two_minutes(self) -> None:
        self.world.move(120)

    @rule()
    def a_worker_is_lost(self) -> None:
        self.core.claim(max_calls=2)
        self.world.move(61)
        self.core.call("SELECT pricing.recover_tasks()")
        self.core.call("SELECT pricing.expire_calls()")

    @rule()
    def the_provider_is_well_for_a_minute(self) -> None:
        """All that waits for it comes back, a minute later for each symbol that it refuses.

        What it failed while it answered others comes back by its own pauses.
        """
        waiting = {
            symbol
            for symbol in set(PAIRS) - self.paused - self.world.poisoned - self.world.unknown - self.world.refused
            if self.world.outcomes[symbol] not in ("unknown_symbol", "throttled", "endpoint_restricted")
            and self.world.failing_since.get(symbol, self.world.now) > self.world.answered_at
        }
        self.world.trouble = None
        # A key that was refused rests for 60 s. A probe a minute looks whether the provider is well, and one that is
        # spent on a symbol that it refuses does not tell.
        self.world.pass_by(75 + 60 * len(self.world.refused))
        states = self.world.states()
        assert {states[symbol] for symbol in waiting} <= {"fresh"}, (waiting, states)

    # What must hold

    def at_fault(self) -> set[str]:
        """The provider has named them, or refused them while it answered for others."""
        return {
            symbol
            for symbol, outcome in self.world.outcomes.items()
            if outcome == "unknown_symbol"
            or (outcome == "request_refused" and self.world.failing_since[symbol] <= self.world.answered_at)
        }

    @invariant()
    def green_means_fresh(self) -> None:
        row = self.world.freshness()
        assert row.watched == row.fresh + row.due + row.late + row.refused + row.paused == len(PAIRS)
        for symbol, state in self.world.states().items():
            assert (state == "paused") is (symbol in self.paused)
            assert state != "refused" or symbol in self.at_fault(), "trouble excuses nobody"
        if not row.is_calm:
            return
        assert any(self.world.now <= self.world.confirmed[symbol] + TTL for symbol in PAIRS), (
            "an event says that a price was confirmed"
        )
        for symbol in set(PAIRS) - self.paused - self.at_fault():
            owed = max(self.world.confirmed[symbol] + TTL, self.owed_at_the_earliest[symbol])
            assert self.world.now <= owed + GRACE + SECOND, f"{symbol} is owed since {owed} and called on time"


def test_g2_green_means_fresh_whatever_happens(core: Core) -> None:
    freeze(core)
    core.lift_limits(batch_size=1)

    class Machine(PairMachine):
        pass

    Machine.core = core
    run_machine(Machine, examples(15), steps=12)
