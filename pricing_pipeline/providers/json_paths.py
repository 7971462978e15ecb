"""Paths into an answer: JMESPath expressions that a declaration names.

Numbers stay as `decode_json` reads them, int or Decimal: what JMESPath would compute as a float is not allowed.
declared_answers.py decides what a path means.
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

MAX_LENGTH = 200
"""Characters of a path."""

PLACEHOLDER = re.compile(r"\{[a-z]+\}")
"""A name in braces, in a key or a text of a path: `rates."{quote}"`, `"FX{base}{quote}".v`."""

_FUNCTIONS = frozenset(
    {"contains", "ends_with", "join", "keys", "length", "not_null", "reverse", "starts_with", "values"}
)
"""Functions that compute no number: JMESPath computes with floats."""


_PROJECTIONS = frozenset({"projection", "filter_projection", "value_projection", "flatten"})


class UnreadablePath(ValueError):
    """A path that is not JMESPath, or that computes with floats."""


class JsonPath:
    """A checked path. Raises UnreadablePath. Thread-safe: it is compiled once, and each search has its own state."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tree = _checked(text)
        self.placeholders = frozenset(_placeholders(self._tree))
        is_key = self._tree["type"] == "field" and not self.placeholders
        self.name: str | None = self._tree["value"] if is_key else None
        """The key that the path is, if it is only one key."""
        self._index: int | None = _index(self._tree)
        self.is_projection = any(node["type"] in _PROJECTIONS for node in _nodes(self._tree))
        """Whether it leads to a list of all that it finds."""

    def search(self, answer: object, parts: Mapping[str, str]) -> object:
        """The value at the path; None if there is none. `parts` are the texts for placeholders, by their names."""
        if self.name is not None:  # nearly all paths in a row are one key
            return answer.get(self.name) if isinstance(answer, dict) else None
        if self._index is not None:
            is_there = isinstance(answer, list) and -len(answer) <= self._index < len(answer)
            return answer[self._index] if is_there else None  # type: ignore[index]
        try:
            return _Search(parts).visit(self._tree, answer)
        except (
            JMESPathError,
            TypeError,
            ValueError,
            ArithmeticError,
        ):  # values that cannot be compared, such as a text and NaN
            return None

    def one(self, answer: object, parts: Mapping[str, str], *, is_xml: bool) -> object:
        """The value at the path; of a list of matches, or of children in XML, that has only one, that one."""
        found = self.search(answer, parts)
        if self.is_projection:
            found = _alone(found)
        return _alone(found) if is_xml else found


def _alone(found: object) -> object:
    """The only entry of a list that has one; all else as it is."""
    return found[0] if isinstance(found, list) and len(found) == 1 else found


_OPTIONS = Options(custom_functions=Functions())


class _Search(TreeInterpreter):
    """One walk along a path."""

    def __init__(self, parts: Mapping[str, str]) -> None:
        super().__init__(_OPTIONS)
        self._parts = parts

    def visit_field(self, node: Any, value: Any) -> Any:
        return value.get(self._filled(node["value"])) if isinstance(value, dict) else None

    def visit_comparator(self, node: Any, value: Any) -> Any:
        """A list with one entry is compared as that entry: a single child in XML is such a list."""
        if node["value"] not in ("eq", "ne"):
            return super().visit_comparator(node, value)
        one, other = (_alone(self.visit(child, value)) for child in node["children"])
        return self.COMPARATOR_FUNC[node["value"]](one, other)

    def visit_literal(self, node: Any, value: Any) -> Any:
        return self._filled(node["value"])

    def _filled(self, text: Any) -> Any:
        if not isinstance(text, str) or "{" not in text:
            return text
        return PLACEHOLDER.sub(lambda found: self._parts.get(found[0][1:-1], found[0]), text)


def _checked(text: str) -> Any:
    if len(text) > MAX_LENGTH:
        raise UnreadablePath(f"it has {len(text)} characters, more than {MAX_LENGTH}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a literal that is not JSON would be taken for a text
            tree = jmespath.compile(text).parsed
    except Warning:
        raise UnreadablePath("a literal in backquotes is JSON; put a text into single quotes") from None
    except JMESPathError as error:
        raise UnreadablePath(f"it is not JMESPath: {' '.join(str(error).splitlines()[0].split())}") from None
    except (RecursionError, ValueError, TypeError, AttributeError, KeyError, IndexError):
        raise UnreadablePath("it is not JMESPath") from None
    for node in _nodes(tree):
        _check(node)
    return tree


def _check(node: Mapping[str, Any]) -> None:
    kind, value = node["type"], node.get("value")
    if kind == "function_expression" and value not in _FUNCTIONS:
        raise UnreadablePath(f"the function {value} is not allowed; those that are: {', '.join(sorted(_FUNCTIONS))}")
    if kind == "literal" and not isinstance(value, str | int | bool | None) and value != []:
        raise UnreadablePath("a literal is a text, a whole number, true, false, null or []; no number with a point")


def _nodes(tree: Any) -> Iterator[Mapping[str, Any]]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [child for child in node.get("children", ()) if isinstance(child, dict)]


def _placeholders(tree: Any) -> Iterator[str]:
    for node in _nodes(tree):
        value = node.get("value")
        if node["type"] in ("field", "literal") and isinstance(value, str):
            yield from (name[1:-1] for name in PLACEHOLDER.findall(value))


def _index(tree: Any) -> int | None:
    """The number of a path such as `[4]`, which reads a list."""
    match tree:
        case {
            "type": "index_expression",
            "children": [{"type": "identity"}, {"type": "index", "value": int(at)}],
        }:
            return at
    return None
