"""The body of an answer, unpacked as it arrives: from the one encoding that is asked for, to no more than its cap."""

from __future__ import annotations

import zlib


class UnpackedTooLarge(Exception):
    """The body unpacks to more than is allowed."""


class UnknownEncoding(Exception):
    """The body is packed in a way that we did not offer."""


class BrokenGzip(Exception):
    """The packed body, or the first of several, is damaged or incomplete."""


class Unpacker:
    """Unpacks a body as it arrives and holds no more than `limit` bytes and one chunk: a gzip bomb ends early.

    Of several packed bodies in a row only the first counts. No service sends more, and they would cost memory.
    """

    def __init__(self, encoding: str, limit: int) -> None:
        self._limit = limit
        self._body = bytearray()
        self._fed = False
        self._inflate: zlib._Decompress | None = None
        match encoding.strip().lower():
            case "" | "identity":
                pass
            case "gzip" | "x-gzip":
                self._inflate = zlib.decompressobj(wbits=31)
            case other:
                raise UnknownEncoding(other)

    def feed(self, chunk: bytes) -> None:
        self._fed = True
        if self._inflate is None:
            self._body += chunk
        elif self._inflate.eof:
            return  # it would be kept, and copied with each further chunk
        else:
            try:
                self._body += self._inflate.decompress(chunk, self._limit + 1 - len(self._body))
            except zlib.error as error:
                raise BrokenGzip(str(error)) from None
        if len(self._body) > self._limit:
            raise UnpackedTooLarge

    def finish(self) -> bytes:
        # An empty body is valid without a gzip header: errors are often sent that way.
        if self._inflate is not None and self._fed and not self._inflate.eof:
            raise BrokenGzip("incomplete")
        return bytes(self._body)
