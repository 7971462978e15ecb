"""The text of a file in any encoding. The bytes decide, because nothing else says it."""

from __future__ import annotations

import codecs

from pricing_pipeline.errors import HoldingsFileRefused

MOST_BYTES = 20_000_000
"""Ten years of history have some ten thousand lines of a hundred bytes: 1 MB."""

_MARKS = (  # UTF-32 first: its little-endian mark begins like that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_OTHER_FILES = (
    (b"PK\x03\x04", "an Excel workbook or another archive; save it as CSV"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook; save it as CSV"),
    (b"%PDF", "a PDF; export CSV or XML"),
    (b"\x1f\x8b", "compressed; unpack it first"),
)
_LOOKED_AT = 4_000


def decoded(content: bytes) -> str:
    """The text of a file. Raises HoldingsFileRefused for one that is empty, too long, or no text."""
    if len(content) > MOST_BYTES:
        raise HoldingsFileRefused(
            f"the file has {len(content):,} bytes, and at most {MOST_BYTES:,} are read. Export fewer years at a time."
        )
    for beginning, what in _OTHER_FILES:
        if content.startswith(beginning):
            raise HoldingsFileRefused(f"the file is {what}.")
    try:
        # Each of several joined files has its own byte order mark.
        text = content.decode(_encoding(content)).replace("\ufeff", "")
    except UnicodeDecodeError as error:
        raise HoldingsFileRefused(
            f"the file begins like {error.encoding}, but is not valid {error.encoding}. Save it as UTF-8."
        ) from error
    if "\0" in text:
        raise HoldingsFileRefused("the file is not text: it has NUL characters in it. Export CSV or XML.")
    if not text.strip():
        raise HoldingsFileRefused("the file is empty.")
    return text


def _encoding(content: bytes) -> str:
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return encoding
    start = content[:_LOOKED_AT]
    # Most characters of a table are ASCII, so every other byte of UTF-16 is zero.
    if start[1::2].count(0) > len(start) // 4:
        return "utf-16-le"
    if start[0::2].count(0) > len(start) // 4:
        return "utf-16-be"
    try:
        content.decode()
    except UnicodeDecodeError:
        pass
    else:
        return "utf-8"
    try:
        content.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1"
    return "cp1252"
