"""Processes that export or move a month are killed at each step: every read has all, and the next one ends the work."""

from __future__ import annotations

from decimal import Decimal
from itertools import count
from pathlib import Path

import pandas as pd
import pytest

from pricing_pipeline.prices.files import Store, open_store
from pricing_pipeline.settings import load_settings
from pricing_pipeline_tests.fixtures.core import DAILY, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.integration.test_history_files import MARCH, closes, days, due, put
from pricing_pipeline_tests.support.filing import export_all, keep
from pricing_pipeline_tests.support.killed import NAME, killing
from pricing_pipeline_tests.support.patience import wait_until


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A folder for files, as PRICING_EXPORT_URL names it."""
    monkeypatch.setenv("PRICING_EXPORT_URL", str(tmp_path / "history"))
    return open_store(load_settings())


@pytest.mark.own_sessions
def test_f12_no_value_is_lost_when_an_export_or_a_move_is_killed_at_any_step(
    core: Core, clock: Clock, store: Store
) -> None:
    """The first export of a month, its move, and exports of a correction of it; each is repeated until it ends."""
    put(core, *days(MARCH, 70))
    keep(core, 3)
    then, before = core.clock(), closes(core)
    expected = dict(before)
    with killing(core.engine.url.render_as_string(hide_password=False), store.root) as killed:
        for name in ("export", "move", "export"):
            for step in count():
                if core.one("SELECT count(*) FROM pricing.moved_days") and name == "export":
                    clock.advance(60)
                    put(core, (MARCH, 7000 + step))
                    expected[MARCH] = Decimal(7000 + step) / 100
                at = killed.work(name, DAILY, MARCH, step)
                wait_until(lambda: core.one(SESSIONS, name=NAME) == 0)
                assert closes(core) == expected, (name, step, at)
                if at is None or (name, at) == ("move", "end"):
                    break
            assert step > 5
    assert closes(core, then) == before
    export_all(core, store)
    assert due(core) == []
    filed = pd.read_parquet(store.path(DAILY, MARCH), partitioning=None)
    assert not filed.duplicated(["observed_at", "recorded_at"]).any()
    assert filed["revised_at"].isna().sum() == 31


SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = :name"
