"""Which trouble raises an alert: a rule for each, with how urgent it is.

The query of a rule is in db/queries/alerts.sql, under its name. It returns a row for each subject that is in trouble
now: `subject`, `says`, the words for people, and `newest_at` where the rule counts events: recipients are told again
when more have happened. docs/runbook.md has a section for each rule.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AlertRule:
    """One kind of trouble. It is raised when it has lasted for `lasts_seconds`.

    While it lasts recipients are told again (P0 each hour, P1 each day) if it `is_repeated`.
    """

    name: str
    severity: str
    lasts_seconds: int = 0
    is_repeated: bool = True


AWAKE_AFTER = 60
"""Seconds after a sleep of the machine or a start, in which parts may begin to work again without an alert."""

RULES = (
    AlertRule("unhealthy", "P0", lasts_seconds=AWAKE_AFTER),
    AlertRule("duty_fails", "P1", lasts_seconds=600),
    AlertRule("quota_ends", "P2", lasts_seconds=600),
    AlertRule("quota_near", "P2"),
    AlertRule("quota_short", "P1"),
    AlertRule("queue_deep", "P1", lasts_seconds=1800),
    AlertRule("nothing_completed", "P1", lasts_seconds=AWAKE_AFTER),
    AlertRule("breaker_open", "P1"),
    AlertRule("provider_fails", "P1", lasts_seconds=600),
    AlertRule("pair_forgotten", "P1", lasts_seconds=AWAKE_AFTER),
    AlertRule("price_fetch_failed", "P1", is_repeated=False),
    AlertRule("symbols_unknown", "P1"),
    AlertRule("symbol_vanished", "P2", is_repeated=False),
    AlertRule("source_old", "P2", lasts_seconds=600),
    AlertRule("limit_near", "P2", lasts_seconds=600),
    AlertRule("estimate_wrong", "P2"),
    AlertRule("size_unannounced", "P2"),
    AlertRule("many_warnings", "P2"),
    AlertRule("message_dead", "P1"),
    AlertRule("nobody_told", "P0"),
    AlertRule("price_alerts_wait", "P1", lasts_seconds=AWAKE_AFTER),
    AlertRule("operation_unhandled", "P1", lasts_seconds=AWAKE_AFTER),
    AlertRule("run_fails", "P1"),
    AlertRule("tick_fails", "P1", lasts_seconds=300),
)
