"""What has never worked is late at once, with its cause, whether or not anybody watches anything."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from sqlalchemy import Engine

from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.operations import console, dagster_failures
from pricing_pipeline.operations.console import Console
from pricing_pipeline.operations.dagster_failures import Kind
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.api_server import RunningApi, running_api
from pricing_pipeline_tests.support.patience import wait_until
from pricing_pipeline_tests.support.working import late, start, words

REASON = "DagsterInvalidDefinitionError: Conflicting definitions found with name 'export_history'"


def note(core: Core, kind: Kind, **failing: str) -> None:
    with core.engine.begin() as connection:
        dagster_failures.note(connection, kind, failing)


def test_b23_a_code_location_that_does_not_load_is_late_until_it_loads(core: Core) -> None:
    start(core)
    assert late(core) == set()
    note(core, Kind.LOCATION, pricing_pipeline=REASON)
    assert words(core) == {"code_location": f"Dagster cannot load the definitions, so nothing is refreshed: {REASON}"}
    note(core, Kind.LOCATION)
    assert late(core) == set()


def test_b23_a_sensor_that_succeeds_later_shows_that_the_code_location_loads(core: Core, clock: Clock) -> None:
    """Another Dagster may have taken over: the daemon that noted the failure never looks again."""
    start(core)
    clock.advance(5)
    note(core, Kind.LOCATION, pricing_pipeline=REASON)
    assert late(core) == {"code_location"}
    clock.advance(5)
    core.call("SELECT pricing.note_life('refresh_watched', 0.1)")
    assert late(core) == set()


def test_b23_each_sensor_that_has_not_worked_is_named_and_other_kinds_stay(core: Core) -> None:
    start(core)
    note(core, Kind.TICK, report_alerts="it failed")
    note(core, Kind.SENSOR, report_sources="has not ticked", prune_dagster="fails: odd")
    assert words(core) == {"sensor": "the sensor prune_dagster fails: odd; the sensor report_sources has not ticked"}
    note(core, Kind.SENSOR, report_sources="fails: it was passed over")
    assert words(core) == {"sensor": "the sensor report_sources fails: it was passed over"}
    start(core)  # the daemon of the new start has seen nothing yet
    assert late(core) == set()
    assert core.rows("SELECT kind, name FROM pricing.dagster_failures") == [("tick", "report_alerts")]


def test_b23_a_duty_that_has_never_run_is_late_with_its_error(core: Core) -> None:
    start(core)
    core.rows("DELETE FROM pricing.duties")
    core.rows("ALTER FUNCTION pricing.resolve_tasks() RENAME TO resolve_nothing")
    assert late(core) == set()
    core.call("SELECT pricing.run_duties()")
    assert words(core) == {
        "duties": "the duty resolve_tasks has not run yet: function pricing.resolve_tasks() does not exist"
    }


def test_b23_a_duty_that_is_never_begun_is_late_once_others_have_run_for_20_seconds(core: Core, clock: Clock) -> None:
    clock.stop()
    start(core)
    core.rows("DELETE FROM pricing.duties")
    clock.advance(19)
    core.call("SELECT pricing.run_duties()")
    core.rows("DELETE FROM pricing.duties WHERE duty = 'warn_frozen'")
    assert late(core) == set()
    clock.advance(1)
    assert words(core) == {"duties": "the duty warn_frozen has not run yet"}
    core.rows(
        "INSERT INTO pricing.duties (duty, not_before) VALUES ('warn_frozen', pricing.clock() + interval '1 hour')"
    )
    assert late(core) == set()


def test_b23_only_who_may_operate_learns_why(api: RunningApi, core: Core) -> None:
    start(core)
    note(core, Kind.LOCATION, pricing_pipeline=REASON)
    tokens = {scope: api.caller(scope).token for scope in (Scope.READ, Scope.OPERATE)}

    def asked(token: str | None) -> dict[str, object]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        answer = api.client.get("/healthz", headers=headers)
        assert answer.status_code == 503
        content: dict[str, object] = answer.json()
        return content

    stranger = {"status": "late", "late": ["code_location"]}
    wait_until(lambda: asked(None) == stranger)
    assert asked(tokens[Scope.READ]) == asked("x" * 43) == stranger
    assert asked(tokens[Scope.OPERATE]) == {
        **stranger,
        "causes": {"code_location": f"Dagster cannot load the definitions, so nothing is refreshed: {REASON}"},
    }


def test_b23_of_a_database_that_is_away_nobody_is_told_more(owner_engine: Engine) -> None:
    away = make_engine("postgresql://nobody:canary@127.0.0.1:9/nowhere")
    with running_api(away, owner_engine) as api:
        answer = api.client.get("/healthz", headers={"Authorization": f"Bearer {'x' * 43}"})
    assert (answer.status_code, answer.json()) == (503, {"status": "late", "late": ["database"]})
    away.dispose()


def test_b23_the_console_says_once_what_does_not_work_and_once_that_it_works_again(tmp_path: Path) -> None:
    said: list[str] = []
    (tmp_path / console.NAME).write_text('{"queue": "of an earlier start"}')
    shown = Console(tmp_path, said.append)

    def look(content: str) -> list[str]:
        (tmp_path / console.NAME).write_text(content)
        said.clear()
        shown.look()
        return list(said)

    shown.look()
    assert said == []
    first = look(json.dumps({"code_location": "it is odd", "freshness": "3 of 9 pairs now"}))
    assert first == [
        "Does not work: code location: it is odd.",
        "Does not work: freshness: 3 of 9 pairs now.",
    ]
    assert look(json.dumps({"code_location": "it is odd", "freshness": "4 of 10 pairs now"})) == []
    assert look("{half a fi") == []
    assert look(json.dumps({"code_location": "it is other"})) == [
        "Does not work: code location: it is other.",
        "Works again: freshness",
    ]
    away = json.dumps({"database": "the database does not answer"})
    assert look(away) == ["Does not work: database: the database does not answer."]
    assert look(json.dumps({"code_location": "it is other"})) == ["Works again: database"]
    assert look("{}") == ["Works again: code location"]


def test_b23_the_notifier_writes_for_the_console_what_is_late(core: Core, tmp_path: Path) -> None:
    start(core)
    stop = threading.Event()
    away = make_engine("postgresql://nobody:canary@127.0.0.1:9/nowhere")
    written = tmp_path / console.NAME
    threads = []
    try:
        for engine, seen in ((core.engine, '{"code_location": '), (away, '{"database": ')):
            stop = threading.Event()
            note(core, Kind.LOCATION, pricing_pipeline=REASON)
            thread = threading.Thread(target=console.keep_writing, args=(engine, stop), kwargs={"folder": tmp_path})
            thread.start()
            threads.append((stop, thread))
            wait_until(lambda seen=seen: written.exists() and written.read_text().startswith(seen))  # type: ignore[misc]
            assert "canary" not in written.read_text()
            stop.set()
    finally:
        for stop, thread in threads:
            stop.set()
            thread.join()
        away.dispose()
