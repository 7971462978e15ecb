"""The content of a file: positions that are held, and the lines that are not, each with its reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal, localcontext
from enum import StrEnum

from pricing_pipeline.errors import HoldingsFileRefused
from pricing_pipeline.holdings_files.shapes import is_isin


class Kind(StrEnum):
    """The kind of a position, where the file names one."""

    SHARE = "share"
    FUND = "fund"
    COIN = "coin"


@dataclass(frozen=True, slots=True)
class Names:
    """How a file names an instrument. Missing fields are empty; a missing ISIN may also be a dash.

    `exchange` is a MIC, or the file's own word for an exchange that is not known.
    """

    isin: str = ""
    ticker: str = ""
    exchange: str = ""
    currency: str = ""
    title: str = ""
    number: str = ""
    """Its national number: WKN or CUSIP."""
    figi: str = ""
    kind: Kind | None = None

    @property
    def in_words(self) -> str:
        """The name for people: the title, and the identifier that says which one it is."""
        identifier = (is_isin(self.isin) and self.isin) or self.ticker or self.number or self.isin
        return f"{self.title} ({identifier})" if self.title and identifier else self.title or identifier


@dataclass(frozen=True, slots=True)
class VagueNumber:
    """A number whose value depends on the decimal mark, which the file does not show."""

    line: int
    text: str
    counted: Decimal
    otherwise: Decimal


@dataclass(frozen=True, slots=True)
class Entry:
    """A line that changes a quantity, or states one. `at` is its time as a text that sorts, or empty.

    `quantity` is None where the file has no quantities: then the line alone says that something is held.
    """

    line: int
    names: Names
    quantity: Decimal | None
    at: str = ""
    vague: VagueNumber | None = None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A line that cannot have a price: cash, an option, a dividend."""

    line: int
    what: str
    reason: str


@dataclass(frozen=True, slots=True)
class Fault:
    """A line that cannot be read, why, and what would help."""

    line: int
    what: str
    reason: str
    proposal: str = ""


Read = Entry | LeftOut | Fault

MOST_INSTRUMENTS = 2_000
"""Instruments of a file. Each is looked up, and no known portfolio has half as many."""
_MOST_FAULTS = 500
"""A file with more of them has another format than its header says."""
EXACT = Context(prec=100)
"""For sums: coins have eighteen decimals, and some are held by the billion."""


@dataclass(frozen=True, slots=True)
class Position:
    """One instrument of a file that is held at its end, and the lines that speak of it."""

    names: Names
    lines: tuple[int, ...]
    quantity: Decimal | None


@dataclass(frozen=True, slots=True)
class HoldingsFile:
    """A file that was read: its format, and each of its lines as one of three."""

    format: str
    positions: list[Position]
    left_out: list[LeftOut]
    faults: list[Fault]
    sold: list[Position] = field(default_factory=list)
    """Instruments whose lines add up to 0. The lines are left out; an earlier file may have made them holdings."""
    vague: list[VagueNumber] = field(default_factory=list)


@dataclass(slots=True)
class _Sum:
    newest: Entry
    quantity: Decimal | None
    lines: list[int] = field(default_factory=list)


def summed(format_: str, read: Iterable[Read], *, is_history: bool, by_listing: bool = False) -> HoldingsFile:
    """Sum the lines of each instrument, or `by_listing` of each of its exchanges. What sums to nothing is not held.

    A negative sum is a fault of a history, which then lacks its beginning. In a report of positions it is a short
    position, which is held. Raises HoldingsFileRefused for a file without a line.
    """
    with localcontext(EXACT):
        return _summed(format_, read, is_history=is_history, by_listing=by_listing)


def _summed(format_: str, read: Iterable[Read], *, is_history: bool, by_listing: bool = False) -> HoldingsFile:
    left_out, faults, entries = list[LeftOut](), list[Fault](), list[Entry]()
    for each in read:
        match each:
            case Entry():
                entries.append(each)
            case LeftOut():
                left_out.append(each)
            case Fault():
                faults.append(each)
        if len(faults) > _MOST_FAULTS:
            raise HoldingsFileRefused(
                f"more than {_MOST_FAULTS} lines cannot be read, so the file is hardly of the format {format_}. "
                f"Line {faults[0].line}, for one: {faults[0].reason}."
            )
    if not (entries or left_out or faults):
        raise HoldingsFileRefused("the file has a header, and nothing below it. Export it again, from the first day.")
    isins = _isins_of_tickers(entries)
    sums: dict[tuple[str, ...], _Sum] = {}
    for entry in entries:
        key = _key(entry.names, isins, by_listing=by_listing)
        known = sums.get(key)
        if known is None:
            if len(sums) == MOST_INSTRUMENTS:
                raise HoldingsFileRefused(f"the file has more than {MOST_INSTRUMENTS:,} instruments.")
            sums[key] = _Sum(entry, entry.quantity, [entry.line])
            continue
        known.lines.append(entry.line)
        # Tickers and exchanges change; the last ones count. The line of a split may lack the currency.
        if entry.at >= known.newest.at and (entry.names.currency or not known.newest.names.currency):
            known.newest = entry
        if entry.quantity is not None:
            known.quantity = (known.quantity or Decimal(0)) + entry.quantity
    positions, sold = list[Position](), list[Position]()
    for (kind, identifier, *_), one in sums.items():
        names, lines = one.newest.names, tuple(one.lines)
        if kind == "isin":  # the newest line may lack it
            names = replace(names, isin=identifier)
        if one.quantity == 0:
            reason = "all of it was sold" if len(lines) > 1 else "its quantity is 0"
            left_out += [LeftOut(line, names.in_words, reason) for line in lines]
            sold.append(Position(names, lines, Decimal(0)))
        elif one.quantity is not None and one.quantity < 0 and is_history:
            faults.append(
                Fault(
                    lines[-1],
                    names.in_words,
                    f"{-one.quantity.normalize():f} more are sold than bought, so the file is not the whole history",
                    "export all years, or open this holding by hand if you hold it",
                )
            )
        else:
            positions.append(Position(names, lines, None if one.quantity is None else one.quantity.normalize()))
    vague = [entry.vague for entry in entries if entry.vague is not None]
    return HoldingsFile(format_, positions, left_out, sorted(faults, key=lambda fault: fault.line), sold, vague)


def _key(names: Names, isins: dict[tuple[str, ...], str], *, by_listing: bool) -> tuple[str, ...]:
    isin = names.isin if is_isin(names.isin) else isins.get(_listing(names), "")
    if isin:
        return ("isin", isin, *(_listing(names) if by_listing else ()))
    if names.ticker:
        return ("ticker", *_listing(names))
    return ("other", names.isin, names.number or names.title)


def _listing(names: Names) -> tuple[str, ...]:
    """VOD in pence is a share in London, VOD in dollars one in New York."""
    return names.ticker, names.exchange, names.currency, names.kind or ""


def _isins_of_tickers(entries: Iterable[Entry]) -> dict[tuple[str, ...], str]:
    """The ISIN of each listing that has one only: some lines of a file may lack it."""
    found: dict[tuple[str, ...], set[str]] = {}
    for names in (entry.names for entry in entries):
        if names.ticker and is_isin(names.isin):
            found.setdefault(_listing(names), set()).add(names.isin)
    return {key: isins.pop() for key, isins in found.items() if len(isins) == 1}
