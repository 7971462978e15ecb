"""The mutants still fit the code (B25): `make mutants` takes too long to learn there that one does not."""

from __future__ import annotations

import ast
from collections import Counter

from pricing_pipeline_tests.support.pages import ROOT
from pricing_pipeline_tests.tools.mutant_list import MUTANTS


def test_each_mutant_changes_what_is_there_today_and_names_tests_that_exist() -> None:
    for mutant in MUTANTS:
        honest = (ROOT / mutant.file).read_text()
        changed = mutant.applied(honest)
        assert changed != honest, mutant.name
        if mutant.file.endswith(".py"):
            ast.parse(changed)
        assert mutant.tests, mutant.name
        for test in mutant.tests:
            path, _, name = test.partition("::")
            assert (ROOT / path).is_file(), mutant.name
            assert f"def {name}" in (ROOT / path).read_text(), mutant.name


def test_mutants_are_told_apart_by_name() -> None:
    assert [name for name, times in Counter(mutant.name for mutant in MUTANTS).items() if times > 1] == []
