"""Handlers of users' own: a real package with entry points, in a real notifier, beside handlers that misbehave."""

from __future__ import annotations

import re
import shlex
import signal
import sqlite3
import sys
import textwrap
import threading
import tomllib
from pathlib import Path

import pytest

from pricing_pipeline.operations import notifier, operation_queue, own_handlers
from pricing_pipeline.operations import runner as runner_module
from pricing_pipeline.operations.handlers import make_handlers
from pricing_pipeline.operations.operation_queue import Operation
from pricing_pipeline.operations.runner import OperationRunner
from pricing_pipeline.settings import Settings
from pricing_pipeline_tests.fixtures.cli import ROOT, CommandLine
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.support.notifiers import notifier_process
from pricing_pipeline_tests.support.pages import blocks
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until

DESK = """
    import asyncio, json, os, sys, time
    from pathlib import Path
    from pricing_pipeline.errors import OperationFailed

    HERE = Path(__file__).parent

    def note(operation):
        with (HERE / "notes").open("a") as file:
            file.write(json.dumps([operation.payload, str(operation.idempotency_key)]) + "\\n")
        return {"noted": True}

    def hangs(operation):
        (HERE / f"hangs{operation.id}").touch()
        time.sleep(3600)

    def exits(operation):
        sys.exit(3)

    class Unspeakable(Exception):
        def __repr__(self):
            raise RuntimeError
        __str__ = __repr__

    def raises(operation):
        raise Unspeakable

    def refuses(operation):
        raise OperationFailed("the desk is closed", is_permanent=True)

    def asks(operation):
        raise OperationFailed("not now", retry_after=float("inf"))

    def odd(operation):
        return float("nan")

    def huge(operation):
        return "x" * 10**6

    async def later(operation):
        return None

    CONSTANT = 7
"""


def install(folder: Path, package: str, code: str, handlers: dict[str, str]) -> None:
    """What an installer leaves of a package: its module, and the record with its entry points."""
    folder.mkdir(exist_ok=True)
    (folder / f"{package}.py").write_text(textwrap.dedent(code))
    record = folder / f"{package}-1.0.dist-info"
    record.mkdir()
    (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    points = "\n".join(f"{name} = {value}" for name, value in handlers.items())
    (record / "entry_points.txt").write_text(f"[pricing_pipeline.operations]\n{points}\n")


def add_types(core: Core, *names: str) -> None:
    for name in names:
        core.rows(
            "INSERT INTO pricing.operation_types (operation_type, payload_fields, max_attempts, time_limit_seconds)"
            """ VALUES (:name, '{"to": "string?"}', 2, 1)""",
            name=name,
        )


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


@pytest.mark.parametrize(
    ("handlers", "fault"),
    [
        ({"post": "desk:note"}, None),
        ({"post": "desk:later"}, "it is asynchronous"),
        ({"post": "desk:CONSTANT"}, "it is of the type int, which cannot be called"),
        ({"post": "desk:missing"}, "it cannot be imported: AttributeError"),
        ({"post": "no_such_module:x"}, "it cannot be imported: ModuleNotFoundError"),
        ({"Post": "desk:note"}, "no operation type can be called 'Post'"),
        ({"webhook": "desk:note"}, "webhook is built in"),
    ],
)
def test_e2_a_handler_that_cannot_be_used_says_why(
    core: Core, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, handlers: dict[str, str], fault: str | None
) -> None:
    install(tmp_path / "packages", "desk", DESK, handlers)
    monkeypatch.syspath_prepend(str(tmp_path / "packages"))
    monkeypatch.delitem(sys.modules, "desk", raising=False)
    (own,) = own_handlers.load(make_handlers(core.engine, Settings(home=tmp_path)))
    assert (own.handler is None) == (fault is not None)
    assert (own.fault or "").startswith(fault or "")
    own_runners = notifier.make_own_runners(core.engine, make_handlers(core.engine, Settings(home=tmp_path)), "here")
    assert len(own_runners) == (fault is None)
    for runner in own_runners:
        assert runner.close()


def test_e2_an_import_that_hangs_and_a_broken_record_stop_no_other(
    core: Core, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "slow", "import threading\nthreading.Event().wait(60)", {"slow": "slow:handle"})
    install(tmp_path, "desk", DESK, {"note": "desk:note"})
    install(tmp_path, "odd", "", {})
    (tmp_path / "odd-1.0.dist-info/entry_points.txt").write_text("[pricing_pipeline.operations]\nnonsense\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "desk", raising=False)
    monkeypatch.setattr(own_handlers, "_PATIENCE", 0.5)
    faults = {own.operation_type: own.fault for own in own_handlers.load(())}
    assert faults == {"note": None, "slow": "importing it takes longer than 0.5 s"}


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
    assert said == ["2 handlers have not returned; of hangs no operation is begun until one has"]
    release.set()


def test_e2_two_handlers_for_one_type_are_both_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "desk_a", "def handle(operation): ...", {"post": "desk_a:handle"})
    install(tmp_path, "desk_b", "def handle(operation): ...", {"post": "desk_b:handle"})
    monkeypatch.syspath_prepend(str(tmp_path))
    (own,) = own_handlers.load(())
    assert own.fault == "there are two handlers for it. Uninstall one of the packages"
    assert own.source == "desk_a:handle of desk_a 1.0 and desk_b:handle of desk_b 1.0"


def test_e2_commands_say_who_does_a_type_and_why_not(
    core: Core, cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "packages", "desk", DESK, {"note": "desk:note", "nobody": "desk:note"})
    install(tmp_path / "packages", "noisy", "print('noise')\nimport no_such_module", {"post": "noisy:handle"})
    monkeypatch.syspath_prepend(str(tmp_path / "packages"))
    add_types(core, "note", "post")
    listed = cli("operation-type", "list", "--json").json["operation_types"]
    assert {each["operation_type"]: each["handler"] for each in listed}["note"] == "desk:note of desk 1.0"
    said = cli("operation-type", "list")
    assert "a handler for 'nobody' is installed (desk:note of desk 1.0), but there is no such type" in said.stderr
    shown = cli("operation-type", "show", "post", "--json").json
    assert shown["fault"] == "it cannot be imported: ModuleNotFoundError: No module named 'no_such_module'"
    assert "cannot be imported" in cli("operation-type", "show", "post").stdout
    assert cli("operation-type", "show", "note", "--json").json["fault"] is None


def test_e8_an_own_channel_tells_no_recipient_who_has_become_inactive(
    core: Core, cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "packages", "desk", DESK, {"desk": "desk:note"})
    monkeypatch.syspath_prepend(str(tmp_path / "packages"))
    monkeypatch.delitem(sys.modules, "desk", raising=False)
    fields = ("--field", "recipient=string", "--field", "title=string", "--field", "body=string")
    assert cli("operation-type", "add", "desk", *fields).exit_code == 0
    for name in ("ann", "bob"):
        assert cli("recipient", "add", name, "desk").exit_code == 0
        core.rows(f"SELECT pricing.enqueue_message('{name}', 'A title', 'A body')")
    assert cli("recipient", "change", "bob", "--inactive").exit_code == 0
    (runner,) = notifier.make_own_runners(core.engine, make_handlers(core.engine, Settings(home=tmp_path)), "here")
    assert runner.run_due() == 2
    runner.close()
    states = core.rows("SELECT payload ->> 'recipient' AS name, status, errors FROM pricing.async_operations")
    assert {row.name: row.status for row in states} == {"ann": "completed", "bob": "failed"}
    assert (tmp_path / "packages/notes").read_text().count("A title") == 1


# The page


def test_e2_the_handler_of_the_page_does_what_the_page_queues(
    core: Core, cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = ROOT / "docs/adding-an-operation.md"
    (handler,), (package,) = blocks(page, "python"), blocks(page, "toml")
    declared = tomllib.loads(package)["project"]["entry-points"][own_handlers.GROUP]
    install(tmp_path / "packages", "sheet_rows", handler, declared)
    monkeypatch.syspath_prepend(str(tmp_path / "packages"))
    monkeypatch.setenv("OPERATION_SHEET", str(tmp_path / "sheet"))
    for block in blocks(page, "sh"):
        for command in re.findall(r"^pricing-pipeline ([^#\n]+)", block, re.MULTILINE):
            said = cli(*shlex.split(command))
            assert said.exit_code == 0, said
    assert "sheet_rows:handle of sheet_rows 1.0" in cli("operation-type", "show", "sheet_row").stdout
    core.rows(blocks(page, "sql")[-1].rstrip(";\n").replace('": "', '" : "'))
    (runner,) = notifier.make_own_runners(core.engine, make_handlers(core.engine, Settings(home=tmp_path)), "here")
    assert runner.run_due() == 1
    runner.close()
    assert core.one("SELECT result FROM pricing.async_operations") == {"symbol": "AAPL"}
    with sqlite3.connect(tmp_path / "sheet") as sheet:
        assert sheet.execute("SELECT symbol, price FROM prices").fetchall() == [("AAPL", "530.37")]
