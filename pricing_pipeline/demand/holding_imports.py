"""Holdings from a file: find the symbol of each position, decide whether it can be held, and hold it.

Reading the file is done before (holdings_files/). Symbols are judged by the database, as all symbols are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING

from pricing_pipeline.db.query_loader import query
from pricing_pipeline.demand import lists, viewers
from pricing_pipeline.domain.data_types import Contents
from pricing_pipeline.errors import UnknownDataType
from pricing_pipeline.holdings_files.formats import YAHOO_CUSTOM
from pricing_pipeline.holdings_files.positions import EXACT, HoldingsFile, Names, Position
from pricing_pipeline.holdings_files.venues import Meant, meant_by
from pricing_pipeline.providers.currencies import COINS, CURRENCIES, PARTS
from pricing_pipeline.registry import data_type_registry

if TYPE_CHECKING:
    from sqlalchemy import Connection

_CLASSES = ("equity", "fund", "crypto", "fx")
"""Asset classes in the order in which a symbol of a file is tried. Any symbol fits a class of your own, which is tried
only if a data type of it is named.
"""

_PAIR = re.compile(r"([A-Z]{3,5})[-/]?([A-Z]{3})(=X)?")


class Outcome(StrEnum):
    """What becomes of a position or a line of a file."""

    NEW = "new"
    """It is held from now on. If there is a reason, it is a doubt."""
    HELD = "held"
    """The user holds it already, perhaps with another quantity. If there is a reason, it is a doubt."""
    REFUSED = "refused"
    """It is not clear which instrument is meant; the reason says why, and there may be candidates."""
    LEFT_OUT = "left_out"
    """It cannot have a price: cash, an option, something sold."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of something in a file; `lines` are those that speak of it, the first line of the file being 1."""

    lines: tuple[int, ...]
    name: str
    outcome: Outcome
    data_type: str | None = None
    symbol: str | None = None
    reason: str | None = None
    identifier: str | None = None
    """Its name in the file, to which a person may give a symbol."""
    candidates: tuple[str, ...] = ()
    """What it may be, the likeliest first: a symbol, or `data_type:symbol`."""
    lacks_type_of: str | None = None
    """Its asset class, if no data type has prices of that class."""
    advice: str | None = None
    """How to correct a line that cannot be read."""
    search: str | None = None
    """The words by which a provider may find it, if nothing else is known of it."""
    search_type: str | None = None
    """The data type to search in, where that is not the usual one."""
    quantity: Decimal | None = None
    """The total of its lines; None if the file has no quantities."""
    held_quantity: Decimal | None = None
    """The stored quantity of a holding, which the total replaces."""
    isin: str | None = None
    """Its ISIN, if its check digit is right."""
    figi: str | None = None
    """Its FIGI, as the file has it."""
    phrase: str | None = None
    """The words to search for, if the symbol is unknown."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A decision for each instrument and each other line, in the order of the file; nothing is done yet."""

    format: str
    decisions: list[Decision]

    def of(self, *outcomes: Outcome) -> list[Decision]:
        """The decisions with these outcomes."""
        return [decision for decision in self.decisions if decision.outcome in outcomes]

    @property
    def changed(self) -> list[Decision]:
        """Holdings whose stored quantity differs from the total in the file."""
        return [one for one in self.of(Outcome.HELD) if one.quantity not in (None, one.held_quantity)]

    @property
    def unknown(self) -> list[str]:
        """The words for a provider's search: ISINs, or names where the file has none."""
        phrases = [one.phrase for one in self.of(Outcome.REFUSED) if one.symbol is None]
        return list(dict.fromkeys(phrase for phrase in phrases if phrase))


@dataclass(frozen=True, slots=True)
class _Known:
    """The facts of the database that a file is judged by."""

    types: Mapping[str, Sequence[str]]
    """The data types to hold, by the asset classes that are tried, in this order."""
    classes: Mapping[str, str]
    """The asset class of each data type of prices."""
    valid: frozenset[str]
    """ISINs whose check digit is right."""
    by_isin: Mapping[str, Sequence[tuple[str, str, str | None]]]
    """Class, symbol and currency of the instruments of an ISIN."""
    own_names: Mapping[str, str] = field(default_factory=dict)
    """Our symbol by a name in the file, as a person says."""


@dataclass(frozen=True, slots=True)
class _Judged:
    """How the database judges a pair: `outcome` is accepted, doubtful or refused, `symbol` its one spelling."""

    data_type: str
    given: str
    symbol: str | None
    outcome: str
    reason: str | None
    proposal: str | None


@dataclass(frozen=True, slots=True)
class _Question:
    """The symbols that one position could have, each with the data types it would be held by."""

    position: Position
    pairs: Sequence[tuple[str, str]]
    symbols: Sequence[str]
    doubt: str = ""
    """Why even a single symbol is a guess, on which nothing is held."""


def plan(
    connection: Connection,
    user: str,
    file: HoldingsFile,
    *,
    data_types: Sequence[str] = (),
    own_names: Mapping[str, str] | None = None,
) -> Plan:
    """Say what an import would do; nothing is changed.

    `data_types` are those to hold; for an asset class without one, it is the type with the freshest prices. `own_names`
    gives the symbol for an ISIN, a ticker or a title in the file. Raises UnknownDataType.
    """
    for name in data_types:
        if data_type_registry.active_data_type(connection, name).contents is not Contents.PRICES:
            raise UnknownDataType(f"{name} is not a type of prices, which is what a file's instruments have.")
    known = _known(connection, [*file.positions, *file.sold], data_types, own_names or {})
    if not known.types:
        raise UnknownDataType(
            "there is no data type of prices yet, so nothing can be held. `pricing-pipeline provider use` adds those "
            "that a provider serves, and `pricing-pipeline type add` adds one."
        )
    bare_is_american = file.format in YAHOO_CUSTOM
    decisions = _left_out(file)
    decisions += [
        Decision((one.line,), one.what, Outcome.REFUSED, reason=one.reason, advice=one.proposal or None)
        for one in file.faults
    ]
    questions = list[_Question]()
    for position in (*file.positions, *file.sold):
        asked = _asked(position, known, bare_is_american=bare_is_american)
        if isinstance(asked, Decision):
            decisions.append(asked)
        else:
            questions.append(asked)
    decisions += _answered(connection, questions, known)
    decisions = _marked_as_held(connection, user, _doubted(connection, _each_once(decisions)))
    # Lines of an instrument that was sold are left out already. It gets the quantity 0 only if it is still held.
    sold = {position.lines for position in file.sold}
    decisions = [
        one
        for one in decisions
        if one.outcome in (Outcome.HELD, Outcome.LEFT_OUT) or one.quantity != 0 or one.lines not in sold
    ]
    return Plan(file.format, sorted(decisions, key=lambda one: one.lines))


def carry_out(connection: Connection, user: str, plan: Plan, *, learns: bool, list_name: str | None = None) -> int:
    """Hold the new instruments of a plan and store the quantities; returns how many are new. Raises CapExceeded.

    With `list_name`, all that the plan recognises is put on this list of the user, too. `learns`: instruments get a
    missing ISIN or FIGI from the file, by which later files of any user find them. So only callers that may change
    instruments should set it.
    """
    recognised = plan.of(Outcome.NEW, Outcome.HELD)
    quantities = [one.quantity for one in recognised]
    viewers.hold(connection, user, _pairs(recognised), quantities=quantities, all_or_nothing=True)
    if list_name is not None and recognised:
        lists.add(connection, user, list_name, _pairs(recognised))
    if learns:
        # What is doubtful may be another instrument.
        told = [one for one in recognised if (one.isin or one.figi) and one.reason is None]
        parameters = {
            "data_types": [one.data_type for one in told],
            "symbols": [one.symbol for one in told],
            "isins": [one.isin for one in told],
            "figis": [one.figi for one in told],
        }
        connection.execute(query("demand.learn_identifiers"), parameters)
    return len(plan.of(Outcome.NEW))


def unused(file: HoldingsFile, own_names: Iterable[str]) -> list[str]:
    """Names that a person has explained but the file does not contain; perhaps misspelled."""
    in_file = {name.casefold() for position in file.positions for name in _own_names(position.names)}
    return [name for name in own_names if name.strip().casefold() not in in_file]


def major(currency: str) -> str:
    """The main unit of a currency in a file: GBP for GBX."""
    return PARTS.get(currency, (currency, 0))[0]


def _pairs(decisions: Iterable[Decision]) -> list[tuple[str, str]]:
    return [(one.data_type, one.symbol) for one in decisions if one.data_type and one.symbol]


def _left_out(file: HoldingsFile) -> list[Decision]:
    """One decision for all lines that are left out under one name for one reason: a history has a dividend a month."""
    lines: dict[tuple[str, str], list[int]] = {}
    for one in file.left_out:
        lines.setdefault((one.what, one.reason), []).append(one.line)
    return [
        Decision(tuple(sorted(set(of_one))), what, Outcome.LEFT_OUT, reason=reason)
        for (what, reason), of_one in lines.items()
    ]


def _known(
    connection: Connection,
    positions: Iterable[Position],
    data_types: Sequence[str],
    own_names: Mapping[str, str],
) -> _Known:
    types: dict[str, list[str]] = {}
    named: dict[str, list[str]] = {}
    classes: dict[str, str] = {}
    for row in connection.execute(query("demand.types_to_hold"), {"data_types": list(data_types)}):
        classes[row.data_type] = row.asset_class
        if row.is_named or row.is_usual:
            (named if row.is_named else types).setdefault(row.asset_class, []).append(row.data_type)
    isins = sorted({position.names.isin for position in positions if position.names.isin})
    valid, by_isin = set[str](), dict[str, list[tuple[str, str, str | None]]]()
    for row in connection.execute(query("demand.isins"), {"isins": isins}):
        if row.is_valid:
            valid.add(row.isin)
        if row.symbol is not None:
            by_isin.setdefault(row.isin, []).append((row.asset_class, row.symbol, row.currency))
    folded = {name.strip().casefold(): symbol.strip() for name, symbol in own_names.items()}
    types |= named
    order = [name for name in (*_CLASSES, *named) if name in types]
    return _Known({name: types[name] for name in order}, classes, frozenset(valid), by_isin, folded)


def _asked(position: Position, known: _Known, *, bare_is_american: bool) -> _Question | Decision:
    """What to ask the judge of symbols about a position; a decision where nothing can be asked."""
    names = position.names
    own = next(
        (known.own_names[name.casefold()] for name in _own_names(names) if name.casefold() in known.own_names),
        None,
    )
    if own is not None:
        # type:symbol, as proposals are written; VOD:XLON names no type.
        first, _, rest = own.partition(":")
        if first in known.classes:
            return _Question(position, [(first, rest)], [rest])
        return _question(position, known.types, [own], known)
    meant = meant_by(names, bare_is_american=bare_is_american)
    listing = _by_isin(names, meant, known)
    if listing is not None:
        asset_class, symbol = listing
        return _question(position, [asset_class], [symbol], known)
    if not meant.symbols:
        return _unnamed(position, meant, known)
    classes = meant.classes
    if classes is None:
        classes = ["crypto"] if _is_of_coin(meant.symbols[0]) else list(known.types)
    return _question(position, classes, meant.symbols, known, meant.doubt)


def _own_names(names: Names) -> list[str]:
    """The names of a position by which a person may say what it is."""
    return [name for name in (names.isin, names.ticker, names.number, names.title) if name]


def _is_of_coin(symbol: str) -> bool:
    """Whether it is a coin's price. As an exchange rate, it would be there twice once there is a type for coins."""
    pair = _PAIR.fullmatch(symbol.upper())
    return pair is not None and pair[1] in COINS and pair[2] in CURRENCIES


def _question(
    position: Position, classes: Iterable[str], symbols: Sequence[str], known: _Known, doubt: str = ""
) -> _Question | Decision:
    classes = list(classes)
    types = [name for asset_class in classes for name in known.types.get(asset_class, ())]
    if types:
        return _Question(position, [(name, symbol) for symbol in symbols for name in types], symbols, doubt)
    return Decision(
        position.lines,
        position.names.in_words,
        Outcome.REFUSED,
        reason=f"no data type is for instruments of class {' or '.join(classes)}",
        lacks_type_of=classes[0],
        quantity=position.quantity,
    )


def _by_isin(names: Names, meant: Meant, known: _Known) -> tuple[str, str] | None:
    """The class and symbol of the known instrument that a file names by its ISIN, if that is one and no other.

    An ISIN has a listing at each exchange. The symbols that the file means decide, then its exchange, its currency.
    """
    listings = known.by_isin.get(names.isin, ())
    for fits in (
        [one for one in listings if one[1] in meant.symbols],
        [one for one in listings if names.exchange and one[1].endswith(f":{names.exchange}")],
    ):
        if len(fits) == 1:
            return fits[0][:2]
    if (names.exchange and meant.symbols) or len(meant.symbols) == 1:
        return None  # another listing, which the file names
    for fits in (
        [one for one in listings if names.currency and one[2] == major(names.currency)],
        list(listings),
    ):
        if len(fits) == 1:
            return fits[0][:2]
    return None


def _unnamed(position: Position, meant: Meant, known: _Known) -> Decision:
    """A position without a ticker, whose ISIN does not say which instrument it is."""
    names = position.names
    listings = [symbol for _, symbol, _ in known.by_isin.get(names.isin, ())]
    is_valid = names.isin in known.valid
    base = Decision(
        position.lines,
        names.in_words,
        Outcome.REFUSED,
        identifier=names.isin or names.title or None,
        quantity=position.quantity,
        isin=names.isin if is_valid and not listings else None,
    )
    if names.isin and not is_valid:
        reason = f"{names.isin} is not an ISIN: its check digit is wrong"
        return replace(base, reason=reason, phrase=_phrase(None, names))
    if listings:
        reason = f"{names.isin} is the ISIN of {', '.join(listings)}, and the file does not say which"
        return replace(base, reason=reason, candidates=tuple(listings))
    of_fund = meant.classes == ["fund"]
    return replace(
        base,
        reason="no instrument is known by its ISIN" if names.isin else "the file has neither its ISIN nor its ticker",
        search=(names.title if of_fund else None) or names.isin or names.title,
        search_type=next(iter(known.types.get("fund", ())), None) if of_fund else None,
        phrase=_phrase(base.isin, names),
    )


def _phrase(isin: str | None, names: Names) -> str:
    return isin or names.title or names.ticker


def _answered(connection: Connection, questions: Sequence[_Question], known: _Known) -> list[Decision]:
    """A decision about each position, by how its symbols are judged."""
    judged: dict[tuple[str, str], _Judged] = {}

    def judge(pairs: Iterable[tuple[str, str]]) -> None:
        for row in _judge(connection, [pair for pair in dict.fromkeys(pairs) if pair not in judged]):
            judged[row.data_type, row.given] = row

    def is_plain(question: _Question) -> bool:
        first = judged[question.pairs[0]]
        return len(question.symbols) == 1 and first.outcome == "accepted"

    # Nearly all belong to the first class that is tried.
    judge(question.pairs[0] for question in questions)
    others = [(question.pairs, set[str]()) for question in questions if not is_plain(question)]
    # Class by class: a symbol that fits one class is not tried in later ones. A file may have thousands of ambiguous
    # symbols.
    for asset_class in known.types:
        asked = [
            (fits, [pair for pair in pairs if known.classes[pair[0]] == asset_class and pair[1] not in fits])
            for pairs, fits in others
        ]
        judge(pair for _, pairs in asked for pair in pairs)
        for fits, pairs in asked:
            fits.update(symbol for name, symbol in pairs if judged[name, symbol].outcome == "accepted")
    judge(
        pair
        for question in questions
        for pair in question.pairs
        if known.classes[pair[0]] == known.classes[question.pairs[0][0]] and pair[1] == question.pairs[0][1]
    )
    return [decision for question in questions for decision in _decided(question, judged, known)]


def _judge(connection: Connection, pairs: Sequence[tuple[str, str]]) -> list[_Judged]:
    parameters = {"data_types": [name for name, _ in pairs], "symbols": [symbol for _, symbol in pairs]}
    return [_Judged(**row) for row in connection.execute(query("demand.judge_symbols"), parameters).mappings()]


def _decided(question: _Question, judged: Mapping[tuple[str, str], _Judged], known: _Known) -> list[Decision]:
    names = question.position.names
    base = Decision(
        question.position.lines,
        names.in_words,
        Outcome.REFUSED,
        identifier=names.isin or names.ticker or None,
        quantity=question.position.quantity,
        isin=names.isin if names.isin in known.valid else None,
        figi=names.figi or None,
    )
    answers = [judged[pair] for pair in question.pairs if pair in judged]
    able = [one for one in answers if one.symbol is not None and one.outcome == "accepted"]
    able = able or [one for one in answers if one.symbol is not None]
    if len({one.given for one in able}) > 1 or (able and question.doubt):
        symbols = list(dict.fromkeys(one.symbol for one in able if one.symbol))
        unsaid = f"the file does not say on which exchange it trades; {names.currency} is paid on several"
        return [replace(base, symbol=symbols[0], reason=question.doubt or unsaid, candidates=tuple(symbols))]
    if not able:
        # The answer that proposes something helps most.
        worst = next((one for one in answers if one.proposal), answers[0])
        reason = worst.reason if worst.given == names.ticker else f"{worst.given}: {worst.reason}"
        candidates = (worst.proposal,) if worst.proposal else ()
        return [replace(base, reason=reason, candidates=candidates, phrase=_phrase(base.isin, names))]
    doubt = able[0].reason if able[0].outcome == "doubtful" else None
    if base.isin is None and any(map(str.isdigit, names.isin)):  # a dash stands for none
        doubt = f"its ISIN {names.isin} has a wrong check digit; it goes by its ticker"
    # The first class that has the symbol, in all of its types that are to be held.
    asset_class = known.classes[able[0].data_type]
    return [
        replace(base, outcome=Outcome.NEW, data_type=one.data_type, symbol=one.symbol, reason=doubt)
        for one in able
        if known.classes[one.data_type] == asset_class
    ]


def _each_once(decisions: Iterable[Decision]) -> list[Decision]:
    """Decisions in which no pair comes twice: two lines of one instrument are one holding."""
    once: dict[tuple[str | None, str | None], Decision] = {}
    others = list[Decision]()
    for one in decisions:
        key = (one.data_type, one.symbol)
        if one.outcome is not Outcome.NEW:
            others.append(one)
        elif key in once:
            first = once[key]
            quantities = [each.quantity for each in (first, one) if each.quantity is not None]
            once[key] = replace(
                first,
                lines=tuple(sorted({*first.lines, *one.lines})),
                quantity=EXACT.add(*quantities) if len(quantities) == 2 else None,
                isin=first.isin or one.isin,
                figi=first.figi or one.figi,
            )
        else:
            once[key] = one
    return [*others, *once.values()]


def _doubted(connection: Connection, decisions: Sequence[Decision]) -> list[Decision]:
    """Decisions with the doubts about symbols that are known by now, which the judge no longer mentions.

    An import makes a doubtful symbol known, so the next import would take its ISIN as certain.
    """
    told = [one for one in decisions if one.outcome is Outcome.NEW and one.reason is None and (one.isin or one.figi)]
    parameters = {
        "data_types": [one.data_type for one in told],
        "symbols": [one.symbol for one in told],
        "isins": [one.isin for one in told],
        "figis": [one.figi for one in told],
    }
    rows = connection.execute(query("demand.doubtful_identifiers"), parameters)
    doubts = {(row.data_type, row.symbol): row.doubt for row in rows}
    return [replace(one, reason=one.reason or doubts.get((one.data_type, one.symbol))) for one in decisions]


def _marked_as_held(connection: Connection, user: str, decisions: Sequence[Decision]) -> list[Decision]:
    symbols = sorted({one.symbol for one in decisions if one.outcome is Outcome.NEW and one.symbol})
    rows = viewers.holdings(connection, user, None, symbols, 100_000, closed_too=False)
    held: dict[tuple[str | None, str | None], Decimal | None]
    held = {(row.data_type, row.symbol): row.quantity for row in rows}
    return [
        replace(one, outcome=Outcome.HELD, held_quantity=held[one.data_type, one.symbol])
        if (one.data_type, one.symbol) in held
        else one
        for one in decisions
    ]
