"""Handlers of users' own: a real package with entry points, in a real notifier, beside handlers that misbehave."""

from __future__ import annotations

import re
import shlex
import sqlite3
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

from pricing_pipeline.operations import notifier, own_handlers
from pricing_pipeline.operations.handlers import make_handlers
from pricing_pipeline.settings import Settings
from pricing_pipeline_tests.fixtures.cli import ROOT, CommandLine
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.support.pages import blocks

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
