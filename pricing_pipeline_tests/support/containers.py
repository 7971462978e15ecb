"""deploy/Dockerfile and deploy/compose.yaml as data, and their services as plain processes.

No container engine is needed: a service is its command in the image's environment, with hosts, ports and folders mapped
to this machine.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from pricing_pipeline_tests.support.plain_processes import PlainProcesses

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
_VARIABLE = re.compile(r"\$\{(\w+)(?:(:-|:\?)([^}]*))?\}")


@dataclass(frozen=True)
class Instruction:
    """A line of a Dockerfile, with its continuations."""

    name: str
    text: str

    @property
    def words(self) -> list[str]:
        """Of the exec form, or of a line of words."""
        return json.loads(self.text) if self.text.startswith("[") else shlex.split(self.text)


def instructions(path: Path = DEPLOY / "Dockerfile") -> list[Instruction]:
    """The instructions of a Dockerfile, in order."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    whole = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [Instruction(*line.split(maxsplit=1)) for line in whole.splitlines() if line.strip()]


def last_stage() -> list[Instruction]:
    """The instructions that make the image itself."""
    found = instructions()
    last = max(number for number, each in enumerate(found) if each.name == "FROM")
    return found[last:]


class Image:
    """What an image holds, laid out in a folder of this machine: the files it copies, and the project's packages."""

    def __init__(self, folder: Path) -> None:
        self.app = folder / "app"
        self.home = folder / "home"
        self.temporary = folder / "tmp"
        for made in (self.app, self.home, self.temporary):
            made.mkdir()
        for copied in (each.words for each in instructions() if each.name == "COPY"):
            for source in copied[:-1] if not copied[0].startswith("--from") else []:
                self._copy(source, copied[-1])
        (self.app / ".venv").symlink_to(Path(sys.executable).parents[1])
        for step in (step for each in instructions() if each.name == "RUN" for step in each.text.split("&&")):
            # Of the other steps, the environment of the tests has the outcome.
            if step.split()[0] in ("mkdir", "cat", "cp"):
                subprocess.run(step, shell=True, cwd=self.app, check=True)

    def _copy(self, source: str, target: str) -> None:
        place = self.app / target / (Path(source).name if target.endswith("/") else "")
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, self.app / target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / source, place)

    @cached_property
    def environment(self) -> dict[str, str]:
        """ENV of the image."""
        (words,) = [each.words for each in last_stage() if each.name == "ENV"]
        return dict(word.split("=", 1) for word in words)

    @property
    def entrypoint(self) -> list[str]:
        (words,) = [each.words for each in last_stage() if each.name == "ENTRYPOINT"]
        # Where it is not installed, the group of a process gets the signal by itself.
        return words if shutil.which(words[0]) else []


def compose(values: Mapping[str, str]) -> dict[str, Any]:
    """deploy/compose.yaml with the values of deploy/.env. Fails for a value that it requires."""

    def value(found: re.Match[str]) -> str:
        name, kind, default = found.groups()
        if kind == ":?":
            return values[name]
        return values.get(name) or default or ""

    def filled(node: Any) -> Any:
        if isinstance(node, dict):
            return {name: filled(below) for name, below in node.items()}
        if isinstance(node, list):
            return [filled(below) for below in node]
        return _VARIABLE.sub(value, node) if isinstance(node, str) else node

    content: dict[str, Any] = filled(yaml.safe_load((DEPLOY / "compose.yaml").read_text()))
    return content


class Containers:
    """The services of a compose file as processes of this machine.

    `mapped` are the texts of hosts, ports and folders in the containers, and what takes their place here.
    """

    def __init__(
        self, services: Mapping[str, Any], image: Image, mapped: Mapping[str, str], processes: PlainProcesses
    ) -> None:
        self._services = services
        self._image = image
        self._mapped = {
            **mapped,
            "/app/": f"{image.app}/",
            "/home/pricing": str(image.home),
            "/tmp/": f"{image.temporary}/",
        }
        self._processes = processes

    def environment(self, name: str) -> dict[str, str]:
        """Exactly that of the container, mapped; and what finds the code here, which an image has installed."""
        inside = {**self._image.environment, **self._services[name].get("environment", {})}
        own = {key: self._map(str(value)) for key, value in inside.items()}
        own["PATH"] = own["PATH"].replace("$PATH", os.environ["PATH"])
        # tini is the first process of a container, and not of this machine.
        return {
            **own,
            "PYTHONPATH": str(self._image.app),
            "HOME": str(self._image.home),
            "TINI_SUBREAPER": "",
        }

    def command(self, name: str) -> list[str]:
        return [*self._image.entrypoint, *map(self._map, self._services[name]["command"])]

    def run(self, name: str, *words: str) -> str:
        """Run a service to its end, or another command in its place; returns what it printed."""
        done = subprocess.run(
            [*self._image.entrypoint, *words] if words else self.command(name),
            env=self.environment(name),
            cwd=self._image.home,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{name}: {done.stderr[-3000:]}"
        return done.stdout

    def start(self, name: str) -> None:
        self._processes.start(name, self.command(name), self.environment(name), self._image.home)

    def is_healthy(self, name: str) -> bool:
        """Ask the service's own health check."""
        kind, *words = self._services[name]["healthcheck"]["test"]
        assert kind == "CMD"
        done = subprocess.run(
            [self._map(word) for word in words],
            env=self.environment(name),
            cwd=self._image.home,
            capture_output=True,
            check=False,
        )
        return done.returncode == 0

    def _map(self, text: str) -> str:
        # A port that was chosen here may have that of a container among its digits.
        texts = "|".join(map(re.escape, self._mapped))
        return re.sub(rf"(?<!\d)(?:{texts})(?!\d)", lambda found: self._mapped[found[0]], text)
