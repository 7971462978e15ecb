"""Ctrl-C in the middle of a statement: the driver's error about the broken session does not hide it."""

from __future__ import annotations

import pytest

from pricing_pipeline.db.errors import raise_interruption
from pricing_pipeline.errors import DatabaseError


def broken_off(by: BaseException) -> Exception:
    """What is caught when a statement is broken off, and its session cannot be rolled back."""
    try:
        try:
            try:
                raise by
            finally:
                raise OSError("another command is already in progress")
        except OSError as error:
            raise DatabaseError("the database does not answer") from error
    except DatabaseError as error:
        return error


def test_ctrl_c_is_raised_again() -> None:
    with pytest.raises(KeyboardInterrupt):
        raise_interruption(broken_off(KeyboardInterrupt()))


def test_an_error_alone_is_left_to_the_caller() -> None:
    raise_interruption(broken_off(ValueError()))
