"""Read long lists of similar rows in an answer as columns, without an object for each value.

`"values":[{"datetime":"2026-11-20","close":"12.50000"},...]`: most histories are lists of figures in quotes, with the
same names in the same order. Decoding them value by value takes longer than all other work on them. The result here is
the same as a decoder's; if a list has any other form, it is left to the decoder. values.py judges the figures.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pricing_pipeline.domain.bars import Column

_FIGURES = b"0123456789.-"
_NO_DIGITS = bytes(set(range(256)) - set(b"0123456789,"))
_MOST_DIGITS = 18
"""How many digits, of any value, a column can hold."""
_LONGEST_ROW = 1000
"""Bytes of a first row that is decoded for its names. Bars have a hundred and fifty."""


class FlatRows:
    """A list's figures by the names of their columns: digits, points and dashes, as they are spelled."""

    __slots__ = ("_body", "_ends", "_letters", "_numbers", "_starts", "names")

    def __init__(
        self,
        names: Sequence[str],
        body: bytes,
        letters: NDArray[np.uint8],
        starts: Column,
        ends: Column,
        numbers: Column,
    ) -> None:
        self.names = tuple(names)
        self._body, self._letters = body, letters
        self._starts, self._ends, self._numbers = starts, ends, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def renamed(self, names: Mapping[str, str]) -> FlatRows:
        """The same columns under other names; those that are not among `names` have none."""
        found = [names.get(name, f"#{number}") for number, name in enumerate(self.names)]
        return FlatRows(found, self._body, self._letters, self._starts, self._ends, self._numbers)

    def numbers(self, name: str) -> Column:
        """The digits of each figure as a whole number, without its points and dashes."""
        return self._numbers[:, self.names.index(name)]

    def lengths(self, name: str) -> Column:
        """How many letters each figure has."""
        place = self.names.index(name)
        return self._ends[:, place] - self._starts[:, place]

    def texts(self, name: str) -> Texts:
        """Each figure as it is spelled."""
        place = self.names.index(name)
        return Texts(self._body, self._starts[:, place], self._ends[:, place])

    def count(self, letter: str) -> int:
        """How often a letter occurs in all figures together."""
        return int((self._letters == ord(letter)).sum())

    def have(self, name: str, letter: str, behind: int) -> bool:
        """Whether each figure has this letter at this distance from its end; each must be longer."""
        return bool((self._letters[self._ends[:, self.names.index(name)] - behind - 1] == ord(letter)).all())


class Texts(Sequence[str]):
    """Figures as they are spelled in a body; each is made when it is read."""

    __slots__ = ("_body", "_ends", "_starts")

    def __init__(self, body: bytes, starts: Column, ends: Column) -> None:
        self._body, self._starts, self._ends = body, starts, ends

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Texts: ...
    def __getitem__(self, index: int | slice) -> str | Texts:
        if isinstance(index, slice):
            return Texts(self._body, self._starts[index], self._ends[index])
        return self._body[self._starts[index] : self._ends[index]].decode("ascii")

    def __array__(self, dtype: object = None, copy: bool | None = None) -> NDArray[np.bytes_]:
        """All of them at once, for numpy: otherwise each would be an object."""
        import numpy as np

        lengths = self._ends - self._starts
        places = np.arange(lengths.max(initial=1))
        letters = np.frombuffer(self._body, dtype=np.uint8)
        spelled = letters[np.minimum(self._starts[:, None] + places, len(letters) - 1)]
        spelled[places >= lengths[:, None]] = 0
        return spelled.view(f"S{len(places)}").ravel()


def read(body: bytes, name: str) -> tuple[bytes, FlatRows] | None:
    """The list under a name in the body, a JSON text, and the body with this name in place of the list.

    None unless it is one list of similar rows, in which each figure has one to eighteen digits with points and dashes,
    and nothing is escaped.
    """
    import numpy as np

    begin = b'"%b":[' % name.encode()
    start = body.find(begin) + len(begin)
    end = body.find(b"]", start)
    if body.count(begin) != 1 or end < 0:
        return None
    rows = body[start:end]
    skeleton = rows.translate(None, _FIGURES)
    first = skeleton[: skeleton.find(b"}") + 1]
    names = _names(rows[: rows.find(b"}") + 1])
    if names is None:
        return None
    # With one comma between two rows, the rows' skeleton is the first row's, repeated.
    count = (len(skeleton) + 1) // (len(first) + 1)
    if skeleton != b",".join([first] * count) or rows.count(b'"') != 4 * len(names) * count:
        return None
    letters = np.frombuffer(rows, dtype=np.uint8)
    quotes = np.flatnonzero(letters == ord('"'))
    starts, ends = quotes.reshape(count, -1)[:, 2::4] + 1, quotes.reshape(count, -1)[:, 3::4]
    lengths = ends - starts
    # Between the quotes are only figures, as in the first row, and so none are outside of them.
    if lengths.sum() != len(rows) - len(skeleton) or lengths.min() < 1:
        return None
    digits = rows.translate(None, _NO_DIGITS)
    if b",," in b",%b," % digits or (lengths.max() > _MOST_DIGITS and _longest(digits) > _MOST_DIGITS):
        return None
    numbers = np.fromstring(digits, dtype=np.int64, sep=",").reshape(count, -1)
    left = body[: start - 1] + json.dumps(name).encode() + body[end + 1 :]
    return left, FlatRows(names, rows, letters, starts, ends, numbers)


def _names(row: bytes) -> list[str] | None:
    """The names of a row's figures; None if it holds anything else, or two under one name."""
    if b"\\" in row or len(row) > _LONGEST_ROW:
        return None
    try:
        pairs = json.loads(row, object_pairs_hook=list)
    except ValueError:
        return None
    names = [name for name, value in pairs if isinstance(value, str) and not value.strip(_FIGURES.decode())]
    return names if 0 < len(set(names)) == len(pairs) else None


def _longest(digits: bytes) -> int:
    return max(map(len, digits.split(b",")))


def read_lines(body: bytes, delimiter: str) -> FlatRows | None:
    """Lines of figures below a line of names. None unless each has as many figures, of one to eighteen digits."""
    import numpy as np

    head, _, rows = body.replace(b"\r\n", b"\n").partition(b"\n")
    names = [name.strip() for name in head.removeprefix(b"\xef\xbb\xbf").decode("ascii", "replace").split(delimiter)]
    rows = rows.rstrip(b"\n") + b"\n"
    sign = delimiter.encode()
    if rows.translate(None, _FIGURES + sign + b"\n") or len(set(names)) < len(names) or len(sign) != 1:
        return None
    letters = np.frombuffer(rows, dtype=np.uint8)
    ends = np.flatnonzero((letters == sign[0]) | (letters == ord("\n")))
    count = rows.count(b"\n")
    if len(ends) != count * len(names) or len(rows) == 1 or sign in _FIGURES:
        return None
    begins = np.concatenate(([0], ends[:-1] + 1)).reshape(count, -1)
    stops = ends.reshape(count, -1)
    if not (letters[stops[:, -1]] == ord("\n")).all() or (stops - begins).min() < 1:
        return None
    digits = rows.translate(bytes.maketrans(b"\n" + sign, b",,"), b".-")
    if b",," in b"," + digits or _longest(digits) > _MOST_DIGITS:
        return None
    numbers = np.fromstring(digits, dtype=np.int64, sep=",").reshape(count, -1)
    return FlatRows(names, rows, letters, begins, stops, numbers)
