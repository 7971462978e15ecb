"""Paths into an answer: JMESPath expressions that a declaration names, with a bounded cost.

What a path reads is always a part of the answer, never a copy of several parts: the answer bounds its size, and a
budget its time. Numbers stay as `decode_json` reads them, int or Decimal. What a path means is told
by declared_answers.py.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError
from jmespath.functions import Functions
from jmespath.visitor import Options, TreeInterpreter

from pricing_pipeline.errors import Misconfigured

MAX_LENGTH = 200
"""Characters of a path."""
MAX_STEPS = 1_000_000
"""Steps of all paths on one answer, which take some seconds. Fifty years of bars take 100,000."""

PLACEHOLDER = re.compile(r"\{[a-z]+\}")
"""A name in braces; in a path it stands for a key or a text: `rates."{quote}"`."""

_FUNCTIONS = frozenset(
    {"contains", "ends_with", "keys", "length", "not_null", "reverse", "starts_with", "values"}
)
"""Functions that make nothing larger than what they are given, and no number from a text."""
_NODES = frozenset(
    {
        *("and_expression", "comparator", "current", "field", "filter_projection", "flatten"),
        *("function_expression", "identity", "index", "index_expression", "literal", "not_expression"),
        *("or_expression", "pipe", "projection", "slice", "subexpression", "value_projection"),
    }
)
_FORBIDDEN = {
    "multi_select_list": "a list of several values, [a, b]",
    "multi_select_dict": "a new object, {a: b}",
    "expref": "a function of a function, &",
}


class UnreadablePath(ValueError):
    """A path that is no JMESPath, or has a part that could cost more than the answer is long."""


class Steps:
    """The steps that the paths on one answer may still take."""

    def __init__(self, left: int = MAX_STEPS) -> None:
        self._left = left

    def take(self, path: str, count: int) -> None:
        """Take steps. Raises Misconfigured when none are left."""
        self._left -= count
        if self._left < 0:
            raise Misconfigured(
                f"reading the answer takes more than {MAX_STEPS} steps; the path `{path}` was the last. Nothing was "
                "stored. Write a shorter path, or ask for fewer rows in a call."
            )


class JsonPath:
    """A checked path. Raises UnreadablePath. Thread-safe: it is compiled once, and each search has its own state."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tree = _checked(text)
        self.placeholders = frozenset(_placeholders(self._tree))
        is_key = self._tree["type"] == "field" and not self.placeholders
        self._name: str | None = self._tree["value"] if is_key else None

    def search(self, answer: object, steps: Steps, parts: Mapping[str, str]) -> object:
        """What the path leads to; None if to nothing. `parts` are the texts for placeholders, by their names.

        Raises Misconfigured when the steps are used up.
        """
        if self._name is not None:  # nearly all paths in a row are one key
            steps.take(self.text, 1)
            return answer.get(self._name) if isinstance(answer, dict) else None
        try:
            return _Search(self.text, steps, parts).visit(self._tree, answer)
        except (
            JMESPathError,
            TypeError,
            ArithmeticError,
        ):  # what is not for each other, such as a text and NaN
            return None


_OPTIONS = Options(custom_functions=Functions())


class _Search(TreeInterpreter):
    """One walk along a path."""

    def __init__(self, path: str, steps: Steps, parts: Mapping[str, str]) -> None:
        super().__init__(_OPTIONS)
        self._path, self._steps, self._parts = path, steps, parts

    def visit(self, node: Any, *args: Any, **kwargs: Any) -> Any:
        found = super().visit(node, *args, **kwargs)
        self._steps.take(self._path, 1 + len(found) // 8 if type(found) is list else 1)
        return found

    def visit_field(self, node: Any, value: Any) -> Any:
        return value.get(self._filled(node["value"])) if isinstance(value, dict) else None

    def visit_literal(self, node: Any, value: Any) -> Any:
        return self._filled(node["value"])

    def _filled(self, text: Any) -> Any:
        return self._parts.get(text[1:-1], text) if _is_placeholder(text) else text


def _checked(text: str) -> Any:
    if len(text) > MAX_LENGTH:
        raise UnreadablePath(f"it has {len(text)} characters, more than {MAX_LENGTH}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a literal that is no JSON is taken for a text, in vain
            tree = jmespath.compile(text).parsed
    except Warning:
        raise UnreadablePath("a literal in backquotes is JSON; a text stands in single quotes") from None
    except JMESPathError as error:
        raise UnreadablePath(f"it is no JMESPath: {' '.join(str(error).splitlines()[0].split())}") from None
    except (RecursionError, ValueError, TypeError, AttributeError, KeyError, IndexError):
        raise UnreadablePath("it is no JMESPath") from None
    for node in _nodes(tree):
        _check(node)
    return tree


def _check(node: Mapping[str, Any]) -> None:
    kind, value = node["type"], node.get("value")
    if kind not in _NODES:
        raise UnreadablePath(f"{_FORBIDDEN.get(kind, kind)} is not allowed here")
    if kind == "function_expression" and value not in _FUNCTIONS:
        raise UnreadablePath(
            f"the function {value} is not allowed; those that are: {', '.join(sorted(_FUNCTIONS))}"
        )
    if kind == "literal" and not isinstance(value, str | int | bool | None):
        raise UnreadablePath(
            "a literal is a text, a whole number, true, false or null; no number with a point"
        )
    if kind == "slice" and 0 in node["children"][2:]:
        raise UnreadablePath("a slice has a step other than 0")


def _nodes(tree: Any) -> Iterator[Mapping[str, Any]]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [child for child in node.get("children", ()) if isinstance(child, dict)]


def _placeholders(tree: Any) -> Iterator[str]:
    for node in _nodes(tree):
        if node["type"] in ("field", "literal") and _is_placeholder(node.get("value")):
            yield node["value"][1:-1]


def _is_placeholder(value: object) -> bool:
    return isinstance(value, str) and PLACEHOLDER.fullmatch(value) is not None
