"""The contracts of docs/maintainers/contracts.md that the database keeps, each shown once and plainly (B25).

Those that Python keeps are in test_contracts_of_fetching.py. Variants and corner cases are tested where the
subject is; here stands the one case without which the contract would be words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import errors
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.db.advisory_lock import advisory_lock
from pricing_pipeline.demand import schedules, staleness
from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline.errors import LockUnavailable
from pricing_pipeline.queue import task_queue
from pricing_pipeline_tests.fixtures.core import (
    DAILY,
    FX,
    MFAPI,
    NAV,
    QUOTE,
    TWELVEDATA,
    Core,
    rows_read,
    symbols,
)
from pricing_pipeline_tests.fixtures.database import Clock, TestServer
from pricing_pipeline_tests.fixtures.logins import a_session
from pricing_pipeline_tests.support.sessions import joined, meanwhile, wait_for_locks

DAY = 86_400
WEEK = 7 * DAY


@pytest.fixture
def patient(core: Core) -> Iterator[Connection]:
    """A worker's session that would rather fail than wait for a lock."""
    with core.engine.connect() as connection:
        connection.execute(text("SET lock_timeout = '2s'"))
        connection.commit()
        yield connection
        connection.invalidate()


def contents(core: Core, *but: str) -> dict[str, str]:
    """What every table holds, but for some; a row that is written again as it was counts as another one."""
    tables = core.rows(
        "SELECT relname FROM pg_class WHERE relnamespace = 'pricing'::regnamespace AND relkind = 'r' ORDER BY 1"
    )
    return {
        table.relname: core.one(
            f"SELECT md5(string_agg(t.xmin || t::text, '' ORDER BY t::text)) FROM pricing.{table.relname} t"
        )
        for table in tables
        if table.relname not in but
    }


def test_contract_01_two_claims_at_once_never_take_the_same_task(core: Core) -> None:
    wait_for_locks(core)
    core.lift_limits(batch_size=10)
    core.enqueue(QUOTE, *symbols(30))
    with core.engine.begin() as first:
        mine = task_queue.claim(first, TWELVEDATA, "first", 1, None)
        other = meanwhile(core.engine, lambda c: task_queue.claim(c, TWELVEDATA, "second", 1, None))
    joined(*other)
    workers = Counter((task.status, task.worker) for task in core.tasks())
    assert workers == {("processing", "first"): 10, ("processing", "second"): 10, ("pending", None): 10}
    assert core.lock_owned(mine[0]) == set(mine[0].task_ids)


def test_contract_02_recovery_passes_over_what_is_being_finished(core: Core, clock: Clock, patient: Connection) -> None:
    core.lift_limits(batch_size=1)
    core.enqueue(QUOTE, "AAPL", "IBM")
    slow, _ = core.claim(max_calls=2)
    clock.advance(61)
    with core.engine.begin() as worker:
        assert task_queue.lock_owned(worker, slow) == set(slow.task_ids)
        assert patient.execute(text("SELECT pricing.recover_tasks()")).scalar_one() == 1
        patient.commit()
        task_queue.complete(worker, slow.task_ids, slow.claim_token)
    assert core.statuses() == {"AAPL": "completed", "IBM": "pending"}


def test_contract_03_periodic_work_never_runs_beside_itself(core: Core, patient: Connection) -> None:
    core.enqueue(QUOTE, "AAPL")
    with core.engine.connect() as busy:
        assert "prune" in staleness.run_duties(busy)
        assert staleness.run_duties(patient) == [], "refused at once, not after a wait"
        patient.rollback()
        busy.rollback()
    assert "prune" in staleness.run_duties(patient), "the lock is free though the other one failed"
    with (
        advisory_lock(core.engine, "a sync"),
        pytest.raises(LockUnavailable),
        advisory_lock(core.engine, "a sync"),
    ):
        pass


def test_contract_04_one_broken_data_type_stops_no_other(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"), (FX, "EUR/USD"))
    core.refresh()
    core.rows(
        "CREATE FUNCTION pricing.broken(stamp timestamptz, ttl_minutes integer) RETURNS boolean"
        " LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no such calendar''; END'"
    )
    core.rows(
        "UPDATE pricing.data_type_registry SET staleness_function = 'broken' WHERE data_type = :data_type",
        data_type=FX,
    )
    clock.advance(DAY)
    assert core.enqueue_due() == 2
    (warning,) = core.rows("SELECT subject, message FROM pricing.warnings")
    assert warning.subject == FX
    assert "no such calendar" in warning.message


def test_contract_06_the_quota_is_checked_ahead_with_a_margin_by_consumer_and_producer(core: Core) -> None:
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 100000")
    core.rows("UPDATE pricing.data_type_registry SET estimated_data_size_bytes = 1000")
    core.rows(
        "INSERT INTO pricing.api_data_usage (provider, hour, bytes)"
        " SELECT provider, pricing.clock(), 92500 FROM pricing.data_collectors"
    )
    core.enqueue(QUOTE, *symbols(20))
    assert len(core.claim_one().tasks) == 2, "what fits below 95 %, although 7.5 % are unused"
    assert core.claim() == [], "what is in flight counts before it has arrived"
    with core.engine.begin() as connection:
        assert schedules.enqueue_scheduled(connection, NAV) == 0, "schedules stop at 90 %"
    with pytest.raises(DBAPIError, match="backfills stop at 75 %"):
        core.rows("SELECT * FROM pricing.plan_backfill(:daily, '2010-01-01', '2010-12-31')", daily=DAILY)
    assert {task.data_type for task in core.tasks()} == {QUOTE}, "no backlog waits for better days"


def test_contract_07_looking_again_writes_nothing_but_that_one_looks(core: Core, clock: Clock) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh()
    assert core.rows("SELECT FROM pricing.pair_views") == [], "what was looked at is not counted look by look"
    core.read("AAPL")
    clock.advance(30)
    before = contents(core, "active_subscriptions")
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.read("AAPL")
    assert contents(core, "active_subscriptions") == before


def test_contract_08_scheduled_work_never_goes_ahead_of_people(core: Core) -> None:
    core.rows("UPDATE pricing.data_type_registry SET default_ttl_minutes = 1 WHERE data_type = :nav", nav=NAV)
    with core.engine.begin() as connection:
        assert schedules.enqueue_scheduled(connection, NAV)
    assert {task.priority for task in core.tasks()} == {-1}
    core.enqueue(NAV, "999001", priority=0)
    core.heartbeat("ann", (NAV, "999002"))
    first, second, third = core.claim(MFAPI, max_calls=3)
    assert (first.symbols, second.symbols) == (["999002"], ["999001"])
    assert third.tasks[0].priority == -1


def test_contract_09_a_schedule_walks_by_key_and_misses_nobody(core: Core) -> None:
    core.rows("DELETE FROM pricing.instruments WHERE asset_class = 'fund'")
    core.rows(
        "INSERT INTO pricing.instruments (asset_class, symbol, verified_at)"
        " SELECT 'fund', lpad(n::text, 5, '0'), pricing.clock() FROM generate_series(1, 1300) AS n"
    )
    served: list[str] = []
    with core.engine.begin() as connection:
        steps = [schedules.enqueue_scheduled(connection, NAV)]
    while steps[-1] and len(steps) < 9:
        served += [task.symbol for task in core.tasks()]
        core.rows("DELETE FROM pricing.api_call_queue_live")
        steps.append(core.enqueue_due())
    assert steps == [500, 500, 300, 0], "never all at once"
    assert served == [f"{number:05}" for number in range(1, 1301)], "each once, and none left to luck"


def test_contract_11_live_states_share_a_partition_that_finished_work_leaves(core: Core) -> None:
    def place() -> str:
        found: str = core.one("SELECT tableoid::regclass::text FROM pricing.api_call_queue")
        return found.removeprefix("pricing.api_call_queue_")

    core.enqueue(QUOTE, "AAPL")
    places = [place()]
    core.fail(core.claim_one(), FailureKind.PROVIDER_DOWN)
    places.append(place())
    core.rows("UPDATE pricing.api_call_queue_live SET run_after = pricing.clock()")
    core.promote()
    call = core.claim_one()
    places.append(place())
    core.complete(call)
    assert places == ["live"] * 3, "a change of state never moves the row, so that SKIP LOCKED can skip it"
    assert place().startswith("completed_"), "what claims read holds nothing but work"


def test_contract_11_what_two_sessions_queue_at_once_is_one_task(core: Core) -> None:
    """The unique key of live work, which needs the shared partition; and the lower priority loses."""
    enqueue = text("SELECT pricing.enqueue('equity_quote', ARRAY['AAPL'], ARRAY[CAST(:priority AS integer)])")
    with core.engine.begin() as first:
        first.execute(enqueue, {"priority": 9})
        other = meanwhile(core.engine, lambda c: c.execute(enqueue, {"priority": 1}))
    joined(*other)
    assert core.task("AAPL").priority == 9


def test_contract_12_a_staleness_check_reads_what_is_due_and_not_what_is_watched(core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.demand (data_type, symbol, due_at)"
        " SELECT 'equity_quote', 'S' || n, pricing.clock() + interval '1 hour' FROM generate_series(1, 5000) AS n"
    )
    core.rows(
        "INSERT INTO pricing.active_subscriptions (user_id, data_type, symbol)"
        " SELECT 'user ' || u, data_type, symbol FROM pricing.demand, generate_series(1, 2) AS u"
    )
    core.rows("UPDATE pricing.demand SET due_at = pricing.clock() WHERE symbol IN ('S1', 'S2', 'S3')")
    core.rows("ANALYZE pricing.demand, pricing.active_subscriptions")
    with core.engine.begin() as connection:
        before = rows_read(connection)
        assert staleness.enqueue_due(connection) == 3
        assert rows_read(connection) - before < 500


MANY_WATCH = (
    "INSERT INTO pricing.instruments (asset_class, symbol)"
    " SELECT 'equity', 'X' || n FROM generate_series(1, 2000) AS n",
    "INSERT INTO pricing.demand (data_type, symbol, due_at)"
    " SELECT 'equity_quote', 'X' || n, pricing.clock() + n % 100 * interval '1 hour'"
    " FROM generate_series(1, 2000) AS n",
    "INSERT INTO pricing.active_subscriptions (user_id, data_type, symbol)"
    " SELECT 'user ' || n % 50, 'equity_quote', 'X' || n FROM generate_series(1, 1980) AS n",
    "INSERT INTO pricing.holdings (user_id, data_type, symbol)"
    " SELECT 'user ' || n % 50, 'equity_quote', 'X' || n FROM generate_series(1, 2000) AS n",
)


def test_contract_12_a_plan_made_while_the_queue_was_empty_serves_when_it_is_full(core: Core) -> None:
    """Plans are made once for a session. A table that is known to be empty is read whole, if it may be."""
    core.rows("ANALYZE pricing.api_call_queue_live")
    with core.engine.begin() as connection:
        enqueue = text(
            "SELECT pricing.enqueue('equity_quote', array_agg('S' || n), array_agg(CAST(:priority AS integer)))"
            " FROM generate_series(1, CAST(:symbols AS integer)) AS n"
        )
        complete = text("SELECT pricing.complete_tasks('{1,2,3}', gen_random_uuid())")
        connection.execute(complete)
        assert connection.execute(enqueue, {"priority": 1, "symbols": 1}).scalar_one() == 1
        assert connection.execute(enqueue, {"priority": 1, "symbols": 5000}).scalar_one() == 4999
        before = rows_read(connection)
        assert connection.execute(enqueue, {"priority": 2, "symbols": 20}).scalar_one() == 0
        connection.execute(complete)
        assert rows_read(connection) - before < 500


@pytest.mark.own_database
def test_contract_12_a_check_planned_while_nobody_watched_serves_when_many_do(core: Core) -> None:
    """The same for checks, heartbeats and reads. All indexes of an empty table look alike."""
    core.rows("ANALYZE pricing.active_subscriptions, pricing.demand, pricing.holdings, pricing.latest_prices")
    look = text(
        "SELECT pricing.heartbeat(CAST(:who AS text), '{equity_quote}', ARRAY[CAST(:what AS text)]) -> 'changed'"
    )
    read = text("SELECT pricing.request_prices('{equity_quote}', ARRAY[CAST(:what AS text)])")
    check = text("SELECT pricing.enqueue_due()")
    with core.engine.begin() as connection:
        for number in range(10):  # from the sixth time on a session keeps its plans
            connection.execute(look, {"who": f"early {number}", "what": f"S{number}"})
            connection.execute(read, {"what": f"R{number}"})
        connection.execute(text("UPDATE pricing.demand SET due_at = pricing.clock(), became_due_at = NULL"))
        connection.execute(check)
        for statement in MANY_WATCH:
            connection.execute(text(statement))
        before = rows_read(connection)
        assert connection.execute(check).scalar_one() == 20
        assert connection.execute(look, {"who": "late", "what": "S100"}).scalar_one() == 1
        assert connection.execute(look, {"who": "late", "what": "S100"}).scalar_one() == 0
        assert connection.execute(read, {"what": "X7"}).scalar_one() == 1
        assert rows_read(connection) - before < 1000


def test_contract_13_only_the_registry_knows_a_ttl(core: Core, clock: Clock) -> None:
    judges = core.rows(
        "SELECT p.proname, p.pronargdefaults FROM pg_proc p WHERE p.pronamespace = 'pricing'::regnamespace"
        " AND p.proname ~ 'stale' AND 'ttl_minutes' = ANY (p.proargnames)"
    )
    assert {judge.pronargdefaults for judge in judges} == {0}
    for ttl in ("0", "-5", "NULL"):
        with pytest.raises(DBAPIError, match="TTL must be a positive number"):
            core.call(f"SELECT pricing.is_data_stale(pricing.clock(), {ttl})")
    with pytest.raises(DBAPIError, match="default_ttl_minutes"):
        core.rows("INSERT INTO pricing.data_type_registry (data_type, fetcher) VALUES ('no_ttl', 'quote')")
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh()
    clock.advance(90)
    core.rows("UPDATE pricing.data_type_registry SET default_ttl_minutes = 2")
    assert core.enqueue_due() == 0
    core.rows("UPDATE pricing.data_type_registry SET default_ttl_minutes = 1")
    assert core.enqueue_due() == 1


def test_contract_15_the_breaker_opens_on_retries_before_anything_has_died(core: Core, clock: Clock) -> None:
    core.lift_limits(batch_size=1)
    core.enqueue(QUOTE, *symbols(5))
    for _ in range(2):
        for call in core.claim(max_calls=5):
            core.fail(call, FailureKind.PROVIDER_DOWN)
            core.settle(call, 300, "failed", kind=FailureKind.PROVIDER_DOWN)
        clock.advance(40)
        core.promote()
    assert set(core.statuses().values()) == {"pending"}, "each has two attempts left"
    assert core.allowance().breaker == "open"
    assert core.claim(max_calls=5) == []
    clock.advance(60)
    assert [len(call.tasks) for _ in range(3) for call in core.claim(max_calls=5)] == [1], "one probe"


def test_contract_16_pruning_gives_way_to_readers(core: Core, clock: Clock, database_url: str) -> None:
    core.enqueue(QUOTE, "AAPL")
    core.complete(core.claim_one())
    clock.advance(3 * WEEK)
    core.enqueue(QUOTE, "IBM")
    call = core.claim_one()
    with psycopg.connect(database_url) as reader:
        reader.execute("SELECT count(*) FROM pricing.api_call_queue_completed")
        pruning = meanwhile(core.engine, lambda c: c.execute(text("SELECT pricing.prune()")))
        assert core.complete(call) == set(call.task_ids), "work goes on while pruning waits"
        joined(*pruning)
        assert core.statuses() == {"AAPL": "completed", "IBM": "completed"}
    core.call("SELECT pricing.prune()")
    assert core.statuses() == {"IBM": "completed"}, "another time it is"


def test_contract_18_a_client_acts_through_functions_and_for_itself_only(
    core: Core, server: TestServer, database_url: str
) -> None:
    pair = "ARRAY['equity_quote'], ARRAY['AAPL']"
    with a_session(server, database_url, "pricing_client") as (name, client):
        client.execute(f"SELECT pricing.heartbeat({pair})")
        for table in ("api_call_queue", "active_subscriptions", "latest_prices"):
            with pytest.raises(errors.InsufficientPrivilege):
                client.execute(f"SELECT FROM pricing.{table}")
        with pytest.raises(errors.InsufficientPrivilege):
            client.execute(f"SELECT pricing.heartbeat('somebody else', {pair})")
    core.enqueue_due()
    assert core.statuses() == {"AAPL": "pending"}
    assert [row.user_id for row in core.rows("SELECT user_id FROM pricing.active_subscriptions")] == [name]
    definers = core.rows(
        "SELECT p.proname, p.proconfig, has_function_privilege('public', p.oid, 'EXECUTE') AS for_all"
        " FROM pg_proc p WHERE p.pronamespace = 'pricing'::regnamespace AND p.prosecdef"
    )
    assert {"heartbeat", "price"} <= {row.proname for row in definers}
    assert [row.proname for row in definers if row.for_all] == []
    assert [row.proname for row in definers if "search_path=pg_temp" not in row.proconfig] == []
