"""How a declared provider spells symbols, and how their parts fill the templates of its declaration.

What a declaration may say about spellings is in declaration_texts.py; what a URL or an answer is, in declared.py and
declared_answers.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from pricing_pipeline.providers.canonical import pair_of
from pricing_pipeline.providers.declaration import Spelling
from pricing_pipeline.providers.declaration_texts import (
    SAFE_SYMBOL,
    is_parted,
    matcher,
    placeholders_of,
)
from pricing_pipeline.providers.json_paths import PLACEHOLDER

_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")


class Symbols:
    """The symbols of a declared provider, by its spelling of each asset class."""

    def __init__(self, declared: Mapping[str, Spelling]) -> None:
        self._declared = declared
        self._patterns = [matcher(symbol.pattern) for symbol in declared.values()]
        spellings = [symbol.spelling for symbol in declared.values()]
        self._parted = [_parted(spelling) for spelling in spellings if is_parted(spelling)]
        self._are_all_pairs = len(self._parted) == len(spellings)

    def accepts(self, symbol: str) -> bool:
        """Whether an asset class has symbols spelled so; never what a URL would read as its own."""
        if re.fullmatch(SAFE_SYMBOL, symbol) is None or ".." in symbol or "//" in symbol:
            return False
        if self._are_all_pairs and not _parts(symbol, self._parted):
            return False
        return any(matches(symbol) for matches in self._patterns)

    def spell(self, symbol: str, asset_class: str) -> str:
        """By the template of the asset class; a class that is not declared leaves the symbol as it is."""
        declared = self._declared.get(asset_class)
        if declared is None:
            return symbol
        pair = pair_of(symbol, asset_class)
        parts = {"symbol": symbol} | ({} if pair is None else {"base": pair.base, "quote": pair.quote})
        needed = placeholders_of(declared.spelling)
        return filled(declared.spelling, parts) if needed <= parts.keys() else symbol

    def parts_of(self, symbol: str) -> dict[str, str]:
        """What fills a template for this symbol: the symbol, and base and quote where its spelling tells them."""
        return {"symbol": symbol, **_parts(symbol, self._parted)}


def filled(template: str, parts: Mapping[str, str | int]) -> str:
    """A template with each placeholder filled."""
    return PLACEHOLDER.sub(lambda found: str(parts[found[0][1:-1]]), template)


def filled_body(node: JsonValue, parts: Mapping[str, str | int], symbols: Sequence[str]) -> JsonValue:
    """A body with each placeholder filled, always by a value and never by JSON.

    A text that is only a placeholder becomes the value, such as a number; `["{symbols}"]` is the list of all symbols.
    A key whose text has no value yet, as of a cursor, is left out.
    """
    match node:
        case dict():
            kept = {key: value for key, value in node.items() if not lacks(value, parts)}
            return {key: filled_body(value, parts, symbols) for key, value in kept.items()}
        case ["{symbols}"]:
            return list(symbols)
        case list():
            return [filled_body(item, parts, symbols) for item in node]
        case str() if PLACEHOLDER.fullmatch(node):
            return parts[node[1:-1]]
        case str():
            return filled(node, parts)
        case _:
            return node


def lacks(value: object, parts: Mapping[str, str | int]) -> bool:
    """Whether a text waits for a part that is not known, which only a cursor is."""
    return isinstance(value, str) and not placeholders_of(value) <= parts.keys()


def escaped(text: str) -> str:
    """A text of symbols as a part of a URL's path."""
    return "".join(char if _UNRESERVED.fullmatch(char) else f"%{ord(char):02X}" for char in text)


def _parted(template: str) -> re.Pattern[str]:
    """What tells the parts of a spelling: base and quote, where something stands between them."""
    pieces = re.split(f"({PLACEHOLDER.pattern})", template)
    known = {"{base}": "(?P<base>[A-Za-z0-9]+)", "{quote}": "(?P<quote>[A-Za-z0-9]+)"}
    return re.compile("".join(known.get(piece, re.escape(piece)) for piece in pieces))


def _parts(symbol: str, parted: Sequence[re.Pattern[str]]) -> dict[str, str]:
    for pattern in parted:
        match = pattern.fullmatch(symbol)
        if match is not None:
            return match.groupdict()
    return {}
