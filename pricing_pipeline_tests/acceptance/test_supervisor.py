"""The supervisor with real children: every way to end it leaves nothing, every death is answered."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from pricing_pipeline.db.embedded import EmbeddedServer
from pricing_pipeline.errors import SupervisorError
from pricing_pipeline.processes.children import Child, Command, Pulse, Watched
from pricing_pipeline.processes.home import lock_home, read_state, running_pid
from pricing_pipeline.processes.os_processes import rotate_log
from pricing_pipeline.processes.supervisor import Supervisor
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until
from pricing_pipeline_tests.support.supervising import GRACE, POLITE, Running, has_ended


@pytest.fixture(autouse=True)
def _no_traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a home with a long path keeps elsewhere goes where it is removed with the rest."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)  # it is asked for again


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Runs supervisors; what a failed test leaves of them is killed."""
    made: list[Running] = []

    def make(**options: Any) -> Running:
        made.append(Running(tmp_path / "home", **options))
        return made[-1]

    yield make
    for running in made:
        running.process.kill()
        running.process.communicate()
        for process in running.below:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_fault_24_a_signal_stops_everything(run: Callable[..., Running], number: int) -> None:
    """Ctrl-C, SIGTERM and a closed terminal leave nothing, not even what ignores SIGTERM in another session."""
    running = run(stubborn=True)
    assert len(running.below) == 4  # guardian, polite, stubborn, and its far descendant
    assert running.end(number) == "stopped\n"
    assert running.process.returncode == 0
    assert running.nothing_left()
    assert not (running.home / "state.json").exists()
    assert read_state(running.home) is None


def test_fault_24_a_second_signal_ends_the_grace(run: Callable[..., Running]) -> None:
    """Who presses Ctrl-C again does not wait for the stubborn."""
    running = run(stubborn=True, grace=600, one_press=0)
    polite = psutil.Process(running.pid_of("polite"))
    running.process.send_signal(signal.SIGINT)
    wait_until(lambda: has_ended(polite))  # so it is stopping
    assert running.end(signal.SIGINT) == "stopped\n"
    assert running.nothing_left()


def test_fault_24_a_double_delivery_is_one_press(run: Callable[..., Running]) -> None:
    """The terminal and `make` both pass one Ctrl-C on."""
    running = run(stubborn=True, grace=600, one_press=600)
    polite = psutil.Process(running.pid_of("polite"))
    running.process.send_signal(signal.SIGINT)
    wait_until(lambda: has_ended(polite))
    running.process.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        running.process.wait(0.5)


def test_fault_24_a_killed_supervisor_leaves_nothing(run: Callable[..., Running]) -> None:
    """kill -9: the polite go by their death signal, the guardian ends the rest, and the next start waits for it."""
    running = run(stubborn=True)
    guardian = running.guardian()
    guardian.suspend()  # or it might be done before we look
    running.end(signal.SIGKILL)
    assert running_pid(running.home) is None
    with pytest.raises(SupervisorError, match=r"an earlier run in .* are still ending"):
        lock_home(running.home, patience=0)
    guardian.resume()
    (running.home / "far.pid").unlink()
    successor = run(stubborn=True)
    assert successor.answer == "ready"
    assert running.nothing_left()
    assert successor.end(signal.SIGTERM) == "stopped\n"


def test_fault_24_killed_together_with_its_guardian(run: Callable[..., Running]) -> None:
    """The polite still get their death signal; the next start ends the rest before it starts anything."""
    running = run(stubborn=True)
    polite = psutil.Process(running.pid_of("polite"))
    running.process.send_signal(signal.SIGSTOP)  # or it would replace its guardian
    running.guardian().kill()
    running.end(signal.SIGKILL)
    wait_until(lambda: has_ended(polite))
    assert not running.nothing_left()
    (running.home / "far.pid").unlink()
    successor = run(stubborn=True)
    assert running.nothing_left()
    assert successor.end(signal.SIGTERM) == "stopped\n"


def test_fault_24_a_killed_guardian_is_replaced(run: Callable[..., Running]) -> None:
    """The safety net is mended while everything goes on."""
    running = run(stubborn=True)
    first = running.guardian()
    first.kill()
    me = psutil.Process(running.process.pid)

    def second() -> list[psutil.Process]:
        found = []
        for child in me.children():
            with contextlib.suppress(psutil.NoSuchProcess):  # gone meanwhile
                if child != first and "guardian.py" in " ".join(child.cmdline()):
                    found.append(child)
        return found

    wait_until(lambda: bool(second()))
    running.below += second()
    running.end(signal.SIGKILL)
    wait_until(running.nothing_left)


def in_background() -> None:
    """Do what a shell does with `command &` in a script."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGQUIT, signal.SIG_IGN)


def unheard(pid: int) -> set[int]:
    """Return the signals that a process ignores or blocks."""
    masks = re.findall(r"Sig(?:Ign|Blk):\t(\w+)", Path(f"/proc/{pid}/status").read_text())
    return {number for number in range(1, 32) for mask in masks if int(mask, 16) & (1 << (number - 1))}


def test_fault_24_started_by_a_script_in_the_background(run: Callable[..., Running]) -> None:
    """`make run &` in a script starts us with SIGINT ignored: it works all the same, and children do not inherit."""
    running = run(preexec_fn=in_background)
    assert not {signal.SIGINT, signal.SIGQUIT, signal.SIGTERM} & unheard(running.pid_of("polite"))
    assert running.end(signal.SIGINT) == "stopped\n"
    assert running.nothing_left()


def test_fault_24_nohup_outlives_the_terminal(run: Callable[..., Running]) -> None:
    """Under nohup a closed terminal is ignored, as asked."""
    running = run(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    running.process.send_signal(signal.SIGHUP)
    first = running.pid_of("polite")
    assert signal.SIGHUP not in unheard(first)
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: running.pid_of("polite") != first)  # so it is not stopping
    assert running.end(signal.SIGTERM) == "stopped\n"


def test_fault_24_a_killed_child_starts_again(run: Callable[..., Running]) -> None:
    """kill -9 of a child: a new one within seconds, the others undisturbed, and the state says so."""
    running = run(stubborn=True)
    first, other = running.pid_of("polite"), running.pid_of("stubborn")
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: running.state()["processes"]["polite"]["restarts"] == 1)
    assert running.pid_of("polite") != first
    assert running.pid_of("stubborn") == other
    running.below.append(psutil.Process(running.pid_of("polite")))
    assert running.end(signal.SIGTERM) == "stopped\n"
    assert running.nothing_left()


def test_fault_24_a_second_start_is_refused(run: Callable[..., Running]) -> None:
    """It says which process runs there and what to do, and harms nothing."""
    running, second = run(), run()
    assert second.answer == ""
    _, errors = second.process.communicate(timeout=PATIENCE)
    assert second.process.returncode == 1
    assert errors == (
        f"SupervisorError: a pipeline is already running in {running.home} (pid {running.process.pid}); "
        "stop it or set PRICING_HOME.\n"
    )
    assert running_pid(running.home) == running.process.pid
    assert running.end(signal.SIGTERM) == "stopped\n"


def test_fault_24_the_state_is_told(run: Callable[..., Running]) -> None:
    """`state.json` has pids, start and logs; it and the logs are their owner's alone."""
    running = run()
    state = running.state()
    assert state["pid"] == running.process.pid
    assert state["started_at"].endswith("+00:00")
    assert state["processes"]["polite"]["log"] == str(running.home / "logs" / "polite.log")
    for path in (running.home / "state.json", running.home / "logs" / "polite.log"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    running.end(signal.SIGTERM)


def test_a_child_that_dies_while_starting_is_told(tmp_path: Path) -> None:
    """The error has the name, the status and the last log lines of this start; what had been started stops."""
    log = tmp_path / "home" / "logs" / "broken.log"
    log.parent.mkdir(parents=True)
    log.write_text("of an earlier start\n")
    broken = [sys.executable, "-c", "print('no such table', flush=True); raise SystemExit(3)"]
    polite: list[psutil.Process] = []

    def start() -> None:
        with Supervisor(tmp_path / "home", grace=GRACE) as supervisor:
            supervisor.start(Child("polite", [sys.executable, "-c", POLITE], os.environ))
            supervisor.wait_until_ready("polite")
            processes = json.loads((tmp_path / "home" / "state.json").read_text())["processes"]
            polite.append(psutil.Process(processes["polite"]["pid"]))
            supervisor.start(Child("broken", broken, os.environ, ready=lambda: False))
            supervisor.wait_until_ready()

    expected = r"broken ended \(exit status 3\) before .*\n    no such table"
    with pytest.raises(SupervisorError, match=expected) as error:
        start()
    assert "earlier" not in str(error.value)
    assert has_ended(polite[0])


def test_a_missing_program_is_told(tmp_path: Path) -> None:
    """One sentence instead of a traceback."""
    with (
        pytest.raises(SupervisorError, match=r"absent cannot be started: /nowhere/absent: No such file"),
        Supervisor(tmp_path / "home") as supervisor,
    ):
        supervisor.start(Child("absent", ["/nowhere/absent"], os.environ))


def test_a_home_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """A file in its place, or a folder of somebody else: one sentence with the setting."""
    (tmp_path / "file").write_text("")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    homes = [tmp_path / "file", tmp_path / "file" / "home"] + ([closed] if os.geteuid() else [])
    for home in homes:
        with pytest.raises(SupervisorError, match=r"^the home .* cannot be written \(.*\); set PRICING_HOME .*\.$"):
            Supervisor(home).__enter__()


def test_fault_24_pauses_between_restarts_grow_and_start_over(tmp_path: Path) -> None:
    """0.5 s, doubling to 30 s; a minute of life starts over. A child that need not run stays down."""
    command = Command(Child("short", ["/bin/false"], {}), tmp_path)
    command.launch()
    watched = Watched("short", command, restart=True)
    now = watched.launched_at
    pauses = []
    for _ in range(8):
        wait_until(lambda: command.poll() is not None)
        assert watched.look_after(now)
        assert watched.restart_at is not None
        pauses.append(watched.restart_at - now)
        assert not watched.look_after(watched.restart_at - 0.01)
        now = watched.restart_at
        assert watched.look_after(now)
    assert pauses == pytest.approx([0.5, 1, 2, 4, 8, 16, 30, 30])  # a sum of floats may round
    wait_until(lambda: command.poll() is not None)
    watched.look_after(now + 61)
    assert watched.restart_at == pytest.approx(now + 61.5)

    once = Watched("short", command, restart=False)
    assert once.look_after(now)
    assert once.is_over
    assert not once.look_after(now + 1000)


def test_fault_24_what_lives_and_does_not_answer_is_ended_and_starts_again(tmp_path: Path) -> None:
    """It is asked each second until it has answered, then every ten seconds, and ended after a minute of silence: a
    busy machine answers late."""
    silences = [False] * 5
    answers = [False, True, *silences, True, *silences, False]
    seconds = [1, 1, *[10] * 12]
    command = Command(Child("silent", [sys.executable, "-c", POLITE], os.environ), tmp_path)
    command.launch()
    watched = Watched("silent", command, restart=True, pulse=Pulse(lambda: answers.pop(0), command.end_group))
    assert watched.pulse is not None
    now = watched.pulse.asked_at
    while answers:
        assert command.poll() is None
        wait = seconds.pop(0)
        assert watched.due_at == now + wait
        assert not watched.look_after(now + wait - 0.1)
        now += wait
        watched.look_after(now)
    assert watched.pulse.silent_since is not None
    wait_until(lambda: command.poll() is not None)
    assert watched.look_after(now)
    assert watched.look_after(watched.restart_at or 0.0)
    assert (watched.restarts, watched.pulse.silent_since) == (1, None)
    command.send(signal.SIGKILL)
    wait_until(lambda: command.poll() is not None)


def test_fault_24_what_starts_need_not_answer_for_three_minutes() -> None:
    ended: list[tuple[float, signal.Signals]] = []
    pulse = Pulse(lambda: False, lambda number: ended.append((now - began, number)))
    began = now = pulse.asked_at
    while len(ended) < 3:
        now += 10
        pulse.check(now)
    assert [number for _, number in ended] == [signal.SIGTERM, signal.SIGKILL, signal.SIGKILL]
    assert ended[0][0] == pytest.approx(180, abs=10.1)  # sums of floats


def test_fault_24_a_killed_database_starts_again_and_stops_last(open_folder: Path) -> None:
    """kill -9 of PostgreSQL: restarted at the same address with its data, while everything else runs on."""
    home = open_folder / "home"
    with Supervisor(home, grace=GRACE) as supervisor:
        server = EmbeddedServer(home)
        server.start()
        supervisor.watch("postgresql", server)
        supervisor.start(Child("polite", [sys.executable, "-c", POLITE], os.environ))
        url, first = server.url("pricing"), server.pid
        other = json.loads((home / "state.json").read_text())["processes"]["polite"]["pid"]
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 7 AS n")
        assert first is not None
        os.kill(first, signal.SIGKILL)

        def answers() -> bool:
            with contextlib.suppress(psycopg.OperationalError), psycopg.connect(url) as connection:
                return connection.execute("SELECT n FROM kept").fetchone() == (7,)
            return False

        assert supervisor.wait_until(lambda: server.pid not in (first, None) and answers(), seconds=PATIENCE)
        processes = json.loads((home / "state.json").read_text())["processes"]
        assert processes["postgresql"]["restarts"] >= 1
        assert processes["polite"] == {
            "pid": other,
            "restarts": 0,
            "silent_since": None,
            "log": str(home / "logs/polite.log"),
        }
        second = psutil.Process(server.pid)
    assert has_ended(second)
    assert server.log_path.read_text().rstrip().endswith("database system is shut down")


def test_fault_24_a_lock_outlives_no_process(tmp_path: Path) -> None:
    """A reader of the state never takes the lock away from a start; a dead owner's pid means nothing."""
    assert running_pid(tmp_path) is None
    (tmp_path / "lock").write_text("999999999\n")
    assert running_pid(tmp_path) is None
    lock = lock_home(tmp_path, patience=0)
    assert running_pid(tmp_path) == os.getpid()
    os.close(lock)
    assert running_pid(tmp_path) is None


def test_fault_24_logs_are_moved_aside_while_written(tmp_path: Path) -> None:
    """The writer keeps its descriptor and goes on in the emptied file; one older generation stays."""
    path = tmp_path / "x.log"
    with path.open("ab", buffering=0) as writer:
        writer.write(b"a" * 100)
        assert not rotate_log(path, limit=100)
        writer.write(b"b")
        assert rotate_log(path, limit=100)
        writer.write(b"c")
    assert path.read_bytes() == b"c"
    assert path.with_name("x.log.1").read_bytes() == b"a" * 100 + b"b"
    assert not rotate_log(tmp_path / "absent.log")


def test_fault_24_a_log_keeps_how_the_trouble_of_a_day_began_and_its_end(tmp_path: Path) -> None:
    """A writer that does not cease has a budget a day: twice the limit. The next day it is moved again."""
    path, older = tmp_path / "x.log", tmp_path / "x.log.1"
    path.write_text("the cause\n" * 20)
    assert rotate_log(path, limit=100)
    for _ in range(50):
        with path.open("a") as writer:
            writer.write("noise\n" * 100)
        assert rotate_log(path, limit=100)
        assert path.read_text() == "600 bytes are left out here: this log is over its budget of 200 bytes a day\n"
        path.write_text("")
    assert older.read_text() == "the cause\n" * 20
    yesterday = time.time() - 86_400
    os.utime(older, (yesterday, yesterday))
    path.write_text("another cause\n" * 20)
    assert rotate_log(path, limit=100)
    assert older.read_text() == "another cause\n" * 20
