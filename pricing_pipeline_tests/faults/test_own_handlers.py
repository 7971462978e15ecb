"""Handlers of users' own that hang, exit and raise in a real notifier."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest

from pricing_pipeline.operations import operation_queue
from pricing_pipeline.operations import runner as runner_module
from pricing_pipeline.operations.operation_queue import Operation
from pricing_pipeline.operations.runner import OperationRunner
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.integration.test_own_handlers import DESK, add_types, install
from pricing_pipeline_tests.support.notifiers import notifier_process
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until


def enqueue(core: Core, name: str, **payload: object) -> int:
    with core.engine.begin() as connection:
        return operation_queue.enqueue(connection, name, payload)


def status(core: Core, id_: int) -> str:
    return str(core.one("SELECT status FROM pricing.async_operations WHERE id = :id", id=id_))


def last_error(core: Core, id_: int) -> str | None:
    return core.one("SELECT errors -> -1 ->> 'message' FROM pricing.async_operations WHERE id = :id", id=id_)


def test_e2_e7_a_notifier_does_operations_by_installed_handlers_whatever_others_do(
    core: Core, cli: CommandLine, database_url: str, tmp_path: Path
) -> None:
    packages = tmp_path / "packages"
    names = ("note", "hangs", "exits", "raises", "refuses", "asks", "odd", "huge")
    install(packages, "desk", DESK, {name: f"desk:{name}" for name in names})
    install(packages, "broken", "import no_such_module", {"broken_one": "broken:handle"})
    install(packages, "leaving", "raise SystemExit(5)", {"leaving_one": "leaving:handle"})
    install(packages, "shadow", "def handle(operation): ...", {"email": "shadow:handle"})
    add_types(core, *names, "broken_one")
    waits = enqueue(core, "broken_one")
    hang = [enqueue(core, "hangs") for _ in range(12)]
    bad = {name: enqueue(core, name) for name in ("exits", "raises", "refuses", "asks", "odd", "huge")}
    with notifier_process(database_url, cli.home, packages) as process:
        wait_until(lambda: all((packages / f"hangs{id_}").exists() for id_ in hang))
        good = [enqueue(core, "note", to=f"ann{n}") for n in range(20)]
        told = core.one("SELECT pricing.enqueue_message('mailbox', 'A title', 'A body')")
        wait_until(lambda: {status(core, id_) for id_ in (*good, told)} == {"completed"})
        wait_until(lambda: all(last_error(core, id_) for id_ in bad.values()))
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, "it ends, though threads of handlers hang"
    errors = {name: last_error(core, id_) for name, id_ in bad.items()}
    assert errors == {
        "exits": "its handler failed: SystemExit(3)",
        "raises": "its handler failed: Unspeakable",
        "refuses": "the desk is closed",
        "asks": "not now",
        "odd": "its handler failed: ValueError('Out of range float values are not JSON compliant')",
        "huge": "its handler failed: ValueError('its result is longer than 65536 characters')",
    }
    assert status(core, bad["refuses"]) == "failed"
    assert len((packages / "notes").read_text().splitlines()) == 20
    assert (status(core, waits), last_error(core, waits)) == ("pending", None)
    assert "broken_one (broken:handle of broken 1.0) is not used: it cannot be imported: ModuleNotFoundError" in said
    assert "leaving_one (leaving:handle of leaving 1.0) is not used: it cannot be imported: SystemExit" in said
    assert "email (shadow:handle of shadow 1.0) is not used: email is built in" in said


def test_e7_a_type_whose_handlers_never_return_is_not_begun_any_more_and_says_so_once(
    core: Core, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(runner_module, "_MOST_STUCK", 2)
    add_types(core, "hangs")
    release, called = threading.Event(), []

    def hangs(operation: Operation) -> None:
        called.append(operation.id)
        release.wait(PATIENCE)

    ids = [enqueue(core, "hangs") for _ in range(5)]
    hung = OperationRunner(core.engine, {"hangs": hangs}, worker="here", at_once=1)
    assert hung.run_due() == 2
    for _ in range(3):
        assert hung.run_due() == 0
    assert not hung.close(), "nobody waits for them"
    assert called == ids[:2]
    assert [status(core, id_) for id_ in ids] == ["pending"] * 5
    said = [record.message for record in caplog.records if "have not returned" in record.message]
    assert said == ["2 handlers have not returned; no operation of hangs begins until one has"]
    release.set()
