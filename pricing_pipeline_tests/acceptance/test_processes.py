"""What each process of a real `up` knows, and what it leaves open to others: nothing but what docs/security.md says."""

from __future__ import annotations

import contextlib
import json
import re
import stat
from collections.abc import Iterator, Mapping
from io import FileIO
from pathlib import Path

import httpx
import psutil
import pytest

from pricing_pipeline.keys.environments import API_KEYS, SECRETS, SECRETS_OF
from pricing_pipeline.keys.sealing import new_key
from pricing_pipeline_tests.fixtures.stack import GROUP, Stack, new_stack
from pricing_pipeline_tests.support.descendants import below
from pricing_pipeline_tests.support.other_accounts import needs_root
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until

PAGE = Path(__file__).parents[2] / "docs/security.md"
REAL = {
    "OWNER_URL": "postgresql://owner:canary-owner@127.0.0.1:9/none",
    "LISTEN_URL": "postgresql://worker:canary-listen@127.0.0.1:9/none",
    "REPLICA_URL": "postgresql://worker:canary-replica@127.0.0.1:9/none",
    "UI_ADDRESS": "0.0.0.0",
    "UI_TOKEN": "canary-token-of-the-ui",
    "TWELVEDATA_API_KEY": "canary-twelvedata",
    "TWELVEDATA_API_KEYS": "second=canary-second",
    "FMP_API_KEY": "canary-fmp",
    "FMP_API_KEYS": "third=canary-third",
    "OCTO_API_KEY": "canary-octo",
    "OCTO_API_KEYS": "fourth=canary-fourth",
    "HEADOUT_API_KEY": "canary-headout",
    "HEADOUT_API_KEYS": "fifth=canary-fifth",
    "UEX_API_KEY": "canary-uex",
    "UEX_API_KEYS": "sixth=canary-sixth",
    "LAST_RESORT_URL": "https://127.0.0.1:9/canary-last-resort",
    "LAST_RESORT_SECRET": "canary-secret-of-the-last-resort",
    "LAST_RESORT_ALLOW_PRIVATE": "true",
}
FOREIGN = {
    "AWS_SECRET_ACCESS_KEY": "canary-aws",
    "DAGSTER_CLOUD_API_TOKEN": "canary-dagster",
    "DATABASE_URL": "postgresql://canary-application@127.0.0.1/application",
    "HTTPS_PROXY": "http://me:canary-proxy@127.0.0.1:9",
    "PGPASSWORD": "canary-pg",
    "TWELVEDATA_API_KEY": "canary-of-another-program",
}
CARELESS = pytest.mark.xdist_group("careless")
"""Tests of these pipelines run in one process."""
WITHOUT_DEMO = ("sh", "-c", 'exec "$@" --no-demo', "sh")


def promised() -> dict[str, set[str]]:
    """Process -> the secrets that the page grants it."""
    section = PAGE.read_text().partition("## What each process knows\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \| (.*?) \|$", section, re.MULTILINE)
    return {
        name: set(re.findall("`(PRICING_[A-Z_]+)`", known))
        for names, known in rows
        for name in re.findall("`(.*?)`", names)
    }


@pytest.fixture(scope="module", params=["the sandbox", "real providers"])
def careless(request: pytest.FixtureRequest) -> Iterator[Stack]:
    """A pipeline started by somebody who has many secrets, a UI that others reach, and a umask that closes nothing."""
    is_real = request.param == "real providers"
    settings = {**REAL, "MASTER_KEY": new_key("canary-master"), "SANDBOX": str(not is_real).lower()}
    foreign = [f"{name}={value}" for name, value in FOREIGN.items()]
    with new_stack(**settings) as stack:
        # With a viewer, real providers would be asked.
        stack.start("env", *foreign, *(WITHOUT_DEMO if is_real else ()), umask=0)
        if is_real:
            stack.wait_until("the webserver", stack.location)
        else:
            stack.wait_until_up()
        yield stack


@CARELESS
@needs_root
def test_a4_each_process_knows_the_secrets_that_it_needs_and_no_others(careless: Stack) -> None:
    is_real = "sandbox" not in careless.state()["processes"]
    wait_until(lambda: {name for name, _ in _processes(careless)} >= careless.state()["processes"].keys())
    granted = promised()
    texts = _secrets(careless)
    canaries = {f"PRICING_{name}": _canary(value) for name, value in REAL.items() if "canary" in value}
    seen = set()
    for name, process in _processes(careless):
        about = _about(process)
        if about is None:
            continue
        environment, line = about
        seen.add(name)
        has_master_key = is_real or name == "notifier"
        needed = {secret for secret in granted[name] if has_master_key or secret != "PRICING_MASTER_KEY"}
        if not is_real:  # stand-ins for all keys of a provider are in one variable
            needed = {secret for secret in needed if not secret.endswith("_API_KEY")}
        # A process that was forked gets its environment later, where the system does not show it.
        shown = environment.keys() & SECRETS
        assert shown == needed or (shown == set() and name in SECRETS_OF), name
        assert environment.keys() & FOREIGN.keys() == set(), name
        telling = {key for key, value in environment.items() if any(text in value for text in texts)}
        assert telling == {secret for secret in shown if is_real or not secret.endswith("_API_KEYS")}, name
        assert [text for text in texts if text in line] == [], name
        if name in SECRETS_OF:
            assert _remembered(process, canaries) == {
                secret for secret in needed & canaries.keys() if is_real or secret not in API_KEYS
            }, name
    assert seen >= careless.state()["processes"].keys(), "of each that goes on"
    _everything_is_closed(careless)


@CARELESS
@pytest.mark.parametrize("careless", ["the sandbox"], indirect=True)
def test_where_the_ui_has_a_token_strangers_get_nothing_and_commands_go_on(careless: Stack) -> None:
    url = careless.state()["urls"]["dagster"]
    assert url.startswith("http://127.0.0.1:")
    assert httpx.get(f"{url}/server_info", trust_env=False, timeout=PATIENCE).status_code == 401
    told = careless.json("backfill", "start", "--type", "equity_daily", "--from", "2013-03-01", "--to", "2013-03-28")
    assert told["run_id"] is not None  # so Dagster ran it
    assert REAL["UI_TOKEN"] not in careless.logs()


def test_the_page_grants_what_the_code_does() -> None:
    granted = promised()
    assert {name: granted[name] for name in SECRETS_OF} == SECRETS_OF
    assert granted.keys() - SECRETS_OF.keys() == {"postgresql", "guardian", "fork-server"}


@GROUP
@needs_root
def test_temporary_files_of_a_home_with_a_long_path_are_in_a_private_folder(stack: Stack) -> None:
    """No socket's address could hold such a path."""
    stack.ensure_up()
    (folder,) = {
        about[0]["TMPDIR"]
        for name, process in _processes(stack)
        if name not in ("postgresql", "guardian") and (about := _about(process)) is not None
    }
    assert not folder.startswith(str(stack.home))
    assert _is_closed(Path(folder))
    assert _is_closed(Path(folder).parent)
    assert [path for path in Path(folder).iterdir() if path.is_socket()] != []
    assert [path for path in Path(folder).rglob("*") if not _is_closed(path)] == []


def _processes(stack: Stack) -> list[tuple[str, psutil.Process]]:
    """All that `up` has started, each by the name of what it is or belongs to."""
    names: dict[int, str] = {}
    for name, one in stack.state()["processes"].items():
        names |= dict.fromkeys((one["pid"], *(process.pid for process in below(one["pid"]))), name)
    found = [(names.get(process.pid, "guardian"), process) for process in below(stack.state()["pid"])]
    assert {name for name, _ in found} >= {"postgresql", "code-server", "dagster-daemon", "dagster-webserver"}
    return [(name, process) for name, process in found if process.is_running()]


def _about(process: psutil.Process) -> tuple[dict[str, str], str] | None:
    """The environment, which root alone may read, and the command line of a process; None if it has ended meanwhile."""
    try:
        return process.environ(), " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return None


def _canary(value: str) -> str:
    found = re.search(r"canary[\w-]*", value)
    assert found is not None
    return found[0]


def _remembered(process: psutil.Process, texts: Mapping[str, str]) -> set[str]:
    """The names of the texts that are anywhere in the memory of a process, which root alone may read."""
    found = set()
    with contextlib.suppress(psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
        maps = Path(f"/proc/{process.pid}/maps").read_text().splitlines()
        with open(f"/proc/{process.pid}/mem", "rb", buffering=0) as memory:
            for line in maps:
                begin, end = (int(address, 16) for address in line.split()[0].split("-"))
                part = _part(memory, begin, end) if " rw" in line else b""
                if b"canary" in part:
                    found |= {name for name, text in texts.items() if text.encode() in part}
    return found


def _part(memory: FileIO, begin: int, end: int) -> bytes:
    try:
        memory.seek(begin)
        return memory.read(end - begin)
    except (OSError, OverflowError):
        return b""


def _secrets(stack: Stack) -> list[str]:
    passwords: Mapping[str, str] = json.loads((stack.home / "postgres.json").read_text())["passwords"]
    return ["canary", *passwords.values()]


def _everything_is_closed(stack: Stack) -> None:
    """With any umask of its starter: sockets, logs and the files of the server's own user, too."""
    paths = list(stack.home.rglob("*"))
    assert [path for path in paths if not path.is_symlink() and not _is_closed(path)] == []
    sockets = {path.relative_to(stack.home).parts[0] for path in paths if path.is_socket()}
    assert sockets == {"code.sock", "run", "pricing-tmp"}
    assert {path.name for path in stack.home.parent.iterdir()} == {"home", "up.log"}


def _is_closed(path: Path) -> bool:
    try:
        return not path.lstat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    except FileNotFoundError:  # it was temporary
        return True
