"""Readings of the values in an answer, for a drafted declaration: times, numbers, and the parts of a bar."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal

from pricing_pipeline.providers.declared_times import day
from pricing_pipeline.providers.values import Implausible, calendar_day, decimal_of

FORMATS = (
    *(
        "iso_date",
        "iso_time",
        "epoch_milliseconds",
        "epoch_seconds",
        "dotnet",
        "%d.%m.%Y",
        "%d/%m/%Y",
        "%m/%d/%Y",
    ),
    *("%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y%m%d", "%d-%b-%Y", "%d %b %Y", "%b %d, %Y", "%Y-%m-%d %H:%M:%S"),
    *("%d.%m.%Y %H:%M:%S", "%Y-%m", "%Y"),
)
_PRICES = {
    "close": (
        "c|close|closing|schluss|cloture|cierre|chiusura|fechamento|fecho|slot|zamkniecie",
        "last|lastprice|price|p|value|v?al|rate|mid|nav|netassetvalue|obsvalue|kurs|koers|bid|amount",
    ),
    "open": ("o|open|opening|first|eroffnung|ouverture|apertura|abertura|otwarcie",),
    "high": ("h|high|max|dayhigh|hoch|hochst|haut|plushaut|maxim[ao]|massimo|hoogste?|najwyzszy",),
    "low": ("l|low|min|daylow|tief|tiefst|bas|plusbas|minim[ao]|laag|laagste|najnizszy",),
    "volume": ("v|vol|volume|volumen|wolumen",),
}
"""Names of the parts of a bar in a few languages, without accents. Of two lists, the first goes before."""


@dataclass(frozen=True, slots=True)
class Signs:
    """How numbers are written."""

    decimal: str = "."
    thousands: str | None = None

    def number(self, raw: object) -> Decimal | None:
        """A text read as a number with these signs; None if it is not one."""
        text = raw
        if isinstance(raw, str):
            text = raw.strip()
            if self.thousands:
                text = text.replace(self.thousands, "")
            text = text.replace(self.decimal, ".") if self.decimal != "." else text
        try:
            return None if isinstance(raw, bool) else decimal_of(text, "number")
        except Implausible:
            return None


def is_time(cell: str, now: datetime) -> bool:
    """Whether a cell may be a day or a time. A year alone is too little."""
    return any(reads([cell.strip()], text, now) for text in FORMATS if text != "%Y")


def is_day(text: str) -> bool:
    """Whether a text begins with a day such as 2026-11-20."""
    try:
        calendar_day(text[:10])
    except Implausible:
        return False
    return True


def reads(values: Sequence[object], text: str, now: datetime) -> bool:
    """Whether all values are days in this format that a price may be of."""
    first = date(1900, 1, 1)
    try:
        days = [day(one, text, None) for one in values]
        if text == "iso_time":
            return all(isinstance(one, str) and ("T" in one or ":" in one) for one in values)
    except (Implausible, ValueError):
        return False
    if text.startswith("epoch"):
        first = date(1990, 1, 1)
    if text in ("%Y", "%Y-%m"):
        return all(first < one < now.date() + timedelta(days=400) for one in days)
    return all(first < one <= now.date() + timedelta(days=1) for one in days)


Samples = Mapping[str, Sequence[object]]
"""The values in the rows of an answer, by path."""


def times_in(samples: Samples, now: datetime) -> dict[str, list[str]]:
    """The paths that lead to times, with the formats in which all of them can be read."""
    found = {path: [text for text in FORMATS if reads(values, text, now)] for path, values in samples.items()}
    return {path: formats for path, formats in found.items() if formats}


def _signs_of(values: Sequence[object]) -> list[Signs]:
    """The ways in which all values are numbers: more than one if a sign may stand for either."""
    ways = [Signs(), Signs(".", ","), Signs(",", "."), Signs(".", "'"), Signs(",", " "), Signs(",")]
    texts = [one for one in values if isinstance(one, str)]
    groups = {
        ",": r"-?[0-9]{1,3}(,[0-9]{2,3})*,[0-9]{3}(\.[0-9]+)?",
        ".": r"-?[0-9]{1,3}(\.[0-9]{3})+(,[0-9]+)?",
    }

    def fits(way: Signs) -> bool:
        if way.thousands is not None and not any(way.thousands in text for text in texts):
            return False
        if way.decimal == "," and not any("," in text for text in texts):
            return way.thousands == "." and _all_match(texts, groups["."])
        if way.thousands in groups and not _all_match(texts, groups[way.thousands], way.thousands):
            return False
        return all(way.number(one) is not None for one in values)

    return [way for way in ways if fits(way)]


def _all_match(texts: Sequence[str], pattern: str, sign: str = ".") -> bool:
    with_sign = [text.strip() for text in texts if sign in text]
    return bool(with_sign) and all(re.fullmatch(pattern, text) for text in with_sign)


def numbers_in(samples: Samples) -> dict[str, list[Signs]]:
    """The paths that lead to numbers, with the signs in which all of them can be read."""
    found = {}
    for path, values in samples.items():
        # A few texts such as N/A may mean that there is no price.
        numbers = [one for one in values if not isinstance(one, bool) and re.search("[0-9]", str(one))]
        signs = _signs_of(numbers) if 2 * len(numbers) >= len(values) else []
        if signs:
            found[path] = signs
    return found


def _letters(name: str) -> str:
    """The letters of a name, small and without accents."""
    return re.sub("[^a-z]", "", unicodedata.normalize("NFKD", name.casefold()))


def named_prices(paths: Iterable[str]) -> dict[str, list[str]]:
    """The paths that may be each part of a bar by their names."""
    names = {path: _letters(path.rpartition(".")[2]) for path in paths}
    found: dict[str, list[str]] = {}
    for part, lists in _PRICES.items():
        for words in lists:
            pattern = f"({words})(price|s?kurs|s?koers)?"
            matches = [path for path, name in names.items() if re.fullmatch(pattern, name)]
            if matches:
                found.setdefault(part, matches)
    return found


def prices_by_order(samples: Samples, paths: Sequence[str]) -> dict[str, str]:
    """A bar by its parts: four numbers in a row, the second the highest, the third the lowest."""
    values = [[Signs().number(one) or Decimal(0) for one in samples[path]] for path in paths]
    for at in range(len(paths) - 3):
        bars = list(zip(*values[at : at + 4], strict=False))
        if bars and all(low <= min(first, last) and max(first, last) <= high for first, high, low, last in bars):
            names = dict(zip(("open", "high", "low", "close"), paths[at : at + 4], strict=True))
            return names | ({"volume": paths[at + 4]} if len(paths) == at + 5 else {})
    return {}
