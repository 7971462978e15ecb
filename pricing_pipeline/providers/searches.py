"""The searches of providers: what they have for some words, as instruments with canonical symbols."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from pydantic import Field

from pricing_pipeline.domain.answers import RejectedValue
from pricing_pipeline.domain.calls import Receipt, Response
from pricing_pipeline.errors import RequestRefused, SchemaDrift
from pricing_pipeline.providers.base import (
    Request,
    Schema,
    SchemaT,
    check_status,
    decode_unless_refused,
    name_of,
    refusal,
    safe_words,
    throttled,
    validate,
    validate_rows,
)
from pricing_pipeline.providers.canonical import CRYPTO, EQUITY, FX, exchange_named
from pricing_pipeline.providers.values import Implausible, major_unit

_SYMBOL = re.compile(r"[A-Z0-9^](?: ?[A-Z0-9./:=^_&'-]){0,39}")
"""The form of an instrument's symbol here."""
_SUFFIXED = re.compile(r"([A-Z0-9]+(?:[&'-][A-Z0-9]+)*?)(?:-([ABC]))?(?:\.([A-Z]+))?")
_US = "United States"


@dataclass(frozen=True, slots=True)
class Listing:
    """An instrument that a provider has found. `currency` is that of its prices here: GBP for pence."""

    symbol: str
    asset_class: str
    name: str
    exchange: str
    currency: str | None


@dataclass(frozen=True, slots=True)
class Searched:
    """The results of a search, and the cost of its call."""

    listings: list[Listing]
    receipt: Receipt


class Search(Protocol):
    """One provider's search: builds a request and reads the answer, like a Provider."""

    def build(self, words: str) -> Request:
        """The request for some words."""

    def read(self, response: Response, now: datetime) -> list[Listing]:
        """The instruments, the best first. Rows that cannot be one here are left out. Raises ProviderError."""


class _TwelveDataRow(Schema):
    symbol: str
    instrument_name: str
    exchange: str = ""
    mic_code: str = ""
    instrument_type: str = ""
    country: str = ""
    currency: str = ""


class _TwelveDataFound(Schema):
    data: list[object]


class _TwelveDataError(Schema):
    code: int
    message: str


class _TwelveDataSearch:
    """`/symbol_search`: shares of all exchanges, pairs and coins."""

    def build(self, words: str) -> Request:
        return Request("/symbol_search", (("symbol", words),))

    def read(self, response: Response, now: datetime) -> list[Listing]:
        body = decode_unless_refused("twelvedata", response, now)
        if isinstance(body, dict) and body.get("status") == "error":
            error = validate(_TwelveDataError, body, "twelvedata's error")
            raise refusal(
                "twelvedata", _with_status(response, error.code), now=now, detail=error.message
            ) or SchemaDrift(f"twelvedata sent an error with code {error.code}: {safe_words(error.message)}.")
        check_status("twelvedata", response, now=now)
        found = validate(_TwelveDataFound, body, "twelvedata's search")
        return _listings(_TwelveDataRow, found.data, "twelvedata's search", _of_twelvedata)


class _FmpRow(Schema):
    symbol: str
    name: str | None = None
    currency: str | None = None
    exchange: str | None = None


class _FmpError(Schema):
    message: str = Field(alias="Error Message")


class _FmpSearch:
    """`/search-symbol`: shares of many exchanges."""

    def build(self, words: str) -> Request:
        return Request("/search-symbol", (("query", words),))

    def read(self, response: Response, now: datetime) -> list[Listing]:
        body = decode_unless_refused("fmp", response, now)
        if isinstance(body, dict) and "Error Message" in body:
            words = safe_words(validate(_FmpError, body, "fmp's error").message)
            message = f"fmp answered {response.status}: {words.rstrip('.')}."
            if "limit reach" in words.lower():
                raise throttled(message, response, now=now)
            raise refusal("fmp", response, now=now, detail=words) or RequestRefused(message)
        check_status("fmp", response, now=now)
        return _listings(_FmpRow, _rows("fmp", body), "fmp's search", _of_fmp)


class _MfApiRow(Schema):
    code: int = Field(alias="schemeCode")
    name: str = Field(alias="schemeName")


class _MfApiSearch:
    """`/mf/search`: schemes whose name has all words."""

    def build(self, words: str) -> Request:
        return Request("/mf/search", (("q", words),))

    def read(self, response: Response, now: datetime) -> list[Listing]:
        body = decode_unless_refused("mfapi", response, now)
        check_status("mfapi", response, now=now)
        return _listings(_MfApiRow, _rows("mfapi", body), "mfapi's search", _of_mfapi)


SEARCHES: Mapping[str, Search] = {
    "twelvedata": _TwelveDataSearch(),
    "fmp": _FmpSearch(),
    "mfapi": _MfApiSearch(),
}
"""Search by the provider that has it."""


def _of_twelvedata(row: _TwelveDataRow) -> Listing | None:
    asset_class = {"Physical Currency": FX, "Digital Currency": CRYPTO}.get(row.instrument_type, EQUITY)
    symbol = row.symbol
    if asset_class == EQUITY and row.country != _US:
        if not row.exchange:
            return None
        known = exchange_named("twelvedata", row.mic_code) or exchange_named("twelvedata", row.exchange)
        # By its own name of an exchange it can be asked, though no other provider can.
        symbol = f"{symbol}:{known.mic if known else row.exchange}"
    return _listing(symbol, asset_class, row.instrument_name, row.exchange, row.currency)


def _of_fmp(row: _FmpRow) -> Listing | None:
    symbol, currency, exchange = row.symbol, row.currency or "", row.exchange or ""
    if exchange in ("FOREX", "CRYPTO"):
        if not currency:
            return None
        base = symbol.removesuffix(currency)
        asset_class = FX if exchange == "FOREX" else CRYPTO
        return _listing(f"{base}/{currency}", asset_class, row.name or "", exchange, currency)
    if parts := _SUFFIXED.fullmatch(symbol):
        ticker, share_class, suffix = parts.groups()
        known = exchange_named("fmp", suffix)
        if suffix is None or known is not None:
            symbol = ticker + (f".{share_class}" if share_class else "") + (f":{known.mic}" if known else "")
    return _listing(symbol, EQUITY, row.name or "", exchange, currency)


def _of_mfapi(row: _MfApiRow) -> Listing | None:
    return _listing(str(row.code), "fund", row.name, "", "INR")


def _listing(symbol: str, asset_class: str, name: str, exchange: str, currency: str) -> Listing | None:
    if not _SYMBOL.fullmatch(symbol):
        return None
    try:
        major: str | None = major_unit(currency)[0]
    except Implausible:
        major = None
    return Listing(symbol, asset_class, name_of(name), safe_words(exchange), major)


def _listings(
    model: type[SchemaT], rows: Sequence[object], what: str, read: Callable[[SchemaT], Listing | None]
) -> list[Listing]:
    """The rows that can be instruments here, each once."""
    found: dict[tuple[str, str], Listing] = {}
    for row in validate_rows(model, rows, "", what, place="rows"):
        listing = None if isinstance(row, RejectedValue) else read(row)
        if listing is not None:
            found.setdefault((listing.asset_class, listing.symbol), listing)
    return list(found.values())


def _with_status(response: Response, code: int) -> Response:
    """Errors came with HTTP 200 and their code in the body until about 2025."""
    status = response.status if response.status >= 400 else code
    return Response(status, response.headers, b"", response.wire_bytes)


def _rows(provider: str, body: object) -> list[object]:
    if not isinstance(body, list):
        raise SchemaDrift(f"{provider}'s search is not the list that it promises. It may have changed its API.")
    return body
