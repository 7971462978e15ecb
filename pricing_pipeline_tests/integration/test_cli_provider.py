"""The commands for providers' keys (A4, F9): what they store, what they say, and what they never say."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from pricing_pipeline.keys.sealing import new_key
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox

pytestmark = pytest.mark.usefixtures("still")

CANARY = "canary-5ecret-0123456789"
ONE, TWO = new_key("one"), new_key("two")


def listed(cli: CommandLine, *names: str, **settings: str) -> dict[tuple[str, str], dict[str, Any]]:
    """What `key list` tells, by name and source."""
    told = cli("key", "list", *names, "--json", **({"sandbox": "false"} | settings))
    assert told.exit_code == 0, told
    return {(one["key_name"], one["source"]): one for one in told.json["keys"]}


def test_a4_a_key_is_read_from_standard_input_and_the_first_makes_the_master_key(core: Core, cli: CommandLine) -> None:
    said = cli("key", "set", TWELVEDATA, stdin=f"{CANARY}\n", sandbox="false")
    path = cli.home / "master.key"
    assert said.exit_code == 0, said
    assert "Key default of twelvedata (…89) is stored, under master key" in said.stdout
    assert str(path) in said.stderr
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert CANARY not in said.stdout + said.stderr
    again = cli("key", "set", TWELVEDATA, "--json", stdin="another-secret-of-34-xy", sandbox="false")
    assert again.json["replaced"] is True
    assert again.json["master_key_made_in"] is None
    assert again.stderr == ""
    one = listed(cli)["default", "database"]
    assert (one["provider"], one["hint"], one["is_active"], one["is_used"]) == (TWELVEDATA, "…xy", True, True)
    assert one["master_key_id"] == again.json["master_key_id"]
    assert one["replaced_at"] is not None
    told = cli("key", "list").stdout
    assert "…xy" in told
    assert str(path) in told
    assert not listed(cli, sandbox="true")["default", "database"]["is_used"]
    assert "no real key is used" in cli("key", "list", sandbox="true").stderr


def test_a4_a_key_may_have_limits_of_its_own(core: Core, cli: CommandLine) -> None:
    said = cli(
        *("key", "set", TWELVEDATA, "--name", "second", "--limit", "minute=55", "--json"),
        stdin=CANARY,
    )
    assert said.json["limits"] == {"minute": 55}
    assert core.one("SELECT units FROM pricing.provider_key_limits WHERE key_name = 'second'") == 55
    wrong = cli(*("key", "set", TWELVEDATA, "--name", "third", "--limit", "fortnight=55"), stdin=CANARY)
    assert "no limit of this name" in wrong.error
    assert ("third", "database") not in listed(cli), "half of a command is none"


def test_a4_what_makes_no_sense_is_refused_and_changes_nothing(core: Core, cli: CommandLine) -> None:
    for words, stdin, told in (
        (["twelvedata"], "", "the line is empty"),
        (["twelvedata"], f"{CANARY}\n{CANARY}", "more than the one line"),
        (["twelvedata"], "canary with spaces", "no HTTP header can carry"),
        (["twelvedata"], CANARY * 400, "at most 4096 characters"),
        (["nobody"], CANARY, "no provider is called 'nobody'. Known: "),
        ([CANARY], CANARY, "If that was an API key, it is in your shell's history"),
        (["mfapi"], CANARY, "mfapi needs no key"),
        (["twelvedata", "--name", "No Name"], CANARY, "a key's name has 1 to 48"),
        (["twelvedata", "--limit", "minute"], CANARY, "Write it like minute=55"),
        (["twelvedata", "--limit", "minute=0"], CANARY, "at least 1"),
    ):
        said = cli("key", "set", *words, stdin=stdin)
        assert told in said.error
        assert "canary" not in said.stderr
        assert core.rows("SELECT FROM pricing.provider_credentials") == []
        assert core.rows("SELECT FROM pricing.provider_keys") == []


def test_f9_no_second_first_master_key_is_made(core: Core, cli: CommandLine, tmp_path: Path) -> None:
    """On another machine, or after the file was lost: nobody could open what is sealed with one of two."""
    cli("key", "set", TWELVEDATA, stdin=CANARY)
    elsewhere = {"home": str(tmp_path / "elsewhere")}
    refused = cli("key", "set", TWELVEDATA, "--name", "second", stdin=CANARY, **elsewhere)
    assert "there is no master key yet" in refused.error
    assert not (tmp_path / "elsewhere/master.key").exists()
    one = listed(cli, **elsewhere)["default", "database"]
    assert (one["is_used"], one["hint"]) == (False, None)
    assert "restore it from a backup" in one["error"]
    # What the runbook says of a lost master key.
    assert cli("key", "remove", TWELVEDATA, **elsewhere).exit_code == 0
    assert cli("key", "set", TWELVEDATA, stdin=CANARY, **elsewhere).exit_code == 0
    assert listed(cli, **elsewhere)["default", "database"]["is_used"] is True


def test_a4_stored_keys_go_before_those_that_are_set(core: Core, cli: CommandLine) -> None:
    environment = {
        "twelvedata_api_key": "set-secret-0123456-aa",
        "twelvedata_api_keys": "second=set-0123456789-bb",
        "sandbox": "false",
    }
    assert listed(cli, **environment)["default", "setting"]["is_used"] is True
    said = cli("key", "set", TWELVEDATA, stdin=CANARY, **environment)
    assert "holds a key default too; the stored one is used" in said.stderr
    found = listed(cli, TWELVEDATA, **environment)
    assert {place: (one["hint"], one["is_used"]) for place, one in found.items()} == {
        ("default", "database"): ("…89", True),
        ("default", "setting"): ("…aa", False),
        ("second", "setting"): ("…bb", True),
    }
    removed = cli("key", "remove", TWELVEDATA, **environment)
    assert "It is not used either" in removed.stderr
    assert listed(cli, **environment)["default", "setting"]["is_used"] is False
    core.enqueue(QUOTE, "AAPL")
    assert core.claim() == []


def test_a4_status_says_that_no_key_is_left(core: Core, cli: CommandLine) -> None:
    cli("key", "set", TWELVEDATA, stdin=CANARY, sandbox="false")
    assert f"no key of {TWELVEDATA} is active" not in cli("status").stdout
    cli("key", "remove", TWELVEDATA, sandbox="false")
    (line,) = [line for line in cli("status").stdout.splitlines() if f"no key of {TWELVEDATA} is active" in line]
    assert line.split()[:2] == ["blocked:", f"{TWELVEDATA}:"]


def test_a4_the_sandbox_goes_on_with_its_own_key_when_stored_ones_are_removed(
    core: Core, cli: CommandLine, sandbox: RunningSandbox
) -> None:
    for name in ("second", "default"):
        cli("key", "set", TWELVEDATA, "--name", name, stdin=CANARY)
        assert cli("key", "remove", TWELVEDATA, "--name", name).exit_code == 0
    days = ("--from", "2013-01-02", "--to", "2013-01-31")
    said = cli("backfill", "start", "AAPL", "--type", "equity_daily", *days, "--json", sandbox_url=sandbox.url)
    assert said.exit_code == 0, said
    assert said.json["calls"] == 1
    assert f"no key of {TWELVEDATA} is active" not in cli("status").stdout


def test_a4_a_key_that_is_not_there_cannot_be_removed(core: Core, cli: CommandLine) -> None:
    assert "no key 'second' of 'twelvedata' is stored" in cli("key", "remove", TWELVEDATA, "--name", "second").error
    assert "no provider is called 'nobody'" in cli("key", "list", "nobody").error


def test_f9_rotate_makes_a_master_key_and_seals_everything_with_it(core: Core, cli: CommandLine) -> None:
    cli("key", "set", TWELVEDATA, stdin=CANARY)
    first = listed(cli)["default", "database"]["master_key_id"]
    assert cli("key", "rotate", "--json").json["resealed"] == 0
    done = cli("key", "rotate", "--new-master-key", "--json").json
    assert (done["resealed"], done["unused"], done["faults"]) == (1, [first], [])
    one = listed(cli)["default", "database"]
    assert (one["master_key_id"], one["hint"]) == (done["newest"], "…89")
    told = cli("key", "rotate")
    assert told.stdout.startswith("0 stored keys and addresses were encrypted again")
    assert f"No stored key needs {first} any more" in told.stdout


def test_f9_master_keys_in_the_setting_rotate_by_putting_a_new_one_first(core: Core, cli: CommandLine) -> None:
    cli("key", "set", TWELVEDATA, stdin=CANARY, master_key=ONE)
    assert not (cli.home / "master.key").exists()
    assert "before the others yourself" in cli("key", "rotate", "--new-master-key", master_key=ONE).error
    assert cli("key", "rotate", "--json", master_key=f"{TWO},{ONE}").json["in_use"] == ["two"]
    assert listed(cli, master_key=TWO)["default", "database"]["is_used"] is True
    lost = cli("key", "rotate", "--json", master_key=ONE)
    assert lost.exit_code == 1
    assert "master key 'two', which is not among those set (one)" in lost.json["faults"][0]


def test_f9_a_bad_master_key_is_one_sentence(core: Core, cli: CommandLine) -> None:
    for command in (["set", TWELVEDATA], ["rotate"]):
        said = cli("key", *command, stdin=CANARY, master_key="main:canary")
        assert "PRICING_MASTER_KEY cannot be read: key 1 is not id:base64" in said.error
        assert "canary" not in said.stderr


def test_where_calls_go_is_shown(core: Core, cli: CommandLine) -> None:
    told = cli("provider", "show", TWELVEDATA, sandbox_url="http://127.0.0.1:8123").stdout
    real = "https://api.twelvedata.com"
    assert f"http://127.0.0.1:8123/twelvedata (the sandbox answers in place of {real})" in told
    assert f"{real}\n" in cli("provider", "show", TWELVEDATA, sandbox="false").stdout
