"""The threat model of docs/security.md: each person in it has claims, and each claim a test that is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from pricing_pipeline_tests.support.pages import ROOT

PAGE = (ROOT / "docs/security.md").read_text()
TESTS = ROOT / "pricing_pipeline_tests"


def claims() -> dict[str, list[tuple[str, str]]]:
    """Of each person, what they can or cannot do, and in parentheses its tests."""
    (model,) = re.findall(r"^## Threat model\n(.*?)^### Other checks$", PAGE, re.MULTILINE | re.DOTALL)
    found = {}
    for section in model.split("\n### ")[1:]:
        person, _, text = section.partition("\n")
        items = re.findall(r"^- (.*(?:\n  .*)*)", text, re.MULTILINE)
        parts = [re.fullmatch(r"(.*) \(([^()]*)\)", " ".join(item.split())) for item in items]
        found[person] = [(part[1], part[2]) for part in parts if part]
        assert len(found[person]) == len(items), f"a claim about a {person} names no test"
    return found


PEOPLE = claims()
SKIP_MARK = re.compile(r"mark\.(skip|xfail)\b")
CLAIMS = [(person, *claim) for person, said in PEOPLE.items() for claim in said]


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


def test_each_person_of_the_threat_model_has_claims() -> None:
    assert len(PEOPLE) == PAGE.partition("### Other checks")[0].count("\n### ")
    for person, said in PEOPLE.items():
        assert any("cannot " in claim for claim, _ in said), f"the page does not say what a {person} cannot do"


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
