"""Habits that hold for the repository as a whole: no SQL in Python, docs that tell the truth."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

from pricing_pipeline_tests.support.pages import PAGES, ROOT, relative

PACKAGE = sorted([*(ROOT / "pricing_pipeline").rglob("*.py"), *(ROOT / "client").rglob("*.py")])
TESTS = sorted((ROOT / "pricing_pipeline_tests").rglob("*.py"))

_SQL = re.compile(
    r"\s*(SELECT|INSERT\s+INTO|UPDATE|DELETE\s+FROM|WITH\s+\w+\s+AS|CREATE|ALTER|DROP|TRUNCATE|GRANT|REVOKE"
    r"|COPY|CALL|LISTEN|NOTIFY)\s"
)
_DOCSTRING = re.compile(r'(#.*\n)*"""\S')
# Spelled in pieces, so that this file does not hold what it looks for.
_REGISTRY = re.compile("|".join(["py" + r"pi\.", "python" + "hosted", r"registry\.n" + "pmjs", "find" + "-links"]))
_OTHER_MACHINE = re.compile(r"(?:^|[^\w.-])/(?:" + "|".join(["wo" + "rk", "fa" + "rm", "ro" + "ot"]) + r")/\w")


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


def test_python_holds_no_sql() -> None:
    found = [
        f"{relative(path)}:{string.lineno}"
        for path in PACKAGE
        for string in strings(ast.parse(path.read_text()))
        if _SQL.match(str(string.value))
    ]
    assert found == [], "SQL lives in db/functions/*.sql or db/queries/*.sql"


def test_a_module_says_what_it_is_for() -> None:
    silent = [
        relative(path)
        for path in [*PACKAGE, *TESTS]
        if (text := path.read_text()).strip() and not _DOCSTRING.match(text)
    ]
    assert silent == [], "begin with a docstring: what belongs here and what not"


def test_no_module_is_a_drawer_for_everything() -> None:
    drawers = {"utils", "util", "common", "helpers", "misc"}
    assert [path for path in [*PACKAGE, *TESTS] if drawers & set(path.relative_to(ROOT).with_suffix("").parts)] == []


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
        "pages",
        "check",
        "clean",
    }


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?![a-z]+:|#)([^)#\s]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


# Beginnings are spelled in pieces here too. Keys of our providers are runs of letters and digits.
_SECRETS = re.compile(
    "|".join(
        [
            "-----BEGIN [A-Z ]*PRIVATE " + "KEY",
            r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
            r"\b(?:gh[opsur]|github_pat|glpat|npm|xox[abprs]|[rs]k_live)[_-][A-Za-z0-9_-]{20}",
            r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}",
            r"\bAIza[\w-]{35}",
            r"(?<!sha256:)(?<![\w-])(?=[a-zA-Z]*\d)(?=\d*[a-zA-Z])[a-zA-Z0-9]{24,}(?![\w-])",
            r"(?<![\w+/-])(?=[\w+/]*\d)[A-Za-z0-9+/]{43}=",
            r"://[^/\s:@'\"{}]+:[^/\s:@'\"{}]+@",
        ]
    )
)
_PLAINLY_NONE = re.compile(r"canary|secret|password|pa55|choose|none|\*\*\*|0123456789abcdef")
_CHECKSUM = re.compile(r'"integrity": "sha512-[A-Za-z0-9+/]{86}=="')
_OF_ONE_INSTALLATION = {".env", "master.key", "postgres.json", "ui-token", ".netrc", "pg_hba.conf"}


@pytest.mark.parametrize(
    "leaked",
    [
        "PRICING_FMP_API_KEY=" + "a1B2c3D4" * 4,
        "apikey: " + "9f86d081" * 4,
        "k1:" + "Zm9vYmFyMTIzNDU2Nzg5" + "MGFiY2RlZmdoaWprbG1ub3B=",
        "postgresql://ann:hunter2" + "@db.example/pricing",
        "-----BEGIN EC PRIVATE " + "KEY-----",
        "ghp" + "_abcdefghijklmnopqrstuvwxyz0123456789",
        "AKIA" + "IOSFODNN7EXAMPLE",
    ],
)
def test_what_a_secret_looks_like_is_known(leaked: str) -> None:
    assert secrets(leaked)


def secrets(line: str) -> list[str]:
    """What looks like a secret. Those of tests and pages say that they are none; checksums of packages are none."""
    return [found[0] for found in _SECRETS.finditer(_CHECKSUM.sub("", line)) if not _PLAINLY_NONE.search(found[0])]


def test_no_file_holds_what_looks_like_a_secret() -> None:
    found = [
        f"{name}:{number}"
        for name, text in texts()
        for number, line in enumerate(text.splitlines(), 1)
        if secrets(line)
    ]
    assert found == []
    named = [
        relative(path)
        for path in tracked()
        if path.name in _OF_ONE_INSTALLATION or path.suffix in {".pem", ".key", ".p12", ".pfx", ".dump", ".sqlite"}
    ]
    assert named == [], "this belongs to one installation"


def test_no_text_reads_otherwise_than_it_runs() -> None:
    """Marks that turn the direction of writing around let code look like other code (CVE-2021-42574)."""
    turning = re.compile("[\u202a-\u202e\u2066-\u2069\u200e\u200f]")
    assert [name for name, text in texts() if turning.search(text)] == []


def test_only_what_is_started_by_name_is_executable_and_nothing_is_a_link() -> None:
    """What git keeps of a mode. An archive, which has no git in it, keeps none."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is not a clone")
    listed = subprocess.run(["git", "ls-files", "-s", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    modes = {line.partition("\t")[2]: line[:6] for line in listed.stdout.split("\0") if line}
    odd = {name: mode for name, mode in modes.items() if mode != "100644"}
    findings = {path.relative_to(ROOT).as_posix() for path in (ROOT / "findings").glob("*.sh")}
    assert odd == dict.fromkeys({".ci/run", *findings}, "100755")
    assert (ROOT / ".ci/run").read_text().startswith("#!")


def test_no_text_holds_the_marks_of_a_merge() -> None:
    marks = re.compile(r"^(<<<<<<<|>>>>>>>) ", re.MULTILINE)
    assert [name for name, text in texts() if marks.search(text)] == []
