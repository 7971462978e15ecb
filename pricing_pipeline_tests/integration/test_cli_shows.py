"""`show` of a subscription, a holding, a route, a limit, a key and a split or dividend: all that is known of one."""

from __future__ import annotations

import pytest

from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import QUOTE, TWELVEDATA, Core

CANARY = "canary-5ecret-0123456789"


def told(text: str) -> dict[str, str]:
    """Lines of a thing by their names."""
    return {name: value.strip() for name, value in (line.split(":", 1) for line in text.splitlines() if line)}


def test_a_subscription_is_shown_with_the_state_of_its_price(cli: CommandLine, core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh()
    words = ("subscription", "show", "aapl", "--type", QUOTE, "--user")
    lines = told(cli(*words, "ann").stdout)
    assert (lines["user"], lines["watches"]) == ("ann", f"{QUOTE} AAPL")
    assert lines["since"] == lines["last seen"]
    assert lines["its price"].startswith("fresh: ")
    one = cli(*words, "ann", "--json").json
    assert (one["user_id"], one["symbol"], one["price"]["state"]) == ("ann", "AAPL", "fresh")
    assert cli(*words, "bob").error.startswith(f"bob does not watch {QUOTE} AAPL now.")
    assert "no data type is called 'nope'" in cli("subscription", "show", "AAPL", "--type", "nope").error


def test_a_holding_is_shown_a_closed_one_too(cli: CommandLine, core: Core) -> None:
    core.hold("ann", (QUOTE, "AAPL"))
    words = ("holding", "show", "aapl", "--type", QUOTE, "--user")
    lines = told(cli(*words, "ann").stdout)
    assert (lines["holds"], lines["status"]) == (f"{QUOTE} AAPL", "active")
    assert lines["kept"] == "at most 1 d old while nobody watches"
    assert lines.keys() >= {"since", "its price"}
    core.end_holding("ann", (QUOTE, "AAPL"))
    lines = told(cli(*words, "ann").stdout)
    assert lines["status"] == "closed"
    assert "closed" in lines
    assert "kept" not in lines
    assert cli(*words, "ann", "--json").json["closed_at"] is not None
    assert cli(*words, "bob").error.startswith(f"bob has never held {QUOTE} AAPL.")


def test_a_route_is_shown_with_its_place_and_its_provider(cli: CommandLine, core: Core) -> None:
    cli("route", "add", "yahoo", "--type", QUOTE, "--rank", "5")
    lines = told(cli("route", "show", "yahoo", "--type", QUOTE).stdout)
    assert (lines["rank"], lines["asked"], lines["state"]) == ("5", f"after {TWELVEDATA}", "active")
    first = cli("route", "show", TWELVEDATA, "--type", QUOTE, "--json").json
    assert (first["rank"], first["asked_after"], first["symbol"]) == (1, [], None)
    assert first["standing"] == "It is called as its limits allow."
    cli("provider", "change", TWELVEDATA, "--inactive")
    assert told(cli("route", "show", TWELVEDATA, "--type", QUOTE).stdout)["state"] == "switched off"
    assert told(cli("route", "show", "yahoo", "--type", QUOTE).stdout)["asked"] == "first"
    refused = cli("route", "show", "yahoo", "AAPL", "--type", QUOTE).error
    assert refused.startswith(f"no route says that yahoo serves AAPL of {QUOTE}.")
    cli("route", "add", "yahoo", "AAPL", "--type", QUOTE)
    assert told(cli("route", "show", "yahoo", "aapl", "--type", QUOTE).stdout)["for"] == "AAPL"


def test_a_limit_is_shown_with_what_each_key_has_used(cli: CommandLine, core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.provider_keys (provider, key_name) VALUES ('twelvedata', 'default'),"
        " ('twelvedata', 'second') ON CONFLICT DO NOTHING"
    )
    cli("limit", "set", TWELVEDATA, "minute", "55", "--key", "second")
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "IBM"))
    core.refresh()
    shown = cli("limit", "show", TWELVEDATA, "minute", "--json").json
    assert (shown["name"], shown["units"], shown["window_seconds"]) == ("minute", 2000, 60)
    assert {key["key_name"]: key["units"] for key in shown["keys"]} == {"default": 2000, "second": 55}
    assert sum(key["used"] for key in shown["keys"]) == 2
    said = cli("limit", "show", TWELVEDATA, "minute").stdout
    assert "2000 units in 1 min to each key" in said
    assert ["second", "55"] in [line.split()[::2] for line in said.splitlines()]
    assert "twelvedata has no limit 'day'" in cli("limit", "show", TWELVEDATA, "day").error
    assert "no provider is called 'nobody'" in cli("limit", "show", "nobody", "day").error


@pytest.mark.usefixtures("still")
def test_a_key_is_shown_without_the_key(cli: CommandLine, core: Core) -> None:
    words = ("key", "show", TWELVEDATA, "--name", "second")
    assert "no key 'second' of 'twelvedata' is stored or set" in cli(*words).error
    cli("key", "set", TWELVEDATA, "--name", "second", "--limit", "minute=55", stdin=CANARY, sandbox="false")
    said = cli(*words, sandbox="false")
    lines = told(said.stdout)
    assert (lines["key"], lines["ends"], lines["from"]) == ("second of twelvedata", "…89", "database")
    assert (lines["used"], lines["own limits"]) == ("yes", "minute 55 units")
    assert lines["left now"] == "55 of 55 units"
    shown = cli(*words, "--json", sandbox="false").json
    assert (shown["limits"], shown["units_left"], len(shown["keys"])) == ({"minute": 55}, 55, 1)
    also_set = cli(*words, sandbox="false", twelvedata_api_keys="second=set-0123456789-bb").stdout
    assert [line.split()[1] for line in also_set.splitlines() if line.startswith("from:")] == [
        "database",
        "setting",
    ]
    core.throttle(TWELVEDATA, 600, "second")
    assert told(cli(*words, sandbox="false").stdout)["blocked"].endswith("too fast")
    assert CANARY not in said.stdout + also_set


def test_an_action_is_shown_with_what_was_believed_before(cli: CommandLine, core: Core) -> None:
    show = ("action", "show", "aapl", "2020-08-31")
    assert "no split, spin-off or payment of AAPL on 2020-08-31 was ever known" in cli(*show).error
    add = ("action", "add", "AAPL", "2020-08-31")
    cli(*add, "--split", "5:1", "--user", "ann", "--reason", "a guess")
    cli(*add, "--split", "4:1", "--user", "bob", "--reason", "the exchange said so")
    cli(*add, "--dividend", "0.25", "--user", "ann")
    now, _, before = cli(*show, "--kind", "split").stdout.partition("\n\n")
    assert told(now).items() >= {
        ("action", "split 4:1 of AAPL (equity)"),
        ("ex day", "2020-08-31"),
        ("by", "bob"),
        ("why", "the exchange said so"),
    }
    assert told(before).items() >= {
        ("action", "split 5:1 of AAPL (equity)"),
        ("by", "ann"),
        ("why", "a guess"),
        ("ended by", "bob"),
    }
    shown = cli(*show, "--json").json
    assert sorted(one["kind"] for one in shown["actions"]) == ["dividend", "split"]
    assert [one["new_shares"] for one in shown["revisions"]] == ["5"]
    cli("action", "remove", "AAPL", "2020-08-31", "--kind", "dividend", "--user", "eve", "--reason", "no")
    gone = told(cli(*show, "--kind", "dividend").stdout)
    assert (gone["ended by"], gone["ended because"]) == ("eve", "no")
