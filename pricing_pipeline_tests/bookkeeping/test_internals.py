"""What is used of Dagster that is not public stands in one module, with its reason and the tests that would notice."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pricing_pipeline
from pricing_pipeline.defs import internals

ROOT = Path(pricing_pipeline.__file__).parent
INTERNALS = Path(internals.__file__)
TESTS = ROOT.parent / "pricing_pipeline_tests"


def private(path: Path) -> set[str]:
    """The modules of Dagster with an underscore that a file imports, or names of them."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if re.match(r"dagster\w*\.(\w+\.)*_(?!_)", name)}


def test_no_other_module_imports_what_is_not_public() -> None:
    assert {path for path in ROOT.rglob("*.py") if private(path)} == {INTERNALS}


def test_each_group_names_tests_that_exist_and_each_name_is_used() -> None:
    text = INTERNALS.read_text()
    groups = re.findall(r"^# [A-Z].*?\n(?:# .*\n)*(?=from)", text, re.MULTILINE)
    assert len(groups) == len(re.findall(r"\n\n# [A-Z]", text))
    for group in groups:
        named = re.findall(r"[a-z]+/test_\w+\.py", group)
        assert named or "`make check`" in group, group
        assert [name for name in named if not (TESTS / name).exists()] == []
    names = set(re.findall(r" as (\w+)", text))
    elsewhere = "".join(path.read_text() for path in ROOT.rglob("*.py") if path != INTERNALS)
    assert [name for name in names if not re.search(rf"\b{name}\b", elsewhere)] == []
