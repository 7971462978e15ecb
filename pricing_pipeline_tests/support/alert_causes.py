"""What causes each alert and what ends it, on a real database."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline.operations import alerts, dagster_failures, operation_queue, price_watch, recipients
from pricing_pipeline.operations.alert_rules import RULES, AlertRule
from pricing_pipeline.operations.dagster_failures import EndedRun, Kind
from pricing_pipeline_tests.fixtures.core import QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.database import Clock

Act = Callable[[Core, Clock], None]
DAY = 86400


def keep_looking(core: Core, clock: Clock, seconds: float, rules: Sequence[AlertRule] = RULES) -> None:
    """Look every four minutes for so long, and at the end: what is not seen for five is over."""
    while seconds > 0:
        alerts.look(core.engine, rules)
        clock.advance(min(seconds, 240))
        seconds -= 240
    alerts.look(core.engine, rules)


def run_duties(core: Core, _: Clock) -> None:
    core.call("SELECT pricing.run_duties()")


def stand_still(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    run_duties(core, clock)
    clock.advance(601)


def want_nothing(core: Core, clock: Clock) -> None:
    core.unsubscribe("ann", (QUOTE, "AAPL"))
    empty_queue(core, clock)


def break_duty(core: Core, clock: Clock) -> None:
    core.rows("INSERT INTO pricing.duties (duty, last_failure_at, last_error) VALUES ('prune', pricing.clock(), 'odd')")


def mend_duty(core: Core, clock: Clock) -> None:
    core.rows("UPDATE pricing.duties SET last_success_at = pricing.clock() WHERE duty = 'prune'")


def use_quota(share: float) -> Act:
    def act(core: Core, _: Clock) -> None:
        core.rows(
            "INSERT INTO pricing.api_data_usage (provider, hour, slot, calls, units, bytes)"
            " SELECT provider, date_trunc('hour', pricing.clock()), 0, 1, 1, (quota_bytes * :share)::bigint"
            " FROM pricing.data_collectors WHERE provider = 'twelvedata'",
            share=share,
        )

    return act


def want_too_much(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh()
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 3000000 WHERE provider = 'twelvedata'")
    core.rows("DELETE FROM pricing.api_data_usage")
    use_quota(0.1)(core, clock)
    core.one("SELECT pricing.stretch_ttls()")


def raise_quota(core: Core, _: Clock) -> None:
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 3000000000 WHERE provider = 'twelvedata'")
    core.one("SELECT pricing.stretch_ttls()")


def forget_usage(core: Core, _: Clock) -> None:
    core.rows("DELETE FROM pricing.api_data_usage")


def fill_queue(core: Core, _: Clock) -> None:
    core.enqueue(QUOTE, *(f"S{number:04d}" for number in range(1001)))


def empty_queue(core: Core, _: Clock) -> None:
    core.rows("DELETE FROM pricing.api_call_queue_live")


def leave_work(core: Core, clock: Clock) -> None:
    core.enqueue(QUOTE, "AAPL")
    clock.advance(601)


def do_work(core: Core, _: Clock) -> None:
    core.refresh()


def open_breaker(core: Core, _: Clock) -> None:
    core.rows(
        "UPDATE pricing.provider_state SET breaker = 'open', breaker_since = pricing.clock(),"
        " breaker_until = pricing.clock() + interval '1 minute', breaker_reason = 'all calls fail'"
        " WHERE provider = 'twelvedata'"
    )


def close_breaker(core: Core, _: Clock) -> None:
    core.rows(
        "UPDATE pricing.provider_state SET breaker = 'closed', breaker_since = NULL, breaker_until = NULL,"
        " breaker_reason = NULL"
    )


def begin_outage(core: Core, _: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.rows(
        "INSERT INTO pricing.outages (provider, data_type, since, last_fault_at)"
        " VALUES ('twelvedata', 'equity_quote', pricing.clock(), pricing.clock())"
    )


def end_outage(core: Core, _: Clock) -> None:
    core.rows("UPDATE pricing.outages SET answered_at = pricing.clock()")


def forget_pair(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    empty_queue(core, clock)
    core.rows("UPDATE pricing.demand SET due_at = pricing.clock(), became_due_at = NULL")
    clock.advance(DAY + 1)


def queue_pair(core: Core, _: Clock) -> None:
    core.enqueue(QUOTE, "AAPL")


def fail_task(core: Core, _: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.fail(core.claim_one(), FailureKind.MISCONFIGURED, "no such address")


def refuse_new(*symbols: str) -> Act:
    """A provider refuses symbols that somebody has just begun to watch."""

    def act(core: Core, _: Clock) -> None:
        core.lift_limits()
        core.heartbeat("ann", *((QUOTE, symbol) for symbol in symbols))
        core.fail(core.claim_one(), FailureKind.UNKNOWN_SYMBOL, "no such symbol")

    return act


def refuse_known(*symbols: str) -> Act:
    """A provider refuses symbols that somebody watches and that had prices."""

    def act(core: Core, clock: Clock) -> None:
        core.lift_limits()
        core.heartbeat("ann", *((QUOTE, symbol) for symbol in symbols))
        core.refresh()
        clock.advance(60)
        core.enqueue(QUOTE, *symbols)
        core.fail(core.claim_one(), FailureKind.UNKNOWN_SYMBOL, "no such symbol")

    return act


def resolve_task(core: Core, _: Clock) -> None:
    core.rows("UPDATE pricing.api_call_queue_dead SET resolved_at = pricing.clock()")


def use_limit(core: Core, _: Clock) -> None:
    core.rows("UPDATE pricing.provider_limits SET units = 6, window_seconds = 3600 WHERE provider = 'twelvedata'")
    core.enqueue(QUOTE, "A", "B", "C", "D", "E", "F")
    core.refresh()


def raise_limit(core: Core, _: Clock) -> None:
    core.rows("UPDATE pricing.provider_limits SET units = 1000 WHERE provider = 'twelvedata'")


def overrun(core: Core, _: Clock) -> None:
    core.rows(
        "INSERT INTO pricing.size_estimates (provider, data_type, per, bytes, overruns, last_overrun_at,"
        " last_overrun_ratio) VALUES ('twelvedata', 'equity_quote', 'symbol', 100, 1,"
        " pricing.clock(), 2.5)"
    )


def omit_length(core: Core, _: Clock) -> None:
    core.enqueue(QUOTE, "AAPL")
    core.refresh()
    core.rows("UPDATE pricing.collector_call_log SET is_unannounced = true")


def hour_passes(core: Core, clock: Clock) -> None:
    clock.advance(3601)


def day_passes(core: Core, clock: Clock) -> None:
    clock.advance(DAY + 1)


def warn(core: Core, clock: Clock) -> None:
    core.rows(
        "INSERT INTO pricing.warnings (at, source, subject, message)"
        " SELECT pricing.clock(), 'enqueue_due', 'equity_quote', 'odd ' || n FROM generate_series(1, 5) n"
    )


def kill_message(core: Core, _: Clock) -> None:
    with core.engine.begin() as connection:
        operation_queue.enqueue(connection, "chat", {"recipient": "bob", "title": "t", "body": "b"})
        (claimed,) = operation_queue.claim(connection, ["chat"], 1, "here")
        operation_queue.fail(connection, claimed, "gone", is_permanent=True)


def lose_recipients(core: Core, _: Clock) -> None:
    """The only recipient that is not a log; what died before it was added says nothing of it."""
    core.rows(
        "INSERT INTO pricing.operation_types (operation_type, payload_fields, max_attempts)"
        """ VALUES ('pager', '{"recipient": "string", "title": "string", "body": "string"}', 1)"""
    )
    core.rows(
        "INSERT INTO pricing.recipients (recipient, channel, created_at) VALUES ('ops', 'pager', pricing.clock())"
    )
    page(core, is_reached=False)


def reach_recipient(core: Core, _: Clock) -> None:
    page(core, is_reached=True)


def page(core: Core, *, is_reached: bool) -> None:
    with core.engine.begin() as connection:
        recipients.send(connection, "ops", "t", "b", is_urgent=True)
        for claimed in operation_queue.claim(connection, ["pager"], 8, "here"):
            if is_reached:
                operation_queue.complete(connection, claimed.claim_token, {claimed.id: None})
            else:
                operation_queue.fail(connection, claimed, "gone")


def leave_operation(core: Core, clock: Clock) -> None:
    core.rows("INSERT INTO pricing.operation_types (operation_type) VALUES ('post')")
    with core.engine.begin() as connection:
        operation_queue.enqueue(connection, "post", {})
    clock.advance(601)


def do_operation(core: Core, _: Clock) -> None:
    with core.engine.begin() as connection:
        (claimed,) = operation_queue.claim(connection, ["post"], 1, "here")
        operation_queue.complete(connection, claimed.claim_token, {claimed.id: None})


RUN = "0b0d3ad8-6d8e-4f3c-8a3b-1f2b6f6d2a11"


def fail_run(core: Core, _: Clock) -> None:
    end_run(core, reason="the disk is full")


def repeat_run(core: Core, _: Clock) -> None:
    end_run(core)


def end_run(core: Core, reason: str | None = None) -> None:
    with core.engine.begin() as connection:
        dagster_failures.note_runs(connection, [EndedRun("refresh", RUN, 5, reason)])


def fail_tick(core: Core, _: Clock) -> None:
    with core.engine.begin() as connection:
        dagster_failures.note(connection, Kind.TICK, {"report_prices": "RuntimeError: odd"})


def mend_tick(core: Core, _: Clock) -> None:
    with core.engine.begin() as connection:
        dagster_failures.note(connection, Kind.TICK, {})


def leave_price(core: Core, clock: Clock) -> None:
    core.rows(
        "WITH asked AS (INSERT INTO pricing.price_alerts"
        " (recipient, data_type, symbol, condition, threshold, created_at, created_by)"
        " VALUES ('mailbox', 'equity_quote', 'AAPL', 'above', 200, pricing.clock(), 'ann') RETURNING *)"
        " INSERT INTO pricing.price_events"
        " (price_alert_id, symbol, amount, scale, observed_at, provider, call_id, stored_at)"
        " SELECT price_alert_id, symbol, 1, 0, created_at, 'twelvedata', 1, created_at FROM asked"
    )
    clock.advance(601)


def look_at_prices(core: Core, _: Clock) -> None:
    price_watch.watch(core.engine)


def send_an_old_price(core: Core, _: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.finish(core.claim_one(), seconds_old=30 * DAY)


def send_a_new_price(core: Core, _: Clock) -> None:
    core.enqueue(QUOTE, "AAPL")
    core.refresh()


CAUSED_AND_ENDED: dict[str, tuple[Act, Act, str]] = {
    "unhealthy": (stand_still, want_nothing, "pipeline"),
    "duty_fails": (break_duty, mend_duty, "prune"),
    "quota_ends": (want_too_much, raise_quota, TWELVEDATA),
    "quota_near": (use_quota(0.76), forget_usage, TWELVEDATA),
    "quota_short": (use_quota(0.91), forget_usage, TWELVEDATA),
    "queue_deep": (fill_queue, empty_queue, "queue"),
    "nothing_completed": (leave_work, do_work, TWELVEDATA),
    "breaker_open": (open_breaker, close_breaker, TWELVEDATA),
    "provider_fails": (begin_outage, end_outage, "twelvedata equity_quote"),
    "pair_forgotten": (forget_pair, queue_pair, QUOTE),
    "price_fetch_failed": (fail_task, resolve_task, TWELVEDATA),
    "symbols_unknown": (refuse_known("A", "B", "C", "D", "E"), resolve_task, "twelvedata equity_quote"),
    "symbol_vanished": (refuse_known("AAPL"), resolve_task, "twelvedata equity_quote"),
    "source_old": (send_an_old_price, send_a_new_price, "twelvedata equity_quote"),
    "limit_near": (use_limit, raise_limit, TWELVEDATA),
    "estimate_wrong": (overrun, hour_passes, "twelvedata equity_quote"),
    "size_unannounced": (omit_length, day_passes, TWELVEDATA),
    "many_warnings": (warn, hour_passes, QUOTE),
    "message_dead": (kill_message, day_passes, "bob"),
    "nobody_told": (lose_recipients, reach_recipient, "recipients"),
    "price_alerts_wait": (leave_price, look_at_prices, "price_alerts"),
    "operation_unhandled": (leave_operation, do_operation, "post"),
    "run_fails": (fail_run, repeat_run, "refresh"),
    "tick_fails": (fail_tick, mend_tick, "report_prices"),
}
