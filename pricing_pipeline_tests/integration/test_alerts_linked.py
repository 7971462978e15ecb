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


def test_b21_an_alert_has_a_place_in_the_ui(core: Core) -> None:
    places = {
        ("run_fails", "refresh"): f"runs/{RUN}",
        ("tick_fails", "report_prices"): "automation",
        ("breaker_open", TWELVEDATA): f"assets/provider/{TWELVEDATA}",
        ("provider_fails", f"{TWELVEDATA} {QUOTE}"): f"assets/latest_price/{QUOTE}",
        ("pair_forgotten", QUOTE): f"assets/latest_price/{QUOTE}",
        ("unhealthy", "pipeline"): None,
        ("many_warnings", "../../runs"): None,
    }
    for (rule, subject), place in places.items():
        found = core.one(
            "SELECT pricing.alert_place(:rule, :subject, :says)",
            rule=rule,
            subject=subject,
            says=f"Run {RUN} of refresh failed at 10:00: odd",
        )
        assert found == place, rule


@pytest.mark.parametrize(
    ("rule", "subject", "prefix", "place"),
    [
        ("breaker_open", TWELVEDATA, None, f"assets/provider/{TWELVEDATA}"),
        ("breaker_open", TWELVEDATA, "eu/prices", f"assets/eu/prices/provider/{TWELVEDATA}"),
        ("run_fails", "refresh", "eu/prices", f"runs/{RUN}"),
    ],
)
def test_b21_g8_a_message_links_to_what_it_is_about(
    core: Core, cli: CommandLine, rule: str, subject: str, prefix: str | None, place: str
) -> None:
    alert_id = raise_alert(core, rule, subject, f"Run {RUN} of refresh failed at 10:00: odd")
    assert alerts.look(core.engine, (), ui_url=f"{UI}/", asset_prefix=prefix) == 1
    (body,) = bodies(core)
    link = f"{UI}/{place}"
    assert f"Dagster shows it: {link}" in body.splitlines()
    assert cli("alert", "show", str(alert_id), "--json", ui_url=UI, asset_prefix=prefix).json["link"] == link


def test_b21_without_an_address_of_the_ui_an_alert_has_no_link(core: Core, cli: CommandLine) -> None:
    fail_run(core)
    alerts.look(core.engine)
    (body,) = bodies(core)
    assert f"Run {RUN} of refresh failed at " in body
    assert "the disk is full" in body
    assert "http" not in body
    alert_id = core.one("SELECT alert_id FROM pricing.alerts WHERE rule = 'run_fails'")
    assert cli("alert", "show", str(alert_id), "--json").json["link"] is None


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
    assert "acknowledge it" not in cli("alert", "show", id_).stdout
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


def test_b21_an_alert_keeps_its_last_fifty_messages(core: Core) -> None:
    raise_alert(core, "breaker_open", TWELVEDATA)
    core.rows("UPDATE pricing.alerts SET message_ids = ARRAY(SELECT generate_series(-50, -1))")
    alerts.look(core.engine, ())
    newest = core.one("SELECT id FROM pricing.async_operations")
    assert core.one("SELECT message_ids FROM pricing.alerts") == [*range(-49, 0), newest]
