"""What an alert leads to: the run or asset in the Dagster UI, the runbook, and the messages about it."""

from __future__ import annotations

import pytest

from pricing_pipeline.operations import alerts, dagster_failures
from pricing_pipeline.operations.dagster_failures import EndedRun, Kind
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.database import Clock

DAY, OVER_AFTER = 86400, 300
RUN = "0b0d3ad8-6d8e-4f3c-8a3b-1f2b6f6d2a11"
UI = "https://prices.example.com/dagster"

pytestmark = pytest.mark.usefixtures("still")


def raise_alert(core: Core, rule: str, subject: str, says: str = "it burns") -> int:
    """An alert that was raised, as a look raises it."""
    return int(
        core.one(
            "INSERT INTO pricing.alerts (rule, subject, severity, says, since, last_seen_at, raised_at) VALUES"
            " (:rule, :subject, 'P1', :says, pricing.clock(), pricing.clock(), pricing.clock()) RETURNING alert_id",
            rule=rule,
            subject=subject,
            says=says,
        )
    )


def bodies(core: Core) -> list[str]:
    rows = core.rows("SELECT payload FROM pricing.async_operations ORDER BY id")
    return [row.payload["body"] for row in rows]


def fail_run(core: Core) -> None:
    with core.engine.begin() as connection:
        dagster_failures.note_runs(connection, [EndedRun("refresh", RUN, 5, "the disk is full")])


@pytest.mark.parametrize(
    ("rule", "subject", "place"),
    [
        ("run_fails", "refresh", f"runs/{RUN}"),
        ("tick_fails", "report_prices", "automation"),
        ("breaker_open", TWELVEDATA, f"assets/provider/{TWELVEDATA}"),
        ("provider_fails", f"{TWELVEDATA} {QUOTE}", f"assets/latest_price/{QUOTE}"),
        ("pair_forgotten", QUOTE, f"assets/latest_price/{QUOTE}"),
        ("unhealthy", "pipeline", None),
        ("many_warnings", "../../runs", None),
    ],
)
def test_b21_a_message_links_to_what_it_is_about(
    core: Core, cli: CommandLine, rule: str, subject: str, place: str | None
) -> None:
    alert_id = raise_alert(core, rule, subject, f"Run {RUN} of refresh failed at 10:00: odd")
    assert alerts.look(core.engine, (), ui_url=f"{UI}/") == 1
    (body,) = bodies(core)
    link = f"{UI}/{place}" if place else None
    shown = [line for line in body.splitlines() if "Dagster shows it" in line]
    assert shown == ([f"Dagster shows it: {link}"] if link else [])
    assert cli("alert", "show", str(alert_id), "--json", ui_url=UI).json["link"] == link
    assert cli("alert", "show", str(alert_id), "--json").json["link"] is None, "nobody knows where the UI is"


@pytest.mark.parametrize(("rule", "place"), [("run_fails", f"runs/{RUN}"), ("breaker_open", "assets/eu/prices/{}")])
def test_g8_a_message_links_to_an_asset_under_its_prefix(core: Core, cli: CommandLine, rule: str, place: str) -> None:
    subject = "refresh" if rule == "run_fails" else TWELVEDATA
    alert_id = raise_alert(core, rule, subject, f"Run {RUN} of refresh failed at 10:00: odd")
    alerts.look(core.engine, (), ui_url=UI, asset_prefix="eu/prices")
    (body,) = bodies(core)
    link = f"{UI}/{place.format(f'provider/{TWELVEDATA}')}"
    assert f"Dagster shows it: {link}" in body.splitlines()
    shown = cli("alert", "show", str(alert_id), "--json", ui_url=UI, asset_prefix="eu/prices")
    assert shown.json["link"] == link


def test_b21_without_an_address_of_the_ui_a_message_has_no_link(core: Core) -> None:
    fail_run(core)
    alerts.look(core.engine)
    (body,) = bodies(core)
    assert f"Run {RUN} of refresh failed at " in body
    assert "the disk is full" in body
    assert "http" not in body


def test_b21_one_alert_is_shown_with_all_that_is_known_of_it(cli: CommandLine, core: Core, clock: Clock) -> None:
    id_ = str(raise_alert(core, "breaker_open", TWELVEDATA, "all calls fail"))
    alerts.look(core.engine, ())
    cli("alert", "acknowledge", id_)
    cli("alert", "silence", "breaker_open", "--hours", "2", "--reason", "they know")
    cli("alert", "silence", "breaker_open", "--hours", "9", "--subject", "yahoo")
    shown = cli("alert", "show", id_, "--json").json
    ((operation, recipient),) = [(m["id"], m["recipient"]) for m in shown["messages"]]
    assert recipient == "mailbox"
    assert cli("operation", "show", str(operation)).exit_code == 0
    assert [s["reason"] for s in shown["silences"]] == ["they know"], "and no silence of another subject"
    said = cli("alert", "show", id_).stdout
    for words in (
        f"{id_}, breaker_open",
        "all calls fail",
        "they know",
        "docs/runbook.md#breaker_open",
        f"pricing-pipeline alert acknowledge {id_}",
        f"operation {operation} to mailbox by log: pending",
    ):
        assert words in said
    clock.advance(OVER_AFTER)
    alerts.look(core.engine, ())
    assert "look after it" not in cli("alert", "show", id_).stdout
    said_of_none = cli("alert", "show", "999").error
    assert "there is no alert 999. `alert list --past` lists them" in said_of_none


def test_b21_a_failed_run_that_nobody_repeats_is_forgotten_after_a_week(core: Core, clock: Clock) -> None:
    fail_run(core)
    with core.engine.begin() as connection:
        dagster_failures.note(connection, Kind.TICK, {"report_prices": "odd"})
    failed_at = core.one("SELECT failed_at FROM pricing.dagster_failures WHERE kind = 'run'")
    assert (core.clock() - failed_at).total_seconds() == 5
    core.rows("SELECT pricing.move_times(pricing.clock() - interval '1 hour', interval '1 hour')")
    assert core.one("SELECT max(failed_at) <= pricing.clock() - interval '1 hour' FROM pricing.dagster_failures")
    clock.advance(7 * DAY - 3700)
    core.call("SELECT pricing.prune()")
    assert core.one("SELECT count(*) FROM pricing.dagster_failures") == 2
    clock.advance(101)
    core.call("SELECT pricing.prune()")
    assert core.one("SELECT count(*) FROM pricing.dagster_failures") == 0


def test_b21_an_alert_keeps_its_last_fifty_messages(core: Core, clock: Clock, cli: CommandLine) -> None:
    alert_id = raise_alert(core, "breaker_open", TWELVEDATA)
    for _ in range(52):
        core.rows("UPDATE pricing.alerts SET told_at = NULL, last_seen_at = pricing.clock()")
        alerts.look(core.engine, ())
    newest = [row.id for row in core.rows("SELECT id FROM pricing.async_operations ORDER BY id DESC LIMIT 50")]
    shown = cli("alert", "show", str(alert_id), "--json").json["messages"]
    assert [message["id"] for message in shown] == sorted(newest)
