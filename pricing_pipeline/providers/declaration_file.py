"""Read the declaration of a provider from a text in YAML: checked against its models, with the line of every fault.

The plain part of YAML that is the same in all its versions: mappings, lists and scalars. `true`, `false`, `null` and
whole numbers are what they seem; every other scalar is text, `no` and `1.5` too. Aliases and tags are refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from pricing_pipeline.errors import DeclarationRefused
from pricing_pipeline.providers.base import safe_words
from pricing_pipeline.providers.declaration import Declaration, Place
from pricing_pipeline.providers.declaration_faults import faults

MAX_CHARACTERS = 64_000
SCHEMA = Path(__file__).with_name("declaration.schema.json")
"""The JSON Schema of a declaration, for editors."""
_MOST_TOLD = 10
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_TAGS = {
    f"tag:yaml.org,2002:{name}"
    for name in ("map", "seq", "str", "int", "float", "bool", "null", "timestamp", "merge", "value")
}
"""The tags that PyYAML gives to nodes without one. Only `_scalar` decides what a scalar is."""
_CONSTANTS = {"true": True, "false": False, "null": None, "~": None, "": None}


@dataclass(frozen=True, slots=True)
class Declared:
    """A checked declaration, its text, and the line of each of its places."""

    declaration: Declaration
    text: str
    lines: Mapping[Place, int]

    def line(self, place: Place) -> int:
        """The line of a place, or of its container."""
        return _line(self.lines, place)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault and its line."""

    line: int
    words: str


def read_file(path: Path) -> Declared:
    """The declaration in a file. Raises DeclarationRefused, which names the file and each wrong line."""
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(MAX_CHARACTERS + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise DeclarationRefused(f"{path} cannot be read: {reason}.") from None
    return read_text(text, str(path))


def read_text(text: str, name: str) -> Declared:
    """The declaration in a text; `name` stands before the lines of faults. Raises DeclarationRefused."""
    if len(text) > MAX_CHARACTERS:
        raise DeclarationRefused(f"{name}: it has more than {MAX_CHARACTERS} characters. Nothing was read.")
    lines: dict[Place, int] = {}
    found: list[Fault] = []
    declaration: Declaration | None = None
    try:
        content = _Builder(lines, found).built(_composed(text), ())
    except yaml.YAMLError as error:
        found = [_fault_of_yaml(error, text)]
    except RecursionError:
        found = [Fault(1, "it is nested too deeply")]
    else:
        if not found:
            declaration, found = _validated(content, lines)
    if declaration is None or found:
        raise DeclarationRefused(_fault_lines(name, found))
    return Declared(declaration, text, lines)


def _fault_lines(name: str, found: Sequence[Fault]) -> str:
    ordered = sorted(found, key=lambda fault: fault.line)
    told = [f"{name}:{fault.line}: {fault.words}" for fault in ordered[:_MOST_TOLD]]
    if len(ordered) > _MOST_TOLD:
        told.append(f"{name}: {len(ordered) - _MOST_TOLD} more faults")
    return "\n".join(told)


def _composed(text: str) -> yaml.Node | None:
    node: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    return node


def _fault_of_yaml(error: yaml.YAMLError, text: str) -> Fault:
    reason = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    what = f"it is not YAML: {safe_words(reason)}"
    if isinstance(error, yaml.reader.ReaderError):
        return Fault(text.count("\n", 0, error.position) + 1, what)
    mark = getattr(error, "problem_mark", None)
    return Fault(mark.line + 1 if mark is not None else 1, what)


class _Builder:
    """Turns nodes of YAML into content; faults go to `found`, and the line of each place to `lines`."""

    def __init__(self, lines: dict[Place, int], found: list[Fault]) -> None:
        self._lines, self._found = lines, found
        self._seen: set[int] = set()

    def built(self, node: yaml.Node | None, place: Place) -> object:
        """The content of a node."""
        if node is None:
            self._refuse(1, "it is empty; expected the keys of a provider, `name` first")
            return None
        line = node.start_mark.line + 1
        self._lines.setdefault(place, line)
        # An alias repeats its anchor's node: content with many aliases would be built as many times.
        why_not = None
        if id(node) in self._seen:
            why_not = "this part is named by an alias; write it again, aliases are not supported"
        elif node.tag not in _TAGS:
            why_not = f"tags such as `{safe_words(node.tag)}` are not supported"
        if why_not is not None:
            self._refuse(line, why_not)
            return None
        self._seen.add(id(node))
        match node:
            case yaml.MappingNode():
                return self._mapping(node, place)
            case yaml.SequenceNode():
                return [self.built(item, (*place, number)) for number, item in enumerate(node.value)]
            case _:
                self._check_text(node)
                return _scalar(node)

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, object]:
        content: dict[str, object] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self._refuse(line, "a key is a text")
                continue
            self._check_text(key_node)
            key = str(key_node.value)
            if key in content:
                self._refuse(line, f"the key `{safe_words(key)}` stands here twice")
            self._lines[*place, key] = line
            content[key] = self.built(value_node, (*place, key))
        return content

    def _check_text(self, node: yaml.Node) -> None:
        """Refuse what steers a terminal or turns a line around: any text may appear in a message."""
        hidden = next((char for char in str(node.value) if not char.isprintable()), None)
        if hidden is not None:
            self._refuse(
                node.start_mark.line + 1,
                f"a text here has the character U+{ord(hidden):04X}, which cannot be shown; every text is one line",
            )

    def _refuse(self, line: int, words: str) -> None:
        self._found.append(Fault(line, words))


def _scalar(node: yaml.Node) -> object:
    text = str(node.value)
    if getattr(node, "style", None) is not None:  # in quotes, or a block
        return text
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    return int(text) if _INTEGER.fullmatch(text) else text


def _validated(content: object, lines: Mapping[Place, int]) -> tuple[Declaration | None, list[Fault]]:
    try:
        declaration = Declaration.model_validate(content)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        typed_wrong = {_meant(error["loc"]) for error in errors if error["type"] == "extra_forbidden"}
        return None, [
            _fault(error, lines) for error in errors if error["type"] != "missing" or error["loc"] not in typed_wrong
        ]
    return declaration, [
        Fault(_line(lines, place), f"`{_named(place)}`: {words}") for place, words in faults(declaration)
    ]


def _line(lines: Mapping[Place, int], place: Place) -> int:
    while place and place not in lines:
        place = place[:-1]
    return lines.get(place, 1)


def _named(place: Place) -> str:
    return ".".join(map(str, place[-2:] if isinstance(place[-1], int) else place[-1:])) if place else "the file"


def _fault(error: Any, lines: Mapping[Place, int]) -> Fault:
    """One fault of the models, in words for people."""
    place: Place = tuple(part for part in error["loc"] if part != "[key]")
    line, last = _line(lines, place), _named(place)
    match error["type"]:
        case "extra_forbidden":
            return Fault(line, _unknown_key(place))
        case "missing":
            wanted = _about(place)
            return Fault(line, f"the key `{place[-1]}` is missing here" + (f": {wanted}" if wanted else ""))
        case "value_error":
            words = str(error["ctx"]["error"])
        case kind:
            words = f"expected {_expected(kind, error)}"
    shown = _shown(error["input"])
    return Fault(line, f"`{last}` is {shown}; {words}" if shown else f"`{last}`: {words}")


def _unknown_key(place: Place) -> str:
    key, known, meant = str(place[-1]), keys_at(place[:-1]), _meant(place)
    hint = f"there are {', '.join(f'`{name}`' for name in known)}" if meant is None else f"did you mean `{meant[-1]}`?"
    return f"unknown key `{safe_words(key)}`; {hint}"


def _meant(place: Place) -> Place | None:
    """The place of the known key that is most similar to an unknown one; None without a similar one."""
    near = get_close_matches(str(place[-1]), keys_at(place[:-1]), 1, 0.6)
    return (*place[:-1], near[0]) if near else None


def _shown(value: object) -> str:
    """A short scalar as people write it; empty for a longer one."""
    match value:
        case None | True | False:
            return json.dumps(value)
        case str():
            return f"`{safe_words(value)[:60]}`"
        case int():
            return str(value)
        case list():
            return "a list"
        case _:
            return ""


def _expected(kind: str, error: Any) -> str:
    context = error.get("ctx", {})
    match kind:
        case "int_type":
            return "a whole number"
        case "string_type":
            return "text (in quotes, if it looks like a number)"
        case "greater_than_equal":
            return f"{context['ge']} or more"
        case "less_than_equal":
            return f"{context['le']} or less"
        case "literal_error":
            return str(context["expected"])
        case "string_pattern_mismatch":
            return f"what matches {context['pattern']}"
        case "string_too_long" | "too_long":
            return f"at most {context['max_length']} of them" if kind == "too_long" else "a shorter text"
        case "too_short":
            return "at least one entry"
        case "string_too_short":
            return "a text that is not empty"
        case "model_type" | "dict_type" | "model_attributes_type":
            return "keys with values below it"
        case "list_type":
            return "a list"
    return safe_words(error["msg"])


@cache
def schema() -> dict[str, Any]:
    """The JSON Schema of a declaration."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Declaration.model_json_schema(),
        "title": "Declaration of a provider",
    }


def keys_at(place: Place) -> list[str]:
    """The keys that may stand at a place; none where names are free."""
    return list(_schema_at(place).get("properties", {}))


def _about(place: Place) -> str:
    return str(_schema_at(place).get("description", "")).rstrip(".")


def _schema_at(place: Place) -> Mapping[str, Any]:
    at: Any = schema()
    for part in place:
        node = _resolved(at)
        inner = node.get("items") if isinstance(part, int) else node.get("properties", {}).get(part)
        # Names that are free have one schema, whatever their pattern.
        free = [*node.get("patternProperties", {}).values(), node.get("additionalProperties")]
        at = inner or free[0] or {}
        if not isinstance(at, dict):
            return {}
    node = _resolved(at)
    return {**node, **{key: value for key, value in at.items() if key == "description"}}


def _resolved(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """A node of the schema behind references, and behind the choice between it and null."""
    while "$ref" in node or "anyOf" in node:
        if "$ref" in node:
            node = schema()["$defs"][node["$ref"].rpartition("/")[2]]
        else:
            node = next((schema for schema in node["anyOf"] if schema.get("type") != "null"), {})
    return node


def schema_text() -> str:
    """The schema as its file has it."""
    return json.dumps(schema(), indent=2) + "\n"
