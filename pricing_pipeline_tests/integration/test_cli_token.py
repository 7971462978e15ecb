"""`token add|list|remove`: who may use the HTTP API, for how long."""

from __future__ import annotations

import pytest

from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.database import Clock

pytestmark = pytest.mark.usefixtures("still")

ADD = ("token", "add", "short", "--scope", "read", "--any-user")


def test_b7_a_token_lasts_so_many_hours_or_until_it_is_removed(cli: CommandLine, clock: Clock) -> None:
    added = cli(*ADD, "--expires", "2h", "--json").json
    assert added["token"].startswith("pp_")
    assert added["expires_at"] is not None
    lasting = cli("token", "add", "lasting", "--scope", "watch", "--user", "ann", "--json").json
    assert lasting["expires_at"] is None
    assert "already" in cli(*ADD).error
    tokens = {token["name"]: token for token in cli("token", "list", "--json").json["tokens"]}
    assert {name: token["has_expired"] for name, token in tokens.items()} == {
        "short": False,
        "lasting": False,
    }
    assert "secret_hash" not in tokens["short"]
    clock.advance(2 * 3600)
    tokens = {token["name"]: token for token in cli("token", "list", "--json").json["tokens"]}
    assert {name: token["has_expired"] for name, token in tokens.items()} == {"short": True, "lasting": False}
    shown = cli("token", "list", "--wide").stdout
    assert "(over)" in shown
    assert "never" in shown
    again = cli(*ADD, "--expires", "1h")
    assert again.stdout.startswith("pp_")
    assert "It expires at" in again.stderr + again.stdout
    assert cli("token", "remove", "short", "--json").json == {"name": "short", "removed": True}


@pytest.mark.parametrize("span", ["0h", "-1h", "x", "9", "3651d", "Never"])
def test_b7_a_token_lasts_for_a_span_that_can_be(cli: CommandLine, span: str) -> None:
    assert cli(*ADD, "--expires", span).exit_code == 2
    assert cli("token", "list", "--json").json == {"tokens": []}
