"""How long tests wait for what another thread, process or server does: long, since it costs nothing when it happens.

A busy machine must not fail a test. What is about a time-out sets its own, and says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

PATIENCE = 240.0
"""Seconds to wait for what a quiet machine does in a tenth of that."""


def wait_until(condition: Callable[[], Any]) -> None:
    """Wait until `condition` holds, looking ever less often, down to ten times a second; fails when it does not."""
    deadline = time.monotonic() + PATIENCE
    pause = 0.01
    while not condition():
        assert time.monotonic() < deadline, f"it did not happen in {PATIENCE:.0f} s"
        time.sleep(pause)
        pause = min(pause * 1.2, 0.1)
