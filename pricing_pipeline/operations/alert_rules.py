"""Which trouble people are told of: a rule for each, with how urgent it is.

The query of a rule is in db/queries/alerts.sql, under its name. It returns a row for each subject that is in trouble
now: `subject`, and `says`, the words for people. docs/runbook.md has a section for each rule.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AlertRule:
    """One kind of trouble. It is raised when it has lasted for `lasts_seconds`."""

    name: str
    severity: str
    lasts_seconds: int = 0


RULES = (
    AlertRule("duties_stand_still", "P0"),
    AlertRule("duty_fails", "P1", lasts_seconds=600),
    AlertRule("quota_near", "P2"),
    AlertRule("quota_short", "P1"),
    AlertRule("queue_deep", "P1", lasts_seconds=1800),
    AlertRule("nothing_completed", "P1"),
    AlertRule("breaker_open", "P1"),
    AlertRule("provider_fails", "P1", lasts_seconds=600),
    AlertRule("price_fetch_failed", "P1"),
    AlertRule("many_warnings", "P2"),
    AlertRule("message_dead", "P1"),
)
