"""Exports, moves, reads and stores of one month at the same moment: no read lacks a value, and no file is unknown."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pricing_pipeline.prices import archive, exporting, price_reader
from pricing_pipeline.prices.files import Store, open_store
from pricing_pipeline.settings import load_settings
from pricing_pipeline_tests.fixtures.core import DAILY, Core
from pricing_pipeline_tests.integration.test_history_files import MARCH, closes, days, put
from pricing_pipeline_tests.support.filing import FIRST, LAST, export_all, keep

APRIL = date(2020, 4, 1)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A folder for files, as PRICING_EXPORT_URL names it."""
    monkeypatch.setenv("PRICING_EXPORT_URL", str(tmp_path / "history"))
    return open_store(load_settings())


def after_once(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, happens: Callable[[], object]) -> None:
    """Let something happen once, right after a function has returned."""
    original = getattr(owner, name)

    def interrupted(*args: Any, **options: Any) -> Any:
        found = original(*args, **options)
        monkeypatch.setattr(owner, name, original)
        happens()
        return found

    monkeypatch.setattr(owner, name, interrupted)


def frame(core: Core) -> dict[date, Decimal]:
    with core.engine.connect() as connection:
        found = price_reader.history(connection, "AAPL", DAILY, FIRST, LAST)
    return {at.date(): close for at, close in zip(found.index, found["close"], strict=True)}


def adjusted(core: Core) -> dict[date, Decimal]:
    with core.engine.connect() as connection:
        found = price_reader.bars(connection, "AAPL", DAILY, FIRST, LAST, adjust="splits")
    return {bar.observed_at.date(): bar.close for bar in found}


@pytest.mark.parametrize("read", [closes, frame, adjusted])
def test_f12_a_read_beside_a_move_lacks_nothing(
    core: Core, store: Store, monkeypatch: pytest.MonkeyPatch, read: Callable[[Core], dict[date, Decimal]]
) -> None:
    """It had read the file of March when April left: it had April neither from a file nor from the database."""
    put(core, *days(MARCH, 100))
    keep(core, 3)
    export_all(core, store)
    exporting.move(core.engine, store, DAILY, MARCH)
    before = read(core)
    assert len(before) == 100
    after_once(monkeypatch, archive, "load", lambda: exporting.move(core.engine, store, DAILY, APRIL))
    assert read(core) == before
    assert core.one("SELECT count(*) FROM pricing.price_history WHERE observed_at < '2020-05-01'") == 0
