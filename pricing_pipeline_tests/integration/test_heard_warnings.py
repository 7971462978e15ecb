"""B22: warnings are counted by the program that hears them, whatever becomes of the transaction that raised them."""

from __future__ import annotations

import threading
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine, text

from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.db.notices import HeardWarnings
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until

pytestmark = pytest.mark.usefixtures("still")

FLOOD = 10_000


def warn_and_roll_back(engine: Engine, message: str = "odd", about: str = "AAPL", times: int = 1) -> None:
    with engine.connect() as connection:
        for _ in range(times):
            connection.execute(
                text("SELECT pricing.warn('a test', :about, :m, '22012')"), {"about": about, "m": message}
            )
        connection.rollback()


def counts(core: Core) -> list[tuple[Any, ...]]:
    rows = core.rows(
        "SELECT source, subject, sqlstate, sum(times)::int AS times, max(last_message) AS message"
        " FROM pricing.warning_counts GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
    )
    return [tuple(row) for row in rows]


def test_b22_a_warning_of_a_transaction_that_is_rolled_back_is_counted(core: Core, engine: Engine) -> None:
    warn_and_roll_back(engine, "odd: 'quoted' of x (y)", times=2)
    assert core.rows("SELECT FROM pricing.warnings") == []
    wait_until(lambda: counts(core) != [])
    engine.dispose()
    assert counts(core) == [("a test", "AAPL", "22012", 2, "odd: 'quoted' of x (y)")]


def test_b22_several_sessions_are_counted_together(core: Core, engine: Engine, database_url: str) -> None:
    other = make_engine(database_url)
    threads = [
        threading.Thread(target=warn_and_roll_back, args=(each, "odd", "AAPL", 20)) for each in (engine, engine, other)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    engine.dispose()
    other.dispose()
    assert counts(core) == [("a test", "AAPL", "22012", 60, "odd")]


def test_b22_postgresqls_own_warnings_and_notices_are_counted_by_code(core: Core, engine: Engine) -> None:
    with engine.connect() as connection:
        connection.execute(text("DO $$ BEGIN RAISE WARNING 'mind' USING ERRCODE = '01007'; RAISE INFO 'so'; END $$"))
        connection.execute(text("DROP TABLE IF EXISTS pg_temp.nothing"))
        connection.rollback()
    engine.dispose()
    assert [row[:4] for row in counts(core)] == [
        ("postgresql", "NOTICE", "00000", 1),
        ("postgresql", "WARNING", "01007", 1),
    ]


def test_b22_nulls_and_long_words_are_counted_too(core: Core, engine: Engine) -> None:
    with engine.connect() as connection:
        connection.execute(text("SELECT pricing.warn('run', repeat('x', 300), repeat('y', 5000), NULL)"))
        connection.rollback()
    engine.dispose()
    assert counts(core) == [("run", "x" * 200, "", 1, "y" * 1000)]


def test_b22_a_flood_neither_blocks_nor_fills_the_memory(core: Core, engine: Engine) -> None:
    with engine.connect() as connection:
        connection.execute(
            text(
                "DO $$ BEGIN FOR n IN 1..10000 LOOP RAISE WARNING 'flood %', n USING SCHEMA = 'pricing.warn',"
                " TABLE = 'flood', COLUMN = 'subject ' || n % 1000, DATATYPE = '',"
                " CONSTRAINT = 'flood'; END LOOP; END $$"
            )
        )
        connection.rollback()
    engine.dispose()
    assert core.one("SELECT sum(times)::int FROM pricing.warning_counts") == FLOOD
    assert core.one("SELECT count(*) FROM pricing.warning_counts WHERE source = 'other warnings'") == 1


def test_b22_hearing_waits_for_no_database() -> None:
    away = threading.Event()

    def connect() -> psycopg.Connection[Any]:
        away.wait(PATIENCE)
        raise psycopg.OperationalError("away")

    class Notice:
        severity_nonlocalized, schema_name = "WARNING", "pricing.warn"
        table_name, datatype_name, constraint_name = "a test", "", "odd"
        column_name = "0"

    heard = HeardWarnings(connect)
    notice: Any = Notice()
    for number in range(FLOOD):
        notice.column_name = str(number)
        heard.hear(notice)
    notice.column_name = None
    heard.hear(None)  # type: ignore[arg-type]
    assert len(heard._heard) <= 257
    away.set()
    heard.close()
    assert heard.waiting == 0


def test_b22_a_locked_count_stops_nobody(core: Core, engine: Engine) -> None:
    warn_and_roll_back(engine)
    engine.dispose()
    with core.engine.begin() as holder:
        holder.execute(text("SELECT FROM pricing.warning_counts FOR UPDATE"))
        warn_and_roll_back(engine)
        warn_and_roll_back(engine, about="IBM")
    wait_until(lambda: sum(row[3] for row in counts(core)) == 3)


def test_b22_status_shows_each_cause_once_and_the_alert_uses_what_survives(
    cli: CommandLine, core: Core, engine: Engine, clock: Clock
) -> None:
    clock.stop()
    with engine.begin() as connection:
        connection.execute(text("SELECT pricing.warn('a test', 'AAPL', 'kept', '22012')"))
    warn_and_roll_back(engine, times=3)
    with engine.connect() as connection:
        connection.execute(text("DROP TABLE IF EXISTS pg_temp.nothing"))
    engine.dispose()
    (warned,) = cli("status", "--json").json["warnings"]
    assert (warned["source"], warned["subject"], warned["times"]) == ("a test", "AAPL", 4)
    assert "warning:     AAPL (a test, 4 times in 24 h" in cli("status").stdout
    many = "SELECT subject FROM pricing.recent_warnings('1 hour') WHERE times >= 5"
    assert core.rows(many) == []
    warn_and_roll_back(engine)
    engine.dispose()
    assert [row.subject for row in core.rows(many)] == ["AAPL"]
    clock.advance(31 * 86400)
    core.call("SELECT pricing.prune()")
    assert counts(core) == []
