"""A session of a command that reads, by the driver alone: SQLAlchemy takes longer to import than such a command runs.

It has of SQLAlchemy's Connection what typed reads use, so that each of them works in both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, NoReturn, TypeVar

import psycopg
from psycopg.rows import namedtuple_row

from pricing_pipeline.db.query_loader import Query, driver_sql

T = TypeVar("T")


class Rows(list[T]):
    """The result of a statement, read in the ways of SQLAlchemy's Result."""

    def all(self) -> list[T]:
        """All rows."""
        return self

    def first(self) -> T | None:
        """The first row, if there is any."""
        return self[0] if self else None

    def one(self) -> T:
        """The only row. Raises ValueError unless there is exactly one."""
        (row,) = self
        return row

    def one_or_none(self) -> T | None:
        """The only row, if there is any. Raises ValueError if there are several."""
        return self.one() if self else None

    def mappings(self: Rows[Any]) -> Rows[Mapping[str, Any]]:
        """The rows as values by the names of their columns."""
        return Rows(row._asdict() for row in self)

    def scalars(self: Rows[Any]) -> Rows[Any]:
        """The first value of each row."""
        return Rows(row[0] for row in self)

    def scalar(self) -> Any:
        """The first value of the first row, if there is any."""
        return self.scalars().first()

    def scalar_one(self) -> Any:
        """The first value of the only row."""
        return self.scalars().one()

    def scalar_one_or_none(self) -> Any:
        """The first value of the only row, if there is any."""
        return self.scalars().one_or_none()


class DriverSession:
    """One session in a transaction, which `commit` ends. `explain` raises an error of the driver as a clear one."""

    def __init__(self, driver: psycopg.Connection[Any], explain: Callable[[str, psycopg.Error], NoReturn]) -> None:
        self.driver = driver
        self.info: dict[str, Any] = {}
        self.explain = explain

    def execute(self, statement: Query, parameters: Mapping[str, Any] | None = None) -> Rows[Any]:
        """Run a named query; raises what SQLAlchemy's Connection would raise."""
        text = driver_sql(statement.sql)
        try:
            # With parameters, even none: a percent sign is written twice.
            cursor = self.driver.cursor(row_factory=namedtuple_row).execute(text, parameters or {})
            return Rows[Any](cursor.fetchall() if cursor.description else ())
        except psycopg.Error as error:
            self.explain(text, error)

    def scalars(self, statement: Query, parameters: Mapping[str, Any] | None = None) -> Rows[Any]:
        """The first value of each row of a named query."""
        return self.execute(statement, parameters).scalars()

    def begin_nested(self) -> AbstractContextManager[Any]:
        """What fails within is rolled back to here. It comes after a statement: before one it would commit."""
        return self.driver.transaction()

    def commit(self) -> None:
        """Keep what was written."""
        try:
            self.driver.commit()
        except psycopg.Error as error:
            self.explain("COMMIT", error)
