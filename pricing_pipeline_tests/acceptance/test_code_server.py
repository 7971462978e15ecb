"""One code server, as `up` starts it and its workspace.yaml finds it: it reloads when the registry changes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import permutations
from pathlib import Path
from uuid import uuid4

import dagster as dg
import pytest
from dagster._core.test_utils import create_test_daemon_workspace_context, freeze_time
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import WorkspaceFileTarget
from dagster._daemon.sensor import execute_sensor_iteration
from dagster._utils.log import get_dagster_logger

from pricing_pipeline.processes import dagster_home
from pricing_pipeline.processes.probes import answers_grpc, listens
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.dagster import an_instance
from pricing_pipeline_tests.fixtures.database import Clock, TestServer
from pricing_pipeline_tests.support.patience import wait_until

ROOT = Path(__file__).parents[2]
LOCATION = "pricing_pipeline"
SAMPLE = {"equity_daily", "equity_quote", "fx_rate", "mf_nav"}


@pytest.fixture
def socket(environment: None, open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the code server of this test will listen, and what it needs to know."""
    path = open_folder / "code.sock"
    dagster_home.write(open_folder, ROOT)
    (open_folder / "dagster.yaml").write_text("telemetry: {enabled: false}")
    monkeypatch.setenv("PRICING_CODE_SOCKET", str(path))
    monkeypatch.setenv("DAGSTER_HOME", str(open_folder))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return path


@contextmanager
def running(socket: Path, *how: str) -> Iterator[subprocess.Popen[bytes]]:
    """A code server as `up` starts it, or in another of Dagster's ways."""
    arguments = [
        *(how or ("code-server", "start")),
        "-m",
        "pricing_pipeline.definitions",
        "-a",
        "definitions",
    ]
    options = ["-s", str(socket), "--location-name", LOCATION, "--log-level", "warning"]
    with subprocess.Popen(
        [str(Path(sys.executable).parent / "dagster"), *arguments, *options],
        cwd=socket.parent,
        start_new_session=True,
    ) as process:
        try:
            wait_until(lambda: listens(str(socket)))
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture
def code_server(socket: Path) -> Iterator[subprocess.Popen[bytes]]:
    with running(socket) as process:
        yield process


@contextmanager
def a_daemon(instance: dg.DagsterInstance, socket: Path) -> Iterator[WorkspaceProcessContext]:
    """What daemon and webserver of `up` see of the code server."""
    target = WorkspaceFileTarget([str(dagster_home.workspace(socket.parent))])
    with create_test_daemon_workspace_context(target, instance) as context:
        yield context


def names(daemon: WorkspaceProcessContext) -> set[str]:
    """Data types of the code location as daemon and webserver see it by themselves; none while it does not answer."""
    return {
        key.path[1]
        for location in daemon.create_request_context().code_locations
        for repository in location.get_repositories().values()
        for key in repository.asset_graph.materializable_asset_keys
    }


def handed_on(daemon: WorkspaceProcessContext) -> str:
    """The registry in the plan of a run, which its worker builds its definitions from."""
    location = daemon.create_request_context().get_code_location(LOCATION)
    (repository,) = location.get_repositories().values()
    job = repository.get_full_job("refresh")
    plan = location.get_execution_plan(job, {}, step_keys_to_execute=None, known_state=None)
    data = plan.execution_plan_snapshot.repository_load_data
    assert data is not None
    return str(data.reconstruction_metadata["pricing/registry"].data)


def test_b1_a_new_row_is_loaded_by_the_code_server_that_runs(
    code_server: subprocess.Popen[bytes], socket: Path, core: Core, tmp_path: Path
) -> None:
    logger = get_dagster_logger("daemon")
    with an_instance(tmp_path) as instance, a_daemon(instance, socket) as daemon:
        assert names(daemon) == SAMPLE
        core.rows(
            "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes)"
            " VALUES ('new_quote', 'quote', 5)"
        )
        core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = 'mf_nav'")
        # The sensor is evaluated in the code server, and tells it to reload itself.
        list(execute_sensor_iteration(daemon, logger, None, None))
        wait_until(lambda: names(daemon) == SAMPLE - {"mf_nav"} | {"new_quote"})
        # Its runs are given the registry that it was loaded from.
        assert '"data_type": "new_quote"' in handed_on(daemon)
        skips = [tick.skip_reason for tick in ticks(instance)]
        assert any("reloading: the registry changed from version" in str(reason) for reason in skips)
        assert code_server.poll() is None


def test_b1_g7_a_reload_is_given_time_and_one_that_cannot_come_is_explained(
    socket: Path, core: Core, clock: Clock, tmp_path: Path
) -> None:
    """Another ask, while one is under way, would begin it anew. `dagster api grpc` never reloads."""
    clock.stop()
    with (
        running(socket, "api", "grpc"),
        an_instance(tmp_path) as instance,
        a_daemon(instance, socket) as daemon,
    ):
        now = time.time()

        def follow(seconds: int) -> str:
            """What the sensor says when so many seconds have passed."""
            nonlocal now
            clock.advance(seconds)
            now += seconds
            with freeze_time(now):
                list(execute_sensor_iteration(daemon, get_dagster_logger("daemon"), None, None))
            follower = [one for one in instance.all_instigator_state() if one.name == "follow_registry"]
            (tick, *_) = instance.get_ticks(follower[0].instigator_origin_id, follower[0].selector_id)
            return str(tick.skip_reason)

        change = "UPDATE pricing.data_type_registry SET default_ttl_minutes = {} WHERE data_type = 'fx_rate'"
        core.rows(change.format(2))
        begun = "reloading: the registry changed from version"
        first = follow(0)
        assert (begun in first, "dagster api grpc" in first) == (True, False)
        assert follow(19) == "the definitions are being reloaded"
        again = follow(19)
        assert (begun in again, "dagster api grpc" in again) == (True, True)
        assert follow(19) == "the definitions are being reloaded"
        # A newer version is worth a reload of its own.
        core.rows(change.format(3))
        newer = follow(19)
        assert (begun in newer, "dagster api grpc" in newer) == (True, False)


@pytest.mark.filterwarnings("ignore:Error loading repository location:UserWarning")  # it is not there yet
@pytest.mark.parametrize("order", list(permutations(["database", "code server", "daemon"])), ids="-".join)
def test_b1_g7_whatever_starts_first_all_work_within_a_minute(
    order: tuple[str, ...],
    server: TestServer,
    template: str,
    socket: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A code server that finds neither a database nor a copy of the registry has no types yet, and follows."""
    name = f"pricing_late_{uuid4().hex[:12]}"
    monkeypatch.setenv("PRICING_DATABASE_URL", server.url(name))
    with ExitStack() as started:
        instance = started.enter_context(an_instance(tmp_path))
        for what in order:
            if what == "database":
                server.create(name, template)
                started.callback(server.drop, name)
            elif what == "code server":
                started.enter_context(running(socket))
            else:
                daemon = started.enter_context(a_daemon(instance, socket))

        def is_served() -> bool:
            list(execute_sensor_iteration(daemon, get_dagster_logger("daemon"), None, None))
            return names(daemon) == SAMPLE

        wait_until(is_served)


PING = "/api.DagsterApi/Ping"


def test_g2_a_code_server_answers_until_it_is_frozen(
    code_server: subprocess.Popen[bytes], core: Core, open_folder: Path
) -> None:
    path = str(open_folder / "code.sock")
    wait_until(lambda: answers_grpc(path, PING, 5.0))
    assert not answers_grpc(path, "/api.DagsterApi/NoSuchMethod", 60.0)
    os.kill(code_server.pid, signal.SIGSTOP)
    assert not answers_grpc(path, PING, 0.2)
    os.kill(code_server.pid, signal.SIGCONT)
    wait_until(lambda: answers_grpc(path, PING, 5.0))


def test_g2_who_asks_a_code_server_starts_no_threads(
    code_server: subprocess.Popen[bytes], core: Core, open_folder: Path
) -> None:
    """Anyone who starts processes must have none: a fork copies the locks that they hold."""
    script = (
        "import sys, psutil; from pricing_pipeline.processes.probes import answers_grpc;"
        "print(answers_grpc(sys.argv[1], sys.argv[2], 5.0), psutil.Process().num_threads())"
    )
    asked = [sys.executable, "-c", script, str(open_folder / "code.sock"), PING]

    said = ""

    def is_answered() -> bool:
        nonlocal said
        said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
        return said.startswith("True")

    wait_until(is_answered)
    assert said == "True 1"


def ticks(instance: dg.DagsterInstance) -> list[object]:
    return [
        tick
        for state in instance.all_instigator_state()
        for tick in instance.get_ticks(state.instigator_origin_id, state.selector_id)
    ]
