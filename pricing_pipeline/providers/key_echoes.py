"""Finds API keys that a provider repeats, and replaces them by `***`.

Services repeat a key in a sentence ("Invalid API key: ..."), in the address that was asked, or in a page of HTML. So a
key is looked for as it is and with any of its signs escaped as JSON, URLs and HTML do it, in letters of any case, in
UTF-8 (or what extends ASCII) and UTF-16.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html.entities import html5

BLOT = b"***"
_WIDE = b"*\0*\0*"
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
        # By the longest part that nothing escapes, most texts are known to have no key.
        self._all = [(key, max(_UNESCAPED.findall(key.lower()), key=len).encode()) for key in whole]
        self._long = [one for one in self._all if len(one[0]) >= LEAST_UNMISTAKABLE]
        # Longer keys are out of a body before anything is quoted from it.
        starts = [
            key[:length]
            for key in whole
            if len(key) < LEAST_UNMISTAKABLE
            for length in range(len(key) - 1, _LEAST_START - 1, -1)
        ]
        ends = b"(?:" + b"|".join(_pattern(start, b"") for start in starts) + rb")(?=\[\.\.\.\]|['\"]|(?<=[^\0]{60})$)"
        self._cut = re.compile(ends, re.IGNORECASE) if starts else None

    def blot_body(self, body: bytes) -> bytes:
        """An answer without the keys that are too long to be a part of a price. Its prices stay as they are."""
        return _blotted(body, self._long)

    def blot(self, text: bytes) -> bytes:
        """A text for people, without any of the keys."""
        return _blotted(text, self._all)

    def blot_text(self, text: str) -> str:
        """A text without any of the keys."""
        return self.blot(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def blot_message(self, text: str) -> str:
        """A message without any of the keys, nor the beginning of a short one at the end of a quotation."""
        blotted = self.blot(text.encode("utf-8", "surrogatepass"))
        return (blotted if self._cut is None else self._cut.sub(BLOT, blotted)).decode("utf-8", "surrogatepass")


def _blotted(text: bytes, keys: list[tuple[str, bytes]]) -> bytes:
    lowered = text.lower().replace(b"\0", b"")
    found = [key for key, unescaped in keys if unescaped in lowered]
    if not found:
        return text
    gap = rb"\0?" if b"\0" in text else b""
    # Begins and ends at a character, so that what stands around it stays UTF-16.
    pattern = rb"(?!\0)(?:" + b"|".join(_pattern(key, gap) for key in found) + b")"
    return re.sub(pattern, lambda match: _WIDE if b"\0" in match[0] else BLOT, text, flags=re.IGNORECASE)


def _pattern(key: str, gap: bytes) -> bytes:
    """What finds a key, with a gap before each byte."""
    return b"".join(_spelled(char, gap) for char in key)


def _spelled(char: str, gap: bytes) -> bytes:
    """The character as it is and escaped; escapes may be escaped once more, by whatever quotes them."""

    def run(text: str) -> bytes:
        return b"".join(gap + re.escape(bytes([byte])) for byte in text.encode())

    if char.isascii() and char.isalnum():
        return run(char)
    code, slash = ord(char), gap + rb"\\"
    again, zeros = b"(?:" + run("amp;") + b")?", b"(?:" + run("0") + b"){0,4}"
    in_json = [f"u{unit}" for unit in re.findall("....", char.encode("utf-16-be").hex())]
    forms = [
        *(run("&") + again + run(name) for name, meant in html5.items() if meant == char and name[-1] == ";"),
        run("&") + again + run("#") + zeros + run(f"{code};"),
        run("&") + again + run("#x") + zeros + run(f"{code:x};"),
        b"".join(b"(?:" + slash + b"){1,4}" + run(unit) for unit in in_json),
        b"".join(run("%") + b"(?:" + run("25") + b")?" + run(f"{byte:02x}") for byte in char.encode()),
        b"(?:" + slash + b"){0,3}" + run(char),
    ]
    return b"(?:" + b"|".join(forms) + b")"
