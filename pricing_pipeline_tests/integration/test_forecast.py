"""F2: when a quota would end, and what waits because TTLs are stretched until then.

Months of it, and the rules against a model, are in test_forecast_model.py; units of a day in test_forecast_of_a_day.py.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline.operations import alerts
from pricing_pipeline.operations.alert_rules import RULES
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, MFAPI, NAV, QUOTE, TWELVEDATA, Core, rows_read
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.alert_causes import keep_looking
from pricing_pipeline_tests.support.stretching import (
    ahead,
    allow,
    later,
    measure_size,
    size_of,
    states,
    stretch,
    use,
    why,
)

AAPL, IBM = (QUOTE, "AAPL"), (QUOTE, "IBM")
MINUTE, HOUR, DAY = 60, 3600, 86_400
NOON = datetime(2026, 6, 10, 12, tzinfo=UTC)
"""A Wednesday."""


@pytest.fixture(autouse=True)
def noon(clock: Clock, still: None) -> None:
    clock.set(NOON)


# Forecast


def test_f2_without_a_day_of_use_and_without_sizes_nothing_is_said(core: Core) -> None:
    found = ahead(core)
    assert (found.outlook, found.ends_at, found.basis) == ("unknown", None, None)
    assert found.words == "too little is measured to say how long it lasts"
    use(core, {2: 500})
    assert ahead(core).outlook == "unknown"


def test_f2_a_quota_that_lasts_has_no_end_in_sight(core: Core) -> None:
    use(core, dict.fromkeys(range(200), 1000))
    found = ahead(core)
    assert (found.outlook, found.basis, found.bytes_an_hour) == ("lasts", "measured", 1000)
    assert found.words == "it lasts"
    assert "24.0 kB came in the last day, 168.0 kB in the last week: that is 720.0 kB in 30 days" in (found.basis_words)


def test_f2_the_steps_are_projected_by_what_came_every_day(core: Core) -> None:
    """1,000 bytes an hour for 200 hours, of a million in 30 days: 75 % in 550 hours, before anything comes back."""
    use(core, dict.fromkeys(range(200), 1000))
    allow(core, 600_000)
    found = ahead(core)
    assert found.used_bytes == 200_000
    assert found.backfills_stop_at == NOON + timedelta(hours=250)
    assert found.schedules_stop_at == NOON + timedelta(hours=340)
    assert found.ends_at == NOON + timedelta(hours=370)
    assert found.words == "ends at 2026-06-25 22:00 UTC"


def test_f2_what_comes_back_before_is_counted(core: Core) -> None:
    """Nearly all was used 29 days ago, and leaves before it would be too much."""
    use(core, {700: 900_000, **dict.fromkeys(range(200), 1000)})
    allow(core, 1_200_000)
    assert ahead(core).ends_at is None
    assert ahead(core).schedules_stop_at == NOON, "that step is reached already"
    allow(core, 1_160_000)
    assert ahead(core).ends_at == NOON + timedelta(hours=2)


def test_f2_a_backfill_of_one_day_is_no_habit(core: Core) -> None:
    use(core, {3: 500_000, **dict.fromkeys(range(4, 200), 1000)})
    found = ahead(core)
    assert found.bytes_an_hour == pytest.approx((500_000 + 164_000) / 168, rel=0.05)
    use(core, {100: 500_000, **dict.fromkeys(range(99), 1000)})
    assert ahead(core).bytes_an_hour == pytest.approx(1000, rel=0.05)


def test_f2_what_is_wanted_now_counts_if_it_is_more_than_what_came(core: Core) -> None:
    measure_size(core)
    use(core, dict.fromkeys(range(200), 1000))
    core.heartbeat("ann", AAPL, IBM)
    found = ahead(core)
    assert (found.basis, found.pairs, found.bytes_an_hour) == ("wanted", 2, 120_000)
    assert "2 watched or held pairs and schedules need 86.4 MB in 30 days" in found.basis_words
    allow(core, 2_400_000)
    assert ahead(core).ends_at == NOON + timedelta(hours=18)


def test_f2_no_more_is_forecast_than_the_limits_allow(core: Core) -> None:
    measure_size(core)
    core.rows("UPDATE pricing.provider_limits SET units = 1 WHERE provider = 'twelvedata'")
    core.heartbeat("ann", AAPL, IBM)
    assert ahead(core).bytes_an_hour == 60_000


def test_f2_quotes_that_follow_their_market_need_nothing_while_it_is_closed(core: Core) -> None:
    measure_size(core)
    core.heartbeat("ann", AAPL)
    core.refresh()
    core.rows("UPDATE pricing.data_type_registry SET staleness_function = 'is_market_stale'")
    core.rows("UPDATE pricing.instruments SET calendar = 'XNYS' WHERE symbol = 'AAPL'")
    core.rows("DELETE FROM pricing.calendar_sessions WHERE calendar = 'XNYS'")
    core.rows(
        "INSERT INTO pricing.calendar_sessions (calendar, session, opens_at, closes_at)"
        " VALUES ('XNYS', '2026-06-11', '2026-06-11 13:30Z', '2026-06-11 20:05Z')"
    )
    hours = 6 + 50 / 60
    assert ahead(core).watched_bytes == pytest.approx(60 * size_of(core) * hours / 168)


def test_f2_schedules_are_part_of_the_need(core: Core) -> None:
    funds = core.one("SELECT count(*) FROM pricing.instruments WHERE asset_class = 'fund'")
    core.rows("UPDATE pricing.data_type_registry SET staleness_function = 'is_data_stale'")
    assert ahead(core, MFAPI).background_bytes == pytest.approx(funds * 800 / 24)


def test_f2_commands_show_the_forecast(core: Core, cli: CommandLine) -> None:
    measure_size(core)
    core.heartbeat("ann", AAPL)
    allow(core, 2_000_000)
    stretch(core, 3.2)
    told = cli("status").stdout
    assert "forecast:    the quota of twelvedata would end at" in told
    assert "1 watched or held pairs and schedules need" in told
    assert "stretched:   watched prices are refreshed 3.2 times less often" in told
    shown = cli("status", "--json").json["forecast"][TWELVEDATA]
    assert (shown["outlook"], shown["basis"], shown["watched_factor"]) == ("ends", "wanted", 3.2)
    shown = cli("provider", "show", TWELVEDATA, "--json").json["forecast"]
    assert shown["ends_at"].endswith(("Z", "+00:00"))
    told = cli("provider", "show", TWELVEDATA).stdout
    assert "how long:" in told
    assert "would end at" in told


# The alert


def test_f2_the_alert_begins_a_week_before_and_ends_ten_days_before(core: Core, clock: Clock) -> None:
    """Between the two nothing changes: a forecast that moves by a day raises and ends nothing."""

    quota_ends = [rule for rule in RULES if rule.name == "quota_ends"]

    def is_open(days: float) -> bool:
        stretch(core, 2)
        core.rows("UPDATE pricing.ttl_stretches SET ends_at = pricing.clock() + interval '1 day' * :days", days=days)
        for _ in range(3):  # how long it lasts until it is raised, or over
            keep_looking(core, clock, 5 * MINUTE, quota_ends)
            core.rows("UPDATE pricing.ttl_stretches SET noted_at = pricing.clock()")
        with core.engine.connect() as connection:
            return alerts.open_subjects(connection, "quota_ends") == [TWELVEDATA]

    assert [is_open(days) for days in (8, 6.9, 9.8, 10.2, 9)] == [False, True, True, False, False]


# What is stretched


def test_f2_a_watched_pair_is_queued_later_and_counts_as_owed_all_the_while(core: Core, clock: Clock) -> None:
    """It is honest: reads, freshness and `why` go by the TTL, of which the pair is late; only its task comes later."""
    core.heartbeat("ann", AAPL)
    core.refresh()
    stretch(core, 4)
    assert later(core, clock, 1.1) == 0
    assert states(core) == {"AAPL": "due"}
    latest = core.latest("AAPL")
    assert latest is not None
    assert not latest.fresh
    assert later(core, clock, 1) == 0
    assert states(core) == {"AAPL": "late"}
    told = why(core)
    assert told.state == "stretched"
    assert (
        "its TTL is stretched: it is refreshed every 4 min instead of every 60 s, next at 2026-06-10 12:04:00 UTC, "
        "because the quota of twelvedata would end at 2026-06-20 05:00:00 UTC"
    ) in told.sentence
    assert later(core, clock, 1.8) == 0
    assert later(core, clock, 0.2) == 1
    owed = core.demand_of(*AAPL)
    assert owed is not None
    assert owed.became_due_at == NOON + timedelta(minutes=1), "since its TTL was over"
    core.refresh()
    assert states(core) == {"AAPL": "fresh"}
    assert core.one("SELECT stretched_from FROM pricing.demand") is None


def test_f2_what_follows_a_market_counts_as_owed_too(core: Core, clock: Clock) -> None:
    core.rows("UPDATE pricing.data_type_registry SET staleness_function = 'is_market_stale'")
    core.heartbeat("ann", AAPL)
    core.refresh()
    core.rows("UPDATE pricing.instruments SET calendar = NULL")
    core.rows("UPDATE pricing.demand SET due_at = pricing.clock() + interval '1 minute'")
    stretch(core, 4)
    assert later(core, clock, 2.5) == 0
    assert core.one("SELECT stretched_from FROM pricing.demand") is not None
    assert states(core) == {"AAPL": "late"}


def test_f2_a_first_look_is_not_delayed(core: Core) -> None:
    stretch(core, 16)
    core.heartbeat("ann", AAPL)
    assert [task.symbol for task in core.tasks()] == ["AAPL"]


def test_f2_a_look_at_a_price_older_than_any_stretch_is_not_delayed(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", AAPL)
    core.refresh()
    core.unsubscribe("ann", AAPL)
    clock.advance(HOUR)
    stretch(core, 16)
    core.heartbeat("bob", AAPL)
    assert core.statuses() == {"AAPL": "pending"}


def test_f2_what_is_owed_after_trouble_is_not_delayed(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", AAPL)
    core.refresh()
    clock.advance(MINUTE + 1)
    core.enqueue_due()
    for _ in range(4):
        core.rows("UPDATE pricing.api_call_queue_live SET run_after = NULL, status = 'pending'")
        core.fail(core.claim_one(), FailureKind.PROVIDER_DOWN)
    assert core.one("SELECT owed_since FROM pricing.demand") is not None
    stretch(core, 16)
    assert later(core, clock, 1.1) == 1


def test_f2_a_reader_is_served_when_the_pair_is_ripe_and_reads_write_once(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", AAPL)
    core.refresh()
    core.unsubscribe("ann", AAPL)
    stretch(core, 4)
    clock.advance(2 * MINUTE)
    ask = "SELECT pricing.request_prices('{equity_quote}', '{AAPL}')"
    assert core.call(ask) == 0
    before = core.rows("SELECT xmin, * FROM pricing.demand")
    assert core.call(ask) == 0
    assert core.rows("SELECT xmin, * FROM pricing.demand") == before, "it waits, and nothing is written again"
    core.clean()
    assert later(core, clock, 2.1) == 1


def test_f2_what_is_held_only_is_stretched_by_the_factor_of_the_background(core: Core, clock: Clock) -> None:
    core.rows("UPDATE pricing.data_type_registry SET background_ttl_minutes = 10")
    core.hold("ann", AAPL)
    core.heartbeat("bob", IBM)
    core.refresh()
    core.rows("INSERT INTO pricing.pair_views VALUES ('equity_quote', 'AAPL', pricing.clock()) ON CONFLICT DO NOTHING")
    stretch(core, 1, 3)
    core.rows("UPDATE pricing.demand SET due_at = pricing.clock() + interval '10 minutes' WHERE symbol = 'AAPL'")
    assert later(core, clock, 11) == 1
    assert {task.symbol for task in core.tasks() if task.status == "pending"} == {"IBM"}
    assert why(core).state == "stretched"
    assert "every 30 min instead of every 10 min" in why(core).sentence
    assert later(core, clock, 19.1) == 1


def test_f2_a_schedule_leaves_out_what_was_fetched_lately(core: Core, clock: Clock) -> None:
    """At twice the TTL every second slot asks for a fund."""
    core.rows("UPDATE pricing.data_type_registry SET staleness_function = 'is_data_stale'")
    core.rows("UPDATE pricing.schedule_walks SET served_slot = pricing.clock() - interval '1 day'")
    first = core.enqueue_scheduled(NAV)
    assert first
    core.lift_limits()
    core.refresh(MFAPI)
    clock.advance(DAY)
    stretch(core, 1, 2, MFAPI)
    assert core.enqueue_scheduled(NAV) == 0
    told = why(core, NAV, "118632")
    assert told.state == "scheduled"
    assert "and now less often, because the quota of mfapi would end at 2026-06-20" in told.sentence
    clock.advance(DAY)
    stretch(core, 1, 2, MFAPI)
    assert core.enqueue_scheduled(NAV) == first


def test_f2_a_pair_that_another_provider_could_serve_is_not_stretched(core: Core, clock: Clock) -> None:
    core.rows("INSERT INTO pricing.data_collectors (provider, base_url) VALUES ('other', 'https://other.example')")
    core.rows(
        "INSERT INTO pricing.provider_capabilities (provider, fetcher, batch_size, units_per_call)"
        " VALUES ('other', 'quote', 1, 1)"
    )
    core.rows(
        "INSERT INTO pricing.provider_routing (data_type, symbol, provider, rank)"
        " VALUES ('equity_quote', NULL, 'other', 9)"
    )
    core.heartbeat("ann", AAPL)
    core.refresh()
    stretch(core, 4)
    core.rows("UPDATE pricing.provider_state SET trouble = 'its breaker is open: odd' WHERE provider = 'other'")
    assert later(core, clock, 1.1) == 0, "the other one is in trouble"
    core.call("SELECT pricing.look_again('equity_quote')")
    core.rows("UPDATE pricing.provider_state SET trouble = NULL")
    assert later(core, clock, 0.1) == 1


def test_f2_a_staleness_function_of_ones_own_is_not_stretched(core: Core, clock: Clock) -> None:
    core.judge_by("SELECT stamp < pricing.clock() - interval ''30 seconds''", QUOTE)
    core.heartbeat("ann", AAPL)
    core.refresh()
    stretch(core, 4)
    assert later(core, clock, 1.1) == 1


# How it begins and ends


def duty(core: Core) -> tuple[float, float] | None:
    core.one("SELECT pricing.stretch_ttls()")
    found = core.rows("SELECT watched_factor, background_factor FROM pricing.ttl_stretches")
    return tuple(found[0]) if found else None


def press(core: Core) -> None:
    """Ten pairs want twice what the quota allows, of which a tenth is used."""
    measure_size(core)
    core.heartbeat("ann", *((QUOTE, f"S{number}") for number in range(10)))
    core.lift_limits()
    core.refresh()
    allow(core, 10 * 60 * size(core) * 720 // 2)
    core.rows("DELETE FROM pricing.api_data_usage")
    core.use_quota(core.one("SELECT quota_bytes / 10 FROM pricing.data_collectors WHERE provider = 'twelvedata'"))


def size(core: Core) -> int:
    return round(size_of(core))


def test_f2_a_quota_of_which_little_is_used_is_looked_at_no_further(core: Core) -> None:
    press(core)
    core.use_quota(core.one("SELECT quota_bytes / 21 FROM pricing.data_collectors WHERE provider = 'twelvedata'"))
    assert duty(core) is None
    with core.owner.begin() as connection:
        before = rows_read(connection)
        connection.exec_driver_sql("SELECT pricing.stretch_ttls()")
        assert rows_read(connection) - before < 30


def test_f2_the_stretch_grows_twofold_in_an_hour_until_the_quota_lasts(core: Core, clock: Clock) -> None:
    press(core)
    grown = []
    for _ in range(24):
        factors = duty(core)
        assert factors is not None
        grown.append(factors[0])
        clock.advance(5 * MINUTE)
    assert grown[0] == pytest.approx(2 ** (1 / 12))
    assert all(after <= before * 2 ** (1 / 12) * 1.001 for before, after in pairwise(grown))
    assert grown[-1] == pytest.approx(2 / (0.88 - 0.1) * 0.967, rel=0.06)


@pytest.mark.parametrize("how", ["more quota", "viewers leave"])
def test_f2_the_stretch_ends_within_five_minutes_of_its_cause(core: Core, clock: Clock, how: str) -> None:
    press(core)
    for _ in range(24):
        clock.advance(5 * MINUTE)
        duty(core)
    core.enqueue_due()
    assert [task for task in core.tasks() if task.status == "pending"] != []
    core.refresh()
    clock.advance(1.2 * MINUTE)
    assert core.enqueue_due() == 0, "all are stretched"
    if how == "more quota":
        allow(core, 10**12)
    else:
        core.unsubscribe("ann", *((QUOTE, f"S{number}") for number in range(1, 10)))
    core.one("SELECT pricing.stretch_ttls()")
    assert core.enqueue_due() == (10 if how == "more quota" else 1)


def test_f2_a_stretch_that_nobody_keeps_up_stretches_nothing(core: Core, clock: Clock) -> None:
    """Duties stand still: the hard steps of the quota remain."""
    core.heartbeat("ann", AAPL)
    core.refresh()
    stretch(core, 16)
    clock.advance(15 * MINUTE + 1)
    assert core.enqueue_due() == 1


def test_f2_a_ttl_of_ones_own_is_stretched_and_not_pulled_forward(core: Core, clock: Clock) -> None:
    """The duty that looks for changed TTLs leaves a stretched pair alone, unless its TTL became shorter."""
    core.heartbeat("ann", (DAILY, "AAPL"))
    core.rows("UPDATE pricing.data_type_registry SET staleness_function = 'is_data_stale'")
    core.refresh()
    core.rows("UPDATE pricing.latest_prices SET cache_ttl_minutes = 10")
    core.rows("UPDATE pricing.demand SET due_at = pricing.clock() + interval '10 minutes'")
    stretch(core, 4)
    assert later(core, clock, 10.5) == 0
    core.call("SELECT pricing.reconcile_demand()")
    assert core.due_in(DAILY, "AAPL") == pytest.approx(29.5 * MINUTE)
    core.rows("UPDATE pricing.latest_prices SET cache_ttl_minutes = 2")
    core.call("SELECT pricing.reconcile_demand()")
    assert later(core, clock, 0.1) == 1
