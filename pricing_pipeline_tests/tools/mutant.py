"""One change to the code that must not go unnoticed. mutant_list.py has all there are; mutants.py tries them."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change that must not go unnoticed.

    `old` stands exactly once in `within` (a SQL or Python function of the file), or in the file if that is empty.
    """

    name: str
    contract: str
    """What it breaks: a contract of docs/maintainers/contracts.md, or a row of requirements.md."""
    consequence: str
    """What users would see."""
    file: str
    within: str
    old: str
    new: str
    tests: tuple[str, ...]
    """Files, or single tests as `file::test`."""

    def applied(self, text: str) -> str:
        """The file's text with the change. Raises ValueError when it no longer fits the file."""
        begin, end = _extent(text, self.within) if self.within else (0, len(text))
        part = text[begin:end]
        if part.count(self.old) != 1:
            raise ValueError(
                f"mutant {self.name!r}: {self.old!r} stands {part.count(self.old)} times in "
                f"{self.within or self.file}, not once. "
                "Say in pricing_pipeline_tests/tools/mutants_of_*.py what it looks like now."
            )
        return text[:begin] + part.replace(self.old, self.new) + text[end:]


def _extent(text: str, function: str) -> tuple[int, int]:
    """Where a function of a SQL or Python file begins and ends."""
    head = re.search(
        rf"^(?:(?:CREATE OR REPLACE FUNCTION pricing\.|def ){function}\(|-- name: {function}$)",
        text,
        re.MULTILINE,
    )
    if head is None:
        raise ValueError(f"there is no function {function}")
    tail = re.compile(r"^(?:CREATE OR REPLACE FUNCTION |-- name: |def |class )", re.MULTILINE).search(text, head.end())
    return head.start(), tail.start() if tail else len(text)
