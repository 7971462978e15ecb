"""The tree of errors at the head of errors.py is what the classes are."""

from __future__ import annotations

import re

from pricing_pipeline import errors


def drawn() -> dict[str, str]:
    """Each class of the tree, and the one above it."""
    assert errors.__doc__
    above: list[str] = []
    found = {}
    for line in errors.__doc__.splitlines():
        if match := re.fullmatch(r" {4}([│├└─ ]*)(\w+)(?: {2,}\S.*)?", line):
            depth = len(match[1]) // 4
            above[depth:] = [match[2]]
            found[match[2]] = above[depth - 1] if depth else "Exception"
    return found


def test_the_tree_shows_every_error_under_the_one_that_it_is_of() -> None:
    classes = {
        name: value.__bases__[0].__name__
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, Exception)
    }
    assert drawn() == classes


def test_every_error_says_when_it_is_raised() -> None:
    assert [name for name in drawn() if not getattr(errors, name).__doc__] == []
