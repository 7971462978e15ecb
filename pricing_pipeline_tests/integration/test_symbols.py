"""B5: a symbol fits its class, has one spelling, and can be taken out again; what is refused is said in words."""

from __future__ import annotations

import re
from datetime import timedelta
from urllib.parse import quote

import pytest
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.db.errors import reason
from pricing_pipeline.db.rules import RULES
from pricing_pipeline.demand import viewers
from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.errors import PairsRefused
from pricing_pipeline.providers.currencies import CURRENCIES
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import FX, NAV, QUOTE, Core, observation
from pricing_pipeline_tests.support.api_server import RunningApi

COIN = "crypto_quote"


@pytest.fixture(autouse=True)
def types_of_other_classes(core: Core) -> None:
    for name, asset_class in ((COIN, "crypto"), ("own_quote", "own")):
        core.rows(
            "INSERT INTO pricing.data_type_registry (data_type, asset_class, fetcher, default_ttl_minutes)"
            " VALUES (:name, :class, 'quote', 1)",
            **{"name": name, "class": asset_class},
        )


def watched(core: Core) -> list[tuple[str, str]]:
    return [tuple(row) for row in core.rows("SELECT data_type, symbol FROM pricing.active_subscriptions ORDER BY 1, 2")]


def test_f4_a_symbol_that_cannot_be_watched_is_told_how_it_should_look(core: Core) -> None:
    pair = "no fx instrument is called EURXYZ; exchange rates are of two known currencies, such as EUR/USD"
    assert pair in core.one("SELECT sentence FROM pricing.why_old('fx_rate', 'EURXYZ')")
    core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE asset_class <> 'fx'")
    assert core.one("SELECT pricing.describe_misfit('EURXYZ')") == (
        "it looks like a symbol of no data type; `pricing-pipeline type list` lists them"
    )
    assert core.one("SELECT pricing.describe_misfit('eur/usd')") is None, "it is taken as EUR/USD"


def test_b5_of_an_instrument_of_another_class_its_type_is_named(core: Core) -> None:
    for data_type, symbol, meant in ((QUOTE, "eur/usd", FX), (FX, "AAPL", QUOTE)):
        said = f"Did you mean {symbol.upper()} of the data type {meant}?"
        with pytest.raises(PairsRefused, match=f"is not a symbol of {data_type}") as refused:
            core.heartbeat("ann", (data_type, symbol))
        assert said in str(refused.value)
        with pytest.raises(DBAPIError) as unknown:
            core.rows(f"SELECT * FROM pricing.symbols_by_type(ARRAY['{data_type}'], ARRAY['{symbol}'])")
        assert said in reason(unknown.value)


def test_b5_what_fits_is_taken(core: Core) -> None:
    fitting = [
        (COIN, "1INCH/USDT"),
        (QUOTE, "0700:XHKG"),
        (QUOTE, "M&M:XNSE"),
        (QUOTE, "O'KEY:XLON"),
        (QUOTE, "VOLV.B:XSTO"),
        (QUOTE, "^GSPC"),
        (FX, "BTC/USD"),
        (FX, "USD/CNH"),
        (NAV, "118632"),
        ("own_quote", "any/Thing_2"),
    ]
    assert core.heartbeat("ann", *fitting) == len(fitting)
    assert sorted(watched(core)) == sorted(fitting)


def test_b5_what_would_part_a_url_or_a_list_is_no_symbol(core: Core) -> None:
    for symbol in ("AAPL MSFT", "AAPL\n", "M,M", "A?b=c", "A#", "A%26", "&M"):
        for ask in (core.heartbeat, core.hold):
            with pytest.raises(PairsRefused):
                ask("ann", (QUOTE, symbol))


def test_b5_a_sign_in_a_symbol_comes_through_cli_and_api(core: Core, cli: CommandLine, api: RunningApi) -> None:
    caller = api.caller(Scope.READ)
    for symbol, calendar in (("M&M:XNSE", "XBOM"), ("BAJAJ-AUTO:XNSE", "XBOM"), ("O'KEY:XLON", "XLON")):
        added = cli("instrument", "add", symbol, "--asset-class", "equity")
        assert added.exit_code == 0
        (shown,) = cli("instrument", "show", symbol, "--json").json["instruments"]
        (told,) = caller.get(f"instruments/{quote(symbol)}")["instruments"]
        assert shown["symbol"] == told["symbol"] == symbol
        missing = caller.get("prices", symbols=symbol, data_type=QUOTE)["missing"]
        assert [pair["symbol"] for pair in missing] == [symbol]
        assert core.one("SELECT calendar FROM pricing.instruments WHERE symbol = :s", s=symbol) == calendar


def test_b5_an_instrument_that_is_known_may_be_watched_however_it_is_spelled(core: Core) -> None:
    core.rows("INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('fx', 'OLD'), ('equity', 'ibm')")
    assert core.heartbeat("ann", (FX, "OLD"), (QUOTE, "ibm")) == 2
    assert watched(core) == [(QUOTE, "ibm"), (FX, "OLD")]


def test_b5_small_letters_make_no_second_instrument(core: Core) -> None:
    assert core.heartbeat("ann", (QUOTE, "aapl"), (QUOTE, "AAPL"), (FX, "eur/usd")) == 2
    assert watched(core) == [(QUOTE, "AAPL"), (FX, "EUR/USD")]
    core.rows("UPDATE pricing.active_subscriptions SET last_seen_at = pricing.clock() - interval '4 minutes'")
    assert core.heartbeat("ann", (QUOTE, "aapl")) == 0
    renewed = "SELECT pricing.clock() - last_seen_at FROM pricing.active_subscriptions WHERE symbol = 'AAPL'"
    assert core.one(renewed) < timedelta(minutes=1)
    assert core.hold("ann", (QUOTE, "aapl")) == 1
    assert core.end_holding("ann", (QUOTE, "aapl")) == 1
    assert core.unsubscribe("ann", (QUOTE, "aapl"), (FX, "eur/usd")) == 2
    assert core.rows("SELECT FROM pricing.instruments WHERE symbol <> upper(symbol)") == []


def test_b5_of_a_class_of_ones_own_small_letters_are_kept_unless_only_the_large_ones_are_known(
    core: Core,
) -> None:
    core.heartbeat("ann", ("own_quote", "wheat"))
    core.rows("INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('own', 'RYE')")
    core.heartbeat("ann", ("own_quote", "rye"))
    assert watched(core) == [("own_quote", "RYE"), ("own_quote", "wheat")]


def test_b5_the_currencies_of_exchange_rates_are_those_of_prices(core: Core) -> None:
    assert set(core.one("SELECT pricing.known_currencies()")) == {code for code in CURRENCIES if len(code) == 3}


# Taking out


def test_b5_an_instrument_without_history_is_removed_and_one_with_it_is_retired(core: Core, cli: CommandLine) -> None:
    core.rows("INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('fx', 'AAPL')")
    core.heartbeat("ann", (FX, "AAPL"), (QUOTE, "IBM"))
    core.hold("bob", (QUOTE, "IBM"))
    core.lift_limits()
    (call,) = (one for one in core.claim(max_calls=5) if "IBM" in one.symbols)
    core.store(call, observation("IBM", "230.10", core.clock() - timedelta(seconds=5)))
    core.complete(call)

    said = cli("instrument", "remove", "aapl", "--asset-class", "fx")
    assert "AAPL (fx) is removed: it had no history. What 1 user watched or held of it has ended." in said.stdout
    assert core.rows("SELECT FROM pricing.instruments WHERE asset_class = 'fx' AND symbol = 'AAPL'") == []
    assert core.one("SELECT count(*) FROM pricing.instruments WHERE symbol = 'AAPL'") == 1, "of the other class"
    with pytest.raises(PairsRefused, match="is not a symbol of fx_rate"):
        core.heartbeat("ann", (FX, "AAPL"))

    said = cli("instrument", "remove", "IBM")
    assert "IBM (equity) is retired: it is no longer fetched, and its history stays." in said.stdout
    assert "What 2 users watched or held of it has ended." in said.stdout
    assert core.latest("IBM") is None
    shown = cli("price", "show", "IBM")
    assert shown.stderr == (
        "hint: IBM has no latest price. It is retired: it was removed, and its history stays. This resumes it: "
        "pricing-pipeline instrument resume IBM\n"
    )
    assert len(core.rows("SELECT FROM pricing.price_history WHERE symbol = 'IBM'")) == 1
    assert watched(core) == []
    assert core.rows("SELECT FROM pricing.demand") == []
    core.heartbeat("ann", (QUOTE, "IBM"))
    assert core.enqueue_due() == 0
    assert "was retired before" in cli("instrument", "remove", "IBM").stdout

    listed = cli("instrument", "list", "IBM", "--json").json["instruments"]
    assert [(one["symbol"], one["state"], one["viewers"]) for one in listed] == [("IBM", "retired", 0)]


def test_b5_of_a_symbol_of_several_classes_the_class_is_asked_for(core: Core, cli: CommandLine) -> None:
    core.rows("INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('fx', 'AAPL')")
    said = cli("instrument", "remove", "AAPL")
    assert said.exit_code == 1
    assert "names instruments of several classes: equity, fx. Say which by --asset-class" in said.error
    assert cli("instrument", "remove", "NOPE1").exit_code == 1
    assert core.one("SELECT count(*) FROM pricing.instruments WHERE symbol = 'AAPL'") == 2


def test_b5_the_list_of_instruments_fits_a_terminal(core: Core, cli: CommandLine) -> None:
    core.heartbeat("ann", (QUOTE, "NVDA"))
    said = cli("instrument", "list", "--asset-class", "equity").stdout
    assert re.search(r"NVDA\s+equity\s+unverified\s+1\s+0", said)
    assert "EUR/USD" not in said


# What cannot come is not promised


def test_g3_a_price_that_failed_is_not_promised(core: Core, cli: CommandLine) -> None:
    core.heartbeat("ann", (QUOTE, "NOPE1"))
    core.lift_limits()
    core.fail(core.claim_one(), FailureKind.UNKNOWN_SYMBOL, "twelvedata has no value for NOPE1")
    said = cli("price", "show", "NOPE1").stderr
    assert "twelvedata has no value for NOPE1" in said
    assert "instrument remove NOPE1" in said
    assert "in a moment" not in said
    assert "on its way" not in said


def test_g3_what_is_asked_for_and_has_not_failed_is_promised(core: Core, cli: CommandLine) -> None:
    with core.engine.begin() as connection:
        viewers.hold(connection, "ann", [(QUOTE, "NVDA")])
    said = cli("price", "show", "NVDA").stderr
    assert "on its way" in said or "in a moment" in said


def test_g3_while_a_provider_is_not_asked_its_reason_is_told_instead(core: Core, cli: CommandLine) -> None:
    core.rows("UPDATE pricing.provider_limits SET units = 1 WHERE provider = 'twelvedata'")
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh()
    cli("instrument", "add", "NVDA", "--asset-class", "equity")
    missing = cli("price", "show", "NVDA", "--type", QUOTE)
    assert "twelvedata allows 1 unit in 60 s, and 1 are used; the next comes at " in missing.stderr
    assert "in a moment" not in missing.stderr
    core.throttle("twelvedata", 90)
    again = cli("price", "show", "NVDA", "--type", QUOTE).stderr
    assert "twelvedata has refused calls for speed (too fast)" in again
    core.rows("UPDATE pricing.latest_prices SET fetched_at = fetched_at - interval '1 hour'")
    core.rows("UPDATE pricing.demand SET due_at = pricing.clock()")
    stale = cli("price", "show", "AAPL", "--type", QUOTE).stderr
    assert "no newer price of AAPL comes now. equity_quote: " in stale
    assert "in a moment" not in stale
    assert "twelvedata has refused calls for speed" in cli("price", "why", "AAPL", "--type", QUOTE).stdout


# Constraints in words

INTERNAL = {
    "only_a_users_feed_has_a_list",
    "feed_has_no_scope",
    "hours_are_of_an_open_day",
    "mic_is_code",
    "only_people_are_named",
    "origin_is_known",
    "priority_is_known",
    "game_version_is_short",
    "live_times_are_in_order",
    "terminal_symbol_is_short",
    "buy_is_positive",
    "sell_is_positive",
    "stock_is_counted",
    "demand_is_counted",
    "stock_is_of_what_is_sold",
    "demand_is_for_what_is_bought",
    "host_is_plain",
    "content_is_short",
    "ages_are_upright",
    "pax_count_is_positive",
    "slot_status_is_known",
    "slot_remaining_is_sane",
    "capacity_is_sane",
    "slot_is_placed_once",
    "slot_ends_after_it_starts",
    "final_price_is_no_debt",
    "original_price_is_no_debt",
    "slot_currency_is_code",
    "slot_scale_is_sane",
    "prices_have_a_currency",
    "minimum_is_sane",
    "maximum_is_sane",
    "pax_remaining_is_sane",
    "slot_window_is_upright",
    "background_ttls_never_shrink",
    "watched_ttls_never_shrink",
    "need_is_not_negative",
    "weight_is_a_share",
    "head_is_only_one",
    "head_is_upright",
    "completed_operation_is_finished",
    "dagster_failure_kind_is_known",
    "dead_operation_is_finished",
    "operation_has_its_columns",
    "rule_is_plain_name",
    "time_zone_is_known",
    "token_is_hashed",
    "token_scopes_are_known",
    "pairs_are_positive",
    "body_is_an_object",
    "body_is_bounded",
    "breaker_has_end",
    "breaker_is_known",
    "ciphertext_is_padded",
    "closed_holding_has_time",
    "count_is_upright",
    "dead_task_is_finished",
    "foreign_units_are_counted",
    "key_nonce_has_96_bits",
    "known_span_is_upright",
    "nonces_differ",
    "open_calls_are_unfinished",
    "outcome_is_known",
    "probing_has_call",
    "quarantined_is_unresolved",
    "ratio_is_of_one_ratio",
    "ratio_is_positive",
    "secret_nonce_has_96_bits",
    "seen_price_has_time",
    "size_is_per_symbol_or_day",
    "size_is_positive",
    "status_has_its_columns",
    "status_is_known",
    "warnings_are_counted",
    "wrapped_key_has_key_and_tag",
}
"""What only our own code writes: no person's value comes near them."""


def test_every_check_that_a_person_can_meet_is_put_into_words(core: Core) -> None:
    rows = core.rows(
        "SELECT DISTINCT c.conname FROM pg_constraint c JOIN pg_namespace n ON n.oid = c.connamespace"
        " WHERE n.nspname = 'pricing' AND c.contype = 'c'"
    )
    checks = {row.conname for row in rows}
    assert checks - RULES.keys() - INTERNAL == set(), "put it into db/rules.py"
    assert INTERNAL & RULES.keys() == set()
    assert checks >= INTERNAL


def test_no_rule_outlives_its_constraint(core: Core) -> None:
    names = {
        row.conname
        for row in core.rows("SELECT conname FROM pg_constraint UNION SELECT relname FROM pg_class WHERE relkind = 'i'")
    }
    assert RULES.keys() - names == {"symbol_fits_class", "spelling_is_free"}, "these two are functions'"


def test_no_name_of_a_constraint_reaches_a_person(core: Core) -> None:
    for statement in (
        "UPDATE pricing.user_caps SET pairs_per_user = 0",
        "UPDATE pricing.data_type_registry SET thin_to_minutes = 7",
        "UPDATE pricing.instruments SET scale = 99",
        "INSERT INTO pricing.instruments (asset_class, symbol) VALUES ('equity', '?')",
        "UPDATE pricing.provider_routing SET provider = 'nobody'",
    ):
        with pytest.raises(DBAPIError) as refused:
            core.rows(statement)
        constraint = refused.value.orig.diag.constraint_name  # type: ignore[union-attr]
        assert constraint
        assert constraint not in reason(refused.value)
        assert "violates" not in reason(refused.value)


def test_a_user_who_cannot_be_is_refused_in_words_in_sql_too(core: Core) -> None:
    for function in ("heartbeat", "hold", "unsubscribe"):
        with pytest.raises(DBAPIError, match="a user's name has 1 to 200 characters") as refused:
            core.rows(f"SELECT pricing.{function}('', '{{equity_quote}}', '{{AAPL}}')")
        assert "user_is_sane" not in str(refused.value.orig)
