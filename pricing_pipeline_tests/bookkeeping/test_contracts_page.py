"""B25: `docs/maintainers/contracts.md` and its tests agree, and mutants break each contract."""

from __future__ import annotations

import ast
import re
from collections import Counter

import pytest

from pricing_pipeline_tests.support.pages import ROOT
from pricing_pipeline_tests.tools.mutant_list import MUTANTS

PAGE = (ROOT / "docs/maintainers/contracts.md").read_text()
ITEMS = re.findall(r"^- \*\*(\d+a?), (kept|replaced)\.\*\* (.*(?:\n  .*)*)", PAGE, re.MULTILINE)
CHECKLIST = re.findall(r"^(\d+)\. .*\(([\da, ]+)\)$", PAGE, re.MULTILINE)
NUMBERS = [*map(str, range(1, 7)), "6a", *map(str, range(7, 23))]
FILES = [
    path
    for folder in ("integration", "acceptance")
    for path in (ROOT / "pricing_pipeline_tests" / folder).glob("test_contracts*.py")
]


def written() -> dict[str, str]:
    """Tests of contracts, and the contract in their names."""
    names = [
        node.name
        for path in FILES
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    assert len(names) == len(set(names)), "the same name twice"
    found = {}
    for name in names:
        number = re.match(r"test_contract_(\d\d)(a?)_", name)
        assert number, f"{name} names no contract"
        found[name] = f"{int(number[1])}{number[2]}"
    return found


def test_b25_each_contract_is_on_the_page_once() -> None:
    assert [number for number, *_ in ITEMS] == NUMBERS


@pytest.mark.parametrize(("number", "text"), [(n, text) for n, _, text in ITEMS], ids=[n for n, *_ in ITEMS])
def test_b25_each_contract_says_what_became_of_it_and_which_test_shows_it(number: str, text: str) -> None:
    assert not text.startswith("(")
    named = re.findall(r"`(test_\w+)`", text)
    assert named, f"contract {number} has no test"
    assert set(named) == {name for name, shown in written().items() if shown == number}


def test_b25_each_line_of_the_checklist_leads_to_contracts() -> None:
    assert [int(line) for line, _ in CHECKLIST] == list(range(1, 28))
    asked = [contract for _, contracts in CHECKLIST for contract in contracts.split(", ")]
    assert set(asked) == set(NUMBERS), "and no contract is left out"
    assert Counter(asked).most_common(1)[0][1] <= 4


def test_b25_the_line_that_asks_for_tests_of_the_database_names_those_there_are() -> None:
    contracts = dict(CHECKLIST)["22"]
    text = "".join(path.read_text() for path in FILES if path.stem in ("test_contracts", "test_contracts_replica"))
    in_database = re.findall(r"^def test_contract_(\d\d)", text, re.MULTILINE)
    assert contracts.split(", ") == [str(number) for number in sorted({int(found) for found in in_database})]


def test_b25_mutants_break_each_contract_but_that_on_python_code() -> None:
    broken = {mutant.contract for mutant in MUTANTS}
    rows = {contract for contract in broken if re.fullmatch("[A-G][0-9]+", contract)}
    assert broken - rows == set(NUMBERS) - {"20"}
    assert all(mutant.consequence for mutant in MUTANTS)
