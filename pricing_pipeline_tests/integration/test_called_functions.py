"""Python calls functions of the database that exist, with as many arguments as they take."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from pricing_pipeline_tests.fixtures.core import Core

PACKAGE = Path(__file__).parents[2] / "pricing_pipeline"


def calls() -> Iterator[tuple[str, int, bool]]:
    """The name of each function that `call_sql` names, the arguments that are spelled, and whether there are more."""
    for path in PACKAGE.rglob("*.py"):
        code = path.read_text()
        if "call_sql" not in code:
            continue
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "call_sql":
                _, name, *arguments = node.args
                spelled = [argument for argument in arguments if not isinstance(argument, ast.Starred)]
                if isinstance(name, ast.Constant):
                    yield str(name.value), len(spelled), len(spelled) < len(arguments)


def test_each_call_fits_its_function(core: Core) -> None:
    takes = {
        (row.proname, count)
        for row in core.rows(
            "SELECT proname, pronargs, pronargdefaults FROM pg_proc WHERE pronamespace = 'pricing'::regnamespace"
        )
        for count in range(row.pronargs - row.pronargdefaults, row.pronargs + 1)
    }
    names = {name for name, _ in takes}
    found = list(calls())
    assert len(found) > 50
    assert [call for call in found if call[0] not in names or (not call[2] and call[:2] not in takes)] == []
