"""A database that holds the sample, and the core as tests use it: each word one transaction.

The words go through the project's own Python where it has one; only what it lacks is SQL here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, Row, make_url, text

from pricing_pipeline import sample
from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.demand import instruments, staleness, viewers
from pricing_pipeline.domain.answers import FailureKind, Observation, Stored
from pricing_pipeline.domain.calls import Call
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.prices import price_reader, price_writer
from pricing_pipeline.queue import limits, task_queue
from pricing_pipeline_tests.fix_database import TestServer

QUOTE, DAILY, FX, NAV = "equity_quote", "equity_daily", "fx_rate", "mf_nav"
TWELVEDATA, MFAPI = "twelvedata", "mfapi"


@pytest.fixture(scope="session")
def sample_template(server: TestServer, template: str) -> str:
    """Name of a database with the sample, to clone. A module that wants it says `template = sample_template`."""
    name, unfinished = f"{template}_sample", f"{template}_filling"
    with server.admin() as admin:
        admin.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", [name])  # until the connection ends
        if not admin.execute("SELECT FROM pg_database WHERE datname = %s", [name]).fetchall():
            server.drop(unfinished)
            server.create(unfinished, template)
            assert sample.load(server.url_of_owner(unfinished))
            admin.execute(f"ALTER DATABASE {unfinished} ALLOW_CONNECTIONS false")
            admin.execute(f"ALTER DATABASE {unfinished} RENAME TO {name}")
    return name


def rows_read(connection: Connection) -> int:
    """How many rows of our tables were read since this transaction began: a cost that no busy machine changes."""
    read = text(
        "SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)) FROM pg_stat_xact_all_tables"
        " WHERE schemaname = 'pricing'"
    )
    return int(connection.execute(read).scalar_one())


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    """An engine on this test's database, as every process has one: the worker's."""
    engine = make_engine(database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def owner_engine(owner_url: str) -> Iterator[Engine]:
    """An engine on this test's database with the owner's rights."""
    engine = make_engine(owner_url)
    yield engine
    engine.dispose()


@pytest.fixture
def core(engine: Engine, owner_engine: Engine) -> Core:
    """The core on this test's database."""
    return Core(engine, owner_engine)


class Core:
    """What workers and viewers do, as the worker, one transaction a word; and SQL of the owner to look and arrange."""

    def __init__(self, engine: Engine, owner: Engine) -> None:
        self.engine = engine
        self.owner = owner

    # Looking and arranging

    def rows(self, sql: str, **parameters: Any) -> Sequence[Row[Any]]:
        """Run SQL as the owner."""
        with self.owner.begin() as connection:
            result = connection.execute(text(sql), parameters)
            return result.all() if result.returns_rows else []

    def one(self, sql: str, **parameters: Any) -> Any:
        """The one value of a query, asked as the owner."""
        ((value,),) = self.rows(sql, **parameters)
        return value

    def call(self, sql: str, **parameters: Any) -> Any:
        """The one value of a query, asked as the worker: what a function does, it must be allowed to do."""
        with self.engine.begin() as connection:
            return connection.execute(text(sql), parameters).scalar_one()

    def judge_by(self, body: str, *data_types: str, language: str = "sql") -> None:
        """Give these data types a staleness function of their own, `pricing.own_judge`."""
        self.rows(
            "CREATE FUNCTION pricing.own_judge(stamp timestamptz, ttl_minutes integer) RETURNS boolean"
            f" LANGUAGE {language} AS '{body}'"
        )
        self.rows(
            "UPDATE pricing.data_type_registry SET staleness_function = 'own_judge' WHERE data_type = ANY (:types)",
            types=list(data_types),
        )

    def break_judge(self, data_type: str) -> None:
        """Give a data type a staleness function that fails."""
        body = "BEGIN RAISE EXCEPTION ''no such calendar'' USING ERRCODE = ''22012''; END"
        self.judge_by(body, data_type, language="plpgsql")

    def tasks(self, symbol: str | None = None) -> Sequence[Row[Any]]:
        """Tasks in every state, oldest first."""
        return self.rows(
            "SELECT id, data_type, symbol, nullif(window_start, '-infinity') AS first_day,"
            " nullif(window_end, 'infinity') AS last_day, provider, status, priority, attempt, run_after,"
            " claim_token, claimed_at, lease_until, worker, call_id, errors, finished_at, failure_kind"
            " FROM pricing.api_call_queue WHERE coalesce(symbol = :symbol, true) ORDER BY id",
            symbol=symbol,
        )

    def task(self, symbol: str) -> Row[Any]:
        (task,) = self.tasks(symbol)
        return task

    def statuses(self) -> dict[str, str]:
        return {task.symbol: task.status for task in self.tasks()}

    def demand_of(self, data_type: str, symbol: str) -> Row[Any] | None:
        found = self.rows(
            "SELECT due_at, became_due_at, failures, held_until, last_failure"
            " FROM pricing.demand WHERE data_type = :data_type AND symbol = :symbol",
            data_type=data_type,
            symbol=symbol,
        )
        return found[0] if found else None

    def clock(self) -> datetime:
        now: datetime = self.one("SELECT pricing.clock()")
        return now

    def lift_limits(self, batch_size: int = 100) -> None:
        """Let providers take whatever comes, in batches of this size."""
        self.rows("UPDATE pricing.provider_limits SET units = 1000000")
        self.rows(
            "UPDATE pricing.provider_capabilities"
            " SET batch_size = :size, batch_from = least(batch_from, :size),"
            " window_batch_size = least(window_batch_size, :size)",
            size=batch_size,
        )

    def use_quota(self, used: int, provider: str = TWELVEDATA) -> None:
        """Let a provider's quota be used up to so many bytes, all of this hour."""
        self.rows("DELETE FROM pricing.api_data_usage WHERE provider = :provider", provider=provider)
        self.rows(
            "INSERT INTO pricing.api_data_usage (provider, hour, bytes) VALUES (:provider, pricing.clock(), :used)",
            provider=provider,
            used=used,
        )

    # Queue

    def enqueue(
        self, data_type: str, *symbols: str, priority: int = 1, days: tuple[date, date] | None = None
    ) -> int:
        count = len(symbols)
        added: int = self.call(
            "SELECT pricing.enqueue(:data_type, CAST(:symbols AS text[]), CAST(:priorities AS integer[]),"
            " CAST(:starts AS date[]), CAST(:ends AS date[]))",
            data_type=data_type,
            symbols=list(symbols),
            priorities=[priority] * count,
            starts=[days[0]] * count if days else None,
            ends=[days[1]] * count if days else None,
        )
        return added

    def claim(self, provider: str = TWELVEDATA, max_calls: int = 1, worker: str = "a") -> list[Call]:
        with self.engine.begin() as connection:
            return task_queue.claim(connection, provider, worker, max_calls, None)

    def claim_one(self, provider: str = TWELVEDATA, worker: str = "a") -> Call:
        (call,) = self.claim(provider, worker=worker)
        return call

    def complete(self, call: Call) -> set[int]:
        with self.engine.begin() as connection:
            return task_queue.complete(connection, call.task_ids, call.claim_token)

    def finish_call(self, call: Call, *, is_held: bool = True) -> set[int]:
        with self.engine.begin() as connection:
            return task_queue.finish(
                connection, call, call.task_ids, http_status=200, wire_bytes=600, is_held=is_held
            )

    def fail(
        self, call: Call, kind: FailureKind, message: str = "it broke", retry_after: float | None = None
    ) -> None:
        with self.engine.begin() as connection:
            task_queue.fail(
                connection, call.task_ids, call.claim_token, kind, message, retry_after=retry_after
            )

    def release(self, call: Call) -> int:
        with self.engine.begin() as connection:
            return task_queue.release(connection, call, FailureKind.WORKER_STOPPED, "told to stop")

    def extend(self, call: Call) -> set[int]:
        with self.engine.begin() as connection:
            return task_queue.extend(connection, call)

    def held(self, call: Call) -> set[int]:
        with self.engine.begin() as connection:
            return task_queue.held(connection, call)

    def promote(self) -> int:
        with self.engine.begin() as connection:
            return task_queue.promote(connection)

    def recover(self) -> int:
        count: int = self.call("SELECT pricing.recover_tasks()")
        return count

    # Demand

    def heartbeat(self, user: str, *pairs: tuple[str, str]) -> int:
        with self.engine.begin() as connection:
            return viewers.heartbeat(connection, user, pairs)

    def unsubscribe(self, user: str, *pairs: tuple[str, str]) -> int:
        with self.engine.begin() as connection:
            return viewers.unsubscribe(connection, user, pairs)

    def hold(self, user: str, *pairs: tuple[str, str]) -> int:
        with self.engine.begin() as connection:
            return viewers.hold(connection, user, pairs)

    def end_holding(self, user: str, *pairs: tuple[str, str]) -> int:
        with self.engine.begin() as connection:
            return viewers.release(connection, user, pairs)

    def pause(self, *symbols: str, paused: bool = True) -> list[instruments.Paused]:
        with self.engine.begin() as connection:
            return instruments.pause_instruments(connection, symbols, paused=paused)

    def read(self, symbol: str) -> price_reader.Reading:
        with self.engine.begin() as connection:
            return price_reader.read(connection, symbol)

    def due_in(self, data_type: str, symbol: str) -> float:
        """Seconds until a pair is looked at next."""
        pair = self.demand_of(data_type, symbol)
        assert pair is not None
        return float((pair.due_at - self.clock()).total_seconds())

    def enqueue_due(self) -> int:
        with self.engine.begin() as connection:
            return staleness.enqueue_due(connection)

    def clean(self) -> int:
        count: int = self.call("SELECT pricing.clean_subscriptions()")
        return count

    # Limits

    def settle(
        self,
        call: Call,
        wire_bytes: int = 600,
        outcome: str = "ok",
        *,
        kind: FailureKind | None = None,
        units_left: int | None = None,
        is_held: bool = True,
    ) -> None:
        with self.engine.begin() as connection:
            limits.settle(
                connection,
                call.id,
                outcome,
                http_status=200,
                wire_bytes=wire_bytes,
                error=None if kind is None else f"it was {kind}",
                kind=kind,
                units_left=units_left,
                is_held=is_held,
            )

    def throttle(self, provider: str, retry_after: float | None, key_name: str = "default") -> float:
        with self.engine.begin() as connection:
            return limits.throttle(connection, provider, key_name, retry_after, "too fast")

    def allowance(self, provider: str = TWELVEDATA) -> limits.Allowance:
        with self.engine.begin() as connection:
            (found,) = [row for row in limits.allowances(connection) if row.provider == provider]
            return found

    # Prices

    def store(self, call: Call, *observations: Observation) -> dict[str, Stored]:
        with self.engine.begin() as connection:
            return {row.symbol: row for row in price_writer.store(connection, call, observations)}

    def latest(self, symbol: str, data_type: str = QUOTE) -> price_reader.LatestPrice | None:
        with self.engine.begin() as connection:
            found = [row for row in price_reader.latest(connection, symbol) if row.data_type == data_type]
        return found[0] if found else None

    def history(self, symbol: str, data_type: str, first: date, last: date) -> list[price_reader.Bar]:
        with self.engine.begin() as connection:
            return price_reader.bars(connection, symbol, data_type, first, last)

    def finish(self, call: Call, price: str = "100.00", seconds_old: float = 0) -> None:
        """What a worker does with a good answer: the price of each symbol, stored and settled."""
        stamp = self.clock() - timedelta(seconds=seconds_old)
        with self.engine.begin() as connection:
            kept = task_queue.held(connection, call)
            good = [observation(task.symbol, price, stamp) for task in call.tasks if task.id in kept]
            price_writer.store(connection, call, good)
            task_queue.complete(connection, call.task_ids, call.claim_token)
            limits.settle(connection, call.id, "ok", http_status=200, wire_bytes=600)

    def refresh(self, provider: str = TWELVEDATA, price: str = "100.00") -> int:
        """Claim and finish until nothing is pending; returns the number of calls."""
        count = 0
        while calls := self.claim(provider, max_calls=10):
            for call in calls:
                self.finish(call, price)
            count += len(calls)
        return count


def observation(symbol: str, price: str, at: datetime, **more: Any) -> Observation:
    """A value as a provider's parser gives it. `more` are prices and volumes as text, or the currency."""
    numbers = {
        name: Decimal(value) for name, value in more.items() if name != "currency" and value is not None
    }
    return Observation(symbol, at, Decimal(price), price, more.get("currency", "USD"), **numbers)


def midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def a_call(call: Call, **changes: Any) -> Call:
    """The same call but for some fields."""
    return replace(call, **changes)


def windowed(call: Call, first: date, last: date) -> Call:
    return replace(call, fetcher=Fetcher.DAILY_BARS, window=Window(first, last))


def in_zone(url: str, zone: str) -> str:
    """The URL for sessions whose time zone is `zone`."""
    return (
        make_url(url)
        .update_query_dict({"options": f"-c timezone={zone}"})
        .render_as_string(hide_password=False)
    )
