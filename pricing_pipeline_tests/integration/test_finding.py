"""`instrument find`: one counted call of a provider's search, and what is chosen becomes known."""

from __future__ import annotations

import re
import stat
from types import SimpleNamespace

import pytest
from sqlalchemy import text

from pricing_pipeline.cli import instrument_find
from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.fixtures.refresher import reset_sandbox
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox
from pricing_pipeline_tests.tools.audit import audit

sandbox = reset_sandbox


def in_line(text: str) -> str:
    return " ".join(text.split())


def test_what_is_found_is_numbered_and_what_is_chosen_is_added(
    cli: CommandLine, core: Core, sandbox: RunningSandbox
) -> None:
    said = cli("instrument", "find", "vodafone", sandbox_url=sandbox.url)
    line = in_line(said.stdout)
    assert "number symbol name exchange currency class" in line
    assert "1 VOD:XLON Vodafone Group Public" in line
    assert "LSE GBP equity" in line
    assert "--add 1,3 adds the rows with these numbers" in said.stderr
    assert core.rows("SELECT FROM pricing.instruments WHERE symbol = 'VOD:XLON'") == []
    told = cli("instrument", "find", "Vodafone", "Group", "--add", "1", "--json", sandbox_url=sandbox.url).json
    assert told["provider"] == "twelvedata"
    assert [(one["number"], one["symbol"], one["known"]) for one in told["found"]] == [(1, "VOD:XLON", False)]
    assert [(one["symbol"], one["new"]) for one in told["added"]] == [("VOD:XLON", True)]
    (row,) = core.rows(
        "SELECT asset_class, name, currency, calendar FROM pricing.instruments WHERE symbol = 'VOD:XLON'"
    )
    assert tuple(row) == ("equity", "Vodafone Group Public Limited Company", "GBP", "XLON")
    again = cli("instrument", "find", "vodafone", "--add", "1", sandbox_url=sandbox.url).stdout
    assert "known" in again
    assert "VOD:XLON (equity) was known already." in again
    assert [(call["path"], call["units"]) for call in sandbox.calls()] == [("/symbol_search", 1)] * 2
    calls = core.rows("SELECT units, outcome, wire_bytes, key_name FROM pricing.collector_call_log")
    assert [(call.units, call.outcome, call.key_name) for call in calls] == [(1, "ok", "default")] * 2
    assert core.one("SELECT sum(units) FROM pricing.api_data_usage") == 2
    assert core.one("SELECT sum(bytes) FROM pricing.api_data_usage") == sum(call.wire_bytes for call in calls)
    assert core.rows("SELECT FROM pricing.size_estimates") == []
    audit(core, acknowledged=0)


def test_adding_what_was_just_found_makes_no_second_call(cli: CommandLine, core: Core, sandbox: RunningSandbox) -> None:
    def add(*words: str) -> bool:
        told = cli("instrument", "find", *words, "--add", "1", "--json", sandbox_url=sandbox.url).json
        assert [one["symbol"] for one in told["added"]] == ["VOD:XLON"]
        remembered: bool = told["is_remembered"]
        return remembered

    cli("instrument", "find", "vodafone", sandbox_url=sandbox.url)
    assert len(sandbox.calls()) == 1
    assert add("vodafone")
    said = cli("instrument", "find", "vodafone", "--add", "1", sandbox_url=sandbox.url)
    assert "no call was made for them" in said.stderr
    assert len(sandbox.calls()) == 1
    assert not add("vodafone", "group"), "other words"
    cli("instrument", "find", "vodafone", sandbox_url=sandbox.url)
    assert len(sandbox.calls()) == 3, "without --add it is always asked"
    file = cli.home / "searches.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    kept = file.read_text()
    damaged = [
        re.sub(r'"at":"[^"]*"', '"at":"2026-01-01T00:00:00Z"', kept),
        re.sub(r'"at":"([^"]*)Z"', r'"at":"\1"', kept),
        kept.replace('"asset_class":"equity"', '"asset_class":["equity"]'),
        kept.replace('"symbol":"VOD:XLON"', '"symbol":5'),
        *("{", '[{"at": 5}]', "7"),
    ]
    assert len({kept, *damaged}) == 8
    for number, content in enumerate(damaged, 4):
        file.write_text(content)
        assert not add("vodafone")
        assert len(sandbox.calls()) == number


def test_on_a_terminal_it_asks_what_to_add(
    cli: CommandLine, core: Core, sandbox: RunningSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = SimpleNamespace(isatty=lambda: True)
    monkeypatch.setattr(instrument_find, "sys", SimpleNamespace(stdin=terminal, stdout=terminal))
    said = cli("instrument", "find", "vodafone", sandbox_url=sandbox.url, stdin="1\n")
    assert said.exit_code == 0
    assert "Numbers to add, such as 1,3" in said.stdout
    assert "VOD:XLON (equity) is added." in said.stdout
    assert core.one("SELECT name FROM pricing.instruments WHERE symbol = 'VOD:XLON'").startswith("Vodafone")


def test_each_provider_with_a_search_is_asked_by_name_or_by_the_route_of_a_type(
    cli: CommandLine, core: Core, sandbox: RunningSandbox
) -> None:
    def found(*words: str) -> tuple[str, list[str]]:
        told = cli("instrument", "find", *words, "--json", sandbox_url=sandbox.url).json
        return told["provider"], [f"{one['asset_class']} {one['symbol']}" for one in told["found"]]

    assert found("parag parikh", "--type", "mf_nav") == ("mfapi", ["fund 122639"])
    assert found("parag", "parikh", "flexi", "--provider", "mfapi") == ("mfapi", ["fund 122639"])
    assert found("VOD", "--provider", "fmp") == ("fmp", ["equity VOD", "equity VOD:XLON"])
    assert found("euro", "--type", "fx_rate") == ("twelvedata", ["fx EUR/USD"])
    assert found("S", "--limit", "1")[1] == ["equity S"]


def test_what_cannot_be_searched_or_added_is_refused(cli: CommandLine, core: Core, sandbox: RunningSandbox) -> None:
    for words, code, sentence in (
        (["vod", "--provider", "yahoo"], 1, "yahoo has no search; twelvedata, fmp, mfapi have one"),
        (["vod", "--provider", "nobody"], 1, "no provider is called 'nobody'"),
        (["vod", "--type", "nothing"], 1, "no data type is called 'nothing'"),
        (["vod", "--add", "one"], 2, "'one' is not a list of numbers, such as 1,3"),
        (
            ["vod", "--add", "0", "--json"],
            1,
            "0 is not a number of this search, which has found 2. Nothing is added.",
        ),
        (["vod", "--add", "1,9", "--json"], 1, "9 is not a number of this search, which has found 2"),
        ([" "], 2, "name what to search for"),
        (["x" * 101], 2, "in at most 100 characters"),
    ):
        before = core.one("SELECT count(*) FROM pricing.instruments")
        said = cli("instrument", "find", *words, sandbox_url=sandbox.url)
        assert (said.exit_code, sentence in said.error) == (code, True), said
        assert core.one("SELECT count(*) FROM pricing.instruments") == before


def test_nothing_found_is_said(cli: CommandLine, core: Core, sandbox: RunningSandbox) -> None:
    assert "twelvedata has found nothing" in cli("instrument", "find", "nopenope", sandbox_url=sandbox.url).stdout


def test_a_search_keeps_to_limits_breaker_and_quota(cli: CommandLine, core: Core, sandbox: RunningSandbox) -> None:
    def refused() -> str:
        return cli("instrument", "find", "vod", sandbox_url=sandbox.url).error

    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 100 WHERE provider = 'twelvedata'")
    assert "twelvedata is not asked: the quota of twelvedata is spent" in refused()
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 20000000000")
    core.one("SELECT pricing.open_breaker('twelvedata', '10 of 10 calls failed')")
    assert "the breaker of twelvedata is open" in refused()
    core.rows("UPDATE pricing.provider_state SET breaker = 'closed', breaker_until = NULL")
    core.rows("UPDATE pricing.provider_limits SET units = 1 WHERE provider = 'twelvedata'")
    assert cli("instrument", "find", "vod", sandbox_url=sandbox.url).exit_code == 0
    assert "twelvedata allows 1 unit" in refused()
    assert len(sandbox.calls()) == 1


def test_a_search_that_is_refused_pauses_the_key_as_any_call(
    cli: CommandLine, core: Core, sandbox: RunningSandbox
) -> None:
    sandbox.behave("throttle", retry_after="90")
    assert "429" in cli("instrument", "find", "vod", sandbox_url=sandbox.url).error
    assert core.one("SELECT blocked_until > pricing.clock() FROM pricing.provider_keys WHERE provider = 'twelvedata'")
    assert core.one("SELECT outcome FROM pricing.collector_call_log") == "failed"
    sandbox.behave_well()
    assert "twelvedata is not asked" in cli("instrument", "find", "vod", sandbox_url=sandbox.url).error
    assert len(sandbox.calls()) == 1


def test_a_search_that_is_refused_for_its_key_says_so(cli: CommandLine, core: Core, sandbox: RunningSandbox) -> None:
    core.rows(
        "INSERT INTO pricing.collector_call_log (provider, data_type, symbols, window_start, window_end, units,"
        " reserved_bytes, worker, started_at, finished_at, outcome)"
        " SELECT 'twelvedata', 'equity_quote', '{AAPL}', '-infinity', 'infinity', 1, 9, 'w', y.at, y.at, 'ok'"
        " FROM (SELECT pricing.clock() - interval '1 day' AS at) y"
    )
    sandbox.behave("status", status=401)
    cli("instrument", "find", "vod", sandbox_url=sandbox.url)
    sandbox.behave_well()
    said = cli("instrument", "find", "vod", sandbox_url=sandbox.url).error
    assert "twelvedata does not accept the key" in said
    assert "for speed" not in said
    assert "welvedata does not accept the key" in cli("provider", "show", "twelvedata").stdout


def test_a_search_leaves_the_turn_of_claims_to_claims(core: Core) -> None:
    """It takes no task, so it need not see the symbols of other calls."""
    core.rows("INSERT INTO pricing.turns (name) VALUES ('claim') ON CONFLICT DO NOTHING")
    claim = "SELECT call_id FROM pricing.claim_search('twelvedata', 'w', '{default}', 'equity_quote')"
    with core.engine.connect() as searching:
        assert searching.execute(text(claim)).scalar_one() is not None
        assert core.rows("SELECT FROM pricing.turns WHERE name = 'claim' FOR UPDATE NOWAIT")
        searching.rollback()


def test_a_search_neither_begins_nor_ends_an_outage_of_prices(
    cli: CommandLine, core: Core, sandbox: RunningSandbox
) -> None:
    sandbox.behave("status", status=503)
    assert "503" in cli("instrument", "find", "vod", sandbox_url=sandbox.url).error
    assert core.rows("SELECT FROM pricing.outages") == []
    core.enqueue(QUOTE, "AAPL")
    core.fail(core.claim_one(), FailureKind.PROVIDER_DOWN)
    call = core.one("SELECT max(call_id) FROM pricing.collector_call_log")
    core.call(f"SELECT pricing.settle_call({call}, 'failed', 503, 9, 'down', 'provider_down', is_owned => true)")
    outage = "SELECT count(*) FROM pricing.outages WHERE answered_at IS NULL"
    assert core.one(outage) == 1
    sandbox.behave_well()
    assert cli("instrument", "find", "vod", sandbox_url=sandbox.url).exit_code == 0
    assert core.one(outage) == 1
