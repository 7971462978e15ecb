"""What we stand on is pinned, locked with hashes, explained, and all that the code imports."""

from __future__ import annotations

import ast
import itertools
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import distributions, packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CLIENT = tomllib.loads((ROOT / "client/pyproject.toml").read_text())["project"]
OF_CLIENT = [
    Requirement(line) for line in itertools.chain(CLIENT["dependencies"], *CLIENT["optional-dependencies"].values())
]
OURS_IN = {
    "pricing_pipeline": {"pricing_pipeline"},
    "migrations": {"pricing_pipeline"},
    "pricing_pipeline_tests": {"pricing_pipeline", "pricing_pipeline_tests", "pricing_client"},
    "client/pricing_client": {"pricing_client"},
}
BASE = [Requirement(line) for line in PROJECT["project"]["dependencies"]]
OPTIONAL = {
    name: [Requirement(line) for line in lines] for name, lines in PROJECT["project"]["optional-dependencies"].items()
}
RUNTIME = [*BASE, *OPTIONAL["dagster"], *OPTIONAL["parquet"]]
"""What `make install` installs."""
GROUPS = {name: [Requirement(line) for line in lines] for name, lines in PROJECT["dependency-groups"].items()}
DIRECT = [*RUNTIME, *GROUPS["build"], *GROUPS["test"]]
LOCKS = ["requirements.lock", "requirements-test.lock"]
APART = ["bench", "celery", "clients"]
"""Groups that are installed apart, each from a lock file of its own."""


def locked(name: str) -> dict[str, str]:
    """Package name -> pinned version of one lock file."""
    pins = re.findall(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", (ROOT / name).read_text(), re.MULTILINE)
    assert len(dict(pins)) == len(pins), f"{name} pins a package twice"
    return {canonicalize_name(package): version for package, version in pins}


def pinned(requirements: list[Requirement]) -> dict[str, str]:
    return {canonicalize_name(r.name): str(r.specifier).removeprefix("==") for r in requirements}


@pytest.mark.parametrize("requirement", DIRECT, ids=lambda r: r.name)
def test_each_direct_dependency_has_one_exact_version(requirement: Requirement) -> None:
    assert re.fullmatch(r"==[0-9][^*,]*", str(requirement.specifier))


def test_the_build_backend_is_the_locked_one() -> None:
    required = [Requirement(line) for line in PROJECT["build-system"]["requires"]]
    assert pinned(required).items() <= pinned(GROUPS["build"]).items()


def test_the_lock_files_hold_what_pyproject_asks_for() -> None:
    assert pinned([*RUNTIME, *GROUPS["build"]]).items() <= locked(LOCKS[0]).items()
    assert pinned(GROUPS["test"]).items() <= locked(LOCKS[1]).items()


def test_the_client_works_with_what_is_locked_here() -> None:
    versions = pinned(GROUPS["clients"]) | locked(LOCKS[0])
    for requirement in OF_CLIENT:
        assert requirement.specifier.contains(versions[canonicalize_name(requirement.name)])


def test_the_lock_files_agree_on_what_both_hold() -> None:
    runtime, test = (locked(name) for name in LOCKS)
    assert {p: runtime[p] for p in runtime.keys() & test} == {p: test[p] for p in runtime.keys() & test}


@pytest.mark.parametrize("group", APART)
def test_what_is_installed_apart_is_locked_too(group: str) -> None:
    locks = (ROOT / f"requirements-{group}.lock").read_text()
    for name, version in pinned(GROUPS[group]).items():
        assert re.search(f"^{name}=={re.escape(version)}[ ;]", locks, re.MULTILINE), name
    assert GROUPS.keys() == {"build", "test", *APART}


def test_celery_is_locked_with_what_the_project_lacks_and_nothing_else() -> None:
    """It is installed beside the project, so a package that both need must be the project's."""
    assert locked("requirements-celery.lock").keys() & locked(LOCKS[0]).keys() == set()


def commands(text: str) -> Iterator[str]:
    """The lines, each with its continuations."""
    yield from text.replace("\\\n", " ").splitlines()


def fetches(command: str) -> bool:
    """Whether a command fetches packages: it installs anything but a folder of one's own."""
    return re.search(r"\b(pip|uv)3?\b.*\s(install|sync|add)\s|\buvx?\s+(tool\s+)?run\b", command) is not None and not (
        re.search(r"\s(--editable|-e)\s+['\"]?\.|install\s+(--no-deps\s+)?['\"]?\.?/", command)
    )


def test_make_installs_nothing_without_its_hash() -> None:
    targets = ["install-test", *(f"{group}-install" for group in APART)]
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", *targets], cwd=ROOT, capture_output=True, text=True, check=True
    )
    found = [command for command in commands(done.stdout) if fetches(command)]
    assert [command for command in found if "--require-hashes" not in command] == []
    for name in [*LOCKS, "installers.lock", *(f"requirements-{group}.lock" for group in APART)]:
        assert any(command.endswith(name) for command in found), name
    text = (ROOT / "Makefile").read_text()
    assert text.count("pip install ") == 1, "all installs are in the variables that these targets use"


def test_no_file_of_ours_installs_anything_without_its_hash() -> None:
    names = subprocess.run(
        [
            "git",
            "ls-files",
            "deploy",
            "docs",
            ".github",
            ".gitlab-ci.yml",
            "*.md",
            "*.sh",
            "*Dockerfile*",
            ":!findings",
        ],  # they show what public packages do, in a folder that is deleted
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert {"deploy/Dockerfile", "docs/deployment.md"} <= set(names)
    texts = {name: (ROOT / name).read_bytes().decode(errors="replace") for name in names}
    bare = [
        (name, command)
        for name, text in texts.items()
        for command in commands(text)
        if fetches(command) and "--require-hashes" not in command
    ]
    assert bare == []


@pytest.mark.parametrize("name", [*LOCKS, *(f"requirements-{group}.lock" for group in APART)])
def test_each_locked_package_has_hashes_and_no_source_of_its_own(name: str) -> None:
    text = (ROOT / name).read_text()
    bare = [entry for entry in re.split(r"\n(?=[A-Za-z])", text)[1:] if "--hash=sha256:" not in entry]
    assert bare == []
    assert not re.search(r"://| @ |^-", text, re.MULTILINE)


def test_the_lock_files_are_complete() -> None:
    """`make install` does not resolve, so what a locked package needs must be locked too."""
    runtime = locked(LOCKS[0])
    for start, lock in [([*RUNTIME, *GROUPS["build"]], runtime), (DIRECT, runtime | locked(LOCKS[1]))]:
        todo, seen = list(start), set()
        while todo:
            needed = todo.pop()
            name = canonicalize_name(needed.name)
            assert name in lock, f"{needed} is not locked"
            assert needed.specifier.contains(lock[name], prereleases=True), f"{needed}, but {lock[name]} is locked"
            if (name, frozenset(needed.extras)) in seen:
                continue
            seen.add((name, frozenset(needed.extras)))
            for line in requires(name) or []:
                further = Requirement(line)
                wanted = ["", *needed.extras]
                if not further.marker or any(further.marker.evaluate({"extra": extra}) for extra in wanted):
                    todo.append(further)


def test_the_environment_has_the_locked_pip_and_no_setuptools_of_its_python() -> None:
    installed = {canonicalize_name(found.name): found.version for found in distributions()}
    assert installed["pip"] == locked(LOCKS[0])["pip"]
    assert ("setuptools" in installed) == ("setuptools" in locked(LOCKS[0]) | locked(LOCKS[1]))


def test_the_dependencies_page_names_the_direct_dependencies_and_no_others() -> None:
    explained = re.findall(
        r"^- \*\*([A-Za-z0-9_.-]+)\*\*: \S",
        (ROOT / "docs/maintainers/dependencies.md").read_text(),
        re.MULTILINE,
    )
    assert sorted(explained) == sorted(r.name for r in DIRECT)


def _imported(folder: str) -> Iterator[str]:
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                yield node.module.partition(".")[0]


@pytest.mark.parametrize(
    ("folder", "allowed"),
    [
        # Anyone who wants frames of polars has it.
        ("pricing_pipeline", [*RUNTIME, *(test for test in GROUPS["test"] if test.name == "polars")]),
        ("migrations", RUNTIME),
        ("pricing_pipeline_tests", DIRECT),
        ("client/pricing_client", OF_CLIENT),
    ],
)
def test_the_code_imports_direct_dependencies_only(folder: str, allowed: list[Requirement]) -> None:
    ours = OURS_IN[folder] | sys.stdlib_module_names
    distributions = packages_distributions()
    stray = {
        module
        for module in set(_imported(folder)) - ours
        if not {canonicalize_name(d) for d in distributions.get(module, [module])} & pinned(allowed).keys()
    }
    assert stray == set()


def test_all_but_what_dagster_loads_works_without_the_extra() -> None:
    """A program that reads prices and sends heartbeats installs no Dagster; neither does the command line need it."""
    extra = sorted(
        module
        for module, found in packages_distributions().items()
        if {canonicalize_name(name) for name in found} & pinned([*OPTIONAL["dagster"], *OPTIONAL["parquet"]]).keys()
    )
    assert {"dagster", "psycopg2", "pyarrow"} <= set(extra)
    code = f"""
import importlib, pkgutil, sys
sys.modules |= dict.fromkeys({extra})
import pricing_pipeline
for found in pkgutil.walk_packages(pricing_pipeline.__path__, "pricing_pipeline.", onerror=lambda name: None):
    if not found.name.startswith(tuple(f"pricing_pipeline.{{name}}" for name in ("dagster", "definitions", "defs"))):
        importlib.import_module(found.name)
from pricing_pipeline.cli import app
app(["up", "--no-demo"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    (sentence,) = done.stderr.splitlines()
    assert "error: Dagster is not installed here" in sentence
