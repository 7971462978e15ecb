"""Sessions that an event loop asks: answers and errors are those of all other sessions, and none is held up or lost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.db.loop_sessions import LoopSessions
from pricing_pipeline.errors import DatabaseError
from pricing_pipeline_tests.fixtures.database import bare_template

template = bare_template

WHO = "SELECT pg_backend_pid()::text"
LONG = "SELECT pg_sleep(60)::text"


@pytest.fixture
def sessions(engine: Engine) -> Iterator[LoopSessions]:
    sessions = LoopSessions(engine, 2)
    yield sessions
    sessions.close()


def test_an_answer_is_text_or_none(sessions: LoopSessions) -> None:
    async def answers() -> list[str | None]:
        statement = "SELECT $1 || $2"
        return [await sessions.ask(statement, "é", "x"), await sessions.ask(statement, "é", None)]

    assert asyncio.run(answers()) == ["éx", None]


def test_a_statement_may_be_longer_than_a_socket_takes_at_once(sessions: LoopSessions) -> None:
    long = "x" * 8_000_000
    assert asyncio.run(sessions.ask("SELECT $1", long)) == long


def test_an_error_is_sqlalchemys_and_the_session_stays(sessions: LoopSessions) -> None:
    async def check() -> None:
        before = await sessions.ask(WHO)
        with pytest.raises(DBAPIError) as caught:
            await sessions.ask("SELECT (1 / $1::integer)::text", "0")
        assert getattr(caught.value.orig, "sqlstate", None) == "22012"
        with pytest.raises(DBAPIError, match="NUL"):
            await sessions.ask("SELECT $1", "AAPL\x00")
        assert await sessions.ask(WHO) == before

    asyncio.run(check())


@pytest.mark.own_sessions
def test_e1_a_session_that_the_server_has_ended_is_replaced(sessions: LoopSessions, engine: Engine) -> None:
    async def check() -> None:
        ended = await sessions.ask(WHO)
        with engine.connect() as connection:
            connection.execute(text("SELECT pg_terminate_backend(:pid, 10000)"), {"pid": int(ended or 0)})
        assert await sessions.ask(WHO) != ended

    asyncio.run(check())


def test_e1_a_statement_that_ends_each_session_is_sent_twice_and_refused_in_words(
    sessions: LoopSessions,
) -> None:
    async def check() -> None:
        before = await sessions.ask(WHO)
        with pytest.raises(DatabaseError, match="does not answer"):
            await sessions.ask("SELECT pg_terminate_backend(pg_backend_pid())::text")
        assert await sessions.ask(WHO) != before

    asyncio.run(check())


def test_b7_a_slow_statement_holds_up_no_other_and_takes_its_session_with_it(sessions: LoopSessions) -> None:
    """Nobody may get an answer that another has given up."""

    async def check() -> None:
        before = await sessions.ask(WHO)
        slow = asyncio.create_task(sessions.ask(LONG))
        await asyncio.sleep(0)
        other = await sessions.ask(WHO)
        assert other != before
        assert not slow.done()
        slow.cancel()
        await asyncio.wait([slow])
        assert {await sessions.ask(WHO), await sessions.ask(WHO)} == {other}

    asyncio.run(check())


def test_b7_only_so_many_are_asked_at_once(sessions: LoopSessions) -> None:
    async def check() -> None:
        asked = [asyncio.create_task(sessions.ask(LONG)) for _ in range(2)]
        asked.append(asyncio.create_task(sessions.ask(WHO)))
        await asyncio.wait(asked, timeout=0.2)
        assert not any(task.done() for task in asked)
        asked[0].cancel()
        assert await asked[2] is not None
        asked[1].cancel()
        await asyncio.wait(asked)

    asyncio.run(check())
