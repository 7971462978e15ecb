"""What all commands share: help with examples, `--json`, errors of one sentence, a quick start."""

from __future__ import annotations

import re
import shlex
import socket
import subprocess
import sys
from typing import Any
from uuid import uuid4

import pytest
import typer.main

from pricing_pipeline.cli import app
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.database import TestServer, bare_template

template = bare_template

SLOW = {
    "sqlalchemy",
    "psycopg",
    "httpx",
    "pandas",
    "numpy",
    "pydantic",
    "rich",
    "dagster",
    "alembic",
    "starlette",
}


def all_commands() -> dict[tuple[str, ...], Any]:
    found = {}

    def walk(group: Any, path: tuple[str, ...]) -> None:
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                walk(command, (*path, name))
            else:
                found[*path, name] = command

    walk(typer.main.get_command(app), ())
    return found


COMMANDS = all_commands()


def test_every_promised_command_is_there() -> None:
    promised = {
        "": "up status page sandbox",
        "subscription": "watch end list",
        "holding": "open import close list",
        "list": "add show remove",
        "alert": "list show acknowledge silence unsilence",
        "price-alert": "add list show remove",
        "recipient": "add list show change remove",
        "notify": "test log",
        "operation": "list show status retry cancel",
        "operation-type": "add list show change remove",
        "price": "show why history gaps export",
        "document": "show",
        "product": "list show availability set-zone",
        "commodity": "sync list show terminal routes",
        "backfill": "start list show cancel",
        "instrument": "list show find add change merge spell pause resume remove",
        "calendar": "list add-session close-day undo",
        "type": "list show add change set-ttl refresh retire revive",
        "export": "list run move",
        "task": "list show retry cancel forget",
        "quarantine": "list show release reject",
        "action": "list show add remove",
        "provider": "list show use undo record change probe declare undeclare symbols try draft",
        "route": "list add remove",
        "limit": "list set remove set-caps",
        "key": "set list change remove rotate",
        "token": "add list remove",
        "db": "upgrade url psql backup restore",
    }
    words = {(*noun.split(), verb) for noun, verbs in promised.items() for verb in verbs.split()}
    assert words == COMMANDS.keys()


def test_every_command_has_json_and_an_example_that_can_be_typed() -> None:
    for path, command in COMMANDS.items():
        # psql and ledgers have formats of their own.
        has_json = any("--json" in one.opts for one in command.params)
        assert has_json == (path not in [("db", "psql"), ("price", "export")]), path
        (example,) = re.findall(r"^ *Example: (pricing-pipeline .+)$", command.help, re.MULTILINE)
        program, *words = shlex.split(example)
        assert (program, tuple(words[: len(path)])) == ("pricing-pipeline", path)
        # Parses the rest as the command itself would, without running it.
        command.make_context(path[-1], words[len(path) :])


def test_help_is_told_without_a_database(cli: CommandLine) -> None:
    nowhere = "postgresql://nobody@127.0.0.1:9/pricing"
    said = cli("price", "show", "--help", database_url=nowhere, owner_url=nowhere)
    assert said.exit_code == 0
    assert "\n  Example: pricing-pipeline price show " in said.stdout
    assert "--json" in said.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["prize"],
            "No such command 'prize'. Did you mean 'price', 'provider'? See `pricing-pipeline --help`.",
        ),
        (["price", "show"], "Missing argument 'SYMBOL'. See `pricing-pipeline price show --help`."),
        (
            ["price", "show", "A", "--yaml"],
            "No such option: --yaml See `pricing-pipeline price show --help`.",
        ),
        (["db"], "Missing command. See `pricing-pipeline db --help`."),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_code_2(cli: CommandLine, words: list[str], sentence: str) -> None:
    said = cli(*words)
    assert said.exit_code == 2
    assert said.error.replace("--yaml.", "--yaml") == sentence


def test_who_separates_symbols_by_commas_is_told_how_it_is_done(cli: CommandLine) -> None:
    said = cli("subscription", "watch", "AAPL,NVDA", "--type", "equity_quote")
    assert (said.exit_code, said.stdout) == (2, "")
    assert "'AAPL,NVDA' has a comma. Separate symbols by spaces: AAPL NVDA." in said.error


def test_no_command_takes_several_symbols_with_commas() -> None:
    several = {
        path: command
        for path, command in COMMANDS.items()
        if any(one.metavar == "SYMBOL" and one.nargs == -1 for one in command.params)
    }
    assert len(several) > 10
    for path, command in several.items():
        words = []
        for one in command.params:
            if one.required and one.metavar != "SYMBOL":
                words += ["x"] if one.param_type_name == "argument" else [one.opts[0], "x"]
        with pytest.raises(typer.BadParameter, match="Separate symbols by spaces: A B"):
            command.make_context(path[-1], [*words, "A,B"])


def test_arguments_that_are_no_text_are_refused_in_a_sentence(cli: CommandLine) -> None:
    said = cli("price", "show", b"A\xff".decode(errors="surrogateescape"))
    assert said.exit_code == 2
    assert said.error == r"'A\udcff' is not UTF-8 text. Check the terminal's encoding."


def test_no_command_is_the_help(cli: CommandLine) -> None:
    assert cli().stdout == cli("--help").stdout
    assert "backfill" in cli().stdout
    assert cli("--version").exit_code == 0


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"database_url": "mysql://ann:secret@127.0.0.1/x"}, "only PostgreSQL 15 or newer works"),
        ({"database_url": "nonsense secret"}, "is not a database URL"),
        ({"database_url": "postgresql://ann:secret@127.0.0.1:1/x"}, "does not answer"),
        ({"web_port": "many"}, "PRICING_WEB_PORT"),
    ],
)
def test_wrong_settings_are_one_sentence_and_no_password(
    cli: CommandLine, settings: dict[str, str], words: str
) -> None:
    said = cli("price", "show", "AAPL", **settings)
    assert said.exit_code == 1
    assert words in said.error
    assert "secret" not in said.stderr


def test_a_database_of_another_encoding_is_one_sentence(cli: CommandLine, server: TestServer) -> None:
    """It names encoding, database and the way out; there were 50 lines of traceback."""
    name = f"ascii_{uuid4().hex[:12]}"
    with server.admin() as admin:
        admin.execute(f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0")
    try:
        for words in (["db", "upgrade"], ["status"], ["price", "show", "AAPL"]):
            said = cli(*words, database_url=server.url(name), owner_url=server.url_of_owner(name))
            assert said.exit_code == 1
            error = said.stderr.splitlines()[-1]
            assert f"error: the database {name} is encoded in SQL_ASCII, and only UTF8 works." in error
            assert "TEMPLATE template0" in error
            assert "PRICING_DATABASE_URL" in error
            assert "Traceback" not in said.stderr
    finally:
        server.drop(name)


def test_up_refuses_in_one_sentence_what_cannot_work(cli: CommandLine) -> None:
    assert "PRICING_MASTER_KEY" in cli("up", master_key="main:canary").error
    with cli.running():
        assert "already running" in cli("up", "--no-demo", "--json").error


def test_starting_imports_nothing_slow() -> None:
    """`--help` in a quarter of a second: the slowest of these alone would take longer."""
    code = "import sys, pricing_pipeline.cli; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not SLOW & set(run.stdout.split())


def test_a_taken_port_is_one_sentence(cli: CommandLine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"127.0.0.1:{port} is taken" in cli("sandbox", "--port", str(port)).error
