"""Alerts: each is caused and ended on a real database; recipients are told of it, and people look after it."""

from __future__ import annotations

import re
import shlex
import threading
from functools import partial

import pytest
from sqlalchemy import Engine

from pricing_pipeline.api.page import reading, verdict
from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline.operations import alerts, notifier, operation_queue
from pricing_pipeline.operations.alert_rules import AWAKE_AFTER, RULES, AlertRule
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import MFAPI, NAV, QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.alert_causes import (
    CAUSED_AND_ENDED,
    DAY,
    begin_outage,
    close_breaker,
    fail_task,
    forget_pair,
    keep_looking,
    kill_message,
    open_breaker,
    resolve_task,
    run_duties,
    use_quota,
    warn,
)
from pricing_pipeline_tests.support.pages import ROOT
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox

OVER_AFTER = 300

pytestmark = pytest.mark.usefixtures("still")


@pytest.fixture(autouse=True)
def unscheduled(core: Core) -> None:
    """Nothing needs Dagster until a test has somebody want something."""
    core.rows("UPDATE pricing.data_type_registry SET refresh_strategy = 'on-demand', refresh_schedule = NULL")


def look(core: Core) -> int:
    return alerts.look(core.engine)


def look_after(core: Core, clock: Clock, seconds: float) -> None:
    """Look when so much time has passed, in which duties have run."""
    clock.advance(seconds)
    run_duties(core, clock)
    look(core)


def open_alerts(core: Core) -> dict[str, str]:
    """Rules of open alerts, and what each is about."""
    rows = core.rows("SELECT rule, subject FROM pricing.alerts WHERE raised_at IS NOT NULL AND resolved_at IS NULL")
    return {row.rule: row.subject for row in rows}


def messages(core: Core) -> list[tuple[str, str]]:
    """Titles and bodies of what was queued for the sample's mailbox."""
    rows = core.rows("SELECT payload FROM pricing.async_operations WHERE operation_type = 'log' ORDER BY id")
    return [(row.payload["title"], row.payload["body"]) for row in rows]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_b13_b21_an_alert_is_raised_told_and_over(core: Core, clock: Clock, rule: AlertRule) -> None:
    cause, end, subject = CAUSED_AND_ENDED[rule.name]
    cause(core, clock)
    alerts.look(core.engine, [rule])
    if rule.lasts_seconds:
        assert open_alerts(core) == {}, "it has not lasted yet"
        keep_looking(core, clock, rule.lasts_seconds, [rule])
    assert open_alerts(core) == {rule.name: subject}
    assert len([body for _, body in messages(core) if f"section {rule.name}" in body]) == 1
    end(core, clock)
    clock.advance(OVER_AFTER)
    run_duties(core, clock)
    alerts.look(core.engine, [rule])
    assert open_alerts(core) == {}
    ends = [body for _, body in messages(core) if f"Over: {rule.name} of {subject}" in body]
    assert len(ends) == (0 if rule.severity == "P2" else 1)


def test_b24_every_alert_has_its_section_in_the_runbook_and_each_command_there_runs(
    cli: CommandLine, core: Core, sandbox: RunningSandbox
) -> None:
    page = (ROOT / "docs/runbook.md").read_text()
    sections = re.findall(r"^## (\w+)$", page, re.MULTILINE)
    assert set(sections) == {rule.name for rule in RULES} | {alerts.BROKEN.name}
    found = [re.findall(r"^pricing-pipeline ([^#\n]+)", section, re.MULTILINE) for section in page.split("\n## ")[1:]]
    assert all(found), "each section has a command"
    for command in {command.strip() for commands in found for command in commands}:
        said = cli(*shlex.split(command), sandbox_url=sandbox.url)
        assert said.exit_code == 0, (command, said)


def test_b21_a_rule_that_fails_is_told_and_stops_no_other(
    core: Core, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_breaker(core, clock)
    core.rows("DROP FUNCTION pricing.bytes_used(text, timestamptz) CASCADE")
    look(core)
    assert open_alerts(core).keys() == {"breaker_open"}, "it may have waited for a lock"
    keep_looking(core, clock, alerts.BROKEN.lasts_seconds)
    assert open_alerts(core).keys() >= {"breaker_open", "rule_fails"}
    found = core.rows("SELECT subject, says FROM pricing.alerts WHERE rule = 'rule_fails' ORDER BY 1")
    assert [row.subject for row in found] == ["nothing_completed", "quota_near", "quota_short", "unhealthy"]
    assert all("function pricing.bytes_used" in row.says for row in found)
    assert open_alerts(core)["breaker_open"] == TWELVEDATA


def test_b21_what_a_failing_rule_found_before_is_not_over(core: Core, clock: Clock) -> None:
    use_quota(0.95)(core, clock)
    look(core)
    core.rows("DROP FUNCTION pricing.bytes_used(text, timestamptz) CASCADE")
    look_after(core, clock, 301)
    assert "quota_short" in open_alerts(core)


def test_b21_recipients_are_told_of_their_severities(core: Core, clock: Clock) -> None:
    core.rows(
        "INSERT INTO pricing.recipients (recipient, channel, least_severity, created_at)"
        " VALUES ('calm', 'log', 'P0', pricing.clock()), ('busy', 'log', 'P1', pricing.clock()),"
        " ('away', 'log', 'P2', pricing.clock())"
    )
    core.rows("UPDATE pricing.recipients SET is_active = false WHERE recipient = 'away'")
    open_breaker(core, clock)
    warn(core, clock)
    assert look(core) == 2
    told = {
        row.payload["recipient"]: row.payload["body"]
        for row in core.rows("SELECT payload FROM pricing.async_operations")
    }
    assert told.keys() == {"busy", "mailbox"}
    assert "warnings" not in told["busy"]
    assert "breaker_open" in told["mailbox"]
    assert "many_warnings" in told["mailbox"]


def test_b21_only_one_session_looks_at_a_time(core: Core, clock: Clock) -> None:
    open_breaker(core, clock)
    with core.engine.begin() as other:
        other.exec_driver_sql("SELECT pricing.take_turn('look_for_alerts')")
        assert look(core) == 0
        assert open_alerts(core) == {}
    assert look(core) == 1


def test_b21_people_list_acknowledge_and_silence_alerts(cli: CommandLine, core: Core, clock: Clock) -> None:
    clock.stop()
    assert "no alert is open." in cli("alert", "list").stdout
    open_breaker(core, clock)
    look(core)
    (alert,) = cli("alert", "list", "--json").json["alerts"]
    assert (alert["rule"], alert["subject"], alert["severity"]) == ("breaker_open", TWELVEDATA, "P1")
    assert "all calls fail" in cli("alert", "list", "--wide").stdout
    assert cli("alert", "acknowledge", str(alert["alert_id"]), "999").exit_code == 1
    look_after(core, clock, 2 * DAY)
    assert len(messages(core)) == 1, "what somebody looks after is not repeated"
    close_breaker(core, clock)
    look_after(core, clock, OVER_AFTER)
    assert len(messages(core)) == 2, "its end is told"
    said = cli("alert", "silence", "breaker_open", "--hours", "2", "--subject", TWELVEDATA).stdout
    assert said.startswith("Silenced: breaker_open about twelvedata until ")
    open_breaker(core, clock)
    look(core)
    assert len(messages(core)) == 2
    assert "silenced" in cli("alert", "list").stdout
    assert cli("alert", "unsilence", "breaker_open").stdout == "breaker_open: recipients are notified again.\n"
    look(core)
    assert len(messages(core)) == 3
    assert (
        "no alert is called 'fire'. There are: breaker_open," in cli("alert", "silence", "fire", "--hours", "1").error
    )


def test_b23_an_alert_that_nobody_has_heard_is_seen_behind_any_number_of_others(core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.alerts"
        " (rule, subject, severity, says, since, last_seen_at, raised_at, acknowledged_at, acknowledged_by)"
        " SELECT 'provider_fails', 'fmp type' || n, 'P1', 'It fails.', t, t, t,"
        " CASE WHEN n > 1 THEN t END, CASE WHEN n > 1 THEN 'ann' END"
        " FROM pricing.clock() t, generate_series(1, 30) n"
    )
    with core.engine.connect() as connection:
        read = reading.read(connection)
    assert (len(read.alerts), read.shown_alerts[0]["subject"]) == (30, "fmp type1")
    told = [finding.words for finding in verdict.judge(read).findings if finding.section == "alerts"]
    assert "1 urgent alert is open: provider fails (fmp type1)" in told


def test_b8_b15_alerts_are_pruned_and_follow_the_clock(core: Core, clock: Clock) -> None:
    open_breaker(core, clock)
    look(core)
    close_breaker(core, clock)
    clock.advance(OVER_AFTER)
    look(core)
    look_after(core, clock, 91 * DAY)
    core.call("SELECT pricing.prune()")
    assert core.rows("SELECT FROM pricing.alerts") == []
    open_breaker(core, clock)
    look(core)
    core.rows("SELECT pricing.move_times(pricing.clock() - interval '1 hour', interval '1 hour')")
    assert core.one("SELECT told_at <= pricing.clock() - interval '59 minutes' FROM pricing.alerts")


def test_b21_looking_goes_on_when_the_database_has_been_away(
    core: Core, clock: Clock, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = threading.Event()
    looks = 0

    def look_or_fail(engine: Engine, **_: object) -> int:
        nonlocal looks
        looks += 1
        if looks == 1:
            make_engine("postgresql://nobody@127.0.0.1:9/nowhere").connect()
        stop.set()
        return 0

    monkeypatch.setattr(alerts, "look", look_or_fail)
    alerts.keep_looking(core.engine, stop, every_seconds=0.01)
    assert looks == 2
    assert "alerts are not checked while the database fails" in caplog.text


def test_b21_what_comes_and_goes_is_one_alert(core: Core, clock: Clock) -> None:
    clock.stop()
    for _ in range(3):
        open_breaker(core, clock)
        look_after(core, clock, 60)
        close_breaker(core, clock)
        look_after(core, clock, 60)
    assert len(messages(core)) == 1


def test_b21_a_recipient_who_cannot_be_told_stops_nobody(core: Core, clock: Clock) -> None:
    core.rows(
        "INSERT INTO pricing.recipients (recipient, channel, created_at, master_key_id, key_nonce, wrapped_key,"
        " secret_nonce, ciphertext) VALUES ('ann', 'chat', pricing.clock(), 'one', '', '', '', '')"
    )
    core.rows("UPDATE pricing.operation_types SET is_active = false WHERE operation_type = 'chat'")
    open_breaker(core, clock)
    assert look(core) == 2
    with core.engine.begin() as connection:
        claimed = operation_queue.claim(connection, ["chat", "log"], 8, "here")
    assert [operation.operation_type for operation in claimed] == ["log"]
    core.rows("UPDATE pricing.operation_types SET is_active = true WHERE operation_type = 'chat'")
    with core.engine.begin() as connection:
        (waited,) = operation_queue.claim(connection, ["chat", "log"], 8, "here")
    assert waited.payload["recipient"] == "ann", "her message has waited for her channel"


def test_b21_what_nobody_is_to_be_told_of_waits_for_somebody(core: Core, clock: Clock) -> None:
    core.rows("UPDATE pricing.recipients SET is_active = false")
    fail_task(core, clock)
    assert look(core) == 0
    core.rows("UPDATE pricing.recipients SET is_active = true")
    assert look(core) == 1


def test_b21_that_no_duty_ever_ran_is_seen(core: Core, clock: Clock) -> None:
    look(core)
    assert open_alerts(core) == {}
    core.heartbeat("ann", (QUOTE, "AAPL"))
    clock.advance(601)
    keep_looking(core, clock, AWAKE_AFTER)
    assert open_alerts(core) == {"unhealthy": "pipeline", "nothing_completed": TWELVEDATA}
    says = core.one("SELECT says FROM pricing.alerts WHERE rule = 'unhealthy'")
    assert "The duty adopt_pairs has not run yet" in says


def test_b21_a_paused_instrument_is_not_forgotten(core: Core, clock: Clock) -> None:
    forget_pair(core, clock)
    core.pause("AAPL")
    run_duties(core, clock)
    keep_looking(core, clock, AWAKE_AFTER)
    assert "pair_forgotten" not in open_alerts(core)


def test_a8_a_fetch_that_failed_is_told_once_an_episode(core: Core, clock: Clock) -> None:
    clock.stop()
    core.hold("ann", (QUOTE, "AAPL"))
    fail_task(core, clock)
    look(core)
    look_after(core, clock, DAY)
    look_after(core, clock, DAY)
    told = [body for _, body in messages(core) if "section price_fetch_failed" in body]
    assert len(told) == 1
    assert "Pairs that could not be fetched from twelvedata: 1, such as equity_quote AAPL: no such address" in told[0]
    resolve_task(core, clock)
    look_after(core, clock, 1)
    look_after(core, clock, OVER_AFTER)
    assert "price_fetch_failed" not in open_alerts(core)
    core.rows("DELETE FROM pricing.api_call_queue_live")
    core.rows("UPDATE pricing.api_call_queue_dead SET resolved_at = NULL")
    look(core)
    told = [body for _, body in messages(core) if "section price_fetch_failed" in body]
    assert len(told) == 2, "another episode is told anew"


@pytest.mark.parametrize("kind", [FailureKind.REQUEST_REFUSED, FailureKind.NOT_STORABLE, FailureKind.PROVIDER_DOWN])
def test_a8_what_only_a_schedule_wants_is_told_when_it_fails(core: Core, clock: Clock, kind: FailureKind) -> None:
    """Nobody watches it, so nobody else would notice."""
    core.lift_limits()
    core.rows(
        "UPDATE pricing.data_type_registry SET refresh_strategy = 'scheduled', refresh_schedule = '0 * * * *',"
        " staleness_function = 'is_data_stale' WHERE data_type = 'mf_nav'"
    )
    core.rows("UPDATE pricing.schedule_walks SET served_slot = pricing.clock() - interval '1 day'")
    assert core.enqueue_scheduled(NAV)
    for _ in range(4):
        core.rows("UPDATE pricing.api_call_queue_live SET run_after = NULL, status = 'pending'")
        for call in core.claim(MFAPI, max_calls=10):
            core.fail(call, kind)
            core.settle(call, outcome="failed")
    look(core)
    assert open_alerts(core)["price_fetch_failed"] == MFAPI


def test_b21_an_outage_is_told_with_its_reason(core: Core, clock: Clock) -> None:
    begin_outage(core, clock)
    call = core.claim_one()
    core.fail(call, FailureKind.KEY_REFUSED, retry_after=1)
    core.settle(call, outcome="failed", kind=FailureKind.KEY_REFUSED)
    keep_looking(core, clock, 900)
    says = core.one("SELECT says FROM pricing.alerts WHERE rule = 'provider_fails'")
    assert says.startswith("twelvedata has answered no call for equity_quote since ")
    assert says.endswith("its watched prices grow old: it was key_refused")


def test_b21_a_fault_of_ours_in_looking_ends_the_process_to_be_started_again(
    core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(engine: Engine, **_: object) -> int:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(alerts, "look", look)
    stop = threading.Event()
    with pytest.raises(RuntimeError):
        notifier.do_or_end(partial(alerts.keep_looking, core.engine), stop)
    assert stop.is_set()


@pytest.mark.parametrize("why", ["a backfill waits", "viewers' share of the quota is used"])
def test_b21_what_waits_by_design_is_no_alert(core: Core, clock: Clock, why: str) -> None:
    if why == "a backfill waits":
        core.enqueue(QUOTE, "AAPL", priority=-2)
    else:
        core.enqueue(QUOTE, "AAPL")
        use_quota(0.96)(core, clock)
    look_after(core, clock, 601)
    look_after(core, clock, AWAKE_AFTER)
    assert "nothing_completed" not in open_alerts(core)


def test_b21_a_silence_of_what_is_not_open_says_what_is(cli: CommandLine, core: Core, clock: Clock) -> None:
    said = cli("alert", "silence", "breaker_open", "--hours", "1", "--subject", "yahooo").stdout
    assert said.endswith("No open alert of breaker_open is about yahooo. Subjects of its open alerts: none.\n")
    open_breaker(core, clock)
    look(core)
    said = cli("alert", "silence", "breaker_open", "--hours", "1", "--subject", "yahooo").stdout
    assert said.endswith(f"Subjects of its open alerts: {TWELVEDATA}.\n")
    said = cli("alert", "silence", "breaker_open", "--hours", "1", "--subject", "yahooo", "--json").json
    assert (said["is_open"], said["open_subjects"]) == (False, [TWELVEDATA])
    assert "No open alert" not in cli("alert", "silence", "breaker_open", "--hours", "1").stdout


def test_b21_one_outage_is_told_once(core: Core, clock: Clock) -> None:
    """The breaker's alert covers the types that its provider does not answer for, until it is closed again."""

    rules = [rule for rule in RULES if rule.name in ("breaker_open", "provider_fails")]

    def seen() -> set[str]:
        keep_looking(core, clock, 601, rules)
        return set(open_alerts(core))

    begin_outage(core, clock)
    alerts.look(core.engine, rules)
    open_breaker(core, clock)
    assert seen() == {"breaker_open"}
    close_breaker(core, clock)
    assert seen() == {"provider_fails"}
    open_breaker(core, clock)
    assert seen() == {"breaker_open", "provider_fails"}, "what was told is not over"


def test_b21_further_dead_messages_are_told_again_an_hour_later(core: Core, clock: Clock) -> None:
    clock.stop()
    kill_message(core, clock)
    look(core)

    def told() -> list[str]:
        return [body for _, body in messages(core) if "section message_dead" in body]

    assert len(told()) == 1
    look_after(core, clock, 3600)
    assert len(told()) == 1, "nothing new has happened"
    kill_message(core, clock)
    look(core)
    assert len(told()) == 2
    assert "2 messages could not be sent to bob" in told()[1]
    assert "That is new." in told()[1]
    clock.advance(1)
    kill_message(core, clock)
    look_after(core, clock, 3598)
    assert len(told()) == 2, "each death at once would be a flood"
    look_after(core, clock, 1)
    assert len(told()) == 3
    core.rows("UPDATE pricing.alerts SET acknowledged_at = pricing.clock()")
    clock.advance(1)
    kill_message(core, clock)
    look_after(core, clock, 3601)
    assert len(told()) == 3, "somebody looks after it"
