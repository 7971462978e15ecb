"""Habits that hold for the repository as a whole: no SQL in Python, short files, docs that tell the truth."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = sorted((ROOT / "pricing_pipeline").rglob("*.py"))
TESTS = sorted((ROOT / "pricing_pipeline_tests").rglob("*.py"))
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

_SQL = re.compile(
    r"\s*(SELECT|INSERT\s+INTO|UPDATE|DELETE\s+FROM|WITH\s+\w+\s+AS|CREATE|ALTER|DROP|TRUNCATE|GRANT|REVOKE"
    r"|COPY|CALL|LISTEN|NOTIFY)\s"
)
# Spelled in pieces, so that this file does not hold what it looks for.
_REGISTRY = re.compile(
    "|".join(["py" + r"pi\.", "python" + "hosted", r"registry\.n" + "pmjs", "find" + "-links"])
)
_OTHER_MACHINE = re.compile(
    r"(?:^|[^\w.-])/(?:" + "|".join(["wo" + "rk", "fa" + "rm", "ro" + "ot"]) + r")/\w"
)


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tracked() -> list[Path]:
    """Files under version control; in an unpacked archive, all files but those of caches and environments."""
    if (ROOT / ".git").exists():
        names = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.split("\0")
        return [ROOT / name for name in names if name and (ROOT / name).is_file()]
    hidden = re.compile(r"(^|/)(\.(?!ci/|env\.example|gitignore)|__pycache__|build/|dist/|htmlcov/)")
    return [path for path in ROOT.rglob("*") if path.is_file() and not hidden.search(relative(path))]


def texts() -> list[tuple[str, str]]:
    found = []
    for path in tracked():
        try:
            found.append((relative(path), path.read_text()))
        except UnicodeDecodeError:
            continue
    return found


def strings(tree: ast.Module) -> list[ast.Constant]:
    """String literals that are values: docstrings, which are statements of their own, are left out."""
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose
    ]


@pytest.mark.parametrize("path", PACKAGE, ids=relative)
def test_python_holds_no_sql(path: Path) -> None:
    found = [f"line {s.lineno}" for s in strings(ast.parse(path.read_text())) if _SQL.match(str(s.value))]
    assert found == [], "SQL lives in db/functions/*.sql or db/queries/*.sql"


@pytest.mark.parametrize("path", PACKAGE, ids=relative)
def test_a_module_stays_readable_in_one_sitting(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 500, "part it along what it is about"


@pytest.mark.parametrize("path", [*PACKAGE, *TESTS], ids=relative)
def test_a_module_says_what_it_is_for(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert not tree.body or ast.get_docstring(tree), "begin with a docstring: what belongs here and what not"


@pytest.mark.parametrize("path", [*PACKAGE, *TESTS], ids=relative)
def test_no_module_is_a_drawer_for_everything(path: Path) -> None:
    assert not {"utils", "util", "common", "helpers", "misc"} & set(path.with_suffix("").parts)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (_REGISTRY, "a clone must install from whatever registry its user has set up"),
        (_OTHER_MACHINE, "this path exists on one machine only"),
    ],
    ids=["registry host", "path of one machine"],
)
def test_no_file_is_bound_to_one_place(pattern: re.Pattern[str], why: str) -> None:
    found = [
        f"{name}:{number}"
        for name, text in texts()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]
    assert found == [], why


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_every_make_target_a_page_names_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = page.read_text()
    code = " ".join(re.findall(r"```.*?```|`[^`\n]+`", text, re.DOTALL))
    named = set(re.findall(r"\bmake(?: -\S+)* ([a-z][a-z0-9-]*)\b", code))
    assert named <= targets


def test_every_target_a_person_may_call_is_listed_by_make_help() -> None:
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"make ([a-z0-9-]+)", shown)) >= {
        "install",
        "run",
        "test",
        "test-pg15",
        "schema",
        "check",
        "clean",
    }


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?![a-z]+:|#)([^)#\s]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []
