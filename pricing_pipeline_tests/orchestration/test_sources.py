"""What the sources of lineage say: who watches what, and what stops a provider."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest

from pricing_pipeline.defs.naming import PLAIN
from pricing_pipeline.defs.ours import LABEL, Ours
from pricing_pipeline.defs.pruning import prune_reports
from pricing_pipeline.defs.sources import BIGGEST
from pricing_pipeline.providers.declaration_file import read_file
from pricing_pipeline.registry import declarations
from pricing_pipeline_tests.fixtures.core import FX, MFAPI, QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.dagster import Stage, a_run, said
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.declarations import FRANKFURTER, FUNDS

SENSOR = "report_sources"


def told(stage: Stage, cursor: str | None = None) -> tuple[dict[str, dict[str, object]], str | None]:
    """What a tick observes, by the last part of the asset's key, and its cursor."""
    tick = stage.tick(SENSOR, cursor)
    events = [event for event in tick.asset_events if isinstance(event, dg.AssetObservation)]
    return {event.asset_key.path[-1]: said(event) for event in events}, tick.cursor


def test_g5_who_watches_what_is_told_when_it_changes(stage: Stage, core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "IBM"), (FX, "EUR/USD"))
    core.heartbeat("bob", (QUOTE, "AAPL"))
    seen, cursor = told(stage)
    watching = seen["active_subscriptions"]
    assert (watching["clients"], watching["watched"], watching["dagster/row_count"]) == (2, 3, 4)
    assert watching["by_data_type"] == [
        {"data type": QUOTE, "clients": 2, "watched": 2, "subscriptions": 3},
        {"data type": FX, "clients": 1, "watched": 1, "subscriptions": 1},
    ]
    clients = watching["biggest_clients"]
    assert isinstance(clients, list)
    assert [(one["client"], one["subscriptions"]) for one in clients] == [("ann", 3), ("bob", 1)]
    last = core.one("SELECT max(last_seen_at) FROM pricing.active_subscriptions WHERE user_id = 'bob'")
    assert clients[1]["last heartbeat (UTC)"] == f"{last.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
    clock.advance(30)
    core.heartbeat("ann", (QUOTE, "AAPL"))
    assert told(stage, cursor)[0] == {}, "a heartbeat alone is no news"
    core.unsubscribe("bob", (QUOTE, "AAPL"))
    again, _ = told(stage, cursor)
    assert (again["active_subscriptions"]["clients"], len(again)) == (1, 1)


def test_g5_of_many_clients_the_biggest_are_named(stage: Stage, core: Core) -> None:
    for number in range(BIGGEST + 3):
        core.heartbeat(f"user{number:02}", *((QUOTE, f"S{symbol}") for symbol in range(number + 1)))
    watching = told(stage)[0]["active_subscriptions"]
    assert watching["clients"] == BIGGEST + 3
    clients = watching["biggest_clients"]
    assert isinstance(clients, list)
    assert [one["subscriptions"] for one in clients] == list(range(BIGGEST + 3, 3, -1))


def test_g5_when_nobody_watches_any_more_that_is_told_once(stage: Stage, core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    _, cursor = told(stage)
    core.unsubscribe("ann", (QUOTE, "AAPL"))
    seen, cursor = told(stage, cursor)
    assert seen["active_subscriptions"] == {"dagster/row_count": 0, "clients": 0, "watched": 0}
    assert told(stage, cursor)[0] == {}


STOPS = {
    "breaker": (
        "UPDATE pricing.provider_state SET breaker = 'open', breaker_since = pricing.clock(),"
        " breaker_reason = 'HTTP 500',"
        " breaker_until = pricing.clock() + interval '1 minute'"
        " WHERE provider = 'twelvedata'",
        "The breaker of twelvedata is open since ",
    ),
    "key": (
        "INSERT INTO pricing.provider_keys (provider, key_name, is_active) VALUES ('twelvedata', 'default', false)"
        " ON CONFLICT (provider, key_name) DO UPDATE SET is_active = false",
        "No key of twelvedata is active. ",
    ),
    "pause": (
        "INSERT INTO pricing.provider_keys (provider, key_name, blocked_until, blocked_reason)"
        " VALUES ('twelvedata', 'default', pricing.clock() + interval '1 minute', 'too fast')"
        " ON CONFLICT (provider, key_name) DO UPDATE"
        " SET blocked_until = excluded.blocked_until, blocked_reason = excluded.blocked_reason",
        "Twelvedata has refused calls for speed (too fast) and is left alone until ",
    ),
    "quota": (
        "UPDATE pricing.data_collectors SET quota_bytes = 100 WHERE provider = 'twelvedata'",
        "The quota of twelvedata is spent: ",
    ),
    "off": (
        "UPDATE pricing.data_collectors SET is_active = false WHERE provider = 'twelvedata'",
        "Twelvedata is switched off; `pricing-pipeline provider change twelvedata --active` switches it on.",
    ),
}


def judged(stage: Stage, cursor: str | None = None) -> tuple[dict[str, dg.AssetCheckEvaluation], str | None]:
    """What a tick judges, by provider, and its cursor."""
    tick = stage.tick(SENSOR, cursor)
    found = [event for event in tick.asset_events if isinstance(event, dg.AssetCheckEvaluation)]
    assert all((one.check_name, one.asset_key.path[0]) == ("available", "provider") for one in found)
    return {one.asset_key.path[1]: one for one in found}, tick.cursor


ERROR, WARN = dg.AssetCheckSeverity.ERROR, dg.AssetCheckSeverity.WARN
FAULTS = {"breaker": ERROR, "key": ERROR, "pause": WARN, "quota": ERROR, "off": None}
"""How severe each stop is; None = meant so, hence green."""


@pytest.mark.parametrize("stop", STOPS)
def test_g5_g2_a_provider_says_at_once_what_stops_it_and_is_red_itself(stage: Stage, core: Core, stop: str) -> None:
    """It had text and no check, so nobody saw it in the graph."""
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh()
    found, cursor = judged(stage)
    assert found[TWELVEDATA].passed
    assert found[TWELVEDATA].description == "It is called as its limits allow."
    assert told(stage)[0][TWELVEDATA]["state"] == "It is called as its limits allow."
    statement, sentence = STOPS[stop]
    core.rows(statement)
    seen = told(stage, cursor)[0]
    assert list(seen) == [TWELVEDATA]
    assert str(seen[TWELVEDATA]["state"]).startswith(sentence)
    found, cursor = judged(stage, cursor)
    assert list(found) == [TWELVEDATA]
    assert str(found[TWELVEDATA].description).replace("\\", "").startswith(sentence)
    severity = FAULTS[stop]
    assert found[TWELVEDATA].passed is (severity is None)
    assert severity in (None, found[TWELVEDATA].severity)
    assert not stage.tick(SENSOR, cursor).asset_events, "once"


def test_g2_a_provider_that_does_not_answer_is_red_until_it_does(stage: Stage, core: Core) -> None:
    _, cursor = judged(stage)
    core.rows(
        "INSERT INTO pricing.outages (provider, data_type, since, last_fault_at)"
        " VALUES ('twelvedata', 'equity_quote', pricing.clock(), pricing.clock())"
    )
    found, cursor = judged(stage, cursor)
    assert (found[TWELVEDATA].passed, found[TWELVEDATA].severity) == (False, ERROR)
    core.rows("DELETE FROM pricing.outages")
    found, cursor = judged(stage, cursor)
    assert found[TWELVEDATA].passed


def test_g2_a_provider_without_a_client_names_what_to_do(stage: Stage, core: Core) -> None:
    core.rows("UPDATE pricing.registry_state SET prices_from = 'real providers'")
    core.rows(
        "INSERT INTO pricing.drains (worker, started_at, ends_at, lease_until, providers) VALUES ('w',"
        " pricing.clock(), pricing.clock(), pricing.clock() + interval '1 minute', '{mfapi}')"
    )
    found = judged(stage)[0][TWELVEDATA]
    assert not found.passed
    assert "no worker has a client" in str(found.description)
    assert "The limits are too small for the watched pairs" in str(found.metadata["what_to_do"].value)


@pytest.mark.usefixtures("still")
def test_g2_a_provider_is_judged_every_hour(stage: Stage, core: Core, clock: Clock) -> None:
    found, cursor = judged(stage)
    assert len(found) == 7
    clock.advance(3599)
    found, cursor = judged(stage, cursor)
    assert found == {}
    clock.advance(1)
    assert len(judged(stage, cursor)[0]) == 7


def test_g2_a_person_may_have_a_provider_judged(stage: Stage, core: Core) -> None:
    core.rows(STOPS["breaker"][0])
    job = dg.define_asset_job(
        "judge", selection=dg.AssetSelection.checks_for_assets(*map(PLAIN.provider_key, (TWELVEDATA, MFAPI)))
    )
    judging = dg.Definitions.merge(stage.definitions, dg.Definitions(jobs=[job]))
    run = judging.resolve_job_def("judge").execute_in_process(instance=stage.instance)
    found = {one.asset_key.path[1]: one.passed for one in run.get_asset_check_evaluations()}
    assert found == {TWELVEDATA: False, MFAPI: True}


def test_g5_a_run_that_judges_a_provider_is_ours(stage: Stage) -> None:
    """Otherwise it is kept for ever, and nobody is told that it fails."""
    checks = frozenset([dg.AssetCheckKey(PLAIN.provider_key(TWELVEDATA), "available")])
    a_run(stage.instance, dg.DagsterRunStatus.FAILURE, job="__ASSET_JOB", asset_check_selection=checks)
    assert "runs that ended: 1, failed: 1" in str(stage.tick("note_failures").skip_message)


def test_g5_what_sources_said_is_pruned_but_for_the_last(stage: Stage) -> None:
    ours = Ours(LABEL, (QUOTE,), providers=(TWELVEDATA,))
    naming = PLAIN
    keys = [naming.subscriptions, naming.provider_key(TWELVEDATA)]
    for key in (*keys, *keys, naming.provider_key("somebody_elses")):
        stage.instance.report_runless_asset_event(dg.AssetObservation(key))
    assert prune_reports(stage.instance, ours, datetime.now(UTC) + timedelta(hours=25)) == 2
    assert [len(stage.observations(*key.path)) for key in keys] == [1, 1]


def test_g5_units_are_told_in_words_and_not_too_often(stage: Stage, core: Core, clock: Clock) -> None:
    core.rows(
        "INSERT INTO pricing.provider_limits (provider, name, units, day_timezone)"
        " VALUES ('twelvedata', 'day', 800, 'UTC')"
    )
    clock.set(core.clock().replace(hour=12))
    seen, cursor = told(stage)
    assert seen[TWELVEDATA]["units"] == "0 of 2,000 credits in the last minute, 0 of 800 credits today"
    assert seen[MFAPI]["units"] == "0 of 4 calls this second"
    assert seen[MFAPI]["quota"] == "0 bytes of 21.5 GB in the last 30 days"
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "IBM"))
    core.refresh()
    clock.advance(900)
    seen, cursor = told(stage, cursor)
    assert seen[TWELVEDATA]["units"] == "0 of 2,000 credits in the last minute, 2 of 800 credits today"
    core.heartbeat("ann", (QUOTE, "MSFT"))
    core.refresh()
    assert TWELVEDATA not in told(stage, cursor)[0]
    clock.advance(900)
    seen, _ = told(stage, cursor)
    assert seen[TWELVEDATA]["units"] == "0 of 2,000 credits in the last minute, 3 of 800 credits today"


def test_g5_a_tick_says_what_it_has_reported(stage: Stage, core: Core) -> None:
    cursor = stage.tick(SENSOR).cursor
    assert stage.tick(SENSOR, cursor).skip_message == "nothing has changed"
    core.rows("UPDATE pricing.data_collectors SET is_active = false WHERE provider IN ('octo', 'uex')")
    assert stage.tick(SENSOR, cursor).skip_message == "reported: octo, uex"


def test_g5_a_quota_is_told_when_it_is_used_or_changed(stage: Stage, core: Core, clock: Clock) -> None:
    _, cursor = told(stage)
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 1000000000 WHERE provider = 'mfapi'")
    clock.advance(900)
    seen, _ = told(stage, cursor)
    assert seen[MFAPI]["quota"] == "0 bytes of 1.0 GB in the last 30 days"


def test_g5_a_declared_provider_says_whether_the_sandbox_stands_for_it(
    stage: Stage, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Funds are asked in the sandbox as mfapi, Frankfurter not at all."""
    with core.owner.begin() as connection:
        for path in (FUNDS, FRANKFURTER):
            declarations.declare(connection, read_file(path))
    stage.reload()
    unasked = "It is not asked while the sandbox is on, because the sandbox does not imitate it."
    seen, cursor = told(stage)
    assert (seen["funds"]["state"], seen["frankfurter"]["state"]) == (
        "It is called as its limits allow.",
        unasked,
    )
    assert stage.spec("provider", "funds").metadata["url"] == dg.MetadataValue.url("http://127.0.0.1:9/mfapi")
    metadata = stage.spec("provider", "frankfurter").metadata
    assert metadata["url"] == dg.MetadataValue.text("https://api.frankfurter.dev/v1")
    assert metadata["sandbox"].value == unasked
    core.rows("UPDATE pricing.data_collectors SET is_active = false WHERE provider = 'frankfurter'")
    assert str(told(stage, cursor)[0]["frankfurter"]["state"]).startswith("Frankfurter is switched off; ")
    core.rows("UPDATE pricing.data_collectors SET is_active = true WHERE provider = 'frankfurter'")
    monkeypatch.setenv("PRICING_SANDBOX", "false")
    stage.reload()
    assert told(stage, cursor)[0]["frankfurter"]["state"] == "It is called as its limits allow."
    assert "sandbox" not in stage.spec("provider", "frankfurter").metadata


def test_g5_provider_assets_name_the_sandbox_where_it_answers(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = stage.spec("provider", MFAPI).metadata
    assert metadata["url"] == dg.MetadataValue.url("http://127.0.0.1:9/mfapi")
    assert metadata["sandbox"].value == "The sandbox answers in place of https://api.mfapi.in."
    monkeypatch.setenv("PRICING_SANDBOX", "false")
    stage.reload()
    metadata = stage.spec("provider", MFAPI).metadata
    assert metadata["url"] == dg.MetadataValue.text("https://api.mfapi.in")
    assert "sandbox" not in metadata
