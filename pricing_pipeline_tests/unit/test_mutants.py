"""The mutants still fit the code, and what is called killed was killed by a test (B25)."""

from __future__ import annotations

import ast

import pytest

from pricing_pipeline_tests.tools.mutant import Mutant
from pricing_pipeline_tests.tools.mutant_list import MUTANTS
from pricing_pipeline_tests.tools.mutants import ROOT, verdict


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_changes_what_is_there_today(mutant: Mutant) -> None:
    honest = (ROOT / mutant.file).read_text()
    changed = mutant.applied(honest)
    assert changed != honest
    if mutant.file.endswith(".py"):
        ast.parse(changed)
    assert mutant.tests
    for test in mutant.tests:
        path, _, name = test.partition("::")
        assert f"def {name}(" in (ROOT / path).read_text() if name else (ROOT / path).is_file()


def test_mutants_are_told_apart_by_name() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


def test_a_mutant_that_no_longer_fits_says_so() -> None:
    mutant = Mutant("gone", "a.sql", "", "no such text", "", ())
    with pytest.raises(ValueError, match="stands 0 times in a"):
        mutant.applied("some text")


@pytest.mark.parametrize(
    ("code", "output", "killed"),
    [
        (1, "FAILED tests/test_a.py::test_fence - assert 1 == 2\n1 failed", True),
        (0, "12 passed", False),
        (1, "ERROR tests/test_a.py::test_fence - SyntaxError\n1 error", False),
        (2, "Interrupted", False),
        (124, "no end within 300 s", False),
    ],
)
def test_only_a_test_that_fails_kills(code: int, output: str, killed: bool) -> None:
    assert verdict(code, output)[0] is killed
