"""Fault 36: no file of deploy/ and no command of the docs opens a port or socket on which others run code.

Dagster's code server has no login, so it listens on a socket in a folder that nobody else enters. Dagster's UI has
none, so our guard is in front of it, with a token. PostgreSQL and PgBouncer ask for passwords, and our API for tokens.
The sandbox knows no secret and runs nothing; it answers programs of this machine alone.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pricing_pipeline_tests.support.containers import DEPLOY, ROOT, instructions

UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
MANIFESTS = [
    content
    for path in sorted((DEPLOY / "helm/manifests").glob("*.yaml"))
    for content in yaml.safe_load_all(path.read_text())
]
OF_DAGSTER = {"code-server", "daemon", "webserver"}


def is_open(command: list[str]) -> bool:
    """Whether a command has one of Dagster's servers listen where others may reach it without a login."""
    words = [word if word.startswith("-") else Path(word).name for word in command]
    options = {word.split("=")[0] for word in words}
    if "dagster" in words[:2] and {"code-server", "api"} & set(words[:3]):
        return bool(options & {"-p", "--port", "-h", "--host"}) or not options & {"-s", "--socket"}
    return words[:1] == ["dagster-webserver"] or words[:2] in (["dagster", "dev"], ["dg", "dev"])


def unit(path: Path) -> dict[str, list[str]]:
    """The lines of a unit by their name."""
    found: dict[str, list[str]] = {}
    for line in path.read_text().splitlines():
        if "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            found.setdefault(name, []).append(value)
    return found


def test_a_command_that_opens_a_port_is_known() -> None:
    for command, opens in {
        "dagster code-server start -m m --host 127.0.0.1 --port 4266": True,
        "/opt/bin/dagster code-server start -m m -p 4266": True,
        "dagster api grpc --port=4266": True,
        "dagster code-server start -m m --socket=/run/x": False,
        "dagster-webserver -w workspace.yaml": True,
        "dagster dev": True,
        "dagster-daemon run": False,
    }.items():
        assert is_open(shlex.split(command)) == opens, command


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_fault_36_a_unit_opens_no_port_without_a_login(path: Path) -> None:
    lines = unit(path)
    commands = [shlex.split(line) for line in lines["ExecStart"]]
    assert not any(is_open(command) for command in commands)
    sockets = [value.split("=", 1)[1] for value in lines.get("Environment", ()) if "SOCKET=" in value]
    assert all(socket == "/run/pricing-code-server/code.sock" for socket in sockets)
    for command in commands:
        if "code-server" in command:
            assert "--socket=${PRICING_CODE_SOCKET}" in command
            assert lines["RuntimeDirectory"] == ["pricing-code-server"]
            assert lines["RuntimeDirectoryMode"] == ["0700"]
        if "pricing_pipeline.defs.webserver" in command or command[-1] == "up":
            assert any("home/ui-token" in line for line in lines["ExecStartPre"]), "the UI has a token"


def test_fault_36_a_container_opens_no_port_without_a_login() -> None:
    for name, service in SERVICES.items():
        command = [str(word) for word in service.get("command", ())]
        assert not is_open(command), name
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:"), name
            assert name in ("api", "webserver"), name
    assert "PRICING_UI_TOKEN" in SERVICES["webserver"]["environment"]
    assert "POSTGRES_PASSWORD" in SERVICES["postgres"]["environment"]
    assert "POSTGRES_HOST_AUTH_METHOD" not in SERVICES["postgres"]["environment"]
    assert SERVICES["pgbouncer"]["environment"]["AUTH_TYPE"] == "scram-sha-256"
    exposed = [each.words for each in instructions() if each.name == "EXPOSE"]
    assert exposed == [["3000", "8000"]], "the UI and the API"


def test_fault_36_only_dagsters_containers_share_the_socket_of_the_code_server() -> None:
    content = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    sharing = {name for name, service in SERVICES.items() if "code-socket" in str(service.get("volumes", ""))}
    assert sharing == OF_DAGSTER
    options = content["volumes"]["code-socket"]["driver_opts"]
    (user,) = [each.text for each in instructions() if each.name == "USER"]
    uid, gid = user.split(":")
    assert set(options["o"].split(",")) == {f"uid={uid}", f"gid={gid}", "mode=0700"}
    for name in OF_DAGSTER - {"code-server"}:
        assert SERVICES[name]["environment"]["PRICING_CODE_SOCKET"].startswith("/run/pricing/")


def test_fault_36_on_kubernetes_only_dagster_reaches_the_code_server() -> None:
    """Dagster's chart can have it listen on a port alone. docs/deployment.md says what this leaves to the cluster."""
    values = yaml.safe_load((DEPLOY / "helm/values.yaml").read_text())
    (deployment,) = values["dagster-user-deployments"]["deployments"]
    policies = {each["metadata"]["name"]: each["spec"] for each in MANIFESTS if each["kind"] == "NetworkPolicy"}
    everything = policies["pricing-nobody-comes-in"]
    assert everything["podSelector"]["matchLabels"].items() <= deployment["labels"].items()
    assert "ingress" not in everything
    admitting = [
        spec
        for spec in policies.values()
        if spec["podSelector"].get("matchLabels", {"none": ""}).items() <= deployment["labels"].items()
        and "ingress" in spec
    ]
    (policy,) = admitting
    (rule,) = policy["ingress"]
    assert rule["ports"] == [{"port": deployment["port"]}]
    (source,) = rule["from"]
    (labels,) = source["podSelector"]["matchExpressions"]
    assert set(source) == {"podSelector"}, "of this namespace alone"
    assert (labels["key"], labels["operator"]) == ("component", "In")
    assert set(labels["values"]) == {"dagster-webserver", "dagster-daemon"}
    ports = [
        port["containerPort"]
        for each in MANIFESTS
        if "template" in each["spec"]
        for container in each["spec"]["template"]["spec"]["containers"]
        for port in container.get("ports", ())
    ]
    assert ports == [8000], "of the API alone"
    page = " ".join((ROOT / "docs/deployment.md").read_text().split())
    assert f"port {deployment['port']} without a login" in page


def workspaces() -> Iterator[tuple[str, dict[str, Any]]]:
    yield "deploy/dagster/workspace.yaml", yaml.safe_load((DEPLOY / "dagster/workspace.yaml").read_text())
    for page in PAGES:
        for block in re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL):
            content = yaml.safe_load(block)
            if isinstance(content, dict) and "load_from" in content:
                yield page.name, content


def test_fault_36_a_workspace_finds_its_code_server_on_a_socket() -> None:
    found = [
        (name, server)
        for name, content in workspaces()
        for location in content["load_from"]
        if (server := location.get("grpc_server", {})).get("location_name") == "pricing_pipeline"
    ]
    assert len(found) >= 2
    for name, server in found:
        assert server.keys() == {"socket", "location_name"}, name


def commands_of(page: Path) -> Iterator[list[str]]:
    """What a page would have somebody type that starts one of Dagster's servers: blocks, and code in its sentences."""
    text = page.read_text()
    lines = [line.strip() for line in text.splitlines() if line.startswith("    ")]
    for code in [*lines, *re.findall(r"`([^`\n]+)`", text)]:
        if re.match(r"(\S+=\S+ |env \S+ )*(\S*/)?(dagster|dagster-webserver|dg) ", code + " ") and " " in code:
            words = code.split()
            yield words[next(n for n, word in enumerate(words) if "dagster" in word or word == "dg") :]


def test_fault_36_no_command_of_the_docs_opens_a_port_without_a_login() -> None:
    """A command without options is only mentioned. `dagster dev` is for developers; the page says what it lacks."""
    found = [words for page in PAGES for words in commands_of(page)]
    starting = [words for words in found if words[1:3] == ["code-server", "start"] and len(words) > 3]
    assert len(starting) >= 2
    with_options = [words for words in found if any(word.startswith("-") for word in words)]
    assert [words for words in with_options if is_open(words)] == []
    assert "have neither login nor guard" in (ROOT / "docs/running.md").read_text()
