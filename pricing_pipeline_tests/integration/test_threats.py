"""Claims of the threat model in docs/security.md that no other file tests: what owners, backups and homes give away."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import errors
from pydantic import SecretStr
from sqlalchemy import make_url

from pricing_pipeline import stack
from pricing_pipeline.db import backup
from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Rows
from pricing_pipeline.errors import ProviderError
from pricing_pipeline.keys.clients import open_clients
from pricing_pipeline.keys.sealing import new_key
from pricing_pipeline.processes.home import prepare_home
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.refresh.settling import settle_answer
from pricing_pipeline.settings import Settings
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import FX, QUOTE, TWELVEDATA, Core, observation
from pricing_pipeline_tests.fixtures.server import ScriptedServer

CANARY = "canary-5ecret-0123456789"


@pytest.fixture
def owner(owner_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(owner_url, autocommit=True) as session:
        yield session


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER ROLE CURRENT_USER SUPERUSER",
        "CREATE ROLE mine SUPERUSER",
        "SET ROLE postgres",
        "COPY (SELECT 1) TO PROGRAM 'cat'",
        "COPY (SELECT 1) TO '/tmp/of-the-owner'",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT rolpassword FROM pg_authid",
        "CREATE FUNCTION pricing.mine() RETURNS integer LANGUAGE c AS 'libc', 'abort'",
        "ALTER SYSTEM SET listen_addresses = '*'",
    ],
)
def test_b2_an_owner_does_not_leave_its_database(owner: psycopg.Connection[Any], statement: str) -> None:
    with pytest.raises(errors.InsufficientPrivilege):
        owner.execute(statement.encode())


def test_a4_who_changes_a_providers_address_gets_its_key(core: Core) -> None:
    """An owner may change it, so anyone who takes an owner over has the keys that are used from then on."""
    with ScriptedServer(lambda c: c.answer(b"{}")) as thief:
        core.rows("UPDATE pricing.data_collectors SET base_url = :url", url=thief.url)
        settings = Settings(sandbox=False, twelvedata_api_key=SecretStr(CANARY))
        with open_clients(settings, core.engine) as clients, pytest.raises(ProviderError):
            clients["twelvedata"].fetch(Fetcher.QUOTE, ["AAPL"])
        assert CANARY.encode() in thief.requests[0]


def test_a4_a_provider_is_sent_its_own_key_and_no_other(core: Core) -> None:
    keys = {"twelvedata": f"{CANARY}-one", "fmp": f"{CANARY}-two"}
    with ScriptedServer(lambda c: c.answer(b"{}")) as one, ScriptedServer(lambda c: c.answer(b"{}")) as two:
        servers = {"twelvedata": one, "fmp": two}
        for name, server in servers.items():
            core.rows(
                "UPDATE pricing.data_collectors SET base_url = :url WHERE provider = :name",
                url=server.url,
                name=name,
            )
        settings = Settings(
            sandbox=False,
            twelvedata_api_key=SecretStr(keys["twelvedata"]),
            fmp_api_key=SecretStr(keys["fmp"]),
        )
        with open_clients(settings, core.engine) as clients:
            for name in servers:
                with pytest.raises(ProviderError):
                    clients[name].fetch(Fetcher.QUOTE, ["AAPL"])
        for name, server in servers.items():
            told = b"".join(server.requests)
            assert [other for other, key in keys.items() if key.encode() in told] == [name]


STEERING = "A\x1b[31m\x1b]0;title\x07 \x9b2J \u202e\r"
"""Colour, the window's name, an empty screen, and writing that runs backwards."""


def test_f6_no_word_of_a_provider_steers_a_terminal(core: Core, cli: CommandLine) -> None:
    """It could hide what a person is to judge, or show a decision that was never made."""
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes) VALUES ('who', 'profile', 60)"
    )
    core.call(
        "SELECT pricing.merge_documents('who', 'fmp', 1, '{AAPL}', '{AAPL}', '{AAPL}', '{2026-10-29}',"
        " ARRAY[CAST(:body AS jsonb)])",
        body=json.dumps({"name": STEERING, "street": "Straße 1\u202f000"}),
    )
    for price in ("1.1", "110"):
        core.lift_limits()
        core.enqueue(FX, "EUR/USD")
        answer = Answer(observations=Rows([observation("EUR/USD", price, core.clock() - timedelta(seconds=1))]))
        body = f'{{"price": "{price}", "name": "{STEERING}"}}'.encode()
        settle_answer(core.engine, core.claim_one(), Fetched(answer, 200, len(body), body=body))
    (value,) = cli("quarantine", "list", "--json").json["values"]
    for command in (
        ["document", "show", "AAPL", "--type", "who"],
        ["quarantine", "show", str(value["value_id"])],
    ):
        said = cli(*command)
        assert "\\x1b" in said.stdout, command
        assert [char for char in STEERING if char in said.stdout and not char.isprintable()] == [], command
    assert "Straße 1\u202f000" in cli("document", "show", "AAPL", "--type", "who").stdout


def test_a4_a_backup_tells_who_watches_what_and_no_secret(
    core: Core, cli: CommandLine, owner_url: str, tmp_path: Path
) -> None:
    """What anybody reads who unpacks the file. Roles and their passwords are not of the schema."""
    core.heartbeat("ann", (QUOTE, "AAPL"))
    assert cli("key", "set", TWELVEDATA, stdin=CANARY, sandbox="false").exit_code == 0
    master = (cli.home / "master.key").read_text().splitlines()[-1].partition(":")[2]
    path = tmp_path / "prices.dump"
    assert cli("db", "backup", str(path)).exit_code == 0
    programs = backup._programs(backup._server_version(owner_url))
    told = subprocess.run(
        [programs / "pg_restore", "--file=-", path], capture_output=True, text=True, check=True
    ).stdout
    assert "ann" in told
    assert "COPY pricing.provider_credentials" in told
    secrets = [CANARY, CANARY.encode().hex(), master, str(make_url(owner_url).password)]
    assert [secret for secret in secrets if secret in told] == []


def test_f9_a_home_whose_master_key_is_elsewhere_opens_no_key(core: Core, cli: CommandLine) -> None:
    """Anyone who copies such a home has the sealed keys, and nothing that opens them."""
    master = new_key("elsewhere")
    prepare_home(cli.home)
    (cli.home / "control").write_text(master)
    said = cli("key", "set", TWELVEDATA, stdin=CANARY, sandbox="false", master_key=master)
    assert said.exit_code == 0, said
    of_home = [path for path in cli.home.rglob("*") if path.is_file()]
    holders = [path.name for path in of_home if master.partition(":")[2] in path.read_text(errors="replace")]
    assert holders == ["control"]
    assert not (cli.home / "master.key").exists()
    assert (is_used(cli, master), is_used(cli, new_key("elsewhere"))) == (True, False)


def is_used(cli: CommandLine, master_key: str) -> bool:
    """Whether the stored key opens, in a home whose settings name this master key."""
    listed = cli("key", "list", "--json", sandbox="false", master_key=master_key).json
    (one,) = (key for key in listed["keys"] if key["source"] == "database")
    return bool(one["is_used"])


def test_f6_no_word_of_a_provider_steers_the_terminal_of_up(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack, "up", lambda settings, *, demo, say: say(f"Does not work: {STEERING}"))
    said = cli("up")
    assert "\\x1b" in said.stdout
    assert [char for char in STEERING if char in said.stdout and not char.isprintable()] == []
