"""Who answers: a message over gRPC is an answer, nothing else is. acceptance/test_code_server.py has a real one."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pricing_pipeline.processes.probes import answers_grpc

PING = "/api.DagsterApi/Ping"


@contextmanager
def server(path: Path, says: bytes | None) -> Iterator[None]:
    """A server that says this to the first caller and hangs up; None: it takes the call and never says anything."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            caller, _ = listener.accept()
            with caller:
                caller.sendall(says or b"")
                caller.shutdown(socket.SHUT_WR)
                while caller.recv(65536):
                    pass

        thread = threading.Thread(target=serve)
        if says is not None:
            thread.start()
        yield
        if says is not None:
            thread.join()


# httpcore leaves a socket that could not be connected to the garbage collector, which closes it at once.
@pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning")
def test_g2_nobody_there_is_no_answer(open_folder: Path) -> None:
    path = open_folder / "code.sock"
    assert not answers_grpc(str(path), PING, 60.0)
    path.touch()
    assert not answers_grpc(str(path), PING, 60.0)


def test_g2_a_frozen_server_is_waited_for_as_long_as_said(open_folder: Path) -> None:
    path = open_folder / "code.sock"
    with server(path, None):
        began = time.monotonic()
        assert not answers_grpc(str(path), PING, 0.2)
        assert time.monotonic() - began >= 0.2


SETTINGS = bytes.fromhex("000000040000000000")
"""The empty frame that a server of HTTP/2 begins with (RFC 9113, 6.5)."""


@pytest.mark.parametrize(
    "says",
    [
        b"",
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nmore than",
        b"\x00" * 300,
        b"\xff" * 300,
        SETTINGS,
        SETTINGS + bytes.fromhex("0000080700000000000000000000000000"),  # GOAWAY
        SETTINGS + bytes.fromhex("000001010500000001") + b"\x88",  # 200, and no message
        SETTINGS + bytes.fromhex("000001010400000001") + b"\x88" + bytes.fromhex("000003000100000001") + b"abc",
        SETTINGS + bytes.fromhex("000003010500000001") + b"\xff\xff\xff",  # headers that nobody can read
    ],
    ids=lambda says: ascii(says[:30]),
)
def test_g2_what_is_no_message_is_no_answer(open_folder: Path, says: bytes) -> None:
    path = open_folder / "code.sock"
    with server(path, says):
        assert not answers_grpc(str(path), PING, 60.0)


def test_g2_a_message_is_an_answer_whatever_it_says(open_folder: Path) -> None:
    path = open_folder / "code.sock"
    answer = SETTINGS + bytes.fromhex("000001010400000001") + b"\x88" + bytes.fromhex("000005000100000001")
    with server(path, answer + bytes(5)):
        assert answers_grpc(str(path), PING, 60.0)
