"""The system that faults happen to: a real server, sandbox, workers, API and notifier, each a process of its own.

Whatever has died is started again, as a supervisor would. What is done to it belongs to the kinds of faults.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

import httpx
import psutil
import psycopg
from pydantic import SecretStr
from sqlalchemy import Engine

from pricing_pipeline import sample
from pricing_pipeline.db.embedded import EmbeddedServer
from pricing_pipeline.db.embedded_home import OWNER
from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.db.migrate import upgrade
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.keys import api_tokens, master_keys
from pricing_pipeline.operations import recipients
from pricing_pipeline.operations.recipients import Address, Recipient
from pricing_pipeline.sandbox.service import Sandbox
from pricing_pipeline.settings import Settings
from pricing_pipeline_tests.fault_run.processes import (
    PROGRAMS,
    run_program,
    serve_sandbox,
    unlimited,
    work_on,
)
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.home import make_open_folder
from pricing_pipeline_tests.support.given_postgres import GivenPostgres, given_binaries
from pricing_pipeline_tests.support.loopback import NO_TLS
from pricing_pipeline_tests.support.pgbouncer import PROGRAM, bouncing, through
from pricing_pipeline_tests.support.receivers import Post, Receiver, receiving
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox
from pricing_pipeline_tests.support.workers import Worker

UNITS, WINDOW = 150, 10
"""What Twelve Data allows here: so many units in so many seconds, which the load comes near to."""
QUOTA = 21_474_836_480
WORKERS = 3
RECIPIENT = "receiver"
DISK = "2g"
"""Of the server, in memory, so that it can be filled up."""

_ARRANGE = f"""
UPDATE pricing.provider_limits SET units = {UNITS}, window_seconds = {WINDOW} WHERE provider = 'twelvedata';
UPDATE pricing.provider_limits SET units = 4 * {WINDOW}, window_seconds = {WINDOW} WHERE provider = 'mfapi';
UPDATE pricing.provider_capabilities SET batch_size = 5, batch_from = 5, window_batch_size = 5
WHERE provider = 'twelvedata';
"""
_SETTINGS = ("max_connections = 300", "max_wal_size = '256MB'", "min_wal_size = '64MB'")


class StageError(RuntimeError):
    """The system did not start, so no fault could be injected."""


class Stage:
    """A context manager. `core` is the database as the owner and the worker see it."""

    server: EmbeddedServer | GivenPostgres
    core: Core

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._workers: list[Worker | None] = [None] * WORKERS
        self._named = 0
        self.can_fill_disk = False
        self.pooler: str | None = None
        self.clock_steps: list[float] = []
        """When the database's clock was moved, by the machine's monotonic clock."""

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.folder = make_open_folder("pricing-faults-")
            stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
            self._build(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    # --- what it is made of -----------------------------------------------------------------------

    def _build(self, stack: ExitStack) -> None:
        home = self.folder / "server"
        home.mkdir(mode=0o711)
        self.can_fill_disk = _mount(home, stack)
        self.server = self._server(home)
        stack.callback(lambda: self.server.stop("immediate"))
        self.server.start()
        with self.admin("postgres") as admin:
            for setting in _SETTINGS:
                admin.execute(f"ALTER SYSTEM SET {setting}")
            if given_binaries() is not None:
                admin.execute(f"CREATE DATABASE pricing OWNER {OWNER}")
        self.server.stop("fast")
        self.server.start()
        self.owner_url, self.worker_url = self.server.url("pricing"), self.server.url("pricing", "worker")
        upgrade(self.owner_url)
        sample.load(self.owner_url)
        self.core = Core(self._engine(stack, self.worker_url), self._engine(stack, self.owner_url))
        self.core.rows(_ARRANGE)
        self._arrange_pooler(stack)
        self.receiver: Receiver = stack.enter_context(receiving(well))
        self.app_home = self.folder / "app"
        self.app_home.mkdir(mode=0o700)
        self._arrange_keys()
        self._arrange_sandbox(stack)
        self.api_port = _free_port()
        self.api_url = f"http://127.0.0.1:{self.api_port}"
        self.programs: dict[str, Worker] = {}
        stack.callback(self._end_programs)
        stack.callback(self._end_workers)
        self.revive()
        self.wait_for("the API", self.api_answers, 600)

    @staticmethod
    def _server(home: Path) -> EmbeddedServer | GivenPostgres:
        """The embedded server, or what PRICING_TEST_POSTGRES_BIN names, as in the tests."""
        programs = given_binaries()
        return EmbeddedServer(home) if programs is None else GivenPostgres(programs, home, durable=True)

    @staticmethod
    def _engine(stack: ExitStack, url: str) -> Engine:
        engine = make_engine(url)
        stack.callback(engine.dispose)
        return engine

    def _arrange_pooler(self, stack: ExitStack) -> None:
        """One worker goes through PgBouncer, where it is installed."""
        if PROGRAM is None:
            return
        folder = self.folder / "pooler"
        folder.mkdir(mode=0o711)
        sockets = stack.enter_context(bouncing(self.server.url("postgres", "superuser"), folder, sessions=8))
        self.pooler = through(self.worker_url, sockets)

    def _arrange_keys(self) -> None:
        keyring, _ = master_keys.load_or_make(Settings(home=self.app_home))
        address = Address(SecretStr(f"{self.receiver.url}/hook"), SecretStr("whsec-0123456789abcdef"))
        told = Recipient(RECIPIENT, "webhook", least_severity=None, allows_private=True, takes_any_user=True)
        with self.core.owner.begin() as connection:
            recipients.add(connection, told, address, keyring)
            token = api_tokens.add(connection, "faults", [Scope.ADMIN], None)
        self.token = token.get_secret_value()

    def _arrange_sandbox(self, stack: ExitStack) -> None:
        self._sandbox_port = _free_port()
        url = f"http://127.0.0.1:{self._sandbox_port}"
        client = stack.enter_context(httpx.Client(timeout=20, verify=NO_TLS))
        self.sandbox = RunningSandbox(url, Sandbox(unlimited(self._sandbox_port)), client)
        self._provider: Worker | None = None
        self.calls: list[dict[str, Any]] = []
        """What the provider has seen, oldest first, over all its lives."""
        self._last_call = 0
        stack.callback(lambda: self._provider and self._provider.kill())

    # --- its processes ----------------------------------------------------------------------------

    def revive(self) -> None:
        """Start what does not run."""
        if self.server.poll() is not None or not self.server.is_running:
            self.start_server()
        if self._provider is None or not self._provider.is_alive:
            self._last_call = 0
            self._provider = Worker(serve_sandbox, port=self._sandbox_port).start()
            self.wait_for("the sandbox", self._sandbox_answers, 60)
        for place, worker in enumerate(self._workers):
            if worker is None or not worker.is_alive:
                self._workers[place] = self.worker(through_pooler=place == WORKERS - 1)
        for name in PROGRAMS:
            if name not in self.programs or not self.programs[name].is_alive:
                self.programs[name] = self._start(name)

    def worker(self, *, through_pooler: bool = False, sandbox: str = "", **more: Any) -> Worker:
        """Another worker, which begins at once."""
        self._named += 1
        url = self.pooler if through_pooler and self.pooler else self.worker_url
        name = f"worker-{self._named}"
        worker = Worker(work_on, url=url, sandbox=sandbox or self.sandbox.url, name=name, **more)
        worker.name = name  # type: ignore[attr-defined]
        return worker.start()

    def a_worker(self, number: int) -> Worker:
        """One of those that are always there."""
        worker = self._workers[number % WORKERS]
        assert worker is not None
        return worker

    @property
    def workers(self) -> list[Worker]:
        return [worker for worker in self._workers if worker is not None]

    @property
    def provider(self) -> Worker:
        assert self._provider is not None
        return self._provider

    def _start(self, name: str) -> Worker:
        environment = {
            "PRICING_DATABASE_URL": self.worker_url,
            "PRICING_HOME": str(self.app_home),
            "PRICING_API_PORT": str(self.api_port),
        }
        log = str(self.folder / f"{name}.log")
        return Worker(run_program, name=name, environment=environment, log=log).start()

    def _end_programs(self) -> None:
        for program in self.programs.values():
            program.kill()

    def _end_workers(self) -> None:
        for worker in self.workers:
            worker.kill()

    def end_pauses(self) -> None:
        """What a person does after trouble of a provider: end its pauses, and have it probed at once.

        A provider may ask for an hour, and a breaker takes a minute.
        """
        self.core.rows(
            "UPDATE pricing.provider_keys SET blocked_until = NULL, blocked_reason = NULL, throttles = 0"
            " WHERE blocked_until IS NOT NULL OR throttles > 0"
        )
        self.core.rows("UPDATE pricing.provider_state SET breaker_until = pricing.clock() WHERE breaker = 'open'")

    # --- the server -------------------------------------------------------------------------------

    def admin(self, database: str = "pricing") -> psycopg.Connection[Any]:
        """A session of the superuser, who is the machine's owner here, and not the pipeline's."""
        url = self.server.url(database, "superuser")
        return psycopg.connect(url, autocommit=True, application_name="faults", connect_timeout=10)

    def start_server(self) -> None:
        """Start the server, as often as it takes while a disk has only just become free."""
        ends = time.monotonic() + 60
        while True:
            try:
                self.server.stop("immediate")
                self.server.start()
                return
            except Exception:
                if time.monotonic() > ends:
                    raise
                time.sleep(0.2)

    def server_processes(self) -> list[psutil.Process]:
        """The processes of the server but the first one, which have not ended."""
        pid = self.server.pid
        return psutil.Process(pid).children() if pid else []

    def backends(self) -> list[int]:
        """The server's processes that serve the pipeline."""
        with self.admin() as admin:
            rows = admin.execute(
                "SELECT pid FROM pg_stat_activity WHERE datname = 'pricing' AND backend_type = 'client backend'"
                " AND application_name <> 'faults' ORDER BY pid"
            )
            return [pid for (pid,) in rows]

    def pooler_pid(self) -> int:
        """The process of PgBouncer."""
        (found,) = [child for child in psutil.Process().children() if child.name() == "pgbouncer"]
        return int(found.pid)

    # --- looking ----------------------------------------------------------------------------------

    def wait_for(self, what: str, condition: Callable[[], Any], seconds: float) -> float:
        """Wait until something holds; returns how long it took."""
        began = time.monotonic()
        while not condition():
            if time.monotonic() - began > seconds:
                raise StageError(f"{what}: nothing after {seconds:.0f} s")
            time.sleep(0.05)
        return time.monotonic() - began

    def note_calls(self) -> None:
        """Read what the provider has seen since the last time."""
        fresh = self.sandbox.calls(since=self._last_call)
        if fresh:
            self._last_call = fresh[-1]["seq"]
            self.calls += fresh

    def count_calls(self, provider: str) -> int:
        """How many calls a provider has seen."""
        self.note_calls()
        return sum(call["provider"] == provider for call in self.calls)

    def has_misbehaved(self) -> bool:
        """Whether all faults that the sandbox was told to commit have hit a call."""
        with contextlib.suppress(httpx.HTTPError):
            return all(one["hits"] for one in self.sandbox._answer("GET", "behaviour"))
        return False

    def _sandbox_answers(self) -> bool:
        with contextlib.suppress(httpx.HTTPError):
            return self.sandbox._client.get(f"{self.sandbox.url}/_sandbox/health").is_success
        return False

    def api_answers(self) -> bool:
        with contextlib.suppress(httpx.HTTPError):
            head = {"Authorization": f"Bearer {self.token}"}
            return httpx.get(
                f"{self.api_url}/v1/prices?symbols=AAPL", headers=head, timeout=3, verify=NO_TLS
            ).is_success
        return False


def well(post: Post) -> None:
    """How a good receiver answers."""
    post.answer(204)


def _mount(home: Path, stack: ExitStack) -> bool:
    """Give the server a small disk of its own, if we may."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=711", "tmpfs", home],
        check=False,
        capture_output=True,
    )
    if mounted.returncode:
        return False
    stack.callback(subprocess.run, ["umount", "--lazy", home], check=False, capture_output=True)
    return True


def _free_port() -> int:
    """A port that the system gives to no caller: one who calls a dead server again and again might get its own port.

    It would then have reached itself, and the server could not start again.
    """
    while True:
        port = random.randrange(20_000, 30_000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


@contextmanager
def stopped(*pids: int) -> Iterator[None]:
    """These processes stand still."""
    there = []
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            there.append(pid)
    try:
        yield
    finally:
        for pid in there:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
