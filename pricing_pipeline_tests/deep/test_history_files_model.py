"""Months of history move to files, and no read shows it: random histories, and reads during moves."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import date
from pathlib import Path

import pandas as pd
import pytest
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.errors import PricingError
from pricing_pipeline.prices import exporting
from pricing_pipeline.prices.files import Store, open_store
from pricing_pipeline.settings import load_settings
from pricing_pipeline_tests.faults.test_files_at_once import frame
from pricing_pipeline_tests.fixtures.core import DAILY, Core
from pricing_pipeline_tests.integration.test_history_files import closes, days, put
from pricing_pipeline_tests.support.filing import export_all, fill, keep, move_all, readings, reads_of

SYMBOLS = ("FA", "fa.X")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A folder for files, as PRICING_EXPORT_URL names it."""
    monkeypatch.setenv("PRICING_EXPORT_URL", str(tmp_path / "history"))
    return open_store(load_settings())


@pytest.mark.parametrize("seed", range(4))
def test_f12_every_read_is_the_same_after_months_have_left(core: Core, store: Store, seed: int) -> None:
    """Random histories with revisions, splits and dividends, as of any time, on any basis: digit for digit."""
    dice = random.Random(seed)
    reads = reads_of(dice, SYMBOLS, fill(core, dice, SYMBOLS), 40)
    before = readings(core, reads)
    rows = core.one("SELECT count(*) FROM pricing.price_history WHERE data_type = 'equity_daily'")
    keep(core, 3)
    assert export_all(core, store)
    assert move_all(core, store) > 0
    left = core.one("SELECT count(*) FROM pricing.price_history WHERE data_type = 'equity_daily'")
    assert left <= min(rows, len(SYMBOLS) * 30)
    assert core.one("SELECT count(*) FROM pricing.price_revisions") == 0
    for read, bars, again in zip(reads, before, readings(core, reads), strict=True):
        assert again == bars, read


def test_f12_readers_see_every_correction_while_months_are_exported_and_leave(core: Core, store: Store) -> None:
    """The model: of each day the last amount committed before a read began, or one committed during it."""
    first = date(2020, 1, 1)
    original = dict(days(first, 366))
    begun = dict(original)
    put(core, *begun.items())
    keep(core, 3)
    committed, stop, faults = dict(begun), time.monotonic() + 6, list[str]()
    dice = random.Random(7)

    def correct() -> None:
        day = dice.choice(sorted(begun))
        begun[day] = committed[day] + 1000  # once more, if the last try was refused
        put(core, (day, begun[day]))
        committed[day] = begun[day]

    def export() -> None:
        exporting.export(core.engine, store, DAILY, date(2020, dice.randint(1, 12), 1))

    def leave() -> None:
        exporting.move(core.engine, store, DAILY, date(2020, dice.randint(1, 12), 1))

    def read() -> None:
        least = dict(committed)
        found = {day: int(close * 100) for day, close in dice.choice((closes, frame))(core).items()}
        most = dict(begun)
        for day, amount in least.items():
            if not amount <= found.get(day, -1) <= most[day]:
                faults.append(f"{day}: {found.get(day)} is not from {amount} to {most[day]}")

    def again_and_again(work: Callable[[], None]) -> None:
        while time.monotonic() < stop:
            with suppress(PricingError, DBAPIError):  # refused, because another move came between
                work()

    with ThreadPoolExecutor(6) as crowd:
        list(crowd.map(again_and_again, (correct, export, export, leave, read, read)))
    assert faults == []
    export_all(core, store)
    assert {day: int(close * 100) for day, close in closes(core).items()} == committed
    filed = pd.concat(
        pd.read_parquet(path, partitioning=None) for path in Path(store.root).glob("data_type=*/*/*.parquet")
    )
    for at, versions in filed.groupby("observed_at"):
        amounts = sorted(int(close * 100) for close in versions["close"])
        newest = committed[at.date()]
        assert amounts == list(range(original[at.date()], newest + 1, 1000)), "each version is there once"
        assert versions["revised_at"].isna().sum() == 1
