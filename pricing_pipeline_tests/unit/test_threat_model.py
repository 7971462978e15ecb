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


PEOPLE = [row[0] for row in rows("| who | holds | what whoever takes its place gains |")]
CLAIMS = [tuple(row) for row in rows("| whose | claim | test |")]


def has_test(path: Path, name: str) -> bool:
    """Whether a file has this test, and nothing skips it everywhere."""
    if not path.is_file():
        return False
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return not any(re.search(r"mark\.(skip|xfail)\b", ast.unparse(d)) for d in node.decorator_list)
    return False


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
