"""`Leave` is set in handlers of signals, in the thread that waits for it."""

from __future__ import annotations

import signal
from types import FrameType

from pricing_pipeline.processes.leaving import Leave


def test_a_signal_at_any_moment_of_a_wait_ends_it() -> None:
    """Some come while the wait begins: a threading.Event would then wait for its own lock."""
    leave = Leave()

    def ask(number: int, frame: FrameType | None) -> None:
        leave.set()

    before = signal.signal(signal.SIGALRM, ask)
    try:
        for number in range(200):
            leave = Leave()
            signal.setitimer(signal.ITIMER_REAL, 1e-6 * (1 + number % 50))
            while not leave.wait(0.001):
                pass
            assert leave.is_set()
            assert leave.wait(0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_wait_that_nobody_ends_lasts_its_time() -> None:
    leave = Leave()
    assert not leave.wait(0.001)
    assert not leave.is_set()
