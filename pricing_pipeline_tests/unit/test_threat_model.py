"""The threat model of docs/security.md: each person in it has claims, and each claim a test that is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from pricing_pipeline_tests.support.pages import ROOT

PAGE = (ROOT / "docs/security.md").read_text()
TESTS = ROOT / "pricing_pipeline_tests"


def rows(heading: str) -> list[list[str]]:
    """The table whose first line this is."""
    (found,) = re.findall(rf"^{re.escape(heading)}\n\|[-|]+\|\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|\n").split("|")] for line in found.splitlines()]


PEOPLE = [row[0] for row in rows("| who | holds | what an attacker in this place gains |")]
SKIP_MARK = re.compile(r"mark\.(skip|xfail)\b")
CLAIMS = [tuple(row) for row in rows("| whose | claim | test |")]


def has_test(path: Path, name: str) -> bool:
    """Whether a file has this test, and nothing skips it always. A skip on a condition counts as no skip."""
    if not path.is_file():
        return False
    module = ast.parse(path.read_text()).body
    if any(skips(node) for node in module):
        return False
    for node in module:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return not any(SKIP_MARK.search(ast.unparse(d)) for d in node.decorator_list) and not any(
                skips(statement) for statement in node.body
            )
    return False


def skips(node: ast.stmt) -> bool:
    """Whether a statement of a module or a test skips what it is part of."""
    match node:
        case (
            ast.Assign(targets=[ast.Name(id="pytestmark")], value=marks)
            | ast.AnnAssign(target=ast.Name(id="pytestmark"), value=ast.expr() as marks)
        ):
            return SKIP_MARK.search(ast.unparse(marks)) is not None
        case ast.Expr(value=ast.Call(func=function)):
            return ast.unparse(function) in {"pytest.skip", "pytest.xfail"}
    return False


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("def test_it(): pass", True),
        ("@pytest.mark.skipif(sys.platform == 'win32', reason='')\ndef test_it(): pass", True),
        ("pytestmark = [GROUP]\ndef test_it():\n    if old: pytest.skip('')", True),
        ("def test_other(): pass", False),
        ("@pytest.mark.skip\ndef test_it(): pass", False),
        ("@pytest.mark.xfail(reason='')\ndef test_it(): pass", False),
        ("pytestmark = pytest.mark.skip\ndef test_it(): pass", False),
        ("pytestmark = [GROUP, pytest.mark.skip(reason='')]\ndef test_it(): pass", False),
        ("pytest.skip('', allow_module_level=True)\ndef test_it(): pass", False),
        ("def test_it():\n    pytest.skip('later')", False),
    ],
)
def test_a_test_that_is_always_skipped_proves_no_claim(text: str, counts: bool, tmp_path: Path) -> None:
    path = tmp_path / "test_file.py"
    path.write_text(text)
    assert has_test(path, "test_it") is counts


def test_each_person_of_the_threat_model_has_claims() -> None:
    assert {whose for whose, *_ in CLAIMS} == set(PEOPLE)
    assert len(PEOPLE) == len(set(PEOPLE))
    for person in PEOPLE:
        claims = [claim for whose, claim, _ in CLAIMS if whose == person]
        assert any("cannot " in claim for claim in claims), f"the page does not say what a {person} cannot do"


@pytest.mark.parametrize(("whose", "claim", "proof"), CLAIMS, ids=[f"{c[0]}: {c[1][:60]}" for c in CLAIMS])
def test_each_claim_of_the_threat_model_names_its_tests(whose: str, claim: str, proof: str) -> None:
    assert claim.startswith(("can ", "cannot ")), "it says what somebody can or cannot do"
    if proof == "not prevented":
        assert claim.startswith("can "), "what somebody cannot do has a test"
        return
    named = re.findall(r"`([\w/]+\.py)::(test_\w+)`", proof)
    assert ", ".join(f"`{file}::{name}`" for file, name in named) == proof, "tests by file and name, no more"
    missing = [f"{file}::{name}" for file, name in named if not has_test(TESTS / file, name)]
    assert missing == [], whose
