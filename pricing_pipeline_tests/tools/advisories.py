"""`make audit`: asks a public service which of the locked packages have known vulnerabilities.

uv asks. It reads its own kind of lock file only, so ours are handed to it as one of those.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from uv import find_uv_bin

ROOT = Path(__file__).parents[2]
LOCKS = ("requirements.lock", "requirements-test.lock")

_PATIENCE = 120.0
_QUICKLY = {"UV_HTTP_RETRIES": "0", "UV_HTTP_TIMEOUT": "20", "UV_PYTHON": sys.executable}
_CANNOT_ASK = ("error sending request", "HTTP status")
"""What uv says when the service is away or refuses; its other failures are ours."""
_COMMAND = ("audit", "--frozen", "--preview", "--no-config", "--no-cache", "--output-format", "json")
_PROJECT = """\
[project]
name = "all-that-is-locked"
version = "0"
requires-python = ">=3.11"
"""


def locked() -> dict[str, str]:
    """Package name -> version, of both lock files."""
    text = "\n".join((ROOT / name).read_text() for name in LOCKS)
    return dict(re.findall(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", text, re.MULTILINE))


def lock_of_uv(packages: dict[str, str]) -> str:
    """The packages as a lock file of uv, in which a project that does nothing needs each of them.

    They come from a folder: of an index uv would ask further questions, about each package.
    """
    needed = ", ".join(f'{{ name = "{name}" }}' for name in packages)
    ours = (
        f'name = "all-that-is-locked"\nversion = "0"\nsource = {{ virtual = "." }}\ndependencies = [{needed}]'
    )
    others = [
        f'name = "{name}"\nversion = "{version}"\nsource = {{ registry = "." }}'
        for name, version in packages.items()
    ]
    return "\n\n[[package]]\n".join(['version = 1\nrevision = 3\nrequires-python = ">=3.11"', ours, *others])


def audit(packages: dict[str, str], options: Iterable[str] = (), patience: float = _PATIENCE) -> int:
    """Ask about the packages and print what is known.

    Returns 1 when a vulnerability is known, 2 when uv cannot work, and 0 when none is known or the service could not be
    asked, which is said then.
    """
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "pyproject.toml").write_text(_PROJECT)
        Path(folder, "uv.lock").write_text(lock_of_uv(packages))
        try:
            done = subprocess.run(
                [find_uv_bin(), *_COMMAND, *options],
                cwd=folder,
                env=os.environ | _QUICKLY,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=patience,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return _skipped(f"no answer came within {patience:.0f} s")
    if done.returncode not in (0, 1):
        if any(words in done.stderr for words in _CANNOT_ASK):
            return _skipped(" ".join(done.stderr.partition("error: ")[2].split()))
        print(done.stderr, end="", file=sys.stderr)
        return 2
    return _told(json.loads(done.stdout))


def _told(report: dict[str, Any]) -> int:
    for found in report["vulnerabilities"]:
        package, remedy = found["dependency"], ", ".join(found["fix_versions"]) or "no version"
        print(f"{package['name']} {package['version']}: {found['id']}, fixed in {remedy}. {found['summary']}")
        print(f"    {found['link']}")
    print(
        f"{len(report['vulnerabilities'])} known in {report['summary']['audited_packages']} locked packages"
    )
    return 1 if report["vulnerabilities"] else 0


def _skipped(reason: str) -> int:
    print(f"SKIPPED: make audit. The service of advisories could not be asked: {reason}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(audit(locked()))
