"""B10, B13, F2: sizes as they are learned, quota at the producers, and whether what is watched can be served."""

from __future__ import annotations

from datetime import date

import pytest
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.demand import viewers
from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.queue import limits
from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline_tests.fixtures.core import DAILY, MFAPI, NAV, QUOTE, TWELVEDATA, Core

pytestmark = pytest.mark.usefixtures("still")

YEAR = (date(2012, 1, 1), date(2012, 12, 31))


def estimate(core: Core, per: str = "symbol", data_type: str = QUOTE) -> float | None:
    found = core.rows(
        "SELECT bytes FROM pricing.size_estimates WHERE data_type = :data_type AND per = :per",
        data_type=data_type,
        per=per,
    )
    return found[0].bytes if found else None


def fetched(core: Core, wire_bytes: int, *symbols: str, outcome: str = "ok", kind: FailureKind | None = None) -> None:
    core.enqueue(QUOTE, *symbols)
    call = core.claim_one()
    core.complete(call)
    core.settle(call, wire_bytes, outcome, kind=kind)


# Sizes


def test_b13_the_first_measurement_is_taken_whole_and_later_ones_count_a_tenth(core: Core) -> None:
    assert estimate(core) is None
    registry = core.rows("SELECT * FROM pricing.data_type_registry ORDER BY 1")
    fetched(core, 1200, "AAPL", "IBM")
    assert estimate(core) == 600
    fetched(core, 1600, "AAPL")
    assert estimate(core) == pytest.approx(700)
    fetched(core, 700, "AAPL")
    assert estimate(core) == pytest.approx(700)
    assert core.one("SELECT measurements FROM pricing.size_estimates") == 3
    assert core.rows("SELECT * FROM pricing.data_type_registry ORDER BY 1") == registry, "it is kept elsewhere"
    core.enqueue(QUOTE, "MSFT")
    assert core.one("SELECT est_bytes FROM pricing.api_call_queue_live") == 700
    core.claim_one()
    assert core.one("SELECT reserved_bytes FROM pricing.collector_call_log WHERE finished_at IS NULL") == 700


def test_b13_a_refusal_teaches_nothing(core: Core) -> None:
    fetched(core, 300, "AAPL", outcome="failed", kind=FailureKind.THROTTLED)
    fetched(core, 300, "AAPL", kind=FailureKind.SCHEMA_DRIFT)
    assert estimate(core) is None


def test_b13_history_is_measured_by_the_day(core: Core) -> None:
    core.enqueue(DAILY, "AAPL", priority=-2, days=YEAR)
    assert core.one("SELECT est_bytes FROM pricing.api_call_queue_live") == 1000 + 366 * 120
    call = core.claim_one()
    core.complete(call)
    core.settle(call, 1000 + 366 * 80)
    assert estimate(core, "day", DAILY) == pytest.approx(80)
    core.enqueue(DAILY, "IBM", priority=-2, days=(date(2013, 1, 1), date(2013, 1, 10)))
    assert core.one("SELECT est_bytes FROM pricing.api_call_queue_live") == 1000 + 10 * 80
    call = core.claim_one()
    core.complete(call)
    core.settle(call, 1100)
    assert estimate(core, "day", DAILY) == pytest.approx(80), "ten days are mostly frame"


def test_b13_an_answer_of_more_than_twice_its_estimate_is_recorded(core: Core) -> None:
    fetched(core, 600, "AAPL")
    fetched(core, 1200, "AAPL")
    assert core.one("SELECT overruns FROM pricing.size_estimates") == 0, "660 had become its estimate, or less"
    fetched(core, 1400, "AAPL")
    (row,) = core.rows("SELECT overruns, last_overrun_ratio, last_overrun_at FROM pricing.size_estimates")
    assert row.overruns == 1
    assert row.last_overrun_ratio == pytest.approx(1400 / 660)
    assert row.last_overrun_at is not None


# Quota at the producers


def test_b10_a_backfill_that_cannot_fit_is_refused_with_figures(core: Core) -> None:
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 1000000 WHERE provider = 'twelvedata'")
    core.rows(
        "INSERT INTO pricing.api_data_usage (provider, hour, bytes) VALUES ('twelvedata', pricing.clock(), 700000)"
    )
    with Refresher(core.engine, {}, worker="w") as refresher:
        fits = refresher.plan_backfill(DAILY, Window(*YEAR), ["AAPL"])
        assert fits.tasks == 1, "44,920 bytes fit into the 50,000 below 75 %"
        with pytest.raises(DBAPIError) as caught:
            refresher.plan_backfill(DAILY, Window(*YEAR), ["IBM"])
    said = str(caught.value.orig)
    assert "needs about 44920 bytes from twelvedata, but 5080 are left" in said
    assert "75 % of its quota of 1000000 bytes" in said
    assert getattr(caught.value.orig, "sqlstate", None) == "22023", "what commands and runs tell in a sentence"
    assert [task.symbol for task in core.tasks()] == ["AAPL"], "nothing of it is queued"
    assert core.one("SELECT count(*) FROM pricing.backfills") == 1


# Budget


def budget(core: Core, provider: str = TWELVEDATA) -> limits.Budget:
    with core.engine.begin() as connection:
        (found,) = [row for row in limits.budgets(connection) if row.provider == provider]
        return found


def test_f2_what_is_watched_is_measured_against_the_limits(core: Core) -> None:
    """20 quotes a minute and a fund every day, on plans of 8 credits a minute and 4 calls a second."""
    core.rows("UPDATE pricing.provider_limits SET units = 8 WHERE provider = 'twelvedata'")
    assert budget(core).warning is None, "nobody watches anything"
    core.heartbeat("ann", *((QUOTE, f"S{number:03d}") for number in range(8)))
    core.heartbeat("bob", (QUOTE, "S000"), (NAV, "118632"))
    ours = budget(core)
    assert (ours.pairs, ours.units_needed, ours.units_allowed) == (8, 8, 8)
    assert ours.warning is None
    core.heartbeat("bob", *((QUOTE, f"T{number:03d}") for number in range(12)))
    ours = budget(core)
    assert (ours.pairs, ours.units_needed, ours.excess) == (20, 20, 2.5)
    assert ours.warning is not None
    assert "twelvedata cannot serve the 20 watched or held pairs" in ours.warning
    assert "20 units a minute, and 8 are allowed" in ours.warning
    assert "up to 2.5 times as old" in ours.warning
    other = budget(core, MFAPI)
    assert (other.pairs, other.units_allowed, other.warning) == (1, 240, None)
    core.call("SELECT pricing.register_keys('twelvedata', '{default,second,third}')")
    assert budget(core).units_allowed == 24
    assert budget(core).warning is None, "three keys are enough"


def test_f2_a_pairs_own_ttl_and_the_tightest_window_count(core: Core) -> None:
    core.rows("UPDATE pricing.provider_limits SET units = 8 WHERE provider = 'twelvedata'")
    core.rows(
        "INSERT INTO pricing.provider_limits (provider, name, units, day_timezone)"
        " VALUES ('twelvedata', 'day', 1440, 'UTC')"
    )
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "IBM"))
    core.refresh()
    core.rows("UPDATE pricing.latest_prices SET cache_ttl_minutes = 4 WHERE symbol = 'IBM'")
    core.rows("UPDATE pricing.calendars SET filled_at = pricing.clock()")  # it has no sessions, so it may trade all day
    ours = budget(core)
    assert ours.units_needed == pytest.approx(1.25)
    assert ours.units_allowed == pytest.approx(1), "1,440 a day are one a minute"
    assert ours.excess == pytest.approx(1.25)


def test_f2_bytes_of_thirty_days_are_measured_against_the_quota(core: Core) -> None:
    fetched(core, 1000, "AAPL")
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 40000000")
    core.heartbeat("ann", (QUOTE, "AAPL"))
    ours = budget(core)
    assert (ours.bytes_needed, ours.bytes_allowed) == (43_200_000, 38_000_000)
    assert ours.warning is not None
    assert "43,200,000 bytes in 30 days, and its quota leaves 38,000,000" in ours.warning


@pytest.mark.parametrize(
    ("quota", "words"),
    [
        (2000, "Prices will be up to 22,737 times as old as promised."),
        (99, "and its quota leaves 0. Prices will not be refreshed at all."),
    ],
)
def test_f2_a_quota_far_too_small_is_told_in_plain_figures(core: Core, quota: int, words: str) -> None:
    fetched(core, 1000, "AAPL")
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = :quota", quota=quota)
    core.heartbeat("ann", (QUOTE, "AAPL"))
    assert words in (budget(core).warning or "")


def test_f2_what_is_held_counts_at_its_background_ttl_and_what_is_paused_not(core: Core) -> None:
    core.rows("UPDATE pricing.data_type_registry SET background_ttl_minutes = 10")
    with core.engine.begin() as connection:
        viewers.hold(connection, "ann", [(QUOTE, f"H{number}") for number in range(30)])
    core.heartbeat("bob", (QUOTE, "H0"), (QUOTE, "AAPL"))
    assert budget(core).units_needed == pytest.approx(29 / 10 + 2)
    core.rows("UPDATE pricing.instruments SET update_mode = 'manual' WHERE symbol = 'AAPL'")
    assert budget(core).units_needed == pytest.approx(29 / 10 + 1)


# Routes and batches


def test_a5_a_symbol_of_a_provider_that_is_switched_off_is_served_by_the_types(core: Core) -> None:
    core.rows("INSERT INTO pricing.data_collectors (provider, base_url) VALUES ('other', 'https://other.example')")
    core.rows(
        "INSERT INTO pricing.provider_capabilities (provider, fetcher, batch_size, units_per_call)"
        " VALUES ('other', 'quote', 1, 1), ('other', 'daily_bars', 1, 1)"
    )
    core.rows(
        "INSERT INTO pricing.provider_routing (data_type, symbol, provider)"
        " VALUES ('equity_quote', 'IBM', 'other'), ('equity_daily', 'IBM', 'other')"
    )
    core.enqueue(QUOTE, "IBM")
    core.rows("UPDATE pricing.data_collectors SET is_active = false WHERE provider = 'other'")
    core.enqueue(DAILY, "IBM")
    assert {task.data_type: task.provider for task in core.tasks("IBM")} == {
        QUOTE: TWELVEDATA,
        DAILY: TWELVEDATA,
    }, "and what waits for it goes there, too"
    with Refresher(core.engine, {}, worker="w") as refresher:
        plan = refresher.plan_backfill(DAILY, Window(*YEAR), ["IBM"])
    assert plan.tasks == 1
    assert {task.provider for task in core.tasks("IBM") if task.first_day} == {TWELVEDATA}


def test_f1_no_batch_of_the_sample_is_larger_than_its_client_takes(core: Core) -> None:
    for row in core.rows(
        "SELECT c.*, r.fetcher FROM pricing.provider_capabilities c JOIN (SELECT DISTINCT fetcher FROM"
        " pricing.data_type_registry) r USING (fetcher)"
    ):
        client = PROVIDERS[row.provider]
        fetcher = next(f for f in client.fetchers if f.value == row.fetcher)
        assert row.batch_size <= client.batch_limit(fetcher, None)
        longest = client.max_window_days(fetcher)
        assert longest is None or row.max_window_days <= longest
        start = date(2000, 1, 1).toordinal()
        for days in (1, 30, 365, row.max_window_days):
            window = Window(date(2000, 1, 1), date.fromordinal(start + min(days, row.max_window_days) - 1))
            size = core.one(
                "SELECT pricing.batch_of(c, :first, :last) FROM pricing.provider_capabilities c"
                " WHERE (provider, fetcher) = (:provider, :fetcher)",
                first=window.start,
                last=window.end,
                provider=row.provider,
                fetcher=row.fetcher,
            )
            assert 1 <= size <= client.batch_limit(fetcher, window)
