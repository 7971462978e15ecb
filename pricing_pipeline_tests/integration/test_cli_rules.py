"""`type show|set-ttl|retire|revive`, `route`, `limit`, `provider`: what needed SQL before."""

from __future__ import annotations

from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import QUOTE, TWELVEDATA, Core


def test_ttls_are_changed_one_at_a_time_or_both(cli: CommandLine, core: Core) -> None:
    assert cli("type", "set-ttl", QUOTE, "--ttl", "15", "--json").json == {
        "data_type": QUOTE,
        "ttl_minutes": 15,
        "background_ttl_minutes": 1440,
    }
    said = cli("type", "set-ttl", QUOTE, "--background-ttl", "720").stdout
    assert said == f"{QUOTE} grows at most 15 min old while it is watched, and 12 h while it is held and not watched.\n"
    row = core.rows(
        "SELECT default_ttl_minutes, background_ttl_minutes FROM pricing.data_type_registry WHERE data_type = :name",
        name=QUOTE,
    )[0]
    assert tuple(row) == (15, 720)


def test_what_is_no_ttl_or_no_type_is_refused(cli: CommandLine, core: Core) -> None:
    for words, code, sentence in (
        (["set-ttl", QUOTE, "--ttl", "0"], 1, "a TTL is a whole number of minutes, at least 1"),
        (["set-ttl", QUOTE], 2, "give --ttl, --background-ttl, or both"),
        (["set-ttl", "nope", "--ttl", "5"], 1, "no data type is called 'nope'"),
        (["retire", "nope"], 1, "no data type is called 'nope'"),
        (["show", "nope"], 1, "no data type is called 'nope'"),
    ):
        said = cli("type", *words)
        assert said.exit_code == code
        assert sentence in said.error


def test_b3_symbols_have_a_ttl_of_their_own_until_they_go_by_their_types(cli: CommandLine, core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh()
    assert "AAPL grows at most 5 min old" in cli("type", "set-ttl", QUOTE, "aapl", "--ttl", "5").stdout
    own = "SELECT cache_ttl_minutes FROM pricing.latest_prices WHERE symbol = 'AAPL'"
    assert core.one(own) == 5
    refused = cli("type", "set-ttl", QUOTE, "AAPL", "IBM", "--ttl", "7").error
    assert "nothing is stored of equity_quote IBM yet" in refused
    assert core.one(own) == 5
    assert "at least 1" in cli("type", "set-ttl", QUOTE, "AAPL", "--ttl", "0").error
    assert cli("type", "set-ttl", QUOTE, "AAPL", "--as-type", "--json").json["ttl_minutes"] is None
    assert core.one(own) is None
    assert "either --ttl or --as-type" in cli("type", "set-ttl", QUOTE, "AAPL").error


def test_a_type_is_retired_and_revived(cli: CommandLine, core: Core) -> None:
    core.heartbeat("ann", ("fx_rate", "EUR/USD"))
    assert "fx_rate is retired" in cli("type", "retire", "fx_rate").stdout
    assert core.statuses() == {"EUR/USD": "cancelled"}
    assert cli("type", "retire", "fx_rate", "--json").json["changed"] is False
    assert "fx_rate" not in cli("type", "list").stdout
    assert "retired" in cli("type", "list", "--retired").stdout
    assert [one["data_type"] for one in cli("type", "list", "--retired", "--json").json["retired"]] == ["fx_rate"]
    assert "fx_rate (retired)" in cli("type", "show", "fx_rate").stdout
    assert cli("type", "revive", "fx_rate", "--json").json == {
        "data_type": "fx_rate",
        "is_active": True,
        "changed": True,
    }
    assert "fx_rate" in cli("type", "list").stdout


def test_f4_what_reads_a_retired_type_says_so_and_how_it_is_revived(cli: CommandLine, core: Core) -> None:
    """`price why` said that there was no such instrument, and watching that there was no such type."""
    core.heartbeat("ann", ("fx_rate", "EUR/USD"))
    core.refresh()
    retired = (
        "the data type fx_rate is retired, so it is not fetched. This revives it: pricing-pipeline type revive fx_rate"
    )
    cli("type", "retire", "fx_rate")
    said = cli("price", "why", "EUR/USD").stdout
    assert said.startswith("fx_rate: retired. Last confirmed ")
    assert said.endswith(f"{retired}.\n")
    shown = cli("price", "show", "EUR/USD")
    assert shown.stdout.count("fx_rate") == 1
    assert shown.stderr.startswith("hint: no newer price of EUR/USD comes now. fx_rate: last confirmed ")
    assert shown.stderr.endswith(f"{retired}.\n")
    assert f"has no price yet. fx_rate: nothing was ever fetched: {retired}." in cli("price", "show", "GBP/USD").stderr
    for command in (
        ("price", "show", "EUR/USD"),
        ("price", "why", "EUR/USD"),
        ("price", "history", "EUR/USD"),
    ):
        assert cli(*command, "--type", "fx_rate").error == f"{retired}."
    watching = cli("subscription", "watch", "EUR/USD", "--type", "fx_rate")
    assert watching.error == f"EUR/USD of fx_rate is refused: {retired}."


def test_a_type_is_shown_with_who_serves_it(cli: CommandLine, core: Core) -> None:
    said = cli("type", "show", QUOTE).stdout
    assert "twelvedata" in said
    told = cli("type", "show", QUOTE, "--json").json
    assert (told["ttl_minutes"], told["is_active"]) == (1, True)
    assert told["routes"][0]["provider"] == TWELVEDATA


def test_a_route_is_added_moved_and_removed(cli: CommandLine, core: Core) -> None:
    added = cli("route", "add", "yahoo", "aapl", "--type", QUOTE, "--json").json
    assert added == {"provider": "yahoo", "data_type": QUOTE, "symbol": "AAPL", "rank": 1}
    assert "as number 2" in cli("route", "add", TWELVEDATA, "AAPL", "--type", QUOTE).stdout
    unable = cli("route", "add", "mfapi", "--type", QUOTE).error
    assert "mfapi cannot serve equity_quote: it can be asked for nav, and equity_quote needs quote" in unable
    assert (
        "another provider has this rank" in cli("route", "add", "yahoo", "AAPL", "--type", QUOTE, "--rank", "2").error
    )
    assert cli("route", "add", "yahoo", "AAPL", "--type", QUOTE, "--rank", "3", "--json").json["rank"] == 3
    routes = cli("route", "list", "AAPL", "--json").json["routes"]
    assert [(one["provider"], one["rank"]) for one in routes] == [(TWELVEDATA, 2), ("yahoo", 3)]
    assert "AAPL" in cli("route", "list", "--provider", "yahoo").stdout
    core.enqueue(QUOTE, "AAPL")
    assert core.task("AAPL").provider == TWELVEDATA
    assert "no longer" in cli("route", "remove", "yahoo", "AAPL", "--type", QUOTE).stdout
    assert "no route says that yahoo serves AAPL" in cli("route", "remove", "yahoo", "AAPL", "--type", QUOTE).error
    gone = cli("route", "remove", TWELVEDATA, "--type", QUOTE).stdout
    assert f"No provider is left for {QUOTE}" in gone


def test_a_route_is_of_what_there_is(cli: CommandLine, core: Core) -> None:
    for words, sentence in (
        (["add", "nobody", "--type", QUOTE], "no provider is called 'nobody'"),
        (["add", "yahoo", "--type", "nope"], "no data type is called 'nope'"),
        (["list", "--type", "nope"], "no data type is called 'nope'"),
        (["list", "--provider", "nobody"], "no provider is called 'nobody'"),
    ):
        assert sentence in cli("route", *words).error


def test_a_limit_is_set_and_removed(cli: CommandLine, core: Core) -> None:
    assert "8 units in 1 min (minute)" in cli("limit", "set", TWELVEDATA, "minute", "8").stdout
    assert "for a new one give --seconds" in cli("limit", "set", TWELVEDATA, "day", "800").error.lower()
    wrong = cli("limit", "set", TWELVEDATA, "day", "800", "--day", "Mars/Phobos")
    assert "unknown time zone Mars/Phobos. Use a name such as UTC" in wrong.error
    day = cli("limit", "set", TWELVEDATA, "day", "800", "--day", "UTC", "--json").json
    assert (day["units"], day["day_timezone"], day["window_seconds"]) == (800, "UTC", None)
    core.rows("INSERT INTO pricing.provider_keys (provider, key_name) VALUES ('twelvedata', 'second')")
    assert "allows key second 55 units" in cli("limit", "set", TWELVEDATA, "minute", "55", "--key", "second").stdout
    limits = cli("limit", "list", TWELVEDATA, "--json").json["limits"]
    assert [(one["name"], one["key_name"], one["units"]) for one in limits] == [
        ("day", None, 800),
        ("minute", None, 8),
        ("minute", "second", 55),
    ]
    assert "second" in cli("limit", "list").stdout
    assert "that all its keys have" in cli("limit", "remove", TWELVEDATA, "minute", "--key", "second").stdout
    assert "is removed" in cli("limit", "remove", TWELVEDATA, "day").stdout
    assert "has no limit 'day'" in cli("limit", "remove", TWELVEDATA, "day").error
    (allowance,) = [one for one in [core.allowance()] if one.provider == TWELVEDATA]
    assert allowance.units_limit is not None


def test_what_is_no_limit_is_refused_in_words(cli: CommandLine, core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.provider_keys (provider, key_name) VALUES ('twelvedata', 'default') ON CONFLICT DO NOTHING"
    )
    for words, code, sentence in (
        ([TWELVEDATA, "minute", "0"], 1, "a limit is a whole number of units, at least 1"),
        ([TWELVEDATA, "minute", "8", "--key", "nobody"], 1, "the provider has no key of this name"),
        ([TWELVEDATA, "hour", "8", "--key", "default"], 1, "the provider has no limit of this name"),
        ([TWELVEDATA, "hour", "8", "--seconds", "0"], 1, "the window of a limit is longer than 0 seconds"),
        (["nobody", "minute", "8"], 1, "no provider is called 'nobody'"),
        ([TWELVEDATA, "minute", "8", "--seconds", "60", "--day", "UTC"], 2, "give either --seconds or --day"),
    ):
        said = cli("limit", "set", *words)
        assert said.exit_code == code
        assert sentence in said.error


def test_providers_are_listed_and_shown(cli: CommandLine, core: Core) -> None:
    told = {one["provider"]: one for one in cli("provider", "list", "--json").json["providers"]}
    assert QUOTE in told[TWELVEDATA]["data_types"]
    assert TWELVEDATA in cli("provider", "list").stdout
    core.rows("UPDATE pricing.data_collectors SET is_active = false WHERE provider = 'yahoo'")
    assert "yahoo (switched off)" in cli("provider", "show", "yahoo").stdout
    shown = cli("provider", "show", TWELVEDATA, "--json").json
    assert [one["name"] for one in shown["limits"]] == ["minute"]
    assert "no provider is called 'nobody'" in cli("provider", "show", "nobody").error
