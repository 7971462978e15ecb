"""Connections whose body does not come."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from pricing_pipeline.processes import connections
from pricing_pipeline_tests.unit.test_connections import LENGTH, all_of, head, sent, served_guarded


def test_b7_a_body_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither behind the guard of the UI nor where it asks for the token."""
    monkeypatch.setattr(connections, "BODY_SECONDS", 0.2)
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.2)
    for token, path, status in ((None, "/", b"408"), ("0123456789abcdef-a-token", "/login", b"401")):
        with ExitStack() as stack:
            port = stack.enter_context(served_guarded(token))
            body = LENGTH if token is None else LENGTH.replace(b"json", b"x-www-form-urlencoded")
            answer = all_of(sent(stack, port, head("POST", path, port) + body + b"{"))
            assert answer.split()[1] == status, answer
