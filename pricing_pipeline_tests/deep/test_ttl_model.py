"""Each pair has one TTL in every public answer: random TTLs of types and pairs against a plain model.

The model knows when a price was confirmed, its time at the source, the TTLs, the trading days and the stretch. It knows
nothing of due times and tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from pricing_pipeline.demand import freshness
from pricing_pipeline.registry import data_type_registry
from pricing_pipeline_tests.fixtures.core import QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.registry_rows import add
from pricing_pipeline_tests.support.stretching import stretch

START = datetime(2026, 6, 10, 15, 0, tzinfo=UTC)
"""A Wednesday, in the middle of a session in New York."""
SECOND, MINUTE, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)
OWN, VIEW, MARKET = "own_quote", "view_quote", "market_quote"
SYMBOLS = {QUOTE: "AAPL", MARKET: "IBM", OWN: "MINE", VIEW: "SEEN"}
"""By data type: one in our own table, one that follows its market, one in a user's table and one in a user's view."""

TTLS = st.integers(1, 4000)
AGES = st.sampled_from([SECOND, 29 * MINUTE, 31 * MINUTE, timedelta(hours=3), 2 * DAY, 30 * DAY])


@dataclass
class Pair:
    """What the model knows of a pair. `type_ttl` and `own_ttl` are minutes, and the stretch is a factor."""

    data_type: str
    type_ttl: int = 1
    own_ttl: int | None = None
    fetched_at: datetime = START
    observed_at: datetime = START
    is_paused: bool = False
    stretch: float = 1

    @property
    def ttl(self) -> timedelta:
        return (self.own_ttl or self.type_ttl) * MINUTE

    @property
    def grace(self) -> timedelta:
        return max(30 * SECOND, self.ttl / 4)

    def stale_at(self, sessions: list[tuple[datetime, datetime]]) -> datetime:
        at = self.fetched_at + self.ttl
        if self.data_type == MARKET:
            opens = [opens for opens, closes in sessions if closes > self.fetched_at - 15 * MINUTE]
            at = max([at, *opens[:1]])
        return at

    def is_source_old(self, sessions: list[tuple[datetime, datetime]]) -> bool:
        if self.data_type not in (QUOTE, MARKET):  # nobody knows when it trades
            return self.observed_at < self.fetched_at - max(self.ttl, 5 * DAY)
        expected = self.fetched_at - max(self.ttl, 30 * MINUTE)
        past = [closes for _, closes in sessions if closes <= self.fetched_at]
        ahead = [opens for opens, closes in sessions if closes > self.fetched_at]
        if past and not ahead:
            expected = self.fetched_at - max(self.ttl, 5 * DAY)
        elif past and ahead[0] > expected:
            expected = min(expected, past[-1] - 20 * MINUTE)
        return self.observed_at < expected


class World:
    def __init__(self, core: Core, clock: Clock, holidays: set[int]) -> None:
        self.core, self.clock = core, clock
        core.rows(
            "TRUNCATE pricing.api_call_queue, pricing.collector_call_log, pricing.demand, pricing.active_subscriptions,"
            " pricing.latest_prices, pricing.price_history, pricing.check_marks, pricing.pair_views,"
            " pricing.streamed_pairs, pricing.ttl_stretches, pricing.freshness_samples,"
            " pricing.my_table, pricing.my_ttls, pricing.calendar_sessions, pricing.price_revisions"
        )
        core.rows("UPDATE pricing.instruments SET update_mode = 'api'")
        core.rows("DELETE FROM pricing.provider_routing WHERE symbol IS NOT NULL")
        clock.set(START)
        days = [START.replace(day=day) for day in range(1, 31) if day not in holidays]
        self.sessions = [(day.replace(hour=13, minute=30), day.replace(hour=20)) for day in days if day.weekday() < 5]
        for opens, closes in self.sessions:
            core.rows(
                "INSERT INTO pricing.calendar_sessions (calendar, session, opens_at, closes_at)"
                " VALUES ('XNYS', :day, :opens, :closes)",
                day=opens.date(),
                opens=opens,
                closes=closes,
            )
        self.pairs = [Pair(data_type) for data_type in SYMBOLS]
        core.heartbeat("ann", *SYMBOLS.items())
        core.rows(
            "UPDATE pricing.instruments SET calendar = 'XNYS'"
            " WHERE asset_class = 'equity' AND symbol IN ('AAPL', 'IBM')"
        )

    def check(self) -> None:
        """What the duties and the staleness check do at every moment."""
        self.core.rows("UPDATE pricing.ttl_stretches SET noted_at = pricing.clock()")
        self.core.call("SELECT pricing.reconcile_demand()")
        self.core.enqueue_due()

    def fetch(self, ages: list[timedelta]) -> None:
        """Every pair is confirmed now, by a value of some age."""
        now = self.clock.now()
        for pair in self.pairs:
            if pair.is_paused:
                self.core.pause(SYMBOLS[pair.data_type], paused=False)
                pair.is_paused = False
        self.core.rows("DELETE FROM pricing.latest_prices")
        self.core.rows("DELETE FROM pricing.api_call_queue_live")
        for pair, age in zip(self.pairs, ages, strict=True):
            self.core.enqueue(pair.data_type, SYMBOLS[pair.data_type])
            self.core.finish(self.core.claim_one(TWELVEDATA), seconds_old=age.total_seconds())
            pair.fetched_at, pair.observed_at, pair.own_ttl = now, now - age, None
        self.core.rows("UPDATE pricing.my_table SET cache_ttl_minutes = NULL")
        self.core.rows("TRUNCATE pricing.my_ttls")

    def set_type_ttl(self, pair: Pair, minutes: int) -> None:
        with self.core.owner.begin() as connection:
            data_type_registry.set_ttl(connection, pair.data_type, minutes, None)
        pair.type_ttl = minutes

    def set_own_ttl(self, pair: Pair, minutes: int | None) -> None:
        """As its user does: by a command, in a table, or by what a view shows."""
        symbol = SYMBOLS[pair.data_type]
        if pair.data_type == OWN:
            self.core.rows("UPDATE pricing.my_table SET cache_ttl_minutes = :minutes", minutes=minutes)
        elif pair.data_type == VIEW:
            self.core.rows(
                "INSERT INTO pricing.my_ttls VALUES (:symbol, :minutes)"
                " ON CONFLICT (ticker) DO UPDATE SET minutes = excluded.minutes",
                symbol=symbol,
                minutes=minutes,
            )
        else:
            with self.core.engine.begin() as connection:
                assert data_type_registry.set_own_ttl(connection, pair.data_type, [symbol], minutes)
        pair.own_ttl = minutes

    def holds(self) -> None:
        """Every answer about every pair is what the model says."""
        core, now = self.core, self.clock.now()
        told = {row.data_type: row for row in core.rows("SELECT * FROM pricing.watched_pairs()")}
        core.rows("DELETE FROM pricing.freshness_samples")
        core.call("SELECT pricing.sample_freshness()")
        samples = {row.data_type: row for row in core.rows("SELECT * FROM pricing.freshness_samples")}
        with core.engine.connect() as connection:
            measured = {row.data_type: row for row in freshness.measure(connection)}
        queued = {row.data_type for row in core.rows("SELECT data_type FROM pricing.api_call_queue_live")}
        streamed = self.streamed()
        for pair in self.pairs:
            about = (pair, now - pair.fetched_at)
            symbol, stale_at = SYMBOLS[pair.data_type], pair.stale_at(self.sessions)
            is_old = pair.is_source_old(self.sessions)
            verdict = "stale" if now >= stale_at else "source_old" if is_old else "fresh"
            served = verdict
            if pair.is_paused:
                served = "paused"
            elif verdict == "stale":
                served = "late" if now >= stale_at + pair.grace else "due"
            assert told[pair.data_type].state == served, about
            if served in ("due", "late"):
                assert told[pair.data_type].owed_since == stale_at, about
            row = measured[pair.data_type]
            counts = {name: getattr(row, name) for name in ("fresh", "due", "late", "paused", "source_old")}
            assert counts == {name: int(name == served) for name in counts}, about
            assert row.is_on_time == (served != "late"), about
            assert row.is_calm == (served in ("fresh", "source_old")), about
            sample = samples[pair.data_type]
            assert (sample.watched, sample.fresh, sample.late) == (1, served == "fresh", served == "late")
            price = core.latest(symbol, pair.data_type)
            assert price is not None
            assert (price.state, price.fresh) == (verdict, verdict == "fresh"), about
            answer = core.one(
                "SELECT (p.prices)::jsonb -> 0 FROM pricing.prices_to_read(ARRAY[:s], ARRAY[:t]) p",
                s=symbol,
                t=pair.data_type,
            )
            why = self.why(pair)
            assert answer["fresh"] == (verdict == "fresh"), about
            assert (answer["why"] or {}).get("state") == (None if verdict == "fresh" else why.state), about
            assert self.price_for_a_client(pair) == (verdict == "fresh"), about
            is_ripe = now >= stale_at + pair.ttl * (pair.stretch - 1)
            if pair.is_paused:
                assert why.state == "paused", about
            elif verdict == "stale":
                assert (pair.data_type in queued, why.state) == (
                    is_ripe,
                    "no_worker" if is_ripe else "stretched",
                ), about
            else:
                assert pair.data_type not in queued, about
                assert why.state in (["source_old"] if is_old else ["fresh", "market_closed"]), about
            stale_since = core.one("SELECT pricing.stale_since(:t, :s, :at)", t=pair.data_type, s=symbol, at=START)
            assert stale_since == (stale_at if verdict == "stale" else None), about
            if not stale_at <= now < stale_at + 5 * SECOND:  # which a stream lets pass
                assert streamed[pair.data_type] == (verdict == "fresh"), about

    def price_for_a_client(self, pair: Pair) -> bool:
        with self.core.owner.connect() as connection:  # without a commit: it would ask for what is missing
            rows = connection.execute(text("SELECT * FROM pricing.price(:s)"), {"s": SYMBOLS[pair.data_type]})
            return next(bool(row.fresh) for row in rows if row.data_type == pair.data_type)

    def why(self, pair: Pair) -> Any:
        with self.core.engine.connect() as connection:
            (found,) = freshness.why(connection, SYMBOLS[pair.data_type], pair.data_type)
        return found

    def streamed(self) -> dict[str, bool]:
        self.core.rows("UPDATE pricing.streamed_pairs SET judge_at = pricing.clock()")
        self.core.rows(
            "SELECT pricing.look_for_streams(:types, :symbols)",
            types=[*SYMBOLS],
            symbols=[*SYMBOLS.values()],
        )
        return {row.data_type: row.verdict == "fresh" for row in self.core.rows("SELECT * FROM pricing.streamed_pairs")}

    def moments(self) -> list[datetime]:
        """When something changes, by the model."""
        return [
            at
            for pair in self.pairs
            for stale_at in [pair.stale_at(self.sessions)]
            for at in (
                stale_at,
                stale_at + pair.grace,
                stale_at + pair.ttl * (pair.stretch - 1),
                pair.fetched_at + pair.type_ttl * MINUTE,
            )
        ]


@pytest.fixture
def types(core: Core) -> None:
    core.lift_limits()
    core.rows("UPDATE pricing.data_collectors SET is_active = provider IN ('twelvedata', 'yahoo')")
    core.rows(
        "CREATE TABLE pricing.my_table (ticker text PRIMARY KEY, loaded_at timestamptz, cache_ttl_minutes integer)"
    )
    core.rows("CREATE TABLE pricing.my_ttls (ticker text PRIMARY KEY, minutes integer)")
    core.rows(
        "CREATE VIEW pricing.my_view AS SELECT l.symbol AS ticker, l.fetched_at AS loaded_at,"
        " t.minutes AS cache_ttl_minutes"
        " FROM pricing.latest_prices l LEFT JOIN pricing.my_ttls t ON t.ticker = l.symbol"
        " WHERE l.data_type = 'view_quote'"
    )
    columns = {"symbol_column": "ticker", "timestamp_column": "loaded_at"}
    add(core, data_type=OWN, asset_class="thing", table_name="my_table", **columns)
    add(core, data_type=VIEW, asset_class="thing", table_name="my_view", **columns)
    add(core, data_type=MARKET, asset_class="equity", staleness_function="is_market_stale")


@pytest.mark.usefixtures("still", "types")
def test_b3_g2_fresh_due_and_late_are_by_the_ttl_of_the_pair_in_every_answer(core: Core, clock: Clock) -> None:
    four = len(SYMBOLS)

    @settings(
        max_examples=examples(40),
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(
        holidays=st.sets(st.integers(9, 20), max_size=4),
        type_ttls=st.lists(TTLS, min_size=four, max_size=four),
        has_second_route=st.booleans(),
        data=st.data(),
    )
    def lives(holidays: set[int], type_ttls: list[int], has_second_route: bool, data: st.DataObject) -> None:
        world = World(core, clock, holidays)
        if has_second_route:
            core.rows(
                "INSERT INTO pricing.provider_routing (data_type, symbol, provider, rank)"
                " VALUES ('equity_quote', 'AAPL', 'twelvedata', 1), ('equity_quote', 'AAPL', 'yahoo', 2)"
            )
        for pair, ttl in zip(world.pairs, type_ttls, strict=True):
            world.set_type_ttl(pair, ttl)
        for _ in range(2):
            world.clock.advance(data.draw(st.integers(0, 200_000)))
            core.rows("DELETE FROM pricing.ttl_stretches")
            world.fetch(data.draw(st.lists(AGES, min_size=four, max_size=four)))
            factor = data.draw(st.sampled_from([1, 1, 1.5, 4]))
            if factor > 1:
                stretch(core, factor)
            for pair in world.pairs:
                pair.stretch = 1 if pair.data_type == QUOTE and has_second_route else factor
                world.set_own_ttl(pair, data.draw(st.one_of(st.none(), TTLS)))
                pair.is_paused = data.draw(st.integers(0, 5)) == 0
                if pair.is_paused:
                    core.pause(SYMBOLS[pair.data_type])
            world.check()
            world.holds()
            for _ in range(4):
                now = clock.now()
                ahead = [at for at in world.moments() if at > now + 2 * SECOND]
                if not ahead:
                    break
                at = data.draw(st.sampled_from(sorted(set(ahead))))
                clock.set(at + data.draw(st.sampled_from([-SECOND, timedelta(0), SECOND])))
                world.check()
                world.holds()

    lives()


@pytest.mark.usefixtures("still", "types")
def test_b3_a_pair_with_a_short_ttl_of_its_own_is_late_soon_although_its_type_has_a_day(
    core: Core, clock: Clock
) -> None:
    """It was late after six hours, a quarter of its type's TTL."""
    world = World(core, clock, set())
    for pair in world.pairs:
        world.set_type_ttl(pair, 1440)
    world.fetch([SECOND] * len(SYMBOLS))
    for pair in world.pairs:
        world.set_own_ttl(pair, 8)
    world.check()
    clock.advance(10 * 60 + 1)
    world.check()
    with core.engine.connect() as connection:
        assert {row.data_type for row in freshness.measure(connection) if row.late} == {*SYMBOLS}


@pytest.mark.usefixtures("still", "types")
def test_f2_ttls_in_a_table_of_ones_own_count_for_what_a_quota_must_bear(core: Core, clock: Clock) -> None:
    world = World(core, clock, set())
    for pair in world.pairs:
        world.set_type_ttl(pair, 60)
    world.fetch([SECOND] * len(SYMBOLS))
    need = "SELECT units FROM pricing.needs() WHERE provider = 'twelvedata'"
    before = core.one(need)
    for pair in world.pairs:
        if pair.data_type in (OWN, VIEW):
            world.set_own_ttl(pair, 20)
    assert core.one(need) == pytest.approx(2 * before)
