"""`python -m pricing_pipeline.defs.storage`: Dagster's tables for processes that start without `up`."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from dagster_postgres import DagsterPostgresStorage
from sqlalchemy import make_url

from pricing_pipeline.defs.ours import made_here
from pricing_pipeline.defs.storage import prepare
from pricing_pipeline.errors import SettingsError
from pricing_pipeline.settings import load_settings


@pytest.mark.usefixtures("environment", "dagster_url")
def test_g7_tables_made_alone_are_known_as_ours_from_any_folder() -> None:
    """No home has a note of them: the storage itself has it. It is safe to repeat."""
    for _ in range(2):
        assert "are up to date" in prepare(load_settings())
    with dg.DagsterInstance.get() as instance:
        assert not (Path(instance.root_directory) / "made-by-up").exists()
        assert made_here(instance)


@pytest.mark.usefixtures("environment")
def test_g7_tables_that_others_made_stay_as_they_are(dagster_url: str) -> None:
    DagsterPostgresStorage(dagster_url, should_autocreate_tables=True)
    assert "were made by somebody else" in prepare(load_settings())
    with dg.DagsterInstance.get() as instance:
        assert not made_here(instance)


@pytest.mark.usefixtures("environment")
def test_a_url_that_dagster_cannot_use_is_refused(monkeypatch: pytest.MonkeyPatch, dagster_url: str) -> None:
    plain = make_url(dagster_url).set(drivername="postgresql").render_as_string(hide_password=False)
    for url, words in (("", "is not set"), (plain, "must begin with postgresql[+]psycopg2://")):
        monkeypatch.setenv("PRICING_DAGSTER_URL", url)
        with pytest.raises(SettingsError, match=words):
            prepare(load_settings())
