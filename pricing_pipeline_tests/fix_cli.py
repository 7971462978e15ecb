"""The command line as a person uses it: in this process where that suffices, as a process where signals matter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pricing_pipeline.cli import app
from pricing_pipeline.processes.home import lock_home, prepare_home, write_state

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Said:
    """How a command ended and what it printed."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stdout.splitlines()]

    @property
    def error(self) -> str:
        """The one sentence of a failed command; nothing else may be printed with it."""
        assert self.exit_code in (1, 2), self
        assert self.stdout == ""
        (line,) = self.stderr.splitlines()
        assert line.startswith("error: ")
        return line.removeprefix("error: ")


class CommandLine:
    """Runs commands against one database and one home. `settings` are variables without their prefix."""

    def __init__(self, database_url: str, owner_url: str, home: Path) -> None:
        self.home = home
        self.started: list[subprocess.Popen[str]] = []
        self._environment = {
            "PRICING_DATABASE_URL": database_url,
            "PRICING_OWNER_URL": owner_url,
            "PRICING_HOME": str(home),
        }

    def __call__(self, *args: str, stdin: str | None = None, **settings: str) -> Said:
        """Run a command in this process."""
        result = CliRunner().invoke(app, args, input=stdin, env=self._variables(settings))
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Said(result.exit_code, result.stdout, result.stderr)

    def start(self, *args: str, **options: Any) -> subprocess.Popen[str]:
        """Start a command as a process of its own; it is killed with the test if it has not ended by then."""
        variables = self._variables({}) | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        environment = {**os.environ, **variables}
        process = subprocess.Popen(
            [sys.executable, "-m", "pricing_pipeline.cli", *args],
            env={name: value for name, value in environment.items() if value is not None},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )
        self.started.append(process)
        return process

    @contextmanager
    def running(self, **facts: Any) -> Iterator[None]:
        """Make the home look as if a supervisor ran there: this process, which holds the home's lock."""
        prepare_home(self.home)
        lock = lock_home(self.home, patience=0)
        try:
            write_state(self.home, {"pid": os.getpid(), **facts})
            yield
        finally:
            os.close(lock)

    def _variables(self, settings: dict[str, str]) -> dict[str, str | None]:
        others = dict.fromkeys(name for name in os.environ if name.startswith("PRICING_"))
        return {**others, **self._environment, **{f"PRICING_{k.upper()}": v for k, v in settings.items()}}


@pytest.fixture
def cli(database_url: str, owner_url: str, tmp_path: Path) -> Iterator[CommandLine]:
    """The command line on this test's database, with a home that does not exist yet."""
    command_line = CommandLine(database_url, owner_url, tmp_path / "home")
    yield command_line
    for process in command_line.started:
        process.kill()
        with process:  # closes its pipes and waits for it
            pass
