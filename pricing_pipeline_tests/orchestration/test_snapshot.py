"""Definitions never depend on a live database: last good copy, handed-on copy, and the reload."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.code_pointer import CodePointer
from dagster._core.definitions.reconstruct import (
    initialize_repository_def_from_pointer,
    reconstruct_repository_def_from_pointer,
)
from dagster._core.definitions.repository_definition import RepositoryLoadData
from sqlalchemy import Engine, event, make_url

from pricing_pipeline.defs.snapshot import EMPTY, RegistrySnapshot, take
from pricing_pipeline.settings import load_settings
from pricing_pipeline_tests.fixtures.core import DAILY, FX, NAV, QUOTE, Core
from pricing_pipeline_tests.fixtures.dagster import Stage, an_empty_instance, newly_loading
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox

NOWHERE = "postgresql://worker:canary-of-the-url@127.0.0.1:9/pricing"
DEFINITIONS = CodePointer.from_module("pricing_pipeline.definitions", "definitions", working_directory=None)


@pytest.fixture
def load_context() -> Iterator[None]:
    """What a process remembers of how its definitions were loaded; other tests start from nothing."""
    with newly_loading():
        yield


@pytest.fixture
def statements() -> Iterator[list[str]]:
    """What this process sends to databases."""
    sent: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        sent.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    yield sent
    event.remove(Engine, "before_cursor_execute", note)


def types(stage: Stage) -> set[str]:
    return {
        spec.key.path[1] for spec in stage.definitions.resolve_all_asset_specs() if spec.key.path[0] == "price_history"
    }


def test_b1_definitions_load_from_the_last_good_copy_while_the_database_is_away(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before = take(load_settings())
    monkeypatch.setenv("PRICING_DATABASE_URL", NOWHERE)
    stage.reload()
    assert types(stage) == {QUOTE, DAILY, FX, NAV}
    assert take(load_settings()) == before
    assert "using the last good copy" in caplog.text
    assert "canary" not in caplog.text


def test_b1_the_copy_is_the_registry_and_nothing_else(
    stage: Stage, core: Core, database_url: str, tmp_path: Path
) -> None:
    kept = (tmp_path / "registry.json").read_text()
    snapshot = RegistrySnapshot.from_json(kept)
    assert snapshot == take(load_settings())
    assert snapshot.version == core.one("SELECT version FROM pricing.registry_state")
    assert snapshot.names() == [DAILY, QUOTE, FX, NAV]
    assert set(snapshot.providers) == {"fmp", "headout", "mfapi", "octo", "twelvedata", "uex", "yahoo"}
    assert snapshot.routes == {
        DAILY: ["twelvedata"],
        QUOTE: ["twelvedata"],
        FX: ["twelvedata"],
        NAV: ["mfapi"],
    }
    password = make_url(database_url).password
    assert password is None or str(password) not in kept
    assert [path.name for path in tmp_path.iterdir()] == ["registry.json"]


def test_b1_many_data_types_cost_as_many_statements_as_four(stage: Stage, core: Core, statements: list[str]) -> None:
    """Nothing is asked of the database for each type. How long it takes is a matter of the machine."""
    stage.reload()
    of_four = len(statements)
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes)"
        " SELECT 'quote_' || number, 'quote', 5 FROM generate_series(1, 12) number RETURNING data_type"
    )
    statements.clear()
    stage.reload()
    assert len(types(stage)) == 16
    assert len(statements) == of_four > 0


@pytest.mark.parametrize("kept", [None, "{", "[]", '{"version": 3}'])
def test_b1_without_a_copy_that_can_be_read_only_the_follower_waits(
    environment: None,
    core: Core,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    kept: str | None,
) -> None:
    if kept is not None:
        (tmp_path / "registry.json").write_text(kept)
    with monkeypatch.context() as outage:
        outage.setenv("PRICING_DATABASE_URL", NOWHERE)
        assert take(load_settings()) == EMPTY
        assert f"and there is no good copy in {tmp_path}/registry.json: the database at" in caplog.text
        instance = an_empty_instance()
        stage = Stage(instance)
    assert list(stage.definitions.resolve_all_asset_specs()) == []
    assert [sensor.name for sensor in stage.repository.sensor_defs] == ["follow_registry"]
    # The database is back, and its registry is not the one that was loaded.
    version = core.one("SELECT version FROM pricing.registry_state")
    said = str(stage.tick("follow_registry").skip_message)
    assert said.startswith(f"the registry has version {version} since")
    assert "loaded is 0" in said


def test_b1_a_registry_without_rows_waits_for_the_first(stage: Stage, core: Core) -> None:
    core.rows("UPDATE pricing.data_type_registry SET is_active = false")
    stage.reload()
    assert [sensor.name for sensor in stage.repository.sensor_defs] == ["follow_registry"]
    assert "is unchanged" in str(stage.tick("follow_registry").skip_message)


def test_b1_g7_where_nobody_can_tell_a_webserver_to_reload_the_follower_says_so_for_good(
    stage: Stage, core: Core, clock: Clock
) -> None:
    """Of a `python_module` the daemon has a server of its own, and the webserver another one, out of our reach."""
    reload = "until the code location is reloaded there (Deployment, Code locations, Reload)"
    first = stage.tick("follow_registry")
    clock.advance(3600)
    later = stage.tick("follow_registry", first.cursor)
    assert first.skip_message == later.skip_message
    assert "is unchanged (version" in str(later.skip_message)
    assert f"A webserver that was started before that may show an older one {reload}" in str(later.skip_message)

    core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = 'mf_nav'")
    changed = stage.tick("follow_registry", later.cursor)
    assert f"a webserver shows the old one {reload}" in str(changed.skip_message)
    # The daemon has loaded it, and the webserver has not: the time of the change is what tells.
    clock.advance(3600)
    stage.reload()
    (since,) = re.findall("since about .*? UTC", str(changed.skip_message))
    loaded = str(stage.tick("follow_registry", changed.cursor).skip_message)
    assert "is unchanged" in loaded
    assert since in loaded
    assert since not in str(later.skip_message)


def test_b1_a_copy_that_cannot_be_kept_is_no_reason_to_fail(
    environment: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PRICING_HOME", str(tmp_path / "file"))
    assert take(load_settings()).names() == [DAILY, QUOTE, FX, NAV]
    assert "cannot be kept" in caplog.text


def test_b1_a_run_worker_has_the_definitions_of_its_code_location(
    environment: None,
    core: Core,
    sandbox: RunningSandbox,
    load_context: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A type is retired while its run starts: the worker's definitions still have it, the others are served."""
    location = initialize_repository_def_from_pointer(DEFINITIONS)
    core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = 'mf_nav'")
    monkeypatch.setenv("PRICING_SANDBOX_URL", sandbox.url)
    handed_on = location.repository_load_data
    with monkeypatch.context() as outage:
        outage.setenv("PRICING_DATABASE_URL", NOWHERE)
        (tmp_path / "registry.json").unlink()
        remote = reconstruct_repository_def_from_pointer(DEFINITIONS, handed_on)
    worker = reconstruct_repository_def_from_pointer(DEFINITIONS, handed_on)
    keys = location.asset_graph.get_all_asset_keys()
    assert worker.asset_graph.get_all_asset_keys() == remote.asset_graph.get_all_asset_keys() == keys

    instance = an_empty_instance()
    run = worker.get_implicit_global_asset_job_def().execute_in_process(
        instance=instance,
        tags={"dagster/partition": "2010-03-01"},
        asset_selection=[dg.AssetKey(["price_history", name]) for name in (DAILY, NAV)],
        raise_on_error=False,
    )
    (failure,) = [event for event in run.all_events if event.is_step_failure]
    assert failure.step_failure_data.user_failure_data.description == (
        "unknown data type mf_nav. pricing-pipeline type list shows the active ones."
    )
    assert core.one("SELECT count(*) FROM pricing.price_history WHERE data_type = 'equity_daily'") == 4 * 23


def test_b1_a_code_server_that_starts_reads_the_registry(environment: None, core: Core, load_context: None) -> None:
    """To Dagster it reconstructs, too, yet nothing was handed to it."""
    core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = 'mf_nav'")
    repository = reconstruct_repository_def_from_pointer(DEFINITIONS, RepositoryLoadData())
    names = {key.path[1] for key in repository.asset_graph.materializable_asset_keys}
    assert names == {DAILY, QUOTE, FX}


SHOWN = (
    "UPDATE pricing.data_type_registry SET default_ttl_minutes = 2 WHERE data_type = 'fx_rate'",
    "UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = 'fx_rate'",
    "DELETE FROM pricing.data_type_registry WHERE data_type = 'fx_rate'",
    "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes) VALUES ('new_quote', 'quote', 5)",
    "INSERT INTO pricing.data_collectors (provider, base_url) VALUES ('idle', 'https://idle.example.com')",
    "UPDATE pricing.data_collectors SET is_active = false WHERE provider = 'idle'",
    "UPDATE pricing.data_collectors SET base_url = 'https://new.example.com' WHERE provider = 'idle'",
    "INSERT INTO pricing.provider_declarations (provider, host, content) VALUES ('idle', 'idle.example.com', 'a: a')",
    "UPDATE pricing.provider_declarations SET content = 'b: b' WHERE provider = 'idle'",
    "DELETE FROM pricing.provider_declarations WHERE provider = 'idle'",
    "DELETE FROM pricing.data_collectors WHERE provider = 'idle'",
    "INSERT INTO pricing.provider_routing (data_type, provider, rank) VALUES ('equity_quote', 'yahoo', 2)",
    "DELETE FROM pricing.provider_routing WHERE data_type = 'equity_quote'",
)
"""Changes of what assets show, one after the other."""


def test_b1_each_change_that_an_asset_shows_is_a_new_version(core: Core) -> None:
    for change in SHOWN:
        before = core.one("SELECT version FROM pricing.registry_state")
        core.rows(change)
        assert core.one("SELECT version FROM pricing.registry_state") > before, change


def test_b1_who_has_no_code_server_is_told_to_reload(stage: Stage, core: Core) -> None:
    loaded = core.one("SELECT version FROM pricing.registry_state")
    core.rows(SHOWN[0])
    said = str(stage.tick("follow_registry").skip_message)
    changed = core.one("SELECT version FROM pricing.registry_state")
    assert said.startswith(f"the registry has version {changed} since about ")
    assert f"loaded is {loaded}: the daemon loads it within a minute, and a webserver shows the old one until" in said
    stage.reload()
    assert "is unchanged" in str(stage.tick("follow_registry").skip_message)


def test_b1_what_no_asset_shows_reloads_nothing(stage: Stage, core: Core) -> None:
    core.rows(
        "UPDATE pricing.data_collectors SET is_active = is_active, base_url = base_url, max_in_flight = 3,"
        " quota_bytes = 1000"
    )
    core.rows("UPDATE pricing.provider_declarations SET content = content")
    assert "is unchanged" in str(stage.tick("follow_registry").skip_message)
