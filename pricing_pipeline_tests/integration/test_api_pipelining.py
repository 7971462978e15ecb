"""Requests that a connection sends before the answer to an earlier one: a few are kept, and no caller can heap them."""

from __future__ import annotations

import socket

import pytest

from pricing_pipeline.processes.connections import MOST_WAITING
from pricing_pipeline_tests.support.api_server import RunningApi
from pricing_pipeline_tests.support.patience import PATIENCE

pytestmark = pytest.mark.usefixtures("still")


def answers_to(api: RunningApi, requests: int) -> bytes:
    """What comes back when so many requests for `/livez` are sent at once, the last of which ends the connection."""
    place = api.url.removeprefix("http://")
    host, _, port = place.partition(":")
    request = f"GET /livez HTTP/1.1\r\nHost: {place}\r\n"
    sent = (requests - 1) * f"{request}\r\n" + f"{request}Connection: close\r\n\r\n"
    received = b""
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as sock:
        try:
            sock.sendall(sent.encode())
            while part := sock.recv(65536):
                received += part
        except (BrokenPipeError, ConnectionResetError):
            pass
    return received


def test_b7_a_few_requests_sent_at_once_are_answered_in_turn(api: RunningApi) -> None:
    assert answers_to(api, MOST_WAITING + 1).count(b"HTTP/1.1 200 OK") == MOST_WAITING + 1


def test_b7_requests_that_wait_for_answers_are_bounded(api: RunningApi) -> None:
    """60 connections with 14,000 each kept all others waiting for half a minute, without a token."""
    for requests in (MOST_WAITING + 2, 14_000):
        answer = answers_to(api, requests)
        assert b"HTTP/1.1 200" not in answer
        assert answer.count(b"HTTP/1.1 400") <= 1, "the connection ends, and what is left is not read"
    assert answers_to(api, MOST_WAITING + 2).startswith(b"HTTP/1.1 400"), "the sender is told"
    assert api.client.get("/livez").text == "ok\n"
