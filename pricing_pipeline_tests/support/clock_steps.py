"""Steps of the database's clock, and the work that goes on after them.

After any step of the clock, work goes on within a minute, no limit is passed by more than a window, and nothing that is
young is thrown away. The tests named test_clock_steps_* have each state that a step meets by itself;
test_clock_model.py has them in every order.
"""

from __future__ import annotations

import pytest

from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import Clock

HOUR, DAY, YEAR = 3600, 86_400, 365 * 86_400
BACK = pytest.mark.parametrize("back", [HOUR, YEAR], ids=["an hour", "a year"])
SYMBOLS = [f"S{number:03d}" for number in range(40)]


def tick(core: Core) -> list[str]:
    """What a drain does each second."""
    core.enqueue_due()
    core.promote()
    ran: list[str] = core.call("SELECT pricing.run_duties()")
    return ran


def step(core: Core, clock: Clock, seconds: float) -> None:
    """The clock was right a moment ago, and now it is another; it is noticed, and a duty's ten seconds pass."""
    tick(core)
    clock.advance(seconds)
    for _ in range(2):
        tick(core)
    clock.advance(11)
    tick(core)


def warned(core: Core) -> list[str]:
    rows = core.rows("SELECT message FROM pricing.warnings WHERE subject = 'clock' ORDER BY warning_id")
    return [row.message for row in rows]
