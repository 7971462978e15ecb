"""Health against a plain model: what stands still, and since when it is wanted, say which parts are late."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.machines import run_machine
from pricing_pipeline_tests.support.working import late, start, tick

AFTER = {"daemon": 120, "sensor": 120, "drain": 120, "staleness_check": 180, "notifier": 120}
"""Seconds after which a part is late. Duties, queue and freshness look at more than signs, and have their own tests."""
WATCHED, HELD = (QUOTE, "AAPL"), (QUOTE, "IBM")


class Model:
    """When each part last gave a sign, and since when somebody wants something. In seconds since the test began."""

    def __init__(self) -> None:
        self.now = self.started = self.last_start = 0
        self.signs: dict[str, int] = {}
        self.watched: dict[str, int] = {}
        self.held_since: int | None = None

    def start(self) -> None:
        """It gives time to all parts, unless they have not used what the last one gave."""
        needed = ("sensor", "staleness_check", "drain", "looked", "sent")
        have_worked = all(self.signs.get(part, -1) > self.started for part in needed)
        if have_worked or self.now - self.last_start > 300:
            self.started = self.now
        self.last_start = self.now

    def late(self) -> set[str]:
        watched = min(self.watched.values(), default=None)
        wants = [since for since in (watched, self.held_since) if since is not None]
        found = set()
        for part, seconds in AFTER.items():
            if part == "notifier":
                since: int | None = self.started
                sign = min(self.signs.get("looked", -1), self.signs.get("sent", -1))
            else:
                since = watched if part == "drain" else min(wants, default=None)
                sign = self.signs.get(part, -1)
            if since is not None and max(since, sign, self.started) <= self.now - seconds:
                found.add(part)
        return found


def machine(core: Core, clock: Clock) -> type[RuleBasedStateMachine]:
    """The state machine on this test's database."""

    class Machine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            for table in (
                "signs_of_life",
                "drains",
                "active_subscriptions",
                "holdings",
                "pair_requests",
            ):
                core.rows(f"DELETE FROM pricing.{table}")
            self.forget_tasks()
            self.model = Model()
            start(core)

        def forget_tasks(self) -> None:
            """Else what is queued would go on being wanted."""
            core.rows("DELETE FROM pricing.api_call_queue_live")

        def note(self, *parts: str) -> None:
            self.model.signs |= dict.fromkeys(parts, self.model.now)

        @rule(seconds=st.sampled_from([1, 59, 60, 61, 119, 120, 179, 180, 7200]))
        def time_passes(self, seconds: int) -> None:
            clock.advance(seconds)
            self.model.now += seconds

        @rule()
        def the_pipeline_starts(self) -> None:
            start(core)
            self.model.start()

        @rule()
        def the_sensor_ticks(self) -> None:
            tick(core, "refresh_watched")
            self.note("sensor", "daemon")

        @rule()
        def another_sensor_ticks(self) -> None:
            tick(core, "report_prices")
            self.note("daemon")

        @rule()
        def somebody_checks(self) -> None:
            core.call("SELECT pricing.note_life('enqueue_due', 0.1)")
            self.note("staleness_check")

        @rule()
        def a_drain_works(self) -> None:
            drain = core.call("SELECT pricing.begin_drain('w', NULL, 1)")
            core.call("SELECT count(pricing.end_drain(:drain))", drain=drain)
            self.note("drain")

        @rule(has_looked=st.booleans())
        def a_notifier_works(self, has_looked: bool) -> None:
            part = "look_for_alerts" if has_looked else "send_messages"
            core.call("SELECT count(pricing.note_life(:part, 0))", part=part)
            self.note("looked" if has_looked else "sent")

        @rule(user=st.sampled_from(["ann", "bob"]))
        def somebody_watches(self, user: str) -> None:
            core.heartbeat(user, WATCHED)
            self.forget_tasks()
            self.model.watched.setdefault(user, self.model.now)

        @rule(user=st.sampled_from(["ann", "bob"]))
        def somebody_leaves(self, user: str) -> None:
            core.unsubscribe(user, WATCHED)
            self.model.watched.pop(user, None)

        @rule(is_held=st.booleans())
        def somebody_holds_or_sells(self, is_held: bool) -> None:
            if is_held:
                core.hold("ann", HELD)
                self.forget_tasks()
                if self.model.held_since is None:
                    self.model.held_since = self.model.now
            elif self.model.held_since is not None:
                core.end_holding("ann", HELD)
                self.model.held_since = None

        @invariant()
        def what_is_late_is_what_the_model_says(self) -> None:
            assert late(core) & AFTER.keys() == self.model.late()

    return Machine


def test_b23_parts_are_late_as_a_plain_model_says(core: Core, clock: Clock) -> None:
    clock.stop()
    core.rows("UPDATE pricing.data_type_registry SET refresh_strategy = 'on-demand', refresh_schedule = NULL")
    core.rows("UPDATE pricing.user_caps SET new_pairs_per_minute = 1000000")
    run_machine(machine(core, clock), examples(15), steps=30)
