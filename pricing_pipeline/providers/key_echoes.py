"""API keys that a provider repeats: found in whatever form they come back, and blotted out.

A key comes back as it is or in other letters' case, in hexadecimal or base64 digits (alone or as a part of something
longer), with the characters escaped that JSON, URLs or HTML escape, or cut: half of a key is still a secret. A text in
which a key is spelled in yet another way (each letter escaped, or in UTF-16) is blotted out as a whole.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote

BLOT = b"***"
LEAST_UNMISTAKABLE = 16
"""A shorter key could be a part of a price or a name; so could a shorter part of a key than twelve characters."""
_LEAST_PART = 12
_LEAST_WRITTEN = 6
"""Fewer hexadecimal or base64 digits are in every other text."""

_ESCAPED = re.compile(
    rb"\\u00([0-9a-f]{2})|\\x([0-9a-f]{2})|%([0-9a-f]{2})|&#x0*([0-9a-f]{2});|&#0*([0-9]{2,3});|\\(?=[/\"\\])|\x00",
    re.IGNORECASE,
)
_NESTED = 3
"""How many times one escaping may be within another."""


class KeyEchoes:
    """Blots keys out of what a provider sent."""

    def __init__(self, keys: Iterable[str]) -> None:
        # The longest first: one may begin like another.
        ordered = sorted(set(keys), key=len, reverse=True)
        self._forms = [form for key in ordered if len(key) >= LEAST_UNMISTAKABLE for form in _forms(key)]
        self._plain = [
            re.compile(re.escape(key.encode()), re.IGNORECASE)
            for key in ordered
            if len(key) >= LEAST_UNMISTAKABLE
        ]
        self._short = [form for key in ordered if len(key) < LEAST_UNMISTAKABLE for form in _forms(key)]

    def blot_body(self, body: bytes) -> bytes:
        """An answer without the keys that are too long to be a part of a price. Its prices stay as they are."""
        return _blotted(body, self._forms)

    def blot(self, text: bytes) -> bytes:
        """What people read, without any of the keys."""
        return _blotted(text, [*self._forms, *self._short])

    def blot_text(self, text: str) -> str:
        """A message without any of the keys."""
        encoded = text.encode("utf-8", "surrogatepass")
        blotted = self.blot(encoded)
        return text if blotted is encoded else blotted.decode("utf-8", "surrogatepass")

    def blot_where_plain(self, body: bytes) -> bytes:
        """An answer without the keys that are there as they are: to look for all forms takes as long as reading."""
        lowered = body.lower()
        if any(form.text in lowered for form in self._forms if form.is_plain):
            for key in self._plain:
                body = key.sub(BLOT, body)
        return body


class _Form:
    """One way to write a key, in lower case. `least` of its characters in a row are taken for the key."""

    def __init__(self, text: bytes, *, is_part_enough: bool, is_plain: bool) -> None:
        self.text = text.lower()
        self.is_plain = is_plain
        self.least = max(_LEAST_PART, len(text) // 2) if is_part_enough else len(text)
        # Whatever part is long enough has one of these in it.
        size = (self.least + 1) // 2 if is_part_enough else self.least
        self.seeds = [(at, self.text[at : at + size]) for at in range(0, len(text) - size + 1, size)]

    def spans(self, lowered: bytes) -> Iterator[tuple[int, int]]:
        """Where a text, in lower case, has the form or enough of it."""
        for at, seed in self.seeds:
            found = lowered.find(seed)
            while found >= 0:
                start, end = found, found + len(seed)
                before, after = at, at + len(seed)
                while before and start and lowered[start - 1] == self.text[before - 1]:
                    start, before = start - 1, before - 1
                while after < len(self.text) and end < len(lowered) and lowered[end] == self.text[after]:
                    end, after = end + 1, after + 1
                if end - start >= self.least:
                    yield start, end
                found = lowered.find(seed, found + 1)


def _forms(key: str) -> list[_Form]:
    plain = key.encode()
    is_part_enough = len(key) >= LEAST_UNMISTAKABLE
    written = {
        json.dumps(key)[1:-1],
        json.dumps(key)[1:-1].replace("/", "\\/"),
        quote(key, safe=""),
        quote(key),
        html.escape(key),
        plain.hex(),
        *_in_base64(plain),
    } - {key}
    written = {text for text in written if len(text) >= _LEAST_WRITTEN}
    return [
        _Form(plain, is_part_enough=is_part_enough, is_plain=True),
        *(
            _Form(text.encode(), is_part_enough=is_part_enough, is_plain=False)
            for text in sorted(written, key=len, reverse=True)
        ),
    ]


def _in_base64(key: bytes) -> Iterator[str]:
    """What base64 makes of a key behind none, one or two other bytes, without the digits that have bits of others."""
    for before in range(3):
        digits = base64.b64encode(bytes(before) + key).decode()
        first = (before * 8 + 5) // 6
        last = (before + len(key)) * 8 // 6
        for alphabet in (digits, digits.translate(str.maketrans("+/", "-_"))):
            yield alphabet[first:last]


def _blotted(text: bytes, forms: list[_Form]) -> bytes:
    spans = _spans(text, forms)
    # Parts are left in: what is escaped may be the rest of one.
    lengths = {len(form.text) for form in forms}
    whole = [(start, end) for start, end in spans if end - start in lengths]
    disguised = _without(text, whole)
    plain = _size(_spans(disguised, forms), disguised) if whole else _size(spans, text)
    for _ in range(_NESTED):
        bare = _bare(disguised)
        if bare == disguised:
            break
        disguised = bare
        if _size(_spans(disguised, forms), disguised) > plain:
            return BLOT
    return _without(text, spans)


def _without(text: bytes, spans: list[tuple[int, int]]) -> bytes:
    if not spans:
        return text
    parts, at = [], 0
    for start, end in sorted(spans):
        if start >= at:
            parts += [text[at:start], BLOT]
        at = max(at, end)
    return b"".join([*parts, text[at:]])


def _size(spans: list[tuple[int, int]], text: bytes) -> int:
    """How many characters of keys the spans have, escaped ones as one."""
    size, at = 0, 0
    for start, end in sorted(spans):
        size += len(_bare(text[max(start, at) : end]))
        at = max(at, end)
    return size


def _spans(text: bytes, forms: list[_Form]) -> list[tuple[int, int]]:
    lowered = text.lower()
    return [span for form in forms for span in form.spans(lowered)]


def _bare(text: bytes) -> bytes:
    return _ESCAPED.sub(_plain_character, text) if _may_be_escaped(text) else text


def _may_be_escaped(text: bytes) -> bool:
    return any(sign in text for sign in (b"\\", b"%", b"&#", b"\x00"))


def _plain_character(escape: re.Match[bytes]) -> bytes:
    *in_hex, in_decimal = escape.groups()
    if in_decimal is not None:
        return bytes([int(in_decimal) % 256])
    return bytes.fromhex(next((digits for digits in in_hex if digits is not None), b"").decode())
