"""The whole pipeline as a user runs it: `pricing-pipeline up` as a process, and the means to look at it.

One stack serves all acceptance tests of a run. Waiting has generous limits and polls quickly, so that the
machine's load decides no test; what fails shows the end of each log.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import httpx
import psutil
import pytest
from sqlalchemy import Row
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.cli.reads import first_price
from pricing_pipeline.db.embedded import EmbeddedServer
from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.demand import freshness
from pricing_pipeline.errors import PricingError
from pricing_pipeline.processes.home import read_state, running_pid
from pricing_pipeline.processes.os_processes import child_setup, is_alive, last_lines
from pricing_pipeline_tests.fix_cli import ROOT, Said
from pricing_pipeline_tests.fix_core import Core
from pricing_pipeline_tests.fix_database import Clock
from pricing_pipeline_tests.fix_home import make_open_folder, quickest_place

PATIENCE = 240.0
"""Seconds to wait for what a quiet machine does in a tenth of that."""

_PREFIX = "pricing-stack-"
_YOUNG = 1800  # seconds in which a folder may belong to a run that is just starting

GROUP = pytest.mark.xdist_group("stack")
"""Tests of one stack run one after the other, in one process."""

_HARSH_NAME = (
    "a home with spaces, and a path so long that no unix socket could have its name in it " + "x" * 60
)

_RUNS = """
query Runs($filter: RunsFilter!) {
  runsOrError(filter: $filter, limit: 200) {
    ... on Runs { results { runId status tags { key value } } }
  }
}
"""
_LOCATION = """
{ repositoriesOrError { ... on RepositoryConnection { nodes { name location { name } } } } }
"""
_TICKS = """
query Ticks($sensor: SensorSelector!) {
  sensorOrError(sensorSelector: $sensor) {
    ... on Sensor { sensorState { ticks(limit: 1) { timestamp status } } }
  }
}
"""

T = TypeVar("T")


class Stack:
    """One home, and the pipeline that runs there or does not. `settings` are variables without their prefix."""

    def __init__(self, folder: Path, name: str = "home", **settings: str) -> None:
        self.home = folder / name
        self.log = folder / "up.log"
        self._folder = folder
        self._settings = {"HOME": str(self.home), "WEB_PORT": "0", "SANDBOX_PORT": "0", **settings}
        self._process: subprocess.Popen[bytes] | None = None
        self._http = httpx.Client(timeout=60, trust_env=False)
        self._core: Core | None = None

    # ── Beginning and end ────────────────────────────────────────────────────────────────────────

    def start(self, *wrapper: str, **options: Any) -> subprocess.Popen[bytes]:
        """Start `up` in a session of its own, by way of `wrapper` if there is one; wait for nothing."""
        command = [*wrapper, sys.executable, "-m", "pricing_pipeline.cli", "up"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                env=self.environment(),
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=child_setup(signal.SIGTERM),  # a test run that is killed must not leave it behind
                **options,
            )
        return self._process

    def wait_until_up(self) -> None:
        """Wait until a run has stored a price since the start, and the webserver answers."""
        self.wait_until("a first price", self._has_first_price)
        self.wait_until("the webserver", self.location)

    def ensure_up(self) -> None:
        """Start it unless it runs: tests that stop it come last, but may be picked alone."""
        if read_state(self.home) is None:
            self.start()
        self.wait_until_up()

    def wait_for_end(self) -> int:
        """Wait until the process that was started has ended; returns its exit status."""
        assert self._process is not None
        return self._process.wait(PATIENCE)

    def close(self) -> None:
        """Stop it, whatever it is doing; what is left of it is killed."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(60)
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.forget_database()
        self._http.close()

    def environment(self) -> dict[str, str]:
        """What a user of this home has set, and nothing of what this test run has."""
        foreign = ("PRICING_", "DAGSTER_", "PG", "COV_", "COVERAGE_")
        others = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        ours = {f"PRICING_{name}": value for name, value in self._settings.items()}
        # Sockets and the like go where they are removed with the rest; what is killed cannot remove them.
        return {**others, "PYTHONPATH": str(ROOT), "TMPDIR": str(self._folder), **ours}

    # ── Looking ──────────────────────────────────────────────────────────────────────────────────

    def wait_until(self, what: str, look: Callable[[], T | None], seconds: float = PATIENCE) -> T:
        """Look until something other than None or False is seen, and return that. Outages are waited out."""
        deadline = time.monotonic() + seconds
        trouble: object = "nothing went wrong meanwhile"
        while time.monotonic() < deadline:
            try:
                seen = look()
            except (httpx.HTTPError, LookupError, OSError, PricingError, DBAPIError) as error:
                trouble, seen = error, None
            if seen is not None and seen is not False:
                return seen
            time.sleep(0.1)
        raise AssertionError(f"{what} did not come within {seconds:.0f} s ({trouble!r})\n{self.logs()}")

    def logs(self) -> str:
        """The end of every log."""
        paths = [self.log, *sorted(self.home.glob("logs/*.log"))]
        return "\n".join(f"{path.name}:\n{last_lines(path, count=25)}" for path in paths)

    def state(self) -> dict[str, Any]:
        """What the supervisor says about itself; LookupError when none runs."""
        if (state := read_state(self.home)) is None:
            raise LookupError(f"nothing runs in {self.home}")
        return state

    def pid_of(self, name: str) -> int:
        """Process id of a supervised process; LookupError while it is down."""
        pid = self.state()["processes"][name]["pid"]
        if pid is None or not is_alive(pid):
            raise LookupError(f"{name} is down")
        return int(pid)

    def processes(self) -> list[psutil.Process]:
        """Every process that has anything to do with this home, except this one."""
        return [process for process in psutil.process_iter() if self._is_ours(process)]

    def cli(self, *args: str) -> Said:
        """Run a command to its end."""
        command = [sys.executable, "-m", "pricing_pipeline.cli", *args]
        done = subprocess.run(
            command, env=self.environment(), capture_output=True, text=True, timeout=PATIENCE
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def json(self, *args: str) -> Any:
        """Run a command with --json that must succeed; returns what it printed."""
        said = self.cli(*args, "--json")
        assert said.exit_code == 0, f"{said}\n{self.logs()}"
        return said.json

    def refusal(self) -> str:
        """The one sentence with which `up` refuses to start, having started nothing."""
        sentence = self.cli("up").error
        assert self.processes() == []
        return sentence

    # ── The pricing database ─────────────────────────────────────────────────────────────────────

    @property
    def worker_url(self) -> str:
        return self._settings.get("DATABASE_URL") or EmbeddedServer(self.home).url("pricing", "worker")

    @property
    def owner_url(self) -> str:
        given = self._settings.get("OWNER_URL") or self._settings.get("DATABASE_URL")
        return given or EmbeddedServer(self.home).url("pricing", "owner")

    @property
    def core(self) -> Core:
        """The pricing database."""
        if self._core is None:
            self._core = Core(*(make_engine(url, pool_size=1) for url in (self.worker_url, self.owner_url)))
        return self._core

    def forget_database(self) -> None:
        """Close our connections, as every client does when it ends."""
        if self._core is not None:
            self._core.engine.dispose()
            self._core.owner.dispose()
            self._core = None

    def advance(self, seconds: float) -> None:
        """Move the pricing database's clock on, for leases that would take a minute to run out."""
        ahead = self.core.one("SELECT extract(epoch FROM pricing.clock() - clock_timestamp())::float8")
        Clock(self.owner_url).advance(round(ahead) + seconds)

    def watch(self, data_type: str, *symbols: str, user: str = "ann") -> None:
        """One heartbeat."""
        self.core.heartbeat(user, *((data_type, symbol) for symbol in symbols))

    def leave(self, data_type: str, *symbols: str, user: str = "ann") -> None:
        self.core.unsubscribe(user, *((data_type, symbol) for symbol in symbols))

    def wait_for_price(self, data_type: str, symbol: str, after: datetime | None = None) -> Row[Any]:
        """The latest price and the call that brought it, as soon as there is one fetched `after` a time."""

        def look() -> Row[Any] | None:
            rows = self.core.rows(
                "SELECT l.fetched_at, c.call_id, c.run_id, c.symbols, c.outcome"
                " FROM pricing.latest_prices l JOIN pricing.collector_call_log c USING (call_id)"
                " WHERE (l.data_type, l.symbol) = (:data_type, :symbol)"
                " AND l.fetched_at > coalesce(CAST(:after AS timestamptz), '-infinity')",
                data_type=data_type,
                symbol=symbol,
                after=after,
            )
            return rows[0] if rows else None

        return self.wait_until(f"a price of {data_type} {symbol}", look)

    def wait_until_all_fresh(self) -> None:
        """Wait until every watched pair is within its TTL."""

        def look() -> bool:
            with self.core.engine.connect() as connection:
                return all(row.fresh == row.watched for row in freshness.measure(connection))

        self.wait_until("fresh prices of all that is watched", look)

    # ── Dagster ──────────────────────────────────────────────────────────────────────────────────

    def graphql(self, query: str, **variables: Any) -> dict[str, Any]:
        """Ask the webserver, as the UI does. LookupError for an answer with errors."""
        url = f"{self.state()['urls']['dagster']}/graphql"
        token = self._settings.get("UI_TOKEN")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        answer = self._http.post(url, json={"query": query, "variables": variables}, headers=headers).json()
        if answer.get("errors") or not answer.get("data"):
            raise LookupError(str(answer)[:2000])
        data: dict[str, Any] = answer["data"]
        return data

    def location(self) -> dict[str, str] | None:
        """How GraphQL names our repository; None while the code location is not loaded."""
        for node in self.graphql(_LOCATION)["repositoriesOrError"].get("nodes", ()):
            return {"repositoryName": node["name"], "repositoryLocationName": node["location"]["name"]}
        return None

    def runs(self, **wanted: Any) -> list[dict[str, Any]]:
        """Runs that fit a RunsFilter, newest first: `id`, `status`, and `tags` by name."""
        return [
            {
                "id": run["runId"],
                "status": run["status"],
                "tags": {tag["key"]: tag["value"] for tag in run["tags"]},
            }
            for run in self.graphql(_RUNS, filter=wanted)["runsOrError"]["results"]
        ]

    def sensor_run_ids(self) -> set[str]:
        """Runs that our sensor launched because of what people watch."""
        launched = self.runs(tags=[{"key": "dagster/sensor_name", "value": "refresh_watched"}])
        return {run["id"] for run in launched}

    def wait_for_tick(self, since: float) -> None:
        """Wait for a tick of the sensor that began after `since` (Unix seconds) and went well."""

        def look() -> bool:
            selector = {**(self.location() or {}), "sensorName": "refresh_watched"}
            ticks = self.graphql(_TICKS, sensor=selector)["sensorOrError"]["sensorState"]["ticks"]
            return any(
                tick["timestamp"] > since and tick["status"] in ("SKIPPED", "SUCCESS") for tick in ticks
            )

        self.wait_until("a tick of the sensor", look)

    # ── The sandbox ──────────────────────────────────────────────────────────────────────────────

    def calls(self, since: int = 0) -> list[dict[str, Any]]:
        """The sandbox's own log, oldest call first."""
        found: list[dict[str, Any]] = self._sandbox("GET", "calls", params={"since": since, "limit": 200_000})
        return found

    def last_call(self) -> int:
        """Number of the newest call, to read on from."""
        return max((int(call["seq"]) for call in self.calls()), default=0)

    def behave(self, kind: str, **fields: object) -> None:
        """Have the sandbox commit a fault from now on."""
        self._sandbox("POST", "behaviour", json={"kind": kind, **fields})

    def behave_well(self) -> None:
        self._sandbox("DELETE", "behaviour")

    def _sandbox(self, method: str, path: str, **request: Any) -> Any:
        url = f"{self.state()['urls']['sandbox']}/_sandbox/{path}"
        return self._http.request(method, url, **request).raise_for_status().json()

    def _has_first_price(self) -> bool:
        if self._process is not None and self._process.poll() not in (None, 0):
            raise AssertionError(f"it ended with {self._process.poll()}\n{self.logs()}")
        started_at = datetime.fromisoformat(self.state()["started_at"])
        with self.core.engine.connect() as connection:
            return first_price(connection, started_at) is not None

    def _is_ours(self, process: psutil.Process) -> bool:
        if process.pid == os.getpid():
            return False
        home = str(self.home)
        try:
            return (
                home in process.environ().values()
                or any(home in argument for argument in process.cmdline())
                or process.cwd().startswith(home)
            )
        except (psutil.Error, OSError):  # ended meanwhile, or another user's
            return False


@contextlib.contextmanager
def new_stack(name: str = "home", **settings: str) -> Iterator[Stack]:
    """A home that does not exist yet, in a folder of its own; stopped and removed in the end."""
    _remove_left_over_folders()
    folder = make_open_folder(_PREFIX, within=quickest_place())
    stack = Stack(folder, name, **settings)
    try:
        yield stack
    finally:
        stack.close()
        shutil.rmtree(folder)


def _remove_left_over_folders() -> None:
    """Remove what killed test runs left behind, since it takes memory: old homes in which nothing runs."""
    for folder in (quickest_place() or Path(tempfile.gettempdir())).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # being removed by another run, or somebody else's
            is_old = time.time() - folder.stat().st_mtime > _YOUNG
            if is_old and not any(running_pid(home) for home in folder.iterdir()):
                shutil.rmtree(folder)


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """The pipeline with the sample's viewer, in a home whose path is as awkward as paths get."""
    with new_stack(_HARSH_NAME) as stack:
        stack.start()
        stack.wait_until_up()
        yield stack
