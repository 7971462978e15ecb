"""A process's log: each cause once an hour, a budget of bytes a day, whatever is logged and whatever the clock does."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing_pipeline.processes import process_log
from pricing_pipeline.processes.process_log import AGAIN_AFTER, Frugal
from pricing_pipeline_tests.support.patience import PATIENCE

NOON = 1_795_867_200.0
DAY = 86_400.0


class Log:
    """A log in memory, whose clock the test sets."""

    def __init__(self, bytes_a_day: int) -> None:
        self._stream = io.StringIO()
        self._handler = logging.StreamHandler(self._stream)
        self._handler.setFormatter(logging.Formatter(process_log._FORMAT))
        self._handler.addFilter(Frugal(bytes_a_day))
        self.now = NOON

    def add(self, words: str, *arguments: object, error: Exception | None = None) -> str:
        """Log a record, and return what was written for it."""
        before = len(self._stream.getvalue())
        info = None if error is None else (type(error), error, error.__traceback__)
        record = logging.LogRecord("a.logger", logging.WARNING, __file__, 1, words, arguments, info)
        record.created = self.now
        self._handler.handle(record)
        return self._stream.getvalue()[before:]


def raised(words: str) -> Exception:
    try:
        raise ValueError(words)
    except ValueError as error:
        return error


def test_a_cause_is_told_once_whatever_the_request() -> None:
    log = Log(10_000)
    assert "the database is away" in log.add("request %s: %s", "0f8b1c2d3e4f5a6b", "the database is away")
    for number in range(1000):
        assert log.add("request %s: %s", f"{number:016x}", "the database is away") == ""
    assert "the disk is full" in log.add("request %s: %s", "0f8b1c2d3e4f5a6b", "the disk is full")
    log.now += AGAIN_AFTER
    assert "the database is away (and 1,000 more times" in log.add("request 1: the database is away")


def test_a_cause_with_a_traceback_is_told_once() -> None:
    log = Log(100_000)
    assert "Traceback" in log.add("request 1: a fault", error=raised("a"))
    assert log.add("request 2: a fault", error=raised("a")) == ""


def test_what_is_logged_while_a_record_is_spelled_stops_nothing() -> None:
    """A finalizer may log at any moment: asyncio tells so of a task that was left alone."""
    log = Log(10_000)

    class Noisy:
        def __str__(self) -> str:
            log.add("a task was left alone")
            return "a word"

    thread = Thread(target=log.add, args=("see %s", Noisy()), daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert log.add("see a word") == log.add("a task was left alone") == "", "both were told"


def test_a_record_that_cannot_be_spelled_is_told_and_raises_nothing() -> None:
    log = Log(10_000)
    assert "'%d items' cannot be spelled" in log.add("%d items", "three")
    assert "cannot be spelled" in log.add("no place %s %s", 1)


CAUSES = st.tuples(st.sampled_from("ghijklmn"), st.integers(1, 3000), st.booleans())
STEPS = st.lists(st.tuples(st.floats(-2 * DAY, 2 * DAY) | st.floats(0, 60), CAUSES), max_size=60)


@given(STEPS, st.integers(1000, 20_000))
def test_no_day_has_more_than_its_budget_and_a_note(
    steps: list[tuple[float, tuple[str, int, bool]]], budget: int
) -> None:
    """Against a plain sum. Days in the order of the records: a clock that is set back begins another day."""
    log = Log(budget)
    written, at_most, day = 0, 0, -1.0
    told: dict[tuple[str, int, bool], float] = {}
    for seconds, (letter, length, has_error) in steps:
        log.now += seconds
        if log.now // DAY != day:
            day, written, at_most = log.now // DAY, 0, 0
        text = log.add(letter * length, error=raised("x") if has_error else None)
        key = (letter, min(length, 300), has_error)
        if key in told and 0 <= log.now - told[key] < AGAIN_AFTER:
            assert text == ""
        else:
            told[key] = log.now
            at_most += length + (1000 if has_error else 200)
            assert text != "" or at_most > budget, "there is room, and the cause is new"
        written += len(text.encode())
        assert written <= budget + 200


@contextmanager
def root_logger() -> Iterator[logging.Logger]:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    root.handlers[:] = []
    try:
        yield root
    finally:
        root.handlers[:] = before
        root.setLevel(level)
        logging.captureWarnings(False)


def test_each_process_writes_within_the_budget(capfd: pytest.CaptureFixture[str]) -> None:
    with root_logger():
        process_log.start()
        for number in range(1_500):
            name = "".join(chr(103 + int(digit)) for digit in str(number))
            logging.getLogger("any").warning("words without digits: %s", name + "x" * 1_000)
        assert process_log.BYTES_A_DAY / 2 < len(capfd.readouterr().err) < process_log.BYTES_A_DAY + 1000
