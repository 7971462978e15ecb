"""F6: what a second provider says about quarantined values, asked within its limits and never stored as a price."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal

import pytest

from pricing_pipeline.domain.answers import Answer, FailureKind
from pricing_pipeline.domain.observations import Rows
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.judging.knowledge import Doubt
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.quarantine import opinions
from pricing_pipeline.quarantine.opinions import Question
from pricing_pipeline.refresh import settling
from pricing_pipeline.refresh.refresher import Pace, Refresher
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core, a_call, midnight, observation, windowed
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.refreshing import work_until
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox
from pricing_pipeline_tests.tools.audit import audit

pytestmark = pytest.mark.usefixtures("still")
YAHOO = "yahoo"


def route_to_yahoo(core: Core, data_type: str = QUOTE) -> None:
    """Make Yahoo the next provider of a data type."""
    core.rows(
        "INSERT INTO pricing.provider_routing (data_type, provider, rank) VALUES (:type, 'yahoo', 2)",
        type=data_type,
    )


def quarantine(core: Core, *symbols: str, prices: Sequence[str] = ("72.50", "7250")) -> list[int]:
    """Have quotes of some symbols quarantined, the second of each; returns their ids."""
    for price in prices:
        core.rows("DELETE FROM pricing.api_call_queue_live")
        core.enqueue(QUOTE, *symbols)
        at = core.clock() - timedelta(seconds=1)
        rows = tuple(observation(symbol, price, at) for symbol in symbols)
        settling.settle_answer(
            core.engine, core.claim_one(), Fetched(Answer(observations=Rows(rows)), 200, 4, body=b"x")
        )
    core.rows("DELETE FROM pricing.api_call_queue_live")
    return [row.value_id for row in core.rows("SELECT value_id FROM pricing.quarantined_values ORDER BY 1")]


def claim(core: Core, worker: str = "a") -> Question | str:
    with core.engine.begin() as connection:
        return opinions.claim(connection, YAHOO, worker, ["default"])


def due(core: Core) -> list[str]:
    with core.engine.begin() as connection:
        return opinions.due(connection)


@pytest.fixture
def value_id(core: Core) -> str:
    """A quote of AAPL that is quarantined, with Yahoo as the next provider of its route."""
    core.lift_limits()
    route_to_yahoo(core)
    return str(quarantine(core, "AAPL")[0])


def test_f6_a_second_provider_is_asked_and_its_word_kept(
    cli: CommandLine, core: Core, sandbox: RunningSandbox, value_id: str
) -> None:
    assert cli("quarantine", "show", value_id, "--json").json["opinions"] == []
    told = cli("quarantine", "show", value_id, "--ask", "--json", sandbox_url=sandbox.url).json
    (opinion,) = told["opinions"]
    assert (told["not_asked"], opinion["provider"], opinion["failure"]) == (None, "yahoo", None)
    assert float(opinion["value"]) > 0
    assert opinion["currency"] == "USD"
    assert opinion["verdict"] == "disagrees"
    shown = cli("quarantine", "show", value_id).stdout
    assert f"yahoo says:   {opinion['value']} USD, of " in shown
    assert ": it disagrees" in shown
    (call,) = core.rows("SELECT outcome, units, wire_bytes FROM pricing.collector_call_log WHERE provider = 'yahoo'")
    assert (call.outcome, call.units) == ("ok", 1)
    assert call.wire_bytes > 0
    assert core.one("SELECT calls FROM pricing.api_data_usage WHERE provider = 'yahoo'") == 1
    assert str(core.latest("AAPL").price) == "72.50", "no opinion is a price"  # type: ignore[union-attr]
    audit(core)


def test_f6_nobody_is_asked_past_a_limit_or_without_a_route(
    cli: CommandLine, core: Core, sandbox: RunningSandbox, value_id: str
) -> None:
    def refused() -> str:
        told = cli("quarantine", "show", value_id, "--ask", "--json", sandbox_url=sandbox.url).json
        assert told["opinions"] == []
        return str(told["not_asked"])

    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 100 WHERE provider = 'yahoo'")
    assert "the quota of yahoo is spent" in refused()
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 20000000000")
    core.one("SELECT pricing.open_breaker('yahoo', '10 of 10 calls failed')")
    assert "the breaker of yahoo is open" in refused()
    core.rows("UPDATE pricing.provider_state SET breaker = 'closed', breaker_until = NULL")
    core.rows("UPDATE pricing.provider_limits SET units = 1")
    core.rows(
        "INSERT INTO pricing.collector_call_log (provider, data_type, symbols, window_start, window_end, units,"
        " reserved_bytes, worker, started_at)"
        " VALUES ('yahoo', 'equity_quote', '{IBM}', '-infinity', 'infinity', 1, 1, 'w', pricing.clock())"
    )
    assert "yahoo allows 1 unit in 60 s, and 1 are used" in refused()
    core.rows("DELETE FROM pricing.provider_routing WHERE provider = 'yahoo'")
    assert "no other provider than twelvedata is routed to equity_quote" in refused()
    assert core.one("SELECT count(*) FROM pricing.second_opinions") == 0


def test_f6_a_provider_that_refuses_is_paused_as_by_any_call(
    cli: CommandLine, core: Core, sandbox: RunningSandbox, value_id: str
) -> None:
    sandbox.behave("throttle", retry_after="90")
    (opinion,) = cli("quarantine", "show", value_id, "--ask", "--json", sandbox_url=sandbox.url).json["opinions"]
    assert opinion["value"] is None
    assert "429" in opinion["failure"]
    assert core.one("SELECT blocked_until > pricing.clock() FROM pricing.provider_keys WHERE provider = 'yahoo'")
    told = cli("quarantine", "show", value_id, "--ask", "--json", sandbox_url=sandbox.url).json
    assert "yahoo has answered none of our calls so far" in told["not_asked"]
    core.rows("UPDATE pricing.collector_call_log SET outcome = 'ok' WHERE provider = 'yahoo'")
    told = cli("quarantine", "show", value_id, "--ask", "--json", sandbox_url=sandbox.url).json
    assert "yahoo has refused calls for speed" in told["not_asked"]


# By themselves


def test_f6_workers_ask_about_all_that_is_quarantined_in_one_call_and_once(
    cli: CommandLine, core: Core, sandbox: RunningSandbox, refresher: Refresher
) -> None:
    core.lift_limits()
    route_to_yahoo(core)
    quarantined = quarantine(core, "AAPL", "IBM")
    rounds = 0

    def is_answered() -> bool:
        return core.one("SELECT count(*) FROM pricing.second_opinions WHERE answered_at IS NOT NULL") == 2

    work_until(refresher, is_answered)

    def after_some_more() -> bool:
        nonlocal rounds
        rounds += 1
        refresher._ticks = Pace(0.0)  # each round looks for what is due
        return rounds > 3

    work_until(refresher, after_some_more)
    assert [len(call["path"]) > 0 for call in sandbox.calls(YAHOO)] == [True], "one call for both, and no second one"
    (call,) = core.rows(
        "SELECT outcome, units, run_id, data_type, symbols FROM pricing.collector_call_log WHERE provider = 'yahoo'"
    )
    assert tuple(call) == ("ok", 1, "run 7", QUOTE, ["AAPL", "IBM"])
    told = cli("quarantine", "list", "--json").json["values"]
    assert {one["value_id"] for one in told} == set(quarantined)
    assert {(word["provider"], word["verdict"]) for one in told for word in one["opinions"]} == {(YAHOO, "disagrees")}
    assert "disagrees" in cli("quarantine", "show", str(quarantined[0])).stdout
    assert str(core.latest("AAPL").price) == "72.50", "a person decides, and no opinion is a price"  # type: ignore[union-attr]
    audit(core)


def test_f6_what_waits_at_the_second_provider_goes_first_for_ten_minutes(core: Core, clock: Clock) -> None:
    core.lift_limits()
    route_to_yahoo(core)
    quarantine(core, "AAPL")
    core.rows(
        "INSERT INTO pricing.provider_routing (data_type, symbol, provider, rank) VALUES (:type, 'GOOG', 'yahoo', 1)",
        type=QUOTE,
    )
    core.enqueue(QUOTE, "GOOG")
    assert due(core) == [YAHOO]
    assert claim(core) == "other work of the provider goes first"
    clock.advance(601)
    question = claim(core)
    assert isinstance(question, Question)
    assert list(question.symbols) == ["AAPL"]


def test_f6_a_worker_that_is_lost_costs_three_more_tries_and_not_more(core: Core, clock: Clock) -> None:
    core.lift_limits()
    route_to_yahoo(core)
    quarantine(core, "AAPL")
    for wait in (15, 30, 60):
        assert isinstance(claim(core), Question)
        assert due(core) == []
        clock.advance(wait * 60 - 5)
        assert due(core) == []
        clock.advance(10)
        assert due(core) == [YAHOO]
    assert isinstance(claim(core), Question)
    clock.advance(86400)
    assert due(core) == []
    assert core.call("SELECT pricing.expire_calls()") == 4, "what was reserved for them is booked"


def test_f6_nobody_is_asked_where_there_is_no_second_provider_until_there_is(core: Core) -> None:
    core.lift_limits()
    quarantine(core, "AAPL")
    assert core.one("SELECT ask_at FROM pricing.quarantined_values") is None
    assert due(core) == []
    route_to_yahoo(core)
    assert due(core) == [YAHOO]
    core.rows("UPDATE pricing.data_collectors SET is_active = false WHERE provider = 'yahoo'")
    assert due(core) == []
    assert core.one("SELECT ask_at FROM pricing.quarantined_values") is None


def test_f6_an_opinion_takes_of_the_limits_what_is_left(core: Core) -> None:
    """Of three values two fit into the units; nothing is asked past the quota's part for backfills."""
    core.lift_limits()
    core.rows(
        "UPDATE pricing.provider_capabilities SET units_per_call = 0, units_per_symbol = 1 WHERE provider = 'yahoo'"
    )
    route_to_yahoo(core)
    quarantine(core, "AAPL", "GOOG", "IBM")
    core.rows("UPDATE pricing.provider_limits SET units = 2 WHERE provider = 'yahoo'")
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 100 WHERE provider = 'yahoo'")
    assert "the quota of yahoo is spent" in str(claim(core))
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 20000000000")
    question = claim(core)
    assert isinstance(question, Question)
    assert (len(question.symbols), len(question.value_ids)) == (2, 2)
    assert core.one("SELECT units FROM pricing.collector_call_log WHERE call_id = :id", id=question.call.id) == 2
    assert "yahoo allows 2 units in 60 s, and 2 are used" in str(claim(core))


def test_f6_an_opinion_is_no_reason_to_ask_for_a_list_of_all(core: Core) -> None:
    core.lift_limits()
    core.rows("UPDATE pricing.provider_capabilities SET batch_from = 50 WHERE provider = 'yahoo'")
    route_to_yahoo(core)
    quarantine(core, "AAPL", "GOOG", "IBM")
    for _ in range(3):
        question = claim(core)
        assert isinstance(question, Question)
        assert (len(question.symbols), len(question.value_ids)) == (1, 1)


@pytest.mark.parametrize(
    ("said", "basis", "verdict"),
    [("101.00", "raw", "agrees"), ("50.50", "splits", "agrees"), ("50.50", "raw", "disagrees")],
)
def test_f6_opinions_are_compared_on_one_basis(core: Core, said: str, basis: str, verdict: str) -> None:
    core.lift_limits()
    route_to_yahoo(core, DAILY)
    day = core.clock().date() - timedelta(days=9)
    core.rows(
        "INSERT INTO pricing.corporate_actions (asset_class, symbol, ex_on, kind, new_shares, old_shares, provider,"
        " call_id, recorded_at) VALUES ('equity', 'IBM', :day, 'split', 2, 1, 'by hand', 0, pricing.clock())",
        day=day + timedelta(days=2),
    )
    core.rows(
        "INSERT INTO pricing.quarantined_values (data_type, symbol, provider, observed_at, kind, value, reason, bar,"
        " call_id, recorded_at, last_seen_at, last_call_id, ask_at) SELECT :type, 'IBM', 'twelvedata', :at, 'jump',"
        " '100', 'far', jsonb_build_object('close', '100', 'currency', 'USD', 'adjustment', 'raw'), 1, n, n, 1, n"
        " FROM pricing.clock() AS n",
        type=DAILY,
        at=midnight(day),
    )
    question = claim(core)
    assert isinstance(question, Question)
    assert question.call.window == Window(day, day)
    with core.engine.begin() as connection:
        connection.exec_driver_sql(
            "SELECT pricing.note_opinions(%s, '{IBM}', %s, %s, '{USD}', %s, '{NULL}')",
            (question.call.id, [midnight(day)], [Decimal(said)], [basis]),
        )
        (words,) = opinions.of(connection, question.value_ids).values()
    assert [word.verdict for word in words] == [verdict]


# A reason to hold


def second_type(core: Core, like: str, name: str) -> None:
    """A data type of the same instruments that Yahoo serves."""
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, asset_class, fetcher, default_ttl_minutes, history_from)"
        " SELECT :name, asset_class, fetcher, default_ttl_minutes, history_from FROM pricing.data_type_registry"
        " WHERE data_type = :like",
        name=name,
        like=like,
    )
    core.rows("DELETE FROM pricing.provider_routing WHERE data_type = :name", name=name)
    core.rows("INSERT INTO pricing.provider_routing (data_type, provider) VALUES (:name, 'yahoo')", name=name)


def test_f6_a_quote_that_disagrees_with_another_provider_waits_for_a_person(core: Core) -> None:
    """A step of a fifth is nothing by itself; beside what another provider says in the same minutes it is."""
    core.lift_limits()
    second_type(core, QUOTE, "yahoo_quote")
    for price, outcome in (("100.00", "completed"), ("120.00", "scheduled"), ("103.00", "completed")):
        core.rows("DELETE FROM pricing.api_call_queue_live")
        core.enqueue(QUOTE, "AAPL")
        at = core.clock() - timedelta(seconds=1)
        settling.settle_answer(
            core.engine,
            core.claim_one(),
            Fetched(Answer(observations=Rows([observation("AAPL", price, at)])), 200, 4, body=b"x"),
        )
        assert core.tasks("AAPL")[-1].status == outcome, price
        if price == "100.00":
            core.enqueue("yahoo_quote", "AAPL")
            core.finish(core.claim_one(YAHOO), "101.00", seconds_old=60)
    (row,) = core.rows("SELECT kind, value, reason FROM pricing.quarantined_values")
    assert (row.kind, row.value) == (Doubt.DISAGREEMENT.value, "120.00")
    assert row.reason.startswith("120.00 comes, and yahoo says 101 of ")
    assert str(core.latest("AAPL").price) == "103.00"  # type: ignore[union-attr]
    assert {task.failure_kind for task in core.tasks("AAPL")} <= {None, FailureKind.IMPLAUSIBLE.value}


def test_f6_days_are_compared_with_what_another_provider_says_of_the_same_days(core: Core) -> None:
    core.lift_limits()
    second_type(core, DAILY, "yahoo_daily")
    days = [date(2012, 3, 5) + timedelta(days=n) for n in range(5)]

    def brought(data_type: str, provider: str, *prices: str) -> set[date]:
        core.enqueue(data_type, "IBM", days=(days[0], days[-1]))
        call = windowed(a_call(core.claim_one(provider)), days[0], days[-1])
        rows = tuple(observation("IBM", price, midnight(day)) for price, day in zip(prices, days, strict=True))
        settling.settle_answer(core.engine, call, Fetched(Answer(observations=Rows(rows)), 200, 4, body=b"x"))
        return {bar.observed_at.date() for bar in core.history("IBM", data_type, days[0], days[-1])}

    assert brought("yahoo_daily", YAHOO, "200", "201", "202", "203", "204") == set(days)
    assert brought(DAILY, "twelvedata", "200", "201", "240", "203", "205") == set(days) - {days[2]}
    (row,) = core.rows("SELECT kind, reason FROM pricing.quarantined_values WHERE data_type = :type", type=DAILY)
    assert (row.kind, row.reason) == (
        "disagreement",
        "240 comes, and yahoo says 202 of 2012-03-07: more than a tenth apart",
    )
