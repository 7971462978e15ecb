"""`make audit`: which of the locked packages have known vulnerabilities, by a public service or by a file.

uv asks the service. It reads its own kind of lock file only, so ours are handed to it as one of those. Where there is
no internet, `--from` names advisories in the format of OSV: a JSON file, a folder of them, or a zip archive, such as
the one that OSV publishes of all advisories about PyPI.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version
from uv import find_uv_bin

ROOT = Path(__file__).parents[2]
LOCKS = tuple(sorted(path.name for path in ROOT.glob("requirements*.lock")))

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


Locked = set[tuple[str, str]]
"""Names and versions of packages. Environments that are apart may have different versions of one."""


def locked() -> Locked:
    """All packages of all lock files."""
    text = "\n".join((ROOT / name).read_text() for name in LOCKS)
    return set(re.findall(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", text, re.MULTILINE))


def lock_of_uv(packages: Locked) -> str:
    """The packages as a lock file of uv, in which a project that does nothing needs each of them.

    They come from a folder: of an index uv would ask further questions, about each package.
    """
    needed = ", ".join(
        f'{{ name = "{name}", version = "{version}", source = {{ registry = "." }} }}'
        for name, version in sorted(packages)
    )
    ours = f'name = "all-that-is-locked"\nversion = "0"\nsource = {{ virtual = "." }}\ndependencies = [{needed}]'
    others = [
        f'name = "{name}"\nversion = "{version}"\nsource = {{ registry = "." }}' for name, version in sorted(packages)
    ]
    return "\n\n[[package]]\n".join(['version = 1\nrevision = 3\nrequires-python = ">=3.11"', ours, *others])


def audit(packages: Locked, options: Iterable[str] = (), patience: float = _PATIENCE) -> int:
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


def audit_from(packages: Locked, source: Path) -> int:
    """Look the packages up in advisories of a file, a folder or a zip archive, and print what is known.

    Returns 1 when a vulnerability is known, 2 when the source cannot be read or has no advisory about PyPI,
    which would find nothing in anything, and 0 when none is known.
    """
    versions: dict[str, list[str]] = {}
    for name, version in sorted(packages):
        versions.setdefault(canonicalize_name(name), []).append(version)
    looked_at = known = 0
    try:
        for advisory in _advisories(source):
            for affected in advisory.get("affected", []):
                if affected.get("package", {}).get("ecosystem") != "PyPI" or "withdrawn" in advisory:
                    continue
                looked_at += 1
                name = canonicalize_name(affected["package"]["name"])
                for version in versions.get(name, []):
                    if _is_affected(Version(version), affected):
                        known += 1
                        _tell(name, version, advisory["id"], _fixed_in(affected), advisory.get("summary", ""))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, zipfile.BadZipFile) as error:
        print(f"{source} is not a file of advisories in the format of OSV: {error!r}", file=sys.stderr)
        return 2
    if not looked_at:
        print(f"{source} has no advisory about a package of PyPI", file=sys.stderr)
        return 2
    print(f"{known} known in {len(packages)} locked packages, by {looked_at:,} advisories of {source}")
    return 1 if known else 0


def _advisories(source: Path) -> Iterator[dict[str, Any]]:
    if source.is_dir():
        texts: Iterable[str | bytes] = (path.read_text() for path in sorted(source.rglob("*.json")))
    elif zipfile.is_zipfile(source):
        archive = zipfile.ZipFile(source)
        texts = (archive.read(name) for name in archive.namelist() if name.endswith(".json"))
    else:
        texts = [source.read_text()]
    for text in texts:
        content = json.loads(text)
        if isinstance(content, dict):
            content = content.get("vulns", [content])
        yield from content


def _is_affected(version: Version, affected: dict[str, Any]) -> bool:
    """By the list of versions, or by the ranges. An advisory whose versions cannot be compared is told, to be read."""
    try:
        return version in map(_version, affected.get("versions", [])) or any(
            _is_in(version, a_range["events"])
            for a_range in affected.get("ranges", [])
            if a_range["type"] in ("ECOSYSTEM", "SEMVER")
        )
    except InvalidVersion:
        return True


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:  # of the time before versions had a form, so none of ours
        return None


def _is_in(version: Version, events: list[dict[str, str]]) -> bool:
    """Whether the last event at or before a version is the begin of a range."""
    is_in = False
    for at, kind in sorted((Version(at), kind) for event in events for kind, at in event.items()):
        if at > version or (kind == "last_affected" and at == version):
            break
        if kind != "limit":
            is_in = kind == "introduced"
    return is_in


def _fixed_in(affected: dict[str, Any]) -> list[str]:
    return [
        event["fixed"]
        for a_range in affected.get("ranges", [])
        for event in a_range["events"]
        if "fixed" in event and a_range["type"] != "GIT"
    ]


def _told(report: dict[str, Any]) -> int:
    for found in report["vulnerabilities"]:
        package = found["dependency"]
        _tell(package["name"], package["version"], found["id"], found["fix_versions"], found["summary"])
        print(f"    {found['link']}")
    print(f"{len(report['vulnerabilities'])} known in {report['summary']['audited_packages']} locked packages")
    return 1 if report["vulnerabilities"] else 0


def _tell(name: str, version: str, advisory: str, fixed_in: list[str], summary: str) -> None:
    print(f"{name} {version}: {advisory}, fixed in {', '.join(fixed_in) or 'no version'}. {summary}")


def _skipped(reason: str) -> int:
    print(f"SKIPPED: make audit. The service of advisories could not be asked: {reason}", file=sys.stderr)
    return 0


def main(arguments: list[str]) -> int:
    """Look at all locked packages."""
    parser = argparse.ArgumentParser(prog="make audit", description=__doc__)
    parser.add_argument("--from", dest="source", type=Path, help="a file, folder or zip archive of advisories")
    source = parser.parse_args(arguments).source
    return audit(locked()) if source is None else audit_from(locked(), source)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
