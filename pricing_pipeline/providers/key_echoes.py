"""Finds API keys that a provider repeats, and replaces them by `***`.

Services repeat a key in a sentence ("Invalid API key: ..."), in the address that was asked, or in a page of HTML. So a
key is looked for as it is and with any of its signs escaped as JSON, URLs and HTML do it, in letters of any case.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from html.entities import html5

MASK = b"***"
_HTML_NAMES = defaultdict[str, set[str]](set)
"""In small letters: to try `amp;` and `AMP;` in any case doubles the ways, and so the time, with each character."""
for _name, _meant in html5.items():
    if _name[-1] == ";":
        _HTML_NAMES[_meant].add(_name.lower())
_PIECES = re.compile(r"\\+|[^\\]", re.DOTALL)
_UNESCAPED = re.compile("[a-z0-9]*")
LEAST_UNMISTAKABLE = 16
"""A shorter key could be a part of a price or a name."""
_LEAST_START = 3
"""Characters of a key that are hidden where a quotation ends: fewer tell little, and are often a part of a word."""


class KeyEchoes:
    """Replaces keys in a provider's answers."""

    def __init__(self, keys: Iterable[str]) -> None:
        # The longest first: one may begin like another.
        whole = sorted(set(keys), key=len, reverse=True)
        # A search for each key's longest part that is never escaped shows for most texts that they have no key.
        self._all = [(key, max(_UNESCAPED.findall(key.lower()), key=len).encode()) for key in whole]
        self._long = [one for one in self._all if len(one[0]) >= LEAST_UNMISTAKABLE]
        # Longer keys are removed from a body before anything is quoted from it.
        starts = [
            key[:length]
            for key in whole
            if len(key) < LEAST_UNMISTAKABLE
            for length in range(len(key) - 1, _LEAST_START - 1, -1)
        ]
        ends = _any_of(starts) + rb"(?=\[\.\.\.\]|['\"]|(?<=[^\0]{60})$)"
        self._cut = re.compile(ends, re.IGNORECASE) if starts else None

    def mask_body(self, body: bytes) -> bytes:
        """An answer without the keys that are too long to be a part of a price. Its prices stay as they are."""
        return _masked(body, self._long)

    def mask(self, text: bytes) -> bytes:
        """A text for people, without any of the keys."""
        return _masked(text, self._all)

    def mask_text(self, text: str) -> str:
        """A text without any of the keys."""
        return self.mask(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def mask_message(self, text: str) -> str:
        """A message without any of the keys, nor the beginning of a short one at the end of a quotation."""
        masked = self.mask(text.encode("utf-8", "surrogatepass"))
        return (masked if self._cut is None else self._cut.sub(MASK, masked)).decode("utf-8", "surrogatepass")


def _masked(text: bytes, keys: list[tuple[str, bytes]]) -> bytes:
    lowered = text.lower()
    found = [key for key, unescaped in keys if unescaped in lowered]
    return re.sub(_any_of(found), MASK, text, flags=re.IGNORECASE) if found else text


def _any_of(keys: Sequence[str]) -> bytes:
    spelled = ("".join(map(_spelled, _PIECES.findall(key))) for key in keys)
    return f"(?:{'|'.join(spelled)})".encode()


def _spelled(piece: str) -> str:
    """A character, or a run of backslashes, as it is and escaped, and perhaps escaped once more by what quotes it."""
    char, count = piece[0], len(piece)
    if char.isascii() and char.isalnum():
        return char
    code = ord(char)
    in_html = "|".join([*sorted(_HTML_NAMES.get(char, ())), f"#0{{0,4}}{code};", f"#x0{{0,4}}{code:x};"])
    in_url = "".join(f"%(?:25)?{byte:02x}" for byte in char.encode())
    escaped = rf"&(?:amp;)?(?:{in_html})|{in_url}"
    if char == "\\":
        # The run is taken as a whole: to try each backslash alone takes time without end.
        return rf"(?:(?:{escaped}){{{count}}}|(?>\\{{{count},{4 * count}}}))"
    return rf"(?:{escaped}|\\{{1,4}}u{code:04x}|\\{{0,3}}{re.escape(char)})"
