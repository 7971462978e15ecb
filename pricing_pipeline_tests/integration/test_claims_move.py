"""The queue always moves: each state that once stopped it, by itself; test_claims_model.py has them in any order."""

from __future__ import annotations

from datetime import date

from pricing_pipeline_tests.fixtures.core import DAILY, QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock

SPRING = (date(2026, 1, 1), date(2026, 2, 28))


def test_a2_b10_where_one_call_at_a_time_is_made_the_turn_of_a_backfill_stops_nobody(core: Core) -> None:
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 100000, request_delay_ms = 1")
    core.rows("UPDATE pricing.provider_capabilities SET batch_size = 1, batch_from = 1")
    core.enqueue(DAILY, "BACK", priority=-2, days=SPRING)
    core.enqueue(QUOTE, "AAPL", priority=0)
    core.enqueue(QUOTE, "LARGE", priority=9)
    core.rows("UPDATE pricing.api_call_queue_live SET est_bytes = 90000 WHERE symbol = 'LARGE'")
    for used, asked in ((10_000, "BACK"), (70_000, "AAPL"), (0, "LARGE")):
        core.use_quota(used)
        core.rows("UPDATE pricing.provider_state SET claims = 9, last_call_at = NULL")
        (call,) = core.claim(max_calls=5)
        assert call.symbols == [asked], f"with {used} bytes used"
        core.return_tasks(call)
        core.settle(call, 0)


def test_b8_a_task_that_costs_more_than_a_limit_allows_dies_in_words_and_stops_nobody(core: Core) -> None:
    core.rows("UPDATE pricing.provider_limits SET units = 8 WHERE provider = 'twelvedata'")
    core.rows(
        "UPDATE pricing.provider_capabilities SET units_per_symbol = 10"
        " WHERE provider = 'twelvedata' AND fetcher = 'daily_bars'"
    )
    core.enqueue(DAILY, "DEAR", priority=9)
    core.enqueue(QUOTE, *(f"S{number}" for number in range(5)))
    (call,) = core.claim(max_calls=5)
    assert len(call.tasks) == 5
    assert core.task("DEAR").status == "pending"
    assert core.call("SELECT pricing.fail_impossible_tasks()") == 1
    dear = core.task("DEAR")
    assert (dear.status, dear.failure_kind) == ("failed", "misconfigured")
    assert dear.errors[-1]["message"] == (
        'one symbol costs 10 units of twelvedata, and its limit "minute" allows 8. If your plan allows more, '
        "raise units in pricing.provider_limits; else route equity_daily to another provider"
    )


def test_a2_units_are_saved_for_a_task_that_needs_more_than_come_free_at_a_time(core: Core, clock: Clock) -> None:
    """A viewer waited for ever behind cheap backfills: each of eight units a minute went to one of them."""
    core.rows("UPDATE pricing.provider_limits SET units = 8 WHERE provider = 'twelvedata'")
    core.rows("UPDATE pricing.data_collectors SET request_delay_ms = 7500")
    core.rows(
        "UPDATE pricing.provider_capabilities"
        " SET batch_size = 1, batch_from = 1, units_per_symbol = CASE fetcher WHEN 'daily_bars' THEN 8 ELSE 1 END"
    )
    core.enqueue(QUOTE, *(f"S{number}" for number in range(300)), priority=-2)
    asked = []
    for turn in range(60):
        if turn == 10:
            core.enqueue(DAILY, "DEAR", priority=50)
        clock.advance(7.6)
        for call in core.claim(max_calls=5):
            asked += call.symbols
            core.finish_call(call)
    before = asked.index("DEAR")
    assert 17 <= before <= 20, "nothing is saved for it in its first minute"
    assert len(asked) - before > 20, "others go on after it"


def test_b8_units_are_not_saved_for_what_a_day_does_not_allow_any_more(core: Core, clock: Clock) -> None:
    clock.set(core.clock().replace(hour=12))  # far from the end of the day
    core.rows("UPDATE pricing.provider_limits SET units = 8 WHERE provider = 'twelvedata'")
    core.rows(
        "INSERT INTO pricing.provider_limits (provider, name, units, day_timezone)"
        " VALUES ('twelvedata', 'daily', 12, 'UTC')"
    )
    core.rows(
        "UPDATE pricing.provider_capabilities"
        " SET batch_size = 1, batch_from = 1, units_per_symbol = CASE fetcher WHEN 'daily_bars' THEN 8 ELSE 1 END"
    )
    core.enqueue(QUOTE, *(f"S{number}" for number in range(5)))
    assert len(core.claim(max_calls=5)) == 5
    core.enqueue(DAILY, "DEAR", priority=50)
    clock.advance(100)
    core.enqueue(QUOTE, "IBM")
    assert [call.symbols for call in core.claim(max_calls=5)] == [["IBM"]]


def test_b8_tasks_of_a_provider_that_was_switched_off_fail_in_words(core: Core) -> None:
    core.enqueue(DAILY, "META", days=SPRING, priority=-2)
    core.rows("UPDATE pricing.data_collectors SET is_active = false WHERE provider = 'twelvedata'")
    core.call("SELECT pricing.fail_impossible_tasks()")
    (task,) = core.tasks("META")
    assert (task.status, task.failure_kind) == ("failed", "misconfigured")
    assert task.errors[-1]["message"].startswith(
        "twelvedata is switched off, and no other provider serves equity_daily"
    )


def test_b8_a_key_with_more_room_saves_what_is_too_dear_for_the_others(core: Core) -> None:
    core.rows("UPDATE pricing.provider_limits SET units = 8 WHERE provider = 'twelvedata'")
    core.rows("UPDATE pricing.provider_capabilities SET units_per_symbol = 10 WHERE provider = 'twelvedata'")
    core.call("SELECT pricing.register_keys('twelvedata', '{small,large}')")
    core.rows(
        "INSERT INTO pricing.provider_key_limits (provider, key_name, name, units)"
        " VALUES ('twelvedata', 'large', 'minute', 20)"
    )
    core.enqueue(QUOTE, "AAPL", "IBM", "META")
    assert core.call("SELECT pricing.fail_impossible_tasks()") == 0
    (call,) = core.claim(max_calls=5)
    assert (call.key_name, len(call.tasks)) == ("large", 2)


def test_b10_what_is_larger_than_the_quota_ever_allows_dies_in_words(core: Core) -> None:
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 10000")
    core.rows("UPDATE pricing.data_type_registry SET estimated_data_size_bytes = 9600 WHERE data_type = 'equity_quote'")
    core.enqueue(QUOTE, "HUGE")
    assert core.claim() == []
    assert core.call("SELECT pricing.fail_impossible_tasks()") == 1
    assert (
        core.task("HUGE")
        .errors[-1]["message"]
        .startswith("it needs about 9600 bytes, and the quota of twelvedata allows such work 9500 in 30 days.")
    )


def test_b8_leftovers_of_what_was_changed_hide_nothing_and_are_cleared_away(core: Core) -> None:
    """A deleted type, a provider that cannot fetch it any more: 0 claims in 10 days behind a few hundred of them."""
    core.rows("UPDATE pricing.provider_capabilities SET batch_size = 2, batch_from = 1")
    core.rows(
        "INSERT INTO pricing.api_call_queue_live (data_type, symbol, provider, priority)"
        " SELECT kind, 'S' || n, 'twelvedata', 9 FROM generate_series(1, 50) AS n,"
        " unnest(ARRAY['gone', 'mf_nav']) AS kind"
    )
    core.enqueue(QUOTE, "AAPL")
    (call,) = core.claim(max_calls=2)
    assert call.symbols == ["AAPL"]
    ran = core.call("SELECT pricing.run_duties()")
    assert {"retire_tasks", "fail_impossible_tasks"} <= set(ran)
    ends = {
        (row.data_type, row.status, row.provider)
        for row in core.rows("SELECT data_type, status, provider FROM pricing.api_call_queue WHERE symbol LIKE 'S%'")
    }
    assert ends == {("gone", "cancelled", "twelvedata"), ("mf_nav", "pending", "mfapi")}, "another provider has it"


def test_b1_deleting_a_type_retires_its_tasks(core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes) VALUES ('brief', 'quote', 1)"
    )
    core.enqueue("brief", "AAPL")
    core.rows("DELETE FROM pricing.data_type_registry WHERE data_type = 'brief'")
    task = core.task("AAPL")
    assert (task.status, task.failure_kind) == ("cancelled", "retired")


def test_b16_a_probe_is_one_task(core: Core) -> None:
    core.enqueue(QUOTE, "AAPL", "IBM")
    core.rows("SELECT pricing.open_breaker('twelvedata', 'as a test')")
    core.rows("UPDATE pricing.provider_state SET breaker_until = pricing.clock() WHERE provider = 'twelvedata'")
    (probe,) = core.claim(max_calls=5)
    assert len(probe.tasks) == 1


def test_b17_a_symbol_that_another_provider_gives_an_opinion_on_is_not_asked_for(core: Core, clock: Clock) -> None:
    """Nor for longer than a lost worker's call counts."""
    value = core.one(
        "INSERT INTO pricing.quarantined_values"
        " (data_type, symbol, provider, call_id, kind, reason, value, recorded_at, last_seen_at, last_call_id)"
        " VALUES ('equity_quote', 'AAPL', 'fmp', 0, 'jump', 'why', '1', pricing.clock(), pricing.clock(), 0)"
        " RETURNING value_id"
    )
    call = core.one(
        "INSERT INTO pricing.collector_call_log"
        " (provider, data_type, symbols, window_start, window_end, units, reserved_bytes, worker, started_at)"
        " VALUES ('yahoo', 'equity_quote', '{AAPL}', '-infinity', 'infinity', 1, 0, 'w', pricing.clock())"
        " RETURNING call_id"
    )
    core.rows(
        "INSERT INTO pricing.second_opinions (value_id, provider, call_id, asked_at)"
        " VALUES (:value, 'yahoo', :call, pricing.clock())",
        value=value,
        call=call,
    )
    core.enqueue(QUOTE, "AAPL", "IBM")
    assert core.claim_one().symbols == ["IBM"]
    clock.advance(61)
    assert core.claim_one().symbols == ["AAPL"]
