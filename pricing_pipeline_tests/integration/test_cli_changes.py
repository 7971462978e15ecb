"""Commands that change settings (`provider change`, `type change`, ...): what was, and what is now."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from sqlalchemy import text

from pricing_pipeline.cli.arguments import byte_count
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, FX, NAV, QUOTE, TWELVEDATA, Core, observation
from pricing_pipeline_tests.support.quarantining import bring, one_call

PAIR = "EUR/USD"


def bounds(core: Core, data_type: str, symbol: str) -> tuple[object, ...] | None:
    rows = core.rows(
        "SELECT lowest, highest, jumps_trusted_until FROM pricing.plausibility_bounds"
        " WHERE data_type = :data_type AND symbol = :symbol",
        data_type=data_type,
        symbol=symbol,
    )
    return tuple(rows[0]) if rows else None


def test_how_a_provider_is_called_is_changed(cli: CommandLine, core: Core) -> None:
    told = cli("provider", "change", TWELVEDATA, "--delay-ms", "500", "--quota", "40GB", "--json").json
    assert told["provider"] == TWELVEDATA
    assert (told["before"]["request_delay_ms"], told["after"]["request_delay_ms"]) == (0, 500)
    assert told["after"] == {**told["before"], "request_delay_ms": 500, "quota_bytes": 40 * 10**9}
    (row,) = core.rows("SELECT * FROM pricing.data_collectors WHERE provider = 'twelvedata'")
    assert (row.request_delay_ms, row.quota_bytes, row.is_active) == (500, 40 * 10**9, True)
    said = cli("provider", "change", TWELVEDATA, "--max-in-flight", "3", "--pause-seconds", "9").stdout
    assert [line.split() for line in said.splitlines()[2:]] == [
        ["max", "in", "flight", "8", "3"],
        ["throttle", "pause", "seconds", "5", "9"],
    ]
    again = cli("provider", "change", TWELVEDATA, "--max-in-flight", "3").stdout
    assert again == "it was so already; nothing has changed.\n"
    shown = cli("provider", "show", TWELVEDATA).stdout
    assert "3 calls of all workers together" in shown
    assert "500 ms between calls" in shown


def test_a_provider_is_switched_off_and_on(cli: CommandLine, core: Core) -> None:
    core.enqueue(QUOTE, "AAPL")
    said = cli("provider", "change", TWELVEDATA, "--inactive").stdout
    assert said.splitlines()[2].split() == ["is", "active", "yes", "no"]
    assert core.claim() == []
    assert cli("provider", "change", TWELVEDATA, "--active", "--json").json["after"]["is_active"] is True
    core.enqueue(QUOTE, "AAPL")
    assert core.claim_one().symbols == ["AAPL"]


def test_what_no_provider_can_have_is_refused(cli: CommandLine, core: Core) -> None:
    for words, code, sentence in (
        ([TWELVEDATA], 2, "say what changes"),
        (["nobody", "--active"], 1, "no provider is called 'nobody'"),
        ([TWELVEDATA, "--delay-ms", "-1"], 1, "a delay between requests is 0 to 3,600,000 milliseconds"),
        ([TWELVEDATA, "--max-in-flight", "11"], 1, "a provider takes 1 to 10 calls at a time"),
        ([TWELVEDATA, "--pause-seconds", "0"], 1, "a pause after a refusal is longer than 0 seconds"),
        ([TWELVEDATA, "--quota", "0"], 1, "a quota is at least one byte"),
        ([TWELVEDATA, "--quota", "much"], 2, "Write it like 40GB"),
        ([TWELVEDATA, "--quota", "9" * 30], 1, "a number is larger than the database can hold"),
    ):
        before = core.rows("SELECT * FROM pricing.data_collectors ORDER BY 1")
        said = cli("provider", "change", *words)
        assert said.exit_code == code
        assert sentence in said.error
        assert core.rows("SELECT * FROM pricing.data_collectors ORDER BY 1") == before


@pytest.mark.parametrize(
    ("given", "bytes_"),
    [("5000", 5000), ("1.5 MB", 1_500_000), ("2kb", 2000), ("20GiB", 20 * 2**30)],
)
def test_a_quota_is_given_in_any_unit(given: str, bytes_: int) -> None:
    assert byte_count(given, "--quota") == bytes_


def test_what_is_known_of_an_instrument_is_corrected(cli: CommandLine, core: Core) -> None:
    words = ("--currency", "EUR", "--scale", "4", "--listed-on", "1980-12-12", "--name", "Apple Inc.")
    told = cli("instrument", "change", "aapl", *words, "--json").json
    assert (told["symbol"], told["asset_class"], told["data_type"]) == ("AAPL", "equity", None)
    assert told["after"]["listed_on"] == "1980-12-12"
    (row,) = core.rows("SELECT * FROM pricing.instruments WHERE symbol = 'AAPL'")
    assert (row.currency, row.scale, str(row.listed_on), row.name) == ("EUR", 4, "1980-12-12", "Apple Inc.")
    said = cli("instrument", "change", "AAPL", "--currency", "USD", "--listed-on", "none")
    assert [line.split() for line in said.stdout.splitlines()[2:]] == [
        ["currency", "EUR", "USD"],
        ["listed", "on", "1980-12-12", "none"],
    ]
    assert "pricing-pipeline quarantine list --symbol AAPL" in said.stderr
    (row,) = core.rows("SELECT * FROM pricing.instruments WHERE symbol = 'AAPL'")
    assert (row.currency, row.scale, row.listed_on, row.name) == ("USD", 4, None, "Apple Inc.")
    assert "decimals:     at least 4" in cli("instrument", "show", "AAPL").stdout


def test_prices_of_an_instrument_are_bounded_until_it_goes_by_its_type(cli: CommandLine, core: Core) -> None:
    core.rows("INSERT INTO pricing.plausibility_bounds (data_type, lowest) VALUES ('fx_rate', 0.001)")
    assert "bounds:       fx_rate 0.001 to any (of its type)" in cli("instrument", "show", PAIR).stdout
    change = ("instrument", "change", PAIR, "--type", FX)
    told = cli(*change, "--highest", "2.5", "--json").json
    assert (told["before"]["highest"], told["after"]["highest"]) == (None, "2.5")
    assert bounds(core, FX, PAIR) == (Decimal("0.001"), Decimal("2.5"), None), "what its type has still counts"
    assert cli(*change, "--lowest", "0.5", "--trust-jumps-until", "2013-02-28").exit_code == 0
    assert bounds(core, FX, PAIR) == (Decimal("0.5"), Decimal("2.5"), datetime(2013, 3, 1, tzinfo=UTC))
    shown = cli("instrument", "show", PAIR).stdout
    assert "fx_rate 0.5 to 2.5, jumps trusted until 2013-03-01 00:00:00" in shown
    assert cli(*change, "--highest", "none", "--json").json["after"]["highest"] is None
    assert cli("instrument", "show", PAIR, "--json").json["instruments"][0]["bounds"] == [
        {
            "data_type": FX,
            "lowest": "0.5",
            "highest": None,
            "jumps_trusted_until": "2013-03-01T00:00:00Z",
            "is_own": True,
        }
    ]
    said = cli(*change, "--as-type").stdout
    assert ["lowest", "0.5", "0.001"] in [line.split() for line in said.splitlines()]
    assert bounds(core, FX, PAIR) is None


def test_what_no_instrument_can_be_is_refused(cli: CommandLine, core: Core) -> None:
    for words, code, sentence in (
        (["AAPL"], 2, "say what changes"),
        (["NOPE", "--currency", "USD"], 1, "no instrument is called NOPE. Nothing has changed."),
        (["AAPL", "--asset-class", "fx", "--scale", "2"], 1, "no fx instrument is called AAPL"),
        (["AAPL", "--currency", "dollars"], 1, "a currency has three to five capital letters"),
        (["AAPL", "--calendar", "MOON"], 1, "there is no trading calendar of this name"),
        (["AAPL", "--scale", "13"], 1, "a price has 0 to 12 decimals"),
        (["AAPL", "--listed-on", "soon"], 2, "--listed-on 'soon' is not a day"),
        (["AAPL", "--lowest", "1"], 2, "--type says whose bounds"),
        (["AAPL", "--type", QUOTE, "--scale", "2"], 2, "--type says whose bounds"),
        (["AAPL", "--type", "nope", "--lowest", "1"], 1, "no data type is called 'nope'"),
        (["AAPL", "--type", FX, "--lowest", "1"], 1, "no fx instrument is called AAPL"),
        (["AAPL", "--type", QUOTE, "--lowest", "low"], 2, "--lowest 'low' is not a number"),
        (["AAPL", "--type", QUOTE, "--lowest", "nan"], 2, "--lowest 'nan' is not a number"),
        (["AAPL", "--type", QUOTE, "--lowest", "-1"], 1, "the lowest price is not below 0"),
        (["AAPL", "--type", QUOTE, "--highest", "0"], 1, "the highest price is above 0"),
        (["AAPL", "--type", QUOTE, "--lowest", "3", "--highest", "2"], 1, "the lowest price is not above"),
        (["AAPL", "--type", QUOTE, "--lowest", "3", "--as-type"], 2, "leave out those that you give"),
        (["AAPL", "--type", QUOTE, "--trust-jumps-until", "soon"], 2, "'soon' is not a time"),
    ):
        before = core.rows("SELECT * FROM pricing.instruments ORDER BY 1, 2")
        said = cli("instrument", "change", *words)
        assert said.exit_code == code
        assert sentence in said.error
        assert core.rows("SELECT * FROM pricing.instruments ORDER BY 1, 2") == before
        assert core.rows("SELECT FROM pricing.plausibility_bounds") == []


def test_a_symbol_of_several_classes_is_changed_in_the_one_that_is_named(cli: CommandLine, core: Core) -> None:
    core.rows("INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('fx', 'AAPL')")
    refused = cli("instrument", "change", "AAPL", "--scale", "6").error
    assert refused.startswith("AAPL names instruments of several classes: equity, fx. Say which by --asset-class")
    assert cli("instrument", "change", "AAPL", "--asset-class", "fx", "--scale", "6").exit_code == 0
    assert cli("instrument", "change", "AAPL", "--type", DAILY, "--lowest", "1").exit_code == 0
    scales = core.rows("SELECT asset_class, scale FROM pricing.instruments WHERE symbol = 'AAPL' ORDER BY 1")
    assert [tuple(row) for row in scales] == [("equity", 2), ("fx", 6)]


def test_caps_of_users_are_listed_changed_and_kept(cli: CommandLine, core: Core) -> None:
    before = cli("limit", "list", "--json").json["caps"]
    told = cli("limit", "set-caps", "--pairs", "1", "--json").json
    assert (told["of"], told["before"]) == ("each user", before)
    assert told["after"] == {**before, "pairs_per_user": 1}
    core.heartbeat("ann", (QUOTE, "AAPL"))
    too_many = ("holding", "open", "AAPL", "IBM", "--type", QUOTE, "--all-or-nothing")
    assert "may watch or hold 1 pairs" in cli(*too_many).error
    said = cli("limit", "set-caps", "--pairs", "2", "--new-pairs", "7").stdout
    assert ["pairs", "per", "user", "1", "2"] in [line.split() for line in said.splitlines()]
    assert "each user: 2 pairs watched, as many held, 7 new in a minute" in cli("limit", "list").stdout
    assert "each user" not in cli("limit", "list", TWELVEDATA).stdout
    assert cli("holding", "open", "AAPL", "IBM", "--type", QUOTE).exit_code == 0


def test_caps_that_let_nobody_watch_are_refused(cli: CommandLine, core: Core) -> None:
    assert "give --pairs, --new-pairs or --price-alerts" in cli("limit", "set-caps").error
    assert "a user may watch at least one pair" in cli("limit", "set-caps", "--pairs", "0").error
    assert "a user may begin at least one pair" in cli("limit", "set-caps", "--new-pairs", "0").error
    assert "a user may have at least one price alert" in cli("limit", "set-caps", "--price-alerts", "0").error
    core.rows("DELETE FROM pricing.user_caps")
    assert "INSERT INTO pricing.user_caps DEFAULT VALUES" in cli("limit", "set-caps", "--pairs", "9").error


def test_the_size_of_a_call_is_changed(cli: CommandLine, core: Core) -> None:
    told = cli("provider", "change", TWELVEDATA, "--batch-size", "quote=1", "--json").json
    assert (told["before"]["batch_size_quote"], told["after"]["batch_size_quote"]) == (100, 1)
    assert {name for name, was in told["before"].items() if was != told["after"][name]} == {"batch_size_quote"}
    core.enqueue(QUOTE, "AAPL", "IBM")
    assert sorted(len(call.symbols) for call in core.claim(max_calls=5)) == [1, 1]


def test_a_smaller_batch_takes_down_from_how_many_symbols_it_is_worth(cli: CommandLine, core: Core) -> None:
    core.rows("UPDATE pricing.provider_capabilities SET batch_size = 5000, batch_from = 500 WHERE provider = 'mfapi'")
    told = cli("provider", "change", "mfapi", "--batch-size", "nav=20", "--json").json
    assert (told["before"]["batch_from_nav"], told["after"]["batch_from_nav"]) == (500, 20)
    both = ("--batch-size", "nav=40", "--batch-from", "nav=30")
    told = cli("provider", "change", "mfapi", *both, "--json").json
    assert (told["after"]["batch_size_nav"], told["after"]["batch_from_nav"]) == (40, 30)


def test_the_size_of_a_call_for_a_span_is_changed_and_shown(cli: CommandLine, core: Core) -> None:
    bars = ("--window-batch-size", "daily_bars=2", "--window-days", "daily_bars=500")
    said = cli("provider", "change", TWELVEDATA, *bars).stdout.splitlines()
    rows = [line.split() for line in said]
    assert ["window", "batch", "size", "daily", "bars", "120", "2"] in rows
    assert ["window", "days", "per", "call", "daily", "bars", "2000", "500"] in rows
    shown = [line.split() for line in cli("provider", "show", TWELVEDATA).stdout.splitlines()]
    assert ["daily_bars", "100", "1", "2", "500"] in shown
    (batch, _) = cli("provider", "show", TWELVEDATA, "--json").json["batches"]
    assert (batch["window_batch_size"], batch["window_days_per_call"]) == (2, 500)
    core.enqueue(DAILY, "AAPL", "IBM", "MSFT", days=(date(2026, 3, 1), date(2026, 3, 31)))
    assert sorted(len(call.symbols) for call in core.claim(max_calls=5)) == [1, 2]
    cli("provider", "change", TWELVEDATA, "--window-days", "daily_bars=any")
    (row,) = core.rows(
        "SELECT window_days_per_call AS days FROM pricing.provider_capabilities"
        " WHERE provider = 'twelvedata' AND fetcher = 'daily_bars'"
    )
    assert row.days is None


def test_a_size_that_no_call_can_have_is_refused_with_all_other_changes(cli: CommandLine, core: Core) -> None:
    before = core.rows("SELECT * FROM pricing.provider_capabilities ORDER BY 1, 2")
    for option, size, code, sentence in (
        ("--batch-size", "quote", 2, "is not a whole number"),
        ("--batch-size", "=3", 2, "names no fetcher"),
        ("--batch-size", "quote=0", 1, "batch_from is at most batch_size"),
        ("--batch-size", "quote=121", 1, "one call to twelvedata for quote takes 120 symbols at most, and 121 are"),
        ("--batch-from", "quote=0", 1, "at least one symbol shares a call"),
        ("--batch-from", "quote=any", 2, "--batch-from quote 'any' is not a whole number"),
        ("--window-batch-size", "daily_bars=0", 1, "a batch has at least one symbol"),
        ("--window-batch-size", "daily_bars=121", 1, "of 1 days takes 120 symbols at most, and 121 would share"),
        ("--window-days", "daily_bars=any", 1, "of 417 days takes 119 symbols at most, and 120 would share one"),
        ("--window-days", "daily_bars=0", 1, "a call asks for at least one day"),
        ("--window-days", "nav=30", 1, "twelvedata cannot be asked for 'nav'"),
    ):
        said = cli("provider", "change", TWELVEDATA, "--max-in-flight", "3", option, size)
        assert said.exit_code == code
        assert sentence in said.error
    assert core.rows("SELECT * FROM pricing.provider_capabilities ORDER BY 1, 2") == before
    assert core.one("SELECT max_in_flight FROM pricing.data_collectors WHERE provider = 'twelvedata'") == 8


def test_an_open_breaker_is_probed_at_once(cli: CommandLine, core: Core) -> None:
    said = cli("provider", "probe", TWELVEDATA).stdout
    assert said == "The breaker of twelvedata is not open; nothing has changed.\n"
    core.enqueue(QUOTE, "AAPL", "IBM")
    core.rows(
        "UPDATE pricing.provider_state SET breaker = 'open', breaker_since = pricing.clock(),"
        " breaker_until = pricing.clock() + interval '10 minutes', breaker_openings = 1, breaker_reason = 'it was down'"
        " WHERE provider = 'twelvedata'"
    )
    assert core.claim() == []
    assert cli("provider", "probe", TWELVEDATA, "--json").json == {"provider": TWELVEDATA, "probed": True}
    assert len(core.claim_one().symbols) == 1, "a probe asks for one symbol"
    assert "no provider is called 'nobody'" in cli("provider", "probe", "nobody").error


def test_a_key_is_used_no_more_and_again(cli: CommandLine, core: Core) -> None:
    core.enqueue(QUOTE, "AAPL")
    told = cli("key", "change", TWELVEDATA, "--inactive", "--json").json
    assert (told["before"]["is_active"], told["after"]["is_active"]) == (True, False)
    assert core.claim() == []
    said = cli("key", "change", TWELVEDATA, "--active").stdout
    assert ["is", "active", "no", "yes"] in [line.split() for line in said.splitlines()]
    assert core.claim_one().symbols == ["AAPL"]


def test_a_refused_key_is_used_again_at_once(cli: CommandLine, core: Core) -> None:
    core.enqueue(QUOTE, "AAPL")
    core.throttle(TWELVEDATA, 1800)
    assert core.claim() == []
    told = cli("key", "change", TWELVEDATA, "--unblock", "--json").json
    assert told["before"]["blocked_until"] is not None
    assert told["after"] == {"is_active": True, "blocked_until": None, "blocked_reason": None}
    assert core.claim_one().symbols == ["AAPL"]


def test_what_was_shown_of_a_refused_key_or_an_old_one_is_forgotten(cli: CommandLine, core: Core) -> None:
    core.rows("SELECT pricing.register_keys('twelvedata', ARRAY['second'])")

    def show() -> None:
        core.rows(
            "INSERT INTO pricing.shown_limits (provider, key_name, name, shown_units, shown_at)"
            " VALUES ('twelvedata', 'second', 'minute', 8, pricing.clock())"
        )

    show()
    assert cli("key", "change", TWELVEDATA, "--name", "second", "--unblock").exit_code == 0
    assert core.rows("SELECT * FROM pricing.shown_limits") == []
    show()
    assert cli("key", "set", TWELVEDATA, "--name", "second", stdin="another-plan-0123456789").exit_code == 0
    assert core.rows("SELECT * FROM pricing.shown_limits") == []


def test_a_provider_without_keys_is_not_switched_off_by_one(cli: CommandLine, core: Core) -> None:
    assert "yahoo needs no key" in cli("key", "change", "yahoo", "--inactive").error
    assert core.rows("SELECT * FROM pricing.provider_keys WHERE provider = 'yahoo'") == []


def test_a_stored_key_in_the_user_agent_reaches_no_provider(cli: CommandLine, core: Core) -> None:
    """Not those that have no key, either: each of them would learn it."""
    assert cli("key", "set", TWELVEDATA, stdin="one-of-ours-0123456789").exit_code == 0
    agent = {"sandbox": "false", "user_agent": "Mozilla one-of-ours-0123456789"}
    error = cli("provider", "use", "yahoo", **agent).error
    assert "PRICING_USER_AGENT contains an API key" in error
    assert "one-of-ours" not in error


def test_a_key_of_the_environment_is_switched_off_before_a_worker_registers_it(cli: CommandLine, core: Core) -> None:
    switch_off = ("key", "change", TWELVEDATA, "--name", "second", "--inactive", "--json")
    assert "no key 'second' of 'twelvedata'" in cli(*switch_off).error
    told = cli(*switch_off, twelvedata_api_keys="second=secret-of-the-second").json
    assert (told["before"]["is_active"], told["after"]["is_active"]) == (True, False)
    core.rows("SELECT pricing.register_keys('twelvedata', ARRAY['second'])")
    (row,) = core.rows("SELECT is_active FROM pricing.provider_keys WHERE key_name = 'second'")
    assert row.is_active is False, "registering it does not switch it on"
    assert cli("limit", "set", TWELVEDATA, "minute", "55", "--key", "second").exit_code == 0


def test_a_data_type_is_changed(cli: CommandLine, core: Core) -> None:
    words = ("--thin-after", "30", "--thin-to", "60", "--owner", "team:prices", "--follow-market")
    told = cli("type", "change", QUOTE, *words, "--json").json
    changed = {name: value for name, value in told["after"].items() if told["before"][name] != value}
    assert changed == {
        "thin_after_days": 30,
        "thin_to_minutes": 60,
        "owner": "team:prices",
        "staleness_function": "is_market_stale",
    }
    said = cli("type", "change", QUOTE, "--thin-after", "none", "--owner", "none").stdout
    assert [line.split() for line in said.splitlines()[2:]] == [
        ["owner", "team:prices", "none"],
        ["thin", "after", "days", "30", "none"],
    ]
    told = cli("type", "change", QUOTE, "--schedule", "30 23 * * *", "--timezone", "Asia/Kolkata", "--json").json
    assert (told["after"]["schedule"], told["after"]["timezone"]) == ("30 23 * * *", "Asia/Kolkata")
    (row,) = core.rows("SELECT refresh_strategy FROM pricing.data_type_registry WHERE data_type = 'equity_quote'")
    assert row.refresh_strategy == "scheduled"
    assert cli("type", "change", QUOTE, "--schedule", "none", "--json").json["after"]["schedule"] is None


def test_what_no_data_type_can_have_is_refused(cli: CommandLine, core: Core) -> None:
    for words, code, sentence in (
        ([QUOTE], 2, "say what changes"),
        (["nothing", "--owner", "a@b.de"], 1, "no data type is called 'nothing'"),
        ([DAILY, "--thin-after", "30"], 1, "only types of quotes are thinned"),
        ([QUOTE, "--thin-after", "soon"], 2, "is not a whole number"),
        ([QUOTE, "--schedule", "daily"], 1, "is not a cron expression"),
        ([QUOTE, "--timezone", "Nowhere/Town"], 1, "Nowhere/Town"),
        ([QUOTE, "--owner", "me"], 1, "an owner is"),
        ([QUOTE, "--lowest", "5", "--highest", "4"], 1, "the lowest price is not above the highest"),
        ([QUOTE, "--owner", "a@b.de", "--highest", "-1"], 1, "the highest price is above 0"),
    ):
        before = core.rows("SELECT * FROM pricing.data_type_registry ORDER BY 1")
        said = cli("type", "change", *words)
        assert said.exit_code == code
        assert sentence in said.error
        assert core.rows("SELECT * FROM pricing.data_type_registry ORDER BY 1") == before
        assert core.rows("SELECT * FROM pricing.plausibility_bounds") == []


def test_prices_of_a_whole_type_are_bounded(cli: CommandLine, core: Core) -> None:
    assert cli("instrument", "change", "IBM", "--type", QUOTE, "--highest", "400").exit_code == 0
    told = cli("type", "change", QUOTE, "--lowest", "0.5", "--highest", "40", "--json").json
    assert (told["before"]["highest"], told["after"]["highest"]) == (None, "40")
    assert "bounds:      0.5 to 40" in cli("type", "show", QUOTE).stdout
    call = one_call(core, QUOTE, "AAPL", "IBM")
    bring(core, call, *(observation(symbol, "41", core.clock()) for symbol in ("AAPL", "IBM")))
    quarantined = core.rows("SELECT symbol, kind FROM pricing.quarantined_values")
    assert [tuple(row) for row in quarantined] == [("AAPL", "bounds")], "IBM has bounds of its own"
    assert cli("type", "change", QUOTE, "--highest", "none", "--json").json["after"]["lowest"] == "0.5"


def test_all_instruments_of_a_scheduled_type_are_queued_now(cli: CommandLine, core: Core) -> None:
    instruments = core.call("SELECT count(*) FROM pricing.instruments WHERE asset_class = 'fund' AND is_active")
    assert instruments > 0
    assert cli("type", "refresh", NAV, "--json").json == {"data_type": NAV, "queued": instruments}
    assert core.call("SELECT count(*) FROM pricing.api_call_queue_live WHERE data_type = 'mf_nav'") == instruments
    assert "Nothing new of mf_nav is queued" in cli("type", "refresh", NAV).stdout
    assert "equity_quote has no schedule" in cli("type", "refresh", QUOTE).error
    assert "there is no active data type 'nothing'" in cli("type", "refresh", "nothing").error


def test_a_type_that_another_session_is_queueing_is_not_refreshed_and_says_so(cli: CommandLine, core: Core) -> None:
    with core.owner.begin() as other:
        other.execute(text("SELECT FROM pricing.schedule_walks WHERE data_type = 'mf_nav' FOR UPDATE"))
        said = cli("type", "refresh", NAV)
    assert said.exit_code == 1
    assert "another session is queueing mf_nav right now. Try again in some seconds." in said.error
    assert core.tasks() == []
    assert "queued 4 tasks of mf_nav;" in cli("type", "refresh", NAV).stdout
