"""Alerts against a plain model: raised once, repeated by severity, over once; a restart neither forgets nor repeats."""

from __future__ import annotations

import json
from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from sqlalchemy import text

from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.machines import run_machine

HOUR, DAY = 3600, 86400
OVER_AFTER = 300
"""An alert is over when it has not been seen for so many seconds."""
RULES = {"burns": ("P0", 0), "leaks": ("P1", 0), "smells": ("P1", 600), "creaks": ("P2", 0)}
"""Severity, and for how many seconds it must last."""
SUBJECTS = ("a", "b")


@dataclass
class Open:
    """What the model knows of an open alert. Times in seconds since the test began."""

    since: int
    seen_at: int = 0
    raised_at: int | None = None
    told_at: int | None = None
    is_acknowledged: bool = False


class Model:
    """Who is told when, as people would say it."""

    def __init__(self) -> None:
        self.now = 0
        self.open: dict[tuple[str, str], Open] = {}
        self.digest_at: int | None = None
        self.silent_until: dict[str, int] = {}
        self.untold_ends: dict[tuple[str, str], None] = {}
        self.untold_digest: set[tuple[str, str]] = set()

    def look(self, seen: set[tuple[str, str]]) -> set[tuple[str, str, str]]:
        """What is told at this look: rule, subject, and whether it is new, repeated or over."""
        ended: set[tuple[str, str]] = set()
        for place in set(self.open) - seen:
            alert = self.open[place]
            if alert.raised_at is None:
                del self.open[place]
            elif alert.seen_at <= self.now - OVER_AFTER:
                del self.open[place]
                if alert.told_at is not None and RULES[place[0]][0] != "P2":
                    ended.add(place)
                if RULES[place[0]][0] == "P2" and alert.told_at is None and not alert.is_acknowledged:
                    self.untold_digest.add(place)
        for place in seen:
            alert = self.open.setdefault(place, Open(self.now, self.now))
            if alert.raised_at is None and alert.seen_at <= self.now - OVER_AFTER:
                alert.since = self.now  # nobody looked meanwhile
            alert.seen_at = self.now
            if alert.raised_at is None and alert.since <= self.now - RULES[place[0]][1]:
                alert.raised_at = self.now
        told = {(*place, "over") for place in (ended | set(self.untold_ends)) if not self.is_silent(place[0])}
        for place in ended:
            if self.is_silent(place[0]):
                self.untold_ends[place] = None
        for rule_, subject, _ in told:
            self.untold_ends.pop((rule_, subject), None)
        is_digest_due = self.digest_at is None or self.digest_at <= self.now - DAY
        for place in [place for place in self.untold_digest if is_digest_due and not self.is_silent(place[0])]:
            told.add((*place, "over"))
            self.untold_digest.remove(place)
            self.digest_at = self.now
        for place, alert in self.open.items():
            if alert.raised_at is None or self.is_silent(place[0]):
                continue
            severity = RULES[place[0]][0]
            if severity == "P2":
                is_due = is_digest_due and not alert.is_acknowledged
            elif alert.told_at is None:
                is_due = True
            else:
                pause = HOUR if severity == "P0" else DAY
                is_due = not alert.is_acknowledged and alert.told_at <= self.now - pause
            if is_due:
                told.add((*place, "new" if alert.told_at is None else "repeated"))
                alert.told_at = self.now
                if severity == "P2":
                    self.digest_at = self.now
        return told

    def is_silent(self, rule_: str) -> bool:
        return self.silent_until.get(rule_, -1) > self.now


def machine(core: Core, clock: Clock) -> type[RuleBasedStateMachine]:
    """The state machine on this test's database."""

    class Machine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            core.rows("DELETE FROM pricing.alerts")
            core.rows("DELETE FROM pricing.alert_silences")
            self.model = Model()

        @rule(seconds=st.sampled_from([1, 299, 300, 599, 600, HOUR - 1, HOUR, DAY - HOUR, DAY]))
        def time_passes(self, seconds: int) -> None:
            clock.advance(seconds)
            self.model.now += seconds

        @rule(seen=st.sets(st.tuples(st.sampled_from(sorted(RULES)), st.sampled_from(SUBJECTS))))
        def rules_look(self, seen: set[tuple[str, str]]) -> None:
            rows = [
                {
                    "rule": name,
                    "subject": subject,
                    "severity": RULES[name][0],
                    "says": f"{name} {subject}",
                    "lasts": RULES[name][1],
                }
                for name, subject in seen
            ]
            with core.engine.begin() as connection:
                connection.execute(
                    text("SELECT pricing.note_alerts('{}', CAST(:seen AS jsonb))"),
                    {"seen": json.dumps(rows)},
                )
                told = {
                    (
                        row.rule,
                        row.subject,
                        "over" if row.is_over else "repeated" if row.is_repeated else "new",
                    )
                    for row in connection.execute(text("SELECT * FROM pricing.alerts_to_tell()"))
                }
            assert told == self.model.look(seen)
            with core.engine.begin() as connection:
                again = connection.execute(text("SELECT * FROM pricing.alerts_to_tell()")).all()
            assert again == [], "nobody is told twice"

        @rule(place=st.tuples(st.sampled_from(sorted(RULES)), st.sampled_from(SUBJECTS)))
        def somebody_acknowledges(self, place: tuple[str, str]) -> None:
            core.rows(
                "UPDATE pricing.alerts SET acknowledged_at = pricing.clock(), acknowledged_by = 'ann'"
                " WHERE rule = :rule AND subject = :subject AND resolved_at IS NULL",
                rule=place[0],
                subject=place[1],
            )
            if place in self.model.open:
                self.model.open[place].is_acknowledged = True

        @rule(
            place=st.tuples(st.sampled_from(sorted(RULES)), st.sampled_from(SUBJECTS)),
            is_acknowledged=st.booleans(),
        )
        def one_lasts_for_a_day(self, place: tuple[str, str], is_acknowledged: bool) -> None:
            self.rules_look({place})
            for _ in range(RULES[place[0]][1] // 200):
                self.time_passes(200)
                self.rules_look({place})
            if is_acknowledged:
                self.somebody_acknowledges(place)
            self.time_passes(DAY)
            self.rules_look({place})

        @rule(name=st.sampled_from(sorted(RULES)), seconds=st.sampled_from([HOUR, DAY]))
        def somebody_silences(self, name: str, seconds: int) -> None:
            core.rows(
                "INSERT INTO pricing.alert_silences (rule, until, silenced_by, created_at)"
                " VALUES (:rule, pricing.clock() + make_interval(secs => :seconds), 'ann', pricing.clock())",
                rule=name,
                seconds=seconds,
            )
            until = self.model.now + seconds
            self.model.silent_until[name] = max(until, self.model.silent_until.get(name, 0))

        @invariant()
        def open_alerts_are_those_of_the_model(self) -> None:
            rows = core.rows(
                "SELECT rule, subject, raised_at IS NOT NULL AS is_raised FROM pricing.alerts WHERE resolved_at IS NULL"
            )
            assert {(row.rule, row.subject): row.is_raised for row in rows} == {
                place: alert.raised_at is not None for place, alert in self.model.open.items()
            }

    return Machine


def test_b21_alerts_are_told_as_a_plain_model_says(core: Core, clock: Clock) -> None:
    clock.stop()
    run_machine(machine(core, clock), examples(40), steps=25)
