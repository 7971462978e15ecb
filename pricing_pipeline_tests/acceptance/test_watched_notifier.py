"""A notifier that hangs is noticed: by the supervisor, which starts it again, and by people, in `status`."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import text

from pricing_pipeline import stack
from pricing_pipeline.db.migrate import upgrade
from pricing_pipeline.operations import alerts, life, operation_queue, price_watch, recipients
from pricing_pipeline.operations.life import SignsOfLife
from pricing_pipeline.operations.operation_queue import Operation
from pricing_pipeline.operations.runner import OperationRunner
from pricing_pipeline.processes import children
from pricing_pipeline.processes.children import Child, Command, Pulse, Watched
from pricing_pipeline.processes.probes import still_change
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.fixtures.embedded import MakeServer, ask
from pricing_pipeline_tests.support.frozen_server import frozen
from pricing_pipeline_tests.support.pages import ROOT
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until
from pricing_pipeline_tests.support.receivers import receiving

pytestmark = pytest.mark.usefixtures("still")


class Supervised:
    """A notifier in a process of its own, looked after as `up` does it, but with shorter times.

    `patience` are the seconds after which it hangs: more than the 15 s between two looks for trouble.
    """

    def __init__(self, home: Path, database_url: str, patience: float) -> None:
        folder = home / "notifier"
        (home / "logs").mkdir(parents=True, exist_ok=True)
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "PRICING_HOME": str(home),
            "PRICING_DATABASE_URL": database_url,
        }
        argv = [sys.executable, "-m", "pricing_pipeline.operations.notifier", str(folder)]
        child = Child("notifier", argv, environment, answers=still_change(life.paths(folder), patience))
        assert child.answers is not None
        self.command = Command(child, home)
        self.watched = Watched("notifier", self.command, True, Pulse(child.answers, self.command.end_group))
        self.command.launch()

    @property
    def pid(self) -> int:
        assert self.command.pid is not None
        return self.command.pid

    def look_after(self) -> None:
        self.watched.look_after(time.monotonic())

    def look_until(self, condition: Callable[[], bool]) -> None:
        def holds() -> bool:
            self.look_after()
            return condition()

        wait_until(holds)

    @property
    def has_answered(self) -> bool:
        pulse = self.watched.pulse
        return pulse is not None and pulse.answers()


@pytest.fixture
def supervise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Supervised]]:
    monkeypatch.setattr(children, "ASKED_EVERY", 0.2)
    monkeypatch.setattr(children, "LONGEST_SILENCE", 1.0)
    made: list[Supervised] = []

    def start(database_url: str, patience: float, home: Path = tmp_path / "home") -> Supervised:
        made.append(Supervised(home, database_url, patience))
        return made[-1]

    yield start
    for supervised in made:
        with contextlib.suppress(AssertionError, OSError):
            os.kill(supervised.pid, signal.SIGCONT)
        supervised.command.send(signal.SIGKILL)
        assert supervised.command._process is not None
        supervised.command._process.wait(PATIENCE)


def test_b21_a_frozen_notifier_is_started_again(
    core: Core, database_url: str, supervise: Callable[..., Supervised]
) -> None:
    notifier = supervise(database_url, 25.0)
    notifier.look_until(lambda: notifier.has_answered)
    first = notifier.pid
    os.kill(first, signal.SIGSTOP)
    looks = "SELECT coalesce(sum(times), 0) FROM pricing.signs_of_life WHERE part = 'look_for_alerts'"
    before = core.one(looks)
    notifier.look_until(lambda: notifier.watched.restarts >= 1 and notifier.command.pid is not None)
    assert notifier.pid != first
    notifier.look_until(lambda: core.one(looks) > before)


def test_b21_a_notifier_whose_queries_hang_is_started_again(
    make_server: MakeServer, supervise: Callable[..., Supervised]
) -> None:
    # A server of its own: on the shared one, anyone who makes or drops a database waits for all its processes.
    server = make_server()
    server.start()
    upgrade(server.url("pricing"))
    notifier = supervise(server.url("pricing", "worker"), 25.0)
    sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pricing-pipeline'"
    notifier.look_until(lambda: notifier.has_answered and ask(server.url("pricing", "superuser"), sessions) > 0)
    first = notifier.pid
    with frozen(server):
        notifier.look_until(lambda: notifier.watched.restarts >= 1 and notifier.command.pid is not None)
        assert notifier.pid != first


def test_b21_a_notifier_that_waits_for_the_database_is_left_alone(
    supervise: Callable[..., Supervised],
) -> None:
    notifier = supervise("postgresql://nobody@127.0.0.1:9/nowhere", 25.0)
    notifier.look_until(lambda: notifier.has_answered)
    first, until = notifier.pid, time.monotonic() + 30
    notifier.look_until(lambda: time.monotonic() > until)
    assert (notifier.watched.restarts, notifier.pid) == (0, first)


def test_b21_up_starts_a_frozen_notifier_again_within_two_minutes() -> None:
    # One question before it is silent, one that ends it, and one that kills it.
    asked = 3 * children.ASKED_EVERY
    assert stack._SLOWEST_STEP + children.LONGEST_SILENCE + asked + children.FIRST_PAUSE < 120


def test_b21_a_file_that_stands_still_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    one, other = tmp_path / "one", tmp_path / "other"
    one.touch()
    answers = still_change((one, other), 10)
    assert not answers(), "what an earlier process left is no sign of life"
    os.utime(one, (1, 1))
    other.touch()
    assert answers()
    now = 10
    os.utime(one, (0, 0))
    assert answers()
    now = 11
    assert not answers(), "both must go on"


def test_b21_status_says_when_nobody_looks(cli: CommandLine, core: Core, clock: Clock) -> None:
    clock.stop()
    clock.advance(120)
    assert "no recipient is notified: no notifier has ever run" in cli("status").stdout
    alerts.look(core.engine, is_noted=True)
    with core.engine.begin() as connection:
        operation_queue.note_run(connection)
    assert "no recipient is notified" not in cli("status").stdout
    clock.advance(119)
    assert cli("status", "--json").json["notifier"]["warning"] is None
    with core.engine.begin() as connection:
        operation_queue.note_run(connection)
    clock.advance(1)
    assert "no notifier has looked for alerts since" in cli("status").stdout
    alerts.look(core.engine, is_noted=True)
    clock.advance(119)
    assert "no notifier has sent messages since" in cli("status").stdout


def test_b21_a_locked_sign_of_life_holds_nobody_up(core: Core) -> None:
    alerts.look(core.engine, is_noted=True)
    looks = "SELECT times FROM pricing.signs_of_life WHERE part = 'look_for_alerts'"
    with core.engine.begin() as holder:
        holder.execute(text("SELECT FROM pricing.signs_of_life FOR UPDATE"))
        alerts.look(core.engine, is_noted=True)
        assert core.one(looks) == 1
    alerts.look(core.engine, is_noted=True)
    assert core.one(looks) == 2


def test_b21_a_look_whose_turn_another_has_is_no_look(core: Core) -> None:
    with core.engine.begin() as other:
        other.exec_driver_sql("SELECT pricing.take_turn('look_for_alerts')")
        alerts.look(core.engine, is_noted=True)
    assert core.rows("SELECT FROM pricing.signs_of_life WHERE part = 'look_for_alerts'") == []


def test_b21_each_thread_gives_its_own_sign(core: Core, tmp_path: Path) -> None:
    signs = SignsOfLife(tmp_path)
    runner = OperationRunner(core.engine, {}, worker="here", signs=signs)
    work: dict[str, Callable[..., None]] = {
        life.LOOKS: partial(alerts.keep_looking, core.engine, signs=signs),
        life.PRICES: partial(price_watch.keep_watching, core.engine, signs=signs),
        life.RUNS: runner.run,
    }
    assert set(life.paths(tmp_path)) == {tmp_path / name for name in work}
    for number, (name, each) in enumerate(work.items()):
        assert len(list(tmp_path.iterdir())) == number
        stop = threading.Event()
        thread = threading.Thread(target=each, args=(stop,), kwargs={"every_seconds": 0.01})
        thread.start()
        wait_until((tmp_path / name).exists)
        stop.set()
        thread.join()
    runner.close()


def test_e7_what_is_under_way_when_the_notifier_is_stopped_returns_to_the_queue(core: Core) -> None:
    begun, release = threading.Semaphore(0), threading.Event()

    def handler(operation: Operation) -> None:
        begun.release()
        if operation.payload["recipient"] == "slow":
            release.wait(PATIENCE)

    with core.engine.begin() as connection:
        for name in ("slow", "quick"):
            payload = {"recipient": name, "title": "t", "body": "b"}
            operation_queue.enqueue(connection, "log", payload)
    runner = OperationRunner(core.engine, {"log": handler}, worker="here")
    stop = threading.Event()
    thread = threading.Thread(target=runner.run, args=(stop,), kwargs={"every_seconds": 0.05, "last_seconds": 0.5})
    thread.start()
    for _ in range(2):
        assert begun.acquire(timeout=PATIENCE)
    quick = "SELECT status = 'completed' FROM pricing.async_operations WHERE payload ->> 'recipient' = 'quick'"
    wait_until(lambda: core.one(quick))
    stop.set()
    thread.join(PATIENCE)
    assert not runner.close(), "the slow one has not returned"
    rows = core.rows(
        "SELECT payload ->> 'recipient' AS who, status, attempt, errors FROM pricing.async_operations ORDER BY 1"
    )
    assert [(row.who, row.status, row.attempt) for row in rows] == [
        ("quick", "completed", 1),
        ("slow", "pending", 0),
    ]
    assert rows[1].errors[-1]["message"] == "its worker was stopped meanwhile; it may have happened"
    release.set()
    runner.close()
    again = OperationRunner(core.engine, {"log": lambda operation: None}, worker="here")
    assert again.run_due() == 1, "it is due at once"
    again.close()


def test_e7_a_notifier_that_is_stopped_ends_within_the_grace_and_loses_no_message(
    cli: CommandLine, core: Core, database_url: str, supervise: Callable[..., Supervised]
) -> None:
    with receiving(lambda post: post.hang()) as receiver:
        assert cli("recipient", "add", "ops", "webhook", "--allow-private", stdin=receiver.url).exit_code == 0
        notifier = supervise(database_url, 60.0, cli.home)
        with core.engine.begin() as connection:
            message = recipients.send(connection, "ops", "A title", "A body")
        # An alert may be told, too, where the test takes long.
        wait_until(lambda: any(b"A title" in posted.body for posted in receiver.posted))
        notifier.command.send(signal.SIGTERM)
        wait_until(lambda: notifier.command.poll() is not None)
        assert notifier.command.poll() == 0
        (row,) = core.rows("SELECT status, attempt FROM pricing.async_operations WHERE id = :id", id=message)
        assert (row.status, row.attempt) == ("pending", 0), "it does not wait for the attempt, which fails in 27 s"
        receiver.script = lambda post: post.answer(204)
        supervise(database_url, 60.0, cli.home)
        wait_until(
            lambda: core.one("SELECT status FROM pricing.async_operations WHERE id = :id", id=message) == "completed"
        )
        attempts = [posted for posted in receiver.posted if b"A title" in posted.body]
        assert len({posted.headers["Idempotency-Key"] for posted in attempts}) == 1
