"""Months of history as files: what is in them, when they are due, and that reads find what has left the database."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.errors import PricingError
from pricing_pipeline.prices import exporting, files, price_reader
from pricing_pipeline.prices.files import Store
from pricing_pipeline.settings import load_settings
from pricing_pipeline_tests.fixtures.core import DAILY, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.filing import FIRST, LAST, export_all, fill, keep, move_all, readings

SYMBOLS = ("FA", "FB", "fa.X")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A folder for files, as PRICING_EXPORT_URL names it."""
    monkeypatch.setenv("PRICING_EXPORT_URL", str(tmp_path / "history"))
    return files.place(load_settings())


@pytest.mark.parametrize("seed", range(3))
def test_every_read_is_the_same_after_months_have_left(core: Core, store: Store, seed: int) -> None:
    """S22: random histories with revisions, splits and dividends, as of any time and on any basis, digit for digit."""
    moments = fill(core, random.Random(seed), SYMBOLS)
    before = readings(core, SYMBOLS, moments)
    rows = core.one("SELECT count(*) FROM pricing.price_history WHERE data_type = :t", t=DAILY)
    keep(core, 3)
    assert export_all(core, store)
    left = move_all(core, store)
    assert left > rows / 4
    assert core.one("SELECT count(*) FROM pricing.price_history WHERE data_type = :t", t=DAILY) <= len(SYMBOLS) * 30
    assert core.one("SELECT count(*) FROM pricing.price_revisions WHERE data_type = :t", t=DAILY) == 0
    after = readings(core, SYMBOLS, moments)
    for read, bars in before.items():
        assert list(map(str, after[read])) == list(map(str, bars)), read
