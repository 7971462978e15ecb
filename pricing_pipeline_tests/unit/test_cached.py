"""A cached value is gathered once for many, and nobody waits long for it."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from concurrent.futures import Future

import pytest

from pricing_pipeline.api.cached import Cached
from pricing_pipeline_tests.support.patience import PATIENCE

LONG = PATIENCE


def test_b23_many_who_ask_cause_one_look() -> None:
    looks: list[int] = []

    def gather() -> int:
        time.sleep(0.05)
        looks.append(1)
        return len(looks)

    async def ask() -> list[int]:
        cached = Cached(gather, seconds=LONG, patience=LONG)
        return [*await asyncio.gather(*(cached.get() for _ in range(50))), await cached.get()]

    assert asyncio.run(ask()) == [1] * 51


def test_b23_an_old_value_is_gathered_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    looks = iter(range(10))

    async def ask() -> list[int]:
        nonlocal now
        cached = Cached(lambda: next(looks), seconds=2.0, patience=LONG)
        seen = [await cached.get()]
        for step in (1.9, 0.1, 1.9, 5.0):
            now += step
            seen.append(await cached.get())
        return seen

    assert asyncio.run(ask()) == [0, 0, 1, 1, 2]


def test_b23_after_a_thread_that_could_not_start_the_next_one_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask() -> str:
        cached = Cached(lambda: "done", seconds=LONG, patience=LONG)
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", _cannot_start)
            with pytest.raises(RuntimeError, match="can't start"):
                await cached.get()
        return await cached.get()

    assert asyncio.run(ask()) == "done"


def _cannot_start(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_b23_nobody_waits_for_a_look_that_hangs_and_none_is_added_to_it() -> None:
    go_on = threading.Event()
    looks: list[int] = []

    def gather() -> str:
        looks.append(1)
        go_on.wait(LONG)
        return "done"

    async def ask() -> str:
        cached = Cached(gather, seconds=0.0, patience=0.1)
        began = time.monotonic()
        for _ in range(5):
            with pytest.raises(TimeoutError):
                await cached.get()
        assert time.monotonic() - began < LONG / 2
        assert len(looks) == 1
        go_on.set()
        while True:
            try:
                return await cached.get()
            except TimeoutError:
                await asyncio.sleep(0.01)

    assert asyncio.run(ask()) == "done"


def test_b23_who_asks_during_a_look_that_hangs_leaves_nothing_behind() -> None:
    go_on = threading.Event()

    async def ask() -> int:
        cached = Cached(lambda: go_on.wait(LONG), seconds=0.0, patience=0.0)
        counts = []
        for asked in (1, 50):
            for _ in range(asked):
                with pytest.raises(TimeoutError):
                    await cached.get()
            gc.collect()
            counts.append(sum(isinstance(each, (asyncio.Future, Future)) for each in gc.get_objects()))
        go_on.set()
        return counts[1] - counts[0]

    assert asyncio.run(ask()) == 0


def test_b23_what_fails_is_raised_for_all_who_ask_and_tried_again() -> None:
    failures = iter([ValueError("odd"), None])

    def gather() -> str:
        failure = next(failures)
        if failure is not None:
            raise failure
        return "well"

    async def ask() -> str:
        cached = Cached(gather, seconds=0.0, patience=LONG)
        with pytest.raises(ValueError, match="odd"):
            await cached.get()
        return await cached.get()

    assert asyncio.run(ask()) == "well"
