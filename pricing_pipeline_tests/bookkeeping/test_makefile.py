"""What `make` does before and around the program: choosing a Python, installing once, handing over."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder with a space in its name that holds what `make install` reads."""
    folder = tmp_path / "a clone"
    folder.mkdir()
    (folder / "client").mkdir()
    for name in ("Makefile", "pyproject.toml", "client/pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture
def installed(clone: Path) -> Path:
    """The clone as `make install` leaves it, with a program that stands in for ours."""
    venv = clone / ".venv"
    script(
        venv / "bin/python",
        f"case $1 in -c) printf '%s\\n' '{clone}' ;; *) echo reinstalled >&2; exit 9 ;; esac",
    )
    for stamp in (".runtime", ".project"):
        (venv / stamp).touch()
    return clone


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", *arguments], cwd=folder, env=environment(), capture_output=True, text=True, check=False
    )


def environment() -> dict[str, str]:
    """Ours without what an outer `make test` hands to the `make` it would start."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS", "PYTHON"))}


@pytest.mark.parametrize("name", ["$(touch owned)", "`touch owned`", "${HOME}"])
def test_a_folder_whose_name_is_a_command_is_refused_and_runs_nothing(clone: Path, name: str) -> None:
    folder = clone.rename(clone.with_name(name))
    made = make(folder, "help")
    assert made.returncode == 2
    assert "Move it to one without" in made.stderr
    assert list(folder.parent.rglob("owned")) == []


@pytest.mark.parametrize(
    ("python", "told"),
    [
        ('case $1 in --version) echo "Python 3.9.6" ;; *) exit 1 ;; esac', ["3.9.6", "3.11", "PYTHON="]),
        ("case $2 in *ensurepip*) exit 1 ;; esac", ["ensurepip", "python3-venv"]),
    ],
    ids=["too old", "without venv"],
)
def test_an_unfit_python_is_named_with_its_remedy(clone: Path, python: str, told: list[str]) -> None:
    script(clone / "python", python)
    result = make(clone, "install", "PYTHON=./python")
    assert result.returncode != 0
    assert [word for word in told if word not in result.stderr] == []


def test_a_missing_python_is_said_to_be_missing(clone: Path) -> None:
    result = make(clone, "install", "PYTHON=./nowhere")
    assert result.returncode != 0
    assert "No Python found" in result.stderr


def test_run_hands_over_to_the_program_without_installing_again(installed: Path) -> None:
    script(installed / ".venv/bin/pricing-pipeline", 'echo "started with: $*"')
    result = make(installed, "run", "ARGS=--no-demo")
    assert result.stdout.strip() == "started with: up --no-demo"
    assert result.stderr == ""


def test_run_leaves_a_file_named_env_to_the_program(installed: Path) -> None:
    """A shell would take this home for `a`, of a command `b` that does not exist: the default home remained."""
    script(installed / ".venv/bin/pricing-pipeline", 'echo "home: $PRICING_HOME"')
    (installed / ".env").write_text("PRICING_HOME=a b\n")
    result = make(installed, "run")
    assert (result.stdout.strip(), result.stderr) == ("home:", "")


def test_sigterm_to_make_reaches_the_program(installed: Path) -> None:
    script(
        installed / ".venv/bin/pricing-pipeline",
        "trap 'echo stopped; exit 0' TERM; echo started; while :; do sleep 0.05; done",
    )
    with subprocess.Popen(
        ["make", "run"],
        cwd=installed,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "stopped\n"


@pytest.mark.parametrize(
    ("newer", "again"),
    [("requirements.lock", True), ("pyproject.toml", True), ("Makefile", False)],
)
def test_install_runs_again_when_what_it_installs_has_changed(installed: Path, newer: str, again: bool) -> None:
    later = (installed / ".venv/.project").stat().st_mtime + 10
    os.utime(installed / newer, (later, later))
    script(installed / "python", "exit 9")
    result = make(installed, "install", "PYTHON=./python")
    assert (result.returncode != 0) is again


def test_an_environment_of_another_folder_is_made_anew(installed: Path, tmp_path: Path) -> None:
    moved = installed.rename(tmp_path / "moved")
    result = make(moved, "install", "PYTHON=./nowhere")
    assert "No Python found" in result.stderr


@pytest.mark.parametrize("does_uv_fail", [False, True])
def test_what_uv_cannot_install_pip_does_from_the_same_lock(clone: Path, does_uv_fail: bool) -> None:
    log = clone / "log"
    script(
        clone / "uv",
        f'echo "uv $*" >>"{log}"; case $2 in install) exit {int(does_uv_fail)} ;; esac',
    )
    script(
        clone / "python",
        f"""echo "$*" >>"{log}"
case "$*" in
*venv*) mkdir -p .venv/bin && cp python uv .venv/bin ;;
esac""",
    )
    result = make(clone, "install", "PYTHON=./python")
    assert result.returncode == 0, result.stderr
    calls = log.read_text().splitlines()
    (first, dropped, by_uv) = [call for call in calls if call.endswith((".lock", "setuptools"))][:3]
    assert "pip" in first
    assert first.endswith("--require-hashes -r .venv/installers.lock")
    assert dropped.startswith("uv pip uninstall")
    assert by_uv.startswith("uv pip install")
    by_pip = [call for call in calls if "pip" in call and call.endswith("-r requirements.lock") and call != by_uv]
    assert len(by_pip) == does_uv_fail
    assert all("--require-hashes" in call for call in (by_uv, *by_pip))
    pinned = (clone / ".venv/installers.lock").read_text()
    assert re.findall("^[a-z].*(?===)", pinned, re.MULTILINE) == ["pip", "uv"]
    assert not pinned.rstrip().endswith("\\")
    assert all(line.startswith(("pip==", "uv==", "    --hash=sha256:")) for line in pinned.splitlines())
