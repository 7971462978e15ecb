"""Sessions that an event loop uses directly, for the one statement that a server sends hundreds of times a second."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
from anyio import to_thread
from psycopg.errors import error_from_result
from psycopg.generators import execute  # internal: psycopg is pinned
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.types.string import StrDumper
from psycopg.waiting import wait_async
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.db.engine import autocommitting, raise_as_sqlalchemys
from pricing_pipeline.db.replica import Replica
from pricing_pipeline.errors import DatabaseError, ReadReplica

_LOOK_EVERY = 60.0
"""Seconds between two looks at a socket that says nothing; what it says is heard at once."""
_PATIENCE = 1.0
"""Seconds that a read waits for a replica before it asks the primary."""


class LoopSessions:
    """Sessions of the engine's pool, kept, each statement its own transaction. At most `most` are asked at once.

    They are asked through libpq: handing a statement to a thread, and the driver's cursor, take three times as long.
    The pool would ask each session before each use whether it still lives, which takes as long as a read.
    """

    def __init__(self, engine: Engine, most: int) -> None:
        self.engine = autocommitting(engine)
        self._turns = asyncio.Semaphore(most)
        self._free: list[Connection] = []

    async def ask(self, statement: str, *parameters: str | None, on_replica: str | None = None) -> str | None:
        """The only value that a statement returns; its parameters are $1, $2 and so on, all of them text.

        A replica, where there is one, is asked `on_replica`, which raises ReadReplica if the primary must be asked.
        It only reads, or may be done twice: one that finds its session lost is sent again in a new one. Raises what
        `driver_rows` raises.
        """
        async with self._turns:
            if self._free:
                try:
                    return await self._ask(self._free.pop(), statement, parameters)
                except ReadReplica:
                    raise
                except DatabaseError:
                    self.close()  # the server has ended them all
            return await self._ask(await to_thread.run_sync(self.engine.connect), statement, parameters)

    async def _ask(self, connection: Connection, statement: str, parameters: tuple[str | None, ...]) -> str | None:
        driver: psycopg.Connection[Any] = connection.connection.driver_connection  # type: ignore[assignment]
        try:
            return await _value(driver, statement, parameters)
        except psycopg.Error as error:
            raise_as_sqlalchemys(connection, driver, statement, error)
        finally:
            if driver.pgconn.transaction_status == TransactionStatus.IDLE:
                # The one used last is taken first: a session plans each statement once, so few busy ones are faster.
                self._free.append(connection)
            else:  # lost, or nobody waits for its answer any more
                connection.invalidate()

    def close(self) -> None:
        """Give the sessions that nobody uses back to the pool."""
        while self._free:
            self._free.pop().close()


class ReplicaSessions(LoopSessions):
    """Sessions that ask a replica first, while it is used, and the primary whenever the replica does not answer.

    A statement that has something to write is refused by the replica, and the primary does all of it.
    """

    def __init__(self, engine: Engine, replica: Replica, most: int) -> None:
        super().__init__(engine, most)
        self._replica = replica
        self._of_replica = LoopSessions(replica.engine, most)

    async def ask(self, statement: str, *parameters: str | None, on_replica: str | None = None) -> str | None:
        """As LoopSessions has it."""
        if on_replica is not None and self._replica.is_used:
            try:
                async with asyncio.timeout(_PATIENCE):
                    value = await self._of_replica.ask(on_replica, *parameters)
                if value is not None:  # what it does not know may be new
                    return value
            except ReadReplica:
                pass
            except (DatabaseError, DBAPIError, TimeoutError):
                self._replica.mark_unavailable()
        return await super().ask(statement, *parameters)

    def close(self) -> None:
        """Give the sessions that nobody uses back to their pools."""
        super().close()
        self._of_replica.close()


async def _value(driver: psycopg.Connection[Any], statement: str, parameters: tuple[str | None, ...]) -> str | None:
    pgconn, encoding = driver.pgconn, driver.info.encoding
    texts = StrDumper(str, driver)  # refuses what no text of the database can be
    pgconn.send_query_params(statement.encode(), [None if text is None else texts.dump(text) for text in parameters])
    *_, result = await wait_async(execute(pgconn), pgconn.socket, interval=_LOOK_EVERY)
    if result.status != ExecStatus.TUPLES_OK:
        raise error_from_result(result, encoding)
    value = result.get_value(0, 0)
    return None if value is None else value.decode(encoding)
