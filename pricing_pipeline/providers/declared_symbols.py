"""How a declared provider spells symbols, and how their parts fill the templates of its declaration.

declaration_texts.py has the form of spellings; declared.py and declared_answers.py use them in URLs and answers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime

from pydantic import JsonValue

from pricing_pipeline.domain.calls import Response
from pricing_pipeline.errors import SchemaDrift
from pricing_pipeline.providers.base import Request, refusal
from pricing_pipeline.providers.bodies import decode, decode_hint
from pricing_pipeline.providers.canonical import pair_of
from pricing_pipeline.providers.declaration import Spelling, SymbolList
from pricing_pipeline.providers.declaration_file import Declared
from pricing_pipeline.providers.declaration_texts import (
    SAFE_SYMBOL,
    is_parted,
    matcher,
    placeholders_of,
)
from pricing_pipeline.providers.declared_calls import csv_form, line_of
from pricing_pipeline.providers.declared_refusals import Refusals
from pricing_pipeline.providers.json_paths import PLACEHOLDER, JsonPath

_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")


class Symbols:
    """The symbols of a declared provider, by its spelling of each asset class."""

    def __init__(self, declared: Mapping[str, Spelling]) -> None:
        self._declared = declared
        self._patterns = [matcher(symbol.pattern) for symbol in declared.values()]
        self._parted = {
            name: [_parted(symbol.spelling)] for name, symbol in declared.items() if is_parted(symbol.spelling)
        }
        self._all_parted = [one for parted in self._parted.values() for one in parted]
        self._are_all_pairs = len(self._parted) == len(declared)
        self._own_names = {
            name: {theirs: own for own, theirs in symbol.names.items()} for name, symbol in declared.items()
        }
        self._all_own_names = {theirs: own for names in self._own_names.values() for theirs, own in names.items()}

    def accepts(self, symbol: str) -> bool:
        """Whether an asset class has symbols spelled so; never what a URL would read as its own."""
        if re.fullmatch(SAFE_SYMBOL, symbol) is None or ".." in symbol or "//" in symbol:
            return False
        if self._are_all_pairs and not _parts(symbol, self._all_parted):
            return False
        return any(matches(symbol) for matches in self._patterns)

    def listed_part(self, symbol: str, asset_class: str) -> str | None:
        """The part of a symbol that a list must name: its base, or the whole; None where the declaration names it."""
        pair = pair_of(symbol, asset_class)
        part = symbol if pair is None else pair.base
        return None if part in self._declared[asset_class].names else part

    def spell(self, symbol: str, asset_class: str, listed: str | None = None) -> str:
        """By the template of the asset class; a class that is not declared leaves the symbol as it is.

        `listed` is the provider's own name of the `listed_part`.
        """
        declared = self._declared.get(asset_class)
        if declared is None:
            return symbol
        pair = pair_of(symbol, asset_class)
        parts = {"symbol": symbol} | ({} if pair is None else {"base": pair.base, "quote": pair.quote})
        parts = {name: declared.names.get(part, part) for name, part in parts.items()}
        if listed is not None:
            parts["symbol" if pair is None else "base"] = listed
        needed = placeholders_of(declared.spelling)
        return filled(declared.spelling, parts) if needed <= parts.keys() else symbol

    def parts_of(self, symbol: str, asset_class: str | None) -> dict[str, str]:
        """The values of placeholders for this symbol: the symbol, and base and quote where its spelling tells them.

        A symbol of no declared asset class is read as any of them would be.
        """
        is_declared = asset_class in self._declared
        parted = self._parted.get(asset_class or "", []) if is_declared else self._all_parted
        return {"symbol": symbol, **_parts(symbol, parted)}

    def own_names(self, parts: Mapping[str, str], asset_class: str | None) -> dict[str, str]:
        """The parts by our names, where the provider uses other names for this asset class."""
        names = self._own_names.get(asset_class or "", self._all_own_names)
        return {name: names.get(part, part) for name, part in parts.items()}


class NameList:
    """Where a declared provider lists its own names of an asset class."""

    def __init__(self, declared: Declared, asset_class: str, about: SymbolList, refusals: Refusals) -> None:
        self._declared, self._about, self._refusals = declared, about, refusals
        self._place = ("symbols", asset_class, "list")
        self._rows = None if about.rows is None else JsonPath(about.rows)
        self._ours, self._theirs = JsonPath(about.ours), JsonPath(about.theirs)

    def request(self) -> Request:
        """The request for the list."""
        accept = {} if self._about.form.format == "json" else {"Accept": "*/*"}
        headers = {**accept, **self._declared.declaration.headers}
        return Request(self._about.path, tuple(self._about.query.items()), headers=tuple(headers.items()))

    def names(self, response: Response, now: datetime) -> dict[str, list[str]]:
        """The provider's names by ours in capital letters; several where it uses ours several times.

        Raises ProviderError for a refusal and for an answer without such rows.
        """
        name, form = self._declared.declaration.name, self._about.form
        failed = refusal(name, response, now=now)
        if failed is not None:
            words = self._refusals.words(decode_hint(name, response))
            raise refusal(name, response, now=now, detail=words) or failed
        at = line_of(self._declared, (*self._place, "body"))
        body = decode(name, response, form.format, csv_form(form), at)
        rows = body if self._rows is None else self._rows.search(body, {})
        found: dict[str, set[str]] = {}
        for row in rows if isinstance(rows, list) else ():
            ours, theirs = (path.one(row, {}, is_xml=form.format == "xml") for path in (self._ours, self._theirs))
            is_name = isinstance(theirs, str | int) and not isinstance(theirs, bool) and theirs != ""
            if isinstance(ours, str) and ours and is_name:
                found.setdefault(ours.upper(), set()).add(str(theirs))
        if not found:
            raise SchemaDrift(
                f"{name} answered without names: `{self._about.ours}` and `{self._about.theirs}` lead to none in the "
                f"rows of its list ({line_of(self._declared, self._place)}). Nothing has changed."
            )
        return {own: sorted(names) for own, names in found.items()}


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
    """Whether a text needs a part without a value, which only a cursor can be."""
    return isinstance(value, str) and not placeholders_of(value) <= parts.keys()


def escaped(text: str) -> str:
    """A text of symbols as a part of a URL's path."""
    return "".join(char if _UNRESERVED.fullmatch(char) else f"%{ord(char):02X}" for char in text)


def _parted(template: str) -> re.Pattern[str]:
    """A pattern that tells the parts of a spelling: base and quote, where something stands between them."""
    pieces = re.split(f"({PLACEHOLDER.pattern})", template)
    letters = "A-Za-z0-9" if "-" in template else "A-Za-z0-9-"
    known = {"{base}": f"(?P<base>[{letters}]+)", "{quote}": f"(?P<quote>[{letters}]+)"}
    return re.compile("".join(known.get(piece, re.escape(piece)) for piece in pieces))


def _parts(symbol: str, parted: Sequence[re.Pattern[str]]) -> dict[str, str]:
    for pattern in parted:
        match = pattern.fullmatch(symbol)
        if match is not None:
            return match.groupdict()
    return {}
