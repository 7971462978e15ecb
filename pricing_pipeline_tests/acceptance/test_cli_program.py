"""What all commands do as programs: where their home is, signals, completion, a reader that stops reading."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import psycopg
import pytest
from sqlalchemy import make_url

from pricing_pipeline.cli.program import without_home
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.integration.test_cli_provider import CANARY, listed
from pricing_pipeline_tests.integration.test_cli_read import store_quote
from pricing_pipeline_tests.integration.test_cli_watch import watchers
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until


def test_c3_a_command_may_name_its_home_anywhere(tmp_path: Path) -> None:
    for words in (["--home", "two", "status"], ["status", "--json", "--home", "two"], ["status", "--home=two"]):
        assert without_home(words) == ([word for word in words if word in ("status", "--json")], "two")
    (tmp_path / ".env").write_text("PRICING_HOME=one\nPRICING_DATABASE_URL=postgresql://one.example/pricing\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PRICING_")}
    done = subprocess.run(
        [sys.executable, "-m", "pricing_pipeline.cli", "status", "--home=two"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert str(tmp_path / "two") in done.stdout
    assert f"the home {tmp_path / 'two'} does not exist" in done.stderr


@pytest.mark.parametrize(
    ("typed", "completed"),
    [("pricing-pipeline pri", {"price", "price-alert"}), ("pricing-pipeline route add --r", {"--rank"})],
)
def test_the_shell_completes_commands_and_options(typed: str, completed: set[str]) -> None:
    environment = {
        "_PRICING_PIPELINE_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(typed.count(" ")),
    }
    done = subprocess.run(
        [sys.executable, "-m", "pricing_pipeline.cli"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (set(done.stdout.split()), done.stderr) == (completed, "")


def test_the_sandbox_says_where_it_listens_and_ends_on_a_signal(cli: CommandLine) -> None:
    process = cli.start("sandbox", "--port", "0", "--json")
    try:
        assert process.stdout is not None
        event = json.loads(process.stdout.readline())
        assert event["event"] == "listening"
        assert httpx.get(f"{event['url']}/_sandbox/health", trust_env=False, timeout=PATIENCE).is_success
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
    assert errors == ""


def test_ctrl_c_ends_a_command_that_waits_in_one_line(cli: CommandLine, owner_url: str) -> None:
    with psycopg.connect(owner_url, autocommit=True) as watching, psycopg.connect(owner_url) as session:
        session.execute("LOCK TABLE pricing.api_call_queue IN ACCESS EXCLUSIVE MODE")
        process = cli.start("task", "list")
        waits = (
            "SELECT FROM pg_locks WHERE NOT granted"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        wait_until(lambda: watching.execute(waits).fetchone() is not None)
        process.send_signal(signal.SIGINT)
        said, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, said, errors) == (130, "", "stopped.\n")


def test_a_reader_that_stops_reading_is_no_error(cli: CommandLine) -> None:
    process = cli.start("type", "list", "--json")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    errors = process.stderr.read()
    process.stderr.close()
    process.wait(PATIENCE)
    assert "Traceback" not in errors


def test_a4_a_key_that_is_typed_is_not_echoed(core: Core, cli: CommandLine) -> None:
    """At a terminal it is asked for; the terminal shows nothing of the answer."""
    terminal, inner = pty.openpty()
    process = cli.start("key", "set", TWELVEDATA, "--json", stdin=inner, start_new_session=True)
    os.close(inner)
    assert process.stderr
    assert process.stdout
    prompt = "Key default of twelvedata: "
    assert process.stderr.read(len(prompt)) == prompt
    os.write(terminal, f"{CANARY}\n".encode())
    out, errors = process.stdout.read(), process.stderr.read()
    assert process.wait(PATIENCE) == 0, errors
    os.set_blocking(terminal, False)
    try:
        echoed = os.read(terminal, 1000).decode()
    except OSError:  # nothing at all
        echoed = ""
    os.close(terminal)
    assert "canary" not in echoed + out + errors
    assert listed(cli)["default", "database"]["hint"] == "…89"


def test_b5_leaving_by_a_signal_unsubscribes(cli: CommandLine, core: Core) -> None:
    def like_a_background_job_of_a_script() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    process = cli.start(
        "subscription",
        "watch",
        "AAPL",
        "--type",
        QUOTE,
        "--user",
        "ann",
        "--json",
        preexec_fn=like_a_background_job_of_a_script,
    )
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["event"] == "subscribed"
    assert watchers(core) == [("ann", QUOTE, "AAPL")]
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate(timeout=PATIENCE)
    assert json.loads(rest.splitlines()[-1]) == {"event": "unsubscribed", "ended": 1}
    assert (process.returncode, errors) == (0, "")
    assert watchers(core) == []


def test_a_read_of_the_command_line_does_without_sqlalchemy(
    core: Core, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Importing it takes longer than all the rest."""
    store_quote(core, "AAPL", "146.55")
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    for words in (("price", "show", "AAPL"), ("price", "why", "AAPL")):
        process = cli.start(*words)
        said, errors = process.communicate(timeout=PATIENCE)
        assert (process.returncode, bool(said)) == (0, True), errors
        modules = {line.rpartition("|")[2].strip() for line in errors.splitlines()}
        assert "psycopg" in modules
        assert not {"sqlalchemy", "pandas", "pyarrow", "dagster", "httpx"} & modules


def test_psql_runs_with_the_rights_of_a_role(cli: CommandLine, owner_url: str) -> None:
    psql = cli.start("db", "psql", "--role", "owner", "--", "--no-psqlrc", "-At", "-c", "SELECT current_user")
    said, errors = psql.communicate(timeout=PATIENCE)
    assert (said.strip(), errors) == (make_url(owner_url).username, "")
