"""API keys that a provider repeats: found in the forms in which services send things back, and blotted out.

The forms are: the key as it is or in other letters' case; each of those in hexadecimal or base64 digits, alone or as a
part of something longer; in hexadecimal digits with a colon, dash or space between the bytes; in UTF-16; half of any of
these, for half of a key is still a secret. Any of its characters may be escaped as JSON, URLs or HTML do, up to three
times.

A key in another form (backwards, encrypted, in thirds) is not found.
"""

from __future__ import annotations

import base64
import html
import json
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from urllib.parse import quote

BLOT = b"***"
LEAST_UNMISTAKABLE = 16
"""A shorter key could be a part of a price or a name."""
_LEAST_PART = 12
"""A shorter part of a key could be one, too."""
_LEAST_WRITTEN = 6
"""Fewer hexadecimal or base64 digits are in every other text."""

_ESCAPED = re.compile(
    rb"\\u00([0-9a-f]{2})|\\x([0-9a-f]{2})|%([0-9a-f]{2})|&#x0*([0-9a-f]{2});|&#0*([0-9]{2,3});|(&)amp;"
    rb"|\\(?=[/\"\\])|\x00",
    re.IGNORECASE,
)
_NESTED = 3
"""How many times one escaping may be within another."""
_AT_ONCE = 1000
"""Messages that are looked through together."""

Span = tuple[int, int]


class KeyEchoes:
    """Blots keys out of what a provider sent."""

    def __init__(self, keys: Iterable[str]) -> None:
        # The longest first: one may begin like another.
        ordered = sorted(set(keys), key=len, reverse=True)
        self._long = [key for key in ordered if len(key) >= LEAST_UNMISTAKABLE]
        self._forms = [form for key in self._long for form in _forms(key)]
        self._short = [form for key in ordered if len(key) < LEAST_UNMISTAKABLE for form in _forms(key)]

    def blot_body(self, body: bytes) -> bytes:
        """An answer without the keys that are too long to be a part of a price. Its prices stay as they are."""
        return _blotted(body, self._forms)

    def blot(self, text: bytes) -> bytes:
        """A text for people, without any of the keys."""
        return _blotted(text, [*self._forms, *self._short])

    def blot_text(self, text: str) -> str:
        """A message without any of the keys."""
        encoded = text.encode("utf-8", "surrogatepass")
        blotted = self.blot(encoded)
        return text if blotted is encoded else blotted.decode("utf-8", "surrogatepass")

    def blot_texts(self, texts: Sequence[str]) -> list[str]:
        """Messages of one line each without any of the keys: many at once, for one by one they take far longer."""
        blotted: list[str] = []
        for some in (texts[at : at + _AT_ONCE] for at in range(0, len(texts), _AT_ONCE)):
            lines = self.blot_text("\n".join(some)).split("\n")
            # No key has the end of a line in it, and no escape.
            blotted += lines if len(lines) == len(some) else map(self.blot_text, some)
        return blotted

    def blot_where_plain(self, body: bytes) -> bytes:
        """An answer without the keys that are there as they are: to look for all forms takes as long as reading."""
        lowered = body.lower()
        for key in self._long:
            plain = key.encode()
            if plain.lower() in lowered:
                body = re.sub(re.escape(plain), BLOT, body, flags=re.IGNORECASE)
        return body


class _Form:
    """One way to write a key, in lower case. `least` of its characters in a row are taken for the key."""

    def __init__(self, text: bytes, *, is_part_enough: bool) -> None:
        self.text = text.lower()
        self.least = max(_LEAST_PART, len(text) // 2 - 2) if is_part_enough else len(text)
        # Every part that is long enough contains one of these.
        size = (self.least + 1) // 2 if is_part_enough else self.least
        self.seeds = [(at, self.text[at : at + size]) for at in range(0, len(text) - size + 1, size)]

    def spans(self, lowered: bytes) -> Iterator[Span]:
        """Where a text, in lower case, has the form or enough of it."""
        for at, seed in self.seeds:
            at_seed = lowered.find(seed)
            while at_seed >= 0:
                start, end = at_seed - at, at_seed - at + len(self.text)
                if start >= 0 and lowered[start:end] == self.text:
                    yield start, end
                    at_seed = lowered.find(seed, at_seed + 1)
                    continue
                start, end = at_seed, at_seed + len(seed)
                before, after = at, at + len(seed)
                while before and start and lowered[start - 1] == self.text[before - 1]:
                    start, before = start - 1, before - 1
                while after < len(self.text) and end < len(lowered) and lowered[end] == self.text[after]:
                    end, after = end + 1, after + 1
                if end - start >= self.least:
                    yield start, end
                at_seed = lowered.find(seed, at_seed + 1)


def _forms(key: str) -> list[_Form]:
    is_part_enough = len(key) >= LEAST_UNMISTAKABLE
    written = {json.dumps(key)[1:-1], json.dumps(key)[1:-1].replace("/", "\\/")}
    written |= {quote(key, safe=""), quote(key), html.escape(key)}
    for cased in {key, key.upper(), key.lower()}:
        plain = cased.encode()
        written |= {plain.hex(), *(plain.hex(sign) for sign in ":- "), *_in_base64(plain)}
    # Letters' case makes no difference where they are looked for.
    texts = {text.lower() for text in written if len(text) >= _LEAST_WRITTEN} | {key.lower()}
    return [_Form(text.encode(), is_part_enough=is_part_enough) for text in sorted(texts)]


def _in_base64(key: bytes) -> Iterator[str]:
    """The base64 forms of a key after no, one or two other bytes, without digits that depend on other bytes."""
    for before in range(3):
        digits = base64.b64encode(bytes(before) + key).decode()
        first = (before * 8 + 5) // 6
        last = (before + len(key)) * 8 // 6
        for alphabet in (digits, digits.translate(str.maketrans("+/", "-_"))):
            yield alphabet[first:last]


def _blotted(text: bytes, forms: list[_Form]) -> bytes:
    return _without(text, _spans(text, forms, _NESTED)) if forms else text


def _spans(text: bytes, forms: list[_Form], nested: int) -> list[Span]:
    """Where a text has a key, as it is or after its escapes were undone so many times.

    Each layer is searched by itself, so that nothing which one layer has can hide what another has.
    """
    lowered = text.lower()
    spans = [span for form in forms for span in form.spans(lowered)]
    if nested and _may_be_escaped(text):
        bare = _ESCAPED.sub(_plain_character, text)
        if bare != text:
            spans += _before_unescaping(text, _spans(bare, forms, nested - 1))
    return spans


def _before_unescaping(text: bytes, spans: list[Span]) -> list[Span]:
    """Where in a text those places are that were found in it without its escapes."""
    if not spans:
        return []
    starts, ends, at = array("I"), array("I"), 0
    for escape in _ESCAPED.finditer(text):
        starts.extend(range(at, escape.start()))
        ends.extend(range(at + 1, escape.start() + 1))
        if _plain_character(escape):
            starts.append(escape.start())
            ends.append(escape.end())
        at = escape.end()
    starts.extend(range(at, len(text)))
    ends.extend(range(at + 1, len(text) + 1))
    return [(starts[start], ends[end - 1]) for start, end in spans]


def _without(text: bytes, spans: list[Span]) -> bytes:
    if not spans:
        return text
    parts, at = [], 0
    for start, end in sorted(spans):
        if start >= at:
            parts += [text[at:start], BLOT]
        at = max(at, end)
    return b"".join([*parts, text[at:]])


def _may_be_escaped(text: bytes) -> bool:
    return any(sign in text for sign in (b"\\", b"%", b"&", b"\x00"))


def _plain_character(escape: re.Match[bytes]) -> bytes:
    return _character(escape[0])


@lru_cache(maxsize=4096)
def _character(escape: bytes) -> bytes:
    """The character of an escape; empty if the escape only introduces the next character."""
    match = _ESCAPED.match(escape)
    if match is None:  # a backslash, known by what comes behind it
        return b""
    *in_hex, in_decimal, ampersand = match.groups()
    if in_decimal is not None:
        return bytes([int(in_decimal) % 256])
    return ampersand or bytes.fromhex(next((digits for digits in in_hex if digits is not None), b"").decode())
