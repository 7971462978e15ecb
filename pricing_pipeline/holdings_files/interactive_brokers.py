"""Interactive Brokers: open positions of a Flex query, as XML.

A position may come as one line (SUMMARY) and again lot by lot (LOT). Only one of these counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from xml.parsers import expat

from pricing_pipeline.errors import HoldingsFileRefused
from pricing_pipeline.holdings_files.numbers import Mark, NotANumber, number
from pricing_pipeline.holdings_files.positions import Entry, Fault, Kind, LeftOut, Names, Read
from pricing_pipeline.holdings_files.venues import mic_at

_HELD: Mapping[str, Kind] = {"STK": Kind.SHARE, "FUND": Kind.FUND, "CRYPTO": Kind.COIN}
_NOT_HELD = {
    "BILL": "a bond",
    "BOND": "a bond",
    "CASH": "cash",
    "CFD": "a contract for difference",
    "CMDTY": "a commodity",
    "FOP": "an option",
    "FSFOP": "an option",
    "FSOPT": "an option",
    "FUT": "a future",
    "IOPT": "a structured product",
    "OPT": "an option",
    "WAR": "a warrant",
}
_DEEPEST = 50
_ROOT = "FlexQueryResponse"


def recognises(text: str) -> bool:
    """Whether a text is the answer of a Flex query."""
    return f"<{_ROOT}" in text[:2_000]


def read(text: str) -> Iterator[Read]:
    """Each open position, or why it cannot be held. Raises HoldingsFileRefused for other XML."""
    rows = _positions(text)
    with_sums = {_instrument(row) for _, row in rows if _level(row) == "SUMMARY"}
    for line, row in rows:
        if _level(row) == "LOT" and _instrument(row) in with_sums:
            continue
        category = row.get("assetCategory", "STK").upper() or "STK"
        names = _names(row, category)
        if category not in _HELD:
            reason = _NOT_HELD.get(category, f"of the category {category}, which no data type is for")
            yield LeftOut(line, names.in_words, reason)
            continue
        try:
            yield Entry(line, names, number(row.get("position", ""), Mark.POINT))
        except NotANumber as error:
            yield Fault(line, names.in_words, str(error))


def _names(row: Mapping[str, str], category: str) -> Names:
    isin = row.get("isin", "")
    if not isin and row.get("securityIDType", "").upper() == "ISIN":
        isin = row.get("securityID", "")
    return Names(
        isin=isin.strip().upper(),
        ticker=row.get("symbol", "").strip(),
        exchange=mic_at("interactive_brokers", row.get("listingExchange", "")),
        currency=row.get("currency", "").strip(),
        title=row.get("description", "").strip(),
        number=row.get("cusip", "").strip(),
        figi=row.get("figi", "").strip().upper(),
        kind=_HELD.get(category),
    )


def _level(row: Mapping[str, str]) -> str:
    return row.get("levelOfDetail", "SUMMARY").upper() or "SUMMARY"


def _instrument(row: Mapping[str, str]) -> tuple[str, ...]:
    identifier = row.get("conid") or row.get("isin") or row.get("symbol") or ""
    return row.get("accountId", ""), identifier, row.get("currency", "")


def _positions(text: str) -> list[tuple[int, Mapping[str, str]]]:
    """The attributes of each OpenPosition, and its line. A document type is refused: entities begin there."""
    found: list[tuple[int, Mapping[str, str]]] = []
    depth = 0
    begins_after = text[: len(text) - len(text.lstrip("\ufeff \t\r\n"))]
    skipped = begins_after.count("\n")
    parser = expat.ParserCreate()

    def begin(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST:
            raise HoldingsFileRefused("the file is not a Flex query: its elements are nested too deep.")
        if name == "OpenPosition":
            found.append((parser.CurrentLineNumber + skipped, attributes))

    def end(_: str) -> None:
        nonlocal depth
        depth -= 1

    def doctype(*_: object) -> None:
        raise HoldingsFileRefused("the file declares a document type, which no Flex query does. It is not read.")

    parser.StartElementHandler, parser.EndElementHandler = begin, end
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(text[len(begins_after) :], True)
    except expat.ExpatError as error:
        raise HoldingsFileRefused(
            f"the file is no valid XML at line {error.lineno + skipped}: {expat.ErrorString(error.code)}."
        ) from error
    if not found:
        raise HoldingsFileRefused("the Flex query has no OpenPosition. Add the section Open Positions to the query.")
    return found
