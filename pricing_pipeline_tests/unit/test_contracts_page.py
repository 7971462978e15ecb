"""B25: `docs/maintainers/contracts.md` and its tests agree on contracts, the checklist and mutants."""

from __future__ import annotations

import ast
import re
from collections import Counter

import pytest

from pricing_pipeline_tests.support.pages import ROOT
from pricing_pipeline_tests.tools.mutant_list import MUTANTS

PAGE = (ROOT / "docs/maintainers/contracts.md").read_text()
NUMBERS = [*map(str, range(1, 7)), "6a", *map(str, range(7, 23))]
FILES = sorted((ROOT / "pricing_pipeline_tests/integration").glob("test_contracts*.py"))


def table(first_column: str) -> list[list[str]]:
    """Rows of the table whose first heading is this one."""
    found = re.search(rf"^\| {re.escape(first_column)} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    assert found, f"no table begins with a column {first_column!r}"
    return [[cell.strip() for cell in line.strip("|\n").split("|")] for line in found[1].splitlines()]


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
    assert [row[0] for row in table("no.")] == NUMBERS


@pytest.mark.parametrize("row", table("no."), ids=lambda row: row[0])
def test_b25_each_contract_says_what_became_of_it_and_which_test_shows_it(row: list[str]) -> None:
    number, protects, state, how, tests = row
    assert state in ("kept", "replaced")
    assert protects
    assert how
    named = re.findall(r"`(test_\w+)`", tests)
    assert named, f"contract {number} has no test"
    assert set(named) == {name for name, shown in written().items() if shown == number}


def test_b25_each_line_of_the_checklist_leads_to_contracts() -> None:
    lines = table("line")
    assert [int(line) for line, *_ in lines] == list(range(1, 28))
    asked = [contract for *_, contracts in lines for contract in contracts.split(", ")]
    assert set(asked) == set(NUMBERS), "and no contract is left out"
    assert Counter(asked).most_common(1)[0][1] <= 4


def test_b25_the_line_that_asks_for_tests_of_the_database_names_those_there_are() -> None:
    (contracts,) = [contracts for line, _, contracts in table("line") if line == "22"]
    in_database = re.findall(r"^def test_contract_(\d\d)", FILES[0].read_text(), re.MULTILINE)
    assert FILES[0].name == "test_contracts.py"
    assert contracts.split(", ") == [str(number) for number in sorted({int(found) for found in in_database})]


def test_b25_the_pages_mutants_are_those_that_are_made() -> None:
    rows = table("mutant")
    assert [name for name, *_ in rows] == [mutant.name for mutant in MUTANTS]
    assert all(consequence for *_, consequence in rows)
    broken = {number for _, number, _ in rows if not re.fullmatch("[A-G][0-9]+", number)}  # not a row's id
    assert broken == set(NUMBERS) - {"20"}, "a contract that nobody breaks"
