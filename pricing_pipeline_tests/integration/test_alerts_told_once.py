"""One trouble is told once: not by two rules, not again for nothing, but again when more has happened."""

from __future__ import annotations

import pytest

from pricing_pipeline.operations import alerts
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.alert_causes import (
    begin_outage,
    close_breaker,
    keep_looking,
    kill_message,
    open_breaker,
)

pytestmark = pytest.mark.usefixtures("still")


def look(core: Core) -> int:
    return alerts.look(core.engine)


def look_after(core: Core, clock: Clock, seconds: float) -> None:
    clock.advance(seconds)
    look(core)


def open_alerts(core: Core) -> set[str]:
    rows = core.rows("SELECT rule FROM pricing.alerts WHERE raised_at IS NOT NULL AND resolved_at IS NULL")
    return {row.rule for row in rows}


def test_b21_a_silence_of_what_is_not_open_says_what_is(cli: CommandLine, core: Core, clock: Clock) -> None:
    said = cli("alert", "silence", "breaker_open", "--hours", "1", "--subject", "yahooo").stdout
    assert said.endswith("No open alert of breaker_open is about yahooo. Subjects of its open alerts: none.\n")
    open_breaker(core, clock)
    look(core)
    said = cli("alert", "silence", "breaker_open", "--hours", "1", "--subject", "yahooo").stdout
    assert said.endswith(f"Subjects of its open alerts: {TWELVEDATA}.\n")
    said = cli("alert", "silence", "breaker_open", "--hours", "1", "--subject", "yahooo", "--json").json
    assert (said["is_open"], said["open_subjects"]) == (False, [TWELVEDATA])
    assert "No open alert" not in cli("alert", "silence", "breaker_open", "--hours", "1").stdout


def test_b21_one_outage_is_told_once(core: Core, clock: Clock) -> None:
    """The breaker's alert covers the types that its provider does not answer for, until it is closed again."""

    def seen() -> set[str]:
        keep_looking(core, clock, 601)
        return open_alerts(core) & {"breaker_open", "provider_fails"}

    begin_outage(core, clock)
    look(core)
    open_breaker(core, clock)
    assert seen() == {"breaker_open"}
    close_breaker(core, clock)
    assert seen() == {"provider_fails"}
    open_breaker(core, clock)
    assert seen() == {"breaker_open", "provider_fails"}, "what was told is not over"


def test_b21_further_dead_messages_are_told_again_an_hour_later(core: Core, clock: Clock) -> None:
    clock.stop()
    kill_message(core, clock)
    look(core)

    def told() -> list[str]:
        return [
            row.payload["body"]
            for row in core.rows("SELECT payload FROM pricing.async_operations ORDER BY id")
            if "section message_dead" in row.payload["body"]
        ]

    assert len(told()) == 1
    look_after(core, clock, 3600)
    assert len(told()) == 1, "nothing new has happened"
    kill_message(core, clock)
    look(core)
    assert len(told()) == 2
    assert "2 messages could not be sent to bob" in told()[1]
    assert "That is new." in told()[1]
    clock.advance(1)
    kill_message(core, clock)
    look_after(core, clock, 3598)
    assert len(told()) == 2, "each death at once would be a flood"
    look_after(core, clock, 1)
    assert len(told()) == 3
    core.rows("UPDATE pricing.alerts SET acknowledged_at = pricing.clock()")
    clock.advance(1)
    kill_message(core, clock)
    look_after(core, clock, 3601)
    assert len(told()) == 3, "somebody looks after it"
