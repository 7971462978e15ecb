"""deploy/: what is written for containers holds together, and its processes really work.

No container engine runs here. Each service is started as a plain process with exactly the command and the environment
of its container. Hosts and ports become those of this machine, and a real PostgreSQL and PgBouncer take the place of
theirs.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from pricing_pipeline.db import embedded_home as places
from pricing_pipeline.db.embedded import RELOCATION
from pricing_pipeline.keys.environments import SECRETS, SECRETS_OF
from pricing_pipeline.processes.ports import LOOPBACK, require_free_port
from pricing_pipeline.settings import Settings
from pricing_pipeline_tests.fixtures.home import make_open_folder, quickest_place
from pricing_pipeline_tests.support.containers import (
    DEPLOY,
    ROOT,
    Containers,
    Image,
    compose,
    instructions,
    last_stage,
)
from pricing_pipeline_tests.support.given_postgres import GivenPostgres, given_binaries
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until
from pricing_pipeline_tests.support.plain_processes import PlainProcesses

BIN = Path(sys.executable).parent
PGBOUNCER = shutil.which("pgbouncer", path=os.environ["PATH"] + ":/usr/sbin")
VALUES = {
    "POSTGRES_PASSWORD": "a1" * 12,
    "PRICING_OWNER_PASSWORD": "b2" * 12,
    "PRICING_WORKER_PASSWORD": "c3" * 12,
    "PRICING_UI_TOKEN": "d4" * 12,
    "PRICING_MASTER_KEY": "one:" + "e5" * 21 + "E=",
}


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    found: dict[str, Any] = compose(VALUES)["services"]
    return found


def test_the_image_is_pinned_and_runs_as_nobody() -> None:
    """Every package comes by its hash, the base by a tag with its version, and no process is root."""
    found = instructions()
    base = next(each.text for each in found if each.name == "ARG").partition("=")[2]
    name, _, tag = base.partition(":")
    assert name == "python"
    assert tag.count(".") == 2, "a version to its last part"
    assert {each.words[0] for each in found if each.name == "FROM"} == {"${PYTHON_IMAGE}"}
    installs = [each.text for each in found if each.name == "RUN" and "--requirement" in each.text]
    assert installs
    assert all("--require-hashes" in install and "--no-deps" in install for install in installs)
    (user,) = [each.text for each in last_stage() if each.name == "USER"]
    assert 0 not in map(int, user.split(":"))
    assert [each.name for each in last_stage()].count("HEALTHCHECK") == 1


def test_nothing_secret_gets_into_an_image() -> None:
    """Only what is named is sent to the builder, and the names hold neither settings nor data."""
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert lines[0] == "*"
    named = {line[1:] for line in lines if line.startswith("!")}
    copied = {
        source
        for each in instructions()
        if each.name == "COPY" and not each.text.startswith("--from")
        for source in each.words[:-1]
    }
    assert copied == named
    assert not SECRETS & {word.split("=")[0] for each in instructions() for word in each.text.split()}


def test_what_lints_dockerfiles_finds_nothing() -> None:
    lint = BIN / "hadolint"
    if not lint.exists():
        pytest.skip("hadolint has no wheel for this machine")
    done = subprocess.run([lint, DEPLOY / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_compose_file_follows_the_specification() -> None:
    """By the schema of the compose specification, which the checker brings along."""
    done = subprocess.run(
        [BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", DEPLOY / "compose.yaml"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_what_kubernetes_gets_says_what_compose_says(services: dict[str, Any]) -> None:
    """The same commands, without root, and secrets by reference alone."""
    manifests = [
        content
        for path in sorted((DEPLOY / "helm/manifests").iterdir())
        for content in yaml.safe_load_all(path.read_text())
    ]
    pods = [content["spec"]["template"]["spec"] for content in manifests if "template" in content["spec"]]
    containers = [each for pod in pods for each in [*pod.get("initContainers", ()), *pod["containers"]]]
    commands = {" ".join(each["args"]) for each in containers}
    of_compose = {" ".join(services[name]["command"]) for name in ("migrate", "migrate-dagster", "api", "notifier")}
    assert commands == of_compose
    assert all(pod["securityContext"]["runAsNonRoot"] for pod in pods)
    for container in containers:
        assert container["securityContext"]["readOnlyRootFilesystem"]
        plain = {each["name"] for each in container["env"] if "value" in each}
        assert not plain & SECRETS
    values = yaml.safe_load((DEPLOY / "helm/values.yaml").read_text())
    (deployment,) = values["dagster-user-deployments"]["deployments"]
    assert set(deployment["codeServerArgs"]) < set(services["code-server"]["command"])
    assert not SECRETS & {each["name"] for each in deployment["env"]}
    # The chart takes `enabled` out of this probe alone; what else it gets goes to Kubernetes as it is.
    assert deployment["startupProbe"].pop("enabled")
    assert all("enabled" not in deployment[name] for name in ("startupProbe", "livenessProbe"))
    assert deployment["readinessProbe"] == {"enabled": False}


def test_the_instance_of_kubernetes_keeps_and_logs_what_that_of_up_does() -> None:
    ours = yaml.safe_load((ROOT / "dagster.yaml").read_text())
    values = yaml.safe_load((DEPLOY / "helm/values.yaml").read_text())
    assert values["retention"]["enabled"]
    assert values["retention"]["schedule"]["purgeAfterDays"] == ours["retention"]["schedule"]["purge_after_days"]
    kept = values["retention"]["sensor"]["purgeAfterDays"]  # the chart requires all kinds
    assert kept == ours["retention"]["sensor"]["purge_after_days"] | {"started": -1}
    assert values["pythonLogs"] == {
        "pythonLogLevel": ours["python_logs"]["python_log_level"],
        "managedPythonLoggers": ours["python_logs"]["managed_python_loggers"],
    }
    assert values["additionalInstanceConfig"]["auto_materialize"] == ours["auto_materialize"]


def test_backfills_wait_for_a_code_server_that_is_replaced(services: dict[str, Any]) -> None:
    """Each of Dagster's own daemons is told so; that of `up` tells itself."""
    name = "DAGSTER_BACKFILL_RETRY_DEFINITION_CHANGED_ERROR"
    assert services["daemon"]["environment"][name] == "true"
    values = yaml.safe_load((DEPLOY / "helm/values.yaml").read_text())
    assert {"name": name, "value": "true"} in values["dagsterDaemon"]["env"]
    assert f"Environment={name}=true" in (DEPLOY / "systemd/pricing-daemon.service").read_text()


def test_systemd_reads_the_units_of_each_process(services: dict[str, Any], tmp_path: Path) -> None:
    """Each runs the command of its container. The programs of another machine are replaced before systemd looks."""
    checker = shutil.which("systemd-analyze")
    units = sorted(path for path in (DEPLOY / "systemd").glob("pricing-*") if "watchdog" not in path.name)
    for unit in units:
        text = unit.read_text()
        name = unit.stem.removeprefix("pricing-")
        if unit.suffix == ".service" and name in services and name != "migrate":
            program, *arguments = services[name]["command"]
            (started,) = [line for line in text.splitlines() if line.startswith("ExecStart=")]
            given = started.split()
            assert given[0].endswith(f"/{program}"), name
            assert len(given) == 1 + len(arguments), name
        (tmp_path / unit.name).write_text(re.sub(r"/opt/pricing-pipeline/\S+", "/bin/true", text))
    if checker is None:
        pytest.skip("systemd-analyze is not installed")
    done = subprocess.run(
        [checker, "verify", "--man=no", *sorted(tmp_path.iterdir())],
        capture_output=True,
        text=True,
        check=False,
    )
    said = [line for line in done.stderr.splitlines() if "pricing-" in line]
    assert (done.returncode, said) == (0, []), done.stderr


def test_each_container_knows_only_the_secrets_that_its_process_needs(services: dict[str, Any]) -> None:
    """As docs/security.md has it for `up`. Keys of providers are in the database, so no container has them."""
    of = {"dagster-daemon": "daemon", "dagster-webserver": "webserver"}
    for process, secrets in SECRETS_OF.items():
        name = of.get(process, process)
        if name in services:
            given = SECRETS & services[name].get("environment", {}).keys()
            assert given <= secrets, name
    owners = {name for name in services if "PRICING_OWNER_URL" in services[name].get("environment", {})}
    assert owners == {"migrate", "command"}


def test_commands_seal_a_key_as_the_pipeline_opens_it(services: dict[str, Any]) -> None:
    """A command reaches the provider that it tries, and writes no master key that its container would take along."""
    sealed = {name: services[name]["environment"].get("PRICING_MASTER_KEY") for name in services}
    assert {name: key for name, key in sealed.items() if key is not None} == dict.fromkeys(
        ("command", "code-server", "notifier"), VALUES["PRICING_MASTER_KEY"]
    )
    assert services["command"]["profiles"] == ["command"], "`up` must not start it"
    assert services["command"]["read_only"]
    home = services["command"]["environment"]["PRICING_HOME"]
    assert not any(home.startswith(place.partition(":")[0]) for place in services["command"]["tmpfs"])


def test_what_compose_sets_are_settings(services: dict[str, Any]) -> None:
    known = {f"PRICING_{name.upper()}" for name in Settings.model_fields}
    ours = {name: service for name, service in services.items() if service["image"] == "pricing-pipeline"}
    for name, service in ours.items():
        given = {each for each in service.get("environment", {}) if each.startswith("PRICING_")}
        assert given <= known, name


def test_no_secret_stands_in_a_compose_file() -> None:
    """Without deploy/.env there is not one password, and the file says which it requires."""
    with pytest.raises(KeyError):
        compose({})
    assert not any(value in (DEPLOY / "compose.yaml").read_text() for value in VALUES.values())
    lines = (DEPLOY / ".env.example").read_text().splitlines()
    assert {f"{name}=" for name in VALUES} <= set(lines)


def test_the_containers_of_the_databases_have_no_way_out(services: dict[str, Any]) -> None:
    """Only what calls providers, sends messages or serves people is on another network; ports are on loopback."""
    outside = {name for name, service in services.items() if "outside" in service.get("networks", ())}
    assert outside == {"command", "code-server", "webserver", "api", "notifier"}
    ports = [port for service in services.values() for port in service.get("ports", ())]
    assert all(port.startswith("127.0.0.1:") for port in ports)
    for name, service in services.items():
        if service["image"] == "pricing-pipeline":
            assert service["read_only"], name
            assert service["cap_drop"] == ["ALL"], name


def test_the_instance_of_an_image_is_that_of_up(tmp_path: Path) -> None:
    """Its dagster.yaml is the clone's with the storage, its workspace one code server."""
    image = Image(tmp_path)
    content = yaml.safe_load((image.app / "dagster/dagster.yaml").read_text())
    assert content["storage"]["postgres"]["postgres_url"] == {"env": "PRICING_DAGSTER_URL"}
    without = {name: value for name, value in content.items() if name != "storage"}
    assert without == yaml.safe_load((ROOT / "dagster.yaml").read_text())
    (server,) = yaml.safe_load((image.app / "dagster/workspace.yaml").read_text())["load_from"]
    assert server["grpc_server"]["location_name"] == "pricing_pipeline"


def test_the_processes_of_compose_store_a_first_price_and_end_cleanly(tmp_path: Path) -> None:
    """From empty databases to a price over the API; SIGTERM then ends each process, and nothing is left of it."""
    ports: dict[str, int] = {}
    for name in ("postgres", "pgbouncer", "web", "api", "sandbox"):
        ports[name] = require_free_port(0, name, "the port", ports.values())
    place = {name: f"{LOOPBACK}:{port}" for name, port in ports.items()}
    sockets = tmp_path / "run"
    sockets.mkdir(mode=0o700)
    mapped = {
        "postgres:5432": place["postgres"],
        "pgbouncer:6432": place["pgbouncer" if PGBOUNCER else "postgres"],
        "webserver:3000": place["web"],
        "localhost:3000": place["web"],
        "127.0.0.1:3000": place["web"],
        "localhost:8000": place["api"],
        "127.0.0.1:8000": place["api"],
        "127.0.0.1:8100": place["sandbox"],
        "/run/pricing/": f"{sockets}/",
        "0.0.0.0": LOOPBACK,
    }
    services = compose(VALUES)["services"]
    # The images' own ports may be in use here.
    for service in services.values():
        if service["image"] == "pricing-pipeline":
            service["environment"] |= {
                f"PRICING_{name.upper()}_PORT": str(ports[name]) for name in ("web", "api", "sandbox")
            }
    image = Image(tmp_path)
    with (
        running_postgres(services["postgres"], ports["postgres"]),
        running_pgbouncer(services["pgbouncer"], ports),
        PlainProcesses(tmp_path) as processes,
    ):
        containers = Containers(services, image, mapped, processes)
        containers.run("migrate")
        containers.run("command", "pricing-pipeline", "db", "upgrade", "--sample")
        containers.run("migrate-dagster")
        for name in ("sandbox", "code-server", "daemon", "webserver", "api", "notifier"):
            containers.start(name)
            wait_for_health(containers, processes, name)
        token = [
            "pricing-pipeline",
            "token",
            "add",
            "shop",
            "--scope",
            "read",
            "--scope",
            "watch",
            "--any-user",
        ]
        headers = {"Authorization": f"Bearer {containers.run('command', *token).split()[-1]}"}
        pair = {"data_type": "equity_quote", "symbol": "AAPL"}
        with httpx.Client(base_url=f"http://{place['api']}", headers=headers, timeout=PATIENCE) as api:
            watched = api.post("/v1/heartbeat", params={"user": "ann"}, json={"pairs": [pair]})
            assert watched.status_code == 200, watched.text
            wait_until(lambda: is_priced(processes, api))
            assert "daemon" not in api.get("/healthz").json()["late"]
        containers.run("command", "pricing-pipeline", "status")
        assert f"{place['api']}/#token=" in containers.run("command", "pricing-pipeline", "page")
        patience = {name: seconds_of(services[name]["stop_grace_period"]) for name in services if name != "pgbouncer"}
        for name in ("notifier", "api", "webserver", "daemon", "code-server", "sandbox"):
            status, seconds = processes.stop(name)
            # A server that ends as it was told may name the signal as its reason.
            assert status in (0, -signal.SIGTERM, 128 + signal.SIGTERM), processes.log(name)[-3000:]
            assert seconds < patience[name], name
            for line in VALUES.values():
                assert line not in processes.log(name)
    # The file system of a container is read-only, so nothing may be kept there. (Dagster makes two folders if it can.)
    kept = {path.name for path in (image.app / "dagster").rglob("*") if path.is_file()}
    assert kept == {"dagster.yaml", "workspace.yaml"}


def wait_for_health(containers: Containers, processes: PlainProcesses, name: str) -> None:
    def is_healthy() -> bool:
        processes.require_running()
        return containers.is_healthy(name)

    wait_until(is_healthy)


def is_priced(processes: PlainProcesses, api: httpx.Client) -> bool:
    processes.require_running()
    answer = api.get("/v1/prices", params={"symbols": "AAPL", "data_type": "equity_quote"})
    assert answer.status_code == 200, answer.text
    return bool(answer.json()["prices"])


def seconds_of(period: str) -> float:
    assert period.endswith("s")
    return float(period[:-1])


@contextmanager
def running_postgres(service: dict[str, Any], port: int) -> Iterator[None]:
    """A server whose administrator has run what the container runs in an empty one."""
    home = make_open_folder("pricing-tests-", within=quickest_place())
    programs = given_binaries() or places.binaries(places.server_user(home / "data"), RELOCATION)
    server = GivenPostgres(programs, home, tcp_port=port)
    server.start()
    try:
        psql = shutil.which("psql") or str(programs / "psql")
        for script in sorted((DEPLOY / "postgres").iterdir()):
            subprocess.run(
                [
                    psql,
                    "--no-psqlrc",
                    "--quiet",
                    "--dbname",
                    server.url("postgres", places.SUPERUSER),
                    "--file",
                    script,
                ],
                env={**os.environ, **service["environment"]},
                check=True,
            )
        yield
    finally:
        server.stop()
        shutil.rmtree(home)


@contextmanager
def running_pgbouncer(service: dict[str, Any], ports: dict[str, int]) -> Iterator[None]:
    """PgBouncer with the settings that its container gets from its environment; without one, nothing."""
    if PGBOUNCER is None:
        yield
        return
    given = service["environment"]
    named = {"DB_HOST", "DB_PORT", "DB_NAME", "DB_USER", "DB_PASSWORD", "LISTEN_PORT"}
    options = "\n".join(f"{name.lower()} = {value}" for name, value in given.items() if name not in named)
    folder = make_open_folder("pricing-pgbouncer-")
    (folder / "users.txt").write_text(f'"{given["DB_USER"]}" "{given["DB_PASSWORD"]}"\n')
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\n{given['DB_NAME']} = host={LOOPBACK} port={ports['postgres']}\n"
        f"[pgbouncer]\nlisten_addr = {LOOPBACK}\nlisten_port = {ports['pgbouncer']}\n"
        f"unix_socket_dir =\nauth_file = {folder}/users.txt\n{options}\n"
    )
    user = places.server_user(folder)  # as root it refuses to run
    for path in folder.iterdir():
        places.give(path, user)
    with (folder / "pgbouncer.log").open("wb") as log:
        process = subprocess.Popen(
            [PGBOUNCER, folder / "pgbouncer.ini"],
            stdout=log,
            stderr=log,
            **(user.popen_options() if user else {}),
        )
    try:
        yield
        assert process.poll() is None, (folder / "pgbouncer.log").read_text()
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)
