"""B26: response models, `Observation`, staging table, upsert and columns name the same things, or a test fails.

Anyone who adds a column, a field or a provider finds here what else must change with it. That the way from the
answer to the table works is shown by test_contracts_of_fetching.py.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from pricing_pipeline.domain.answers import Document
from pricing_pipeline.domain.data_types import Contents, Fetcher
from pricing_pipeline.domain.observations import Observation
from pricing_pipeline.providers import PROVIDERS, fmp, mfapi, twelvedata, yahoo_series
from pricing_pipeline.providers.base import Schema
from pricing_pipeline_tests.fixtures.core import QUOTE, Core

pytestmark = pytest.mark.usefixtures("still")

COLUMNS = {
    "symbol": "symbol",
    "observed_at": "observed_at",
    "amount": "close",
    "open_amount": "open",
    "high_amount": "high",
    "low_amount": "low",
    "scale": "close",
    "currency": "currency",
    "volume": "volume",
    "source_text": "text",
    "adjustment": "adjustment",
    "quality": "quality",
}
"""Column that holds what a provider said, and the field of Observation it comes from."""
KNOWN_OF_THE_SOURCE = {"adjustment", "quality"}
"""Fields of Observation that a parser knows of its source, or says itself, and no answer says."""
OURS = {"data_type", "provider", "call_id"}
"""What every table says beside."""
TABLES = {
    "latest_prices": {"fetched_at", "cache_ttl_minutes", "changed_at", "valued_by"},
    "price_history": {"fetched_at"},
    "price_revisions": {"recorded_at", "revised_at", "revised_by"},
}
"""Tables that hold answers, and the columns that only they have and no answer fills."""

Source = tuple[type[Schema], str] | None
"""Response model and field; None where the provider does not say it."""
_QUOTE, _BAR, _SERIES = twelvedata._Quote, twelvedata._Bar, twelvedata._SeriesMeta
SOURCES: Mapping[tuple[str, Fetcher], Mapping[str, Source]] = {
    ("twelvedata", Fetcher.QUOTE): {
        "symbol": (_QUOTE, "symbol"),
        "observed_at": (_QUOTE, "datetime"),
        "close": (_QUOTE, "close"),
        "text": (_QUOTE, "close"),
        "currency": (_QUOTE, "currency"),
    },
    ("twelvedata", Fetcher.DAILY_BARS): {
        "symbol": (_SERIES, "symbol"),
        "observed_at": (_BAR, "datetime"),
        "text": (_BAR, "close"),
        "currency": (_SERIES, "currency"),
        **{name: (_BAR, name) for name in ("open", "high", "low", "close", "volume")},
    },
    ("mfapi", Fetcher.NAV): {
        "symbol": (mfapi._Meta, "scheme_code"),
        "observed_at": (mfapi._Row, "date"),
        "close": (mfapi._Row, "nav"),
        "text": (mfapi._Row, "nav"),
        "currency": None,
    },
    ("fmp", Fetcher.QUOTE): {
        "symbol": (fmp._Quote, "symbol"),
        "observed_at": (fmp._Quote, "timestamp"),
        "close": (fmp._Quote, "price"),
        "text": (fmp._Quote, "price"),
        "currency": (fmp._Quote, "exchange"),
    },
    ("fmp", Fetcher.DAILY_BARS): {
        "symbol": (fmp._Bar, "symbol"),
        "observed_at": (fmp._Bar, "date"),
        "text": (fmp._Bar, "close"),
        "currency": None,
        **{name: (fmp._Bar, name) for name in ("open", "high", "low", "close", "volume")},
    },
    ("yahoo", Fetcher.QUOTE): {
        "symbol": (yahoo_series._Meta, "symbol"),
        "observed_at": (yahoo_series._Meta, "traded_at"),
        "close": (yahoo_series._Meta, "price"),
        "text": (yahoo_series._Meta, "price"),
        "currency": (yahoo_series._Meta, "currency"),
    },
    ("yahoo", Fetcher.DAILY_BARS): {
        "symbol": (yahoo_series._Meta, "symbol"),
        "observed_at": (yahoo_series._Bar, "at"),
        "text": (yahoo_series._Bar, "close"),
        "currency": (yahoo_series._Meta, "currency"),
        **{name: (yahoo_series._Bar, name) for name in ("open", "high", "low", "close", "volume")},
    },
}
"""Where each field of Observation comes from; what a fetcher does not bring is left out."""


def may_be_missing(field: str) -> bool:
    kind = typing.get_type_hints(Observation)[field]
    return isinstance(kind, types.UnionType) and type(None) in typing.get_args(kind)


def columns(core: Core, table: str) -> dict[str, bool]:
    """Columns of a table, and whether they may be NULL."""
    rows = core.rows(
        "SELECT attname, NOT attnotnull AS nullable FROM pg_attribute"
        " WHERE attrelid = CAST(:table AS regclass) AND attnum > 0 AND NOT attisdropped",
        table=table,
    )
    return {row.attname: row.nullable for row in rows}


def test_b26_every_column_is_filled_by_an_answer_or_is_ours(core: Core) -> None:
    for table, more in TABLES.items():
        found = columns(core, f"pricing.{table}")
        assert set(found) - OURS - more <= set(COLUMNS), f"who fills this column of {table}?"
        assert found.keys() >= OURS | more, f"{table} lacks a column that is written"
        for name in found.keys() & COLUMNS.keys():
            said = COLUMNS[name]
            if not found[name]:
                assert not may_be_missing(said), f"{table}.{name} is NOT NULL, but {said} may be missing"
    assert set(COLUMNS) <= columns(core, "pricing.latest_prices").keys() | columns(core, "pricing.price_history")


def test_b26_every_field_of_an_observation_has_its_column_in_staging_and_table(core: Core) -> None:
    assert {field.name for field in fields(Observation)} == set(COLUMNS.values())
    full = Observation(
        *("AAPL", datetime(2026, 11, 20, tzinfo=UTC), Decimal("3.1"), "3.1", "USD"),
        *(Decimal(value) for value in ("2.1", "4.1", "1.1", "7")),
        quality="said of it",
    )
    core.enqueue(QUOTE, "AAPL")
    core.store(core.claim_one(), full)
    (bar,) = core.rows("SELECT * FROM pricing.price_history")
    (latest,) = core.rows("SELECT * FROM pricing.latest_prices")
    stored = {
        "amount": 310,
        "open_amount": 210,
        "high_amount": 410,
        "low_amount": 110,
        "scale": 2,
        "volume": 7,
    }
    stored |= {"symbol": "AAPL", "currency": "USD", "observed_at": full.observed_at, "source_text": "3.1"}
    stored |= {"adjustment": "raw", "quality": "said of it"}
    assert stored.keys() == COLUMNS.keys()
    for row in (bar, latest):
        assert {name: value for name, value in row._mapping.items() if name in stored} == {
            name: stored[name] for name in row._mapping if name in stored
        }


def test_b26_every_field_of_a_document_has_its_column(core: Core) -> None:
    said = {field.name for field in fields(Document)}
    ours = {"data_type", "provider", "call_id", "recorded_at"}
    assert columns(core, "pricing.documents").keys() == said | ours
    # A period that is missing is stored as -infinity, a body that is withdrawn as NULL.
    assert {name for name, nullable in columns(core, "pricing.documents").items() if nullable} == {"body"}


def test_b26_every_provider_and_fetcher_says_where_its_values_come_from() -> None:
    served = {
        (name, fetcher)
        for name, provider in PROVIDERS.items()
        for fetcher in provider.fetchers
        if fetcher.contents is Contents.PRICES
    }
    assert set(SOURCES) == served


def test_b26_what_must_be_stored_must_be_in_the_answer() -> None:
    names = {field.name for field in fields(Observation)} - KNOWN_OF_THE_SOURCE
    for key, sources in SOURCES.items():
        assert {name for name in names if not may_be_missing(name)} <= set(sources) <= names, key
        for name, source in sources.items():
            if source is not None:
                model, field = source
                assert field in model.model_fields, f"{model.__name__} has no {field}, which {name} comes from"
                if not may_be_missing(name):
                    assert model.model_fields[field].is_required(), f"{model.__name__}.{field} may be left out"
