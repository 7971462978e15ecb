"""What `up` says when it cannot start: one clear sentence, a non-zero exit, and nothing left running."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from pricing_pipeline_tests.fixtures.stack import Stack


@pytest.fixture
def taken_port() -> Iterator[str]:
    """A port on which somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield str(listener.getsockname()[1])


@pytest.fixture
def free_port() -> Iterator[str]:
    """A port on which nobody listens, and which the system offers to nobody else meanwhile."""
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield str(held.getsockname()[1])


def refusal(folder: Path, **settings: str) -> str:
    stack = Stack(folder, **settings)
    try:
        return stack.refusal()
    finally:
        stack.close()


@pytest.mark.parametrize("name", ["WEB_PORT", "API_PORT", "SANDBOX_PORT"])
def test_a_port_in_use(tmp_path: Path, taken_port: str, name: str) -> None:
    sentence = refusal(tmp_path, **{name: taken_port})
    assert f"port {taken_port}" in sentence
    assert "in use" in sentence
    assert f"set PRICING_{name}" in sentence


def test_one_port_for_two_programs(tmp_path: Path, free_port: str) -> None:
    sentence = refusal(tmp_path, WEB_PORT=free_port, SANDBOX_PORT=free_port)
    assert f"port {free_port} for the sandbox is wanted twice; set PRICING_SANDBOX_PORT" in sentence


def test_a_home_that_cannot_be_written(tmp_path: Path) -> None:
    if os.geteuid() == 0:  # who may write everywhere but below a file
        closed = tmp_path / "file"
        closed.write_text("")
    else:
        closed = tmp_path / "closed"
        closed.mkdir(mode=0o500)
    sentence = refusal(closed)
    assert str(closed / "home") in sentence
    assert "set PRICING_HOME" in sentence


def test_a_database_that_is_not_there(tmp_path: Path, free_port: str) -> None:
    url = f"postgresql://me:secret-word@127.0.0.1:{free_port}/pricing"
    sentence = refusal(tmp_path, DATABASE_URL=url)
    assert f"127.0.0.1:{free_port}/pricing does not answer" in sentence
    assert "PRICING_DATABASE_URL" in sentence
    assert "secret-word" not in sentence


def test_a_database_host_that_does_not_exist(tmp_path: Path) -> None:
    sentence = refusal(tmp_path, DATABASE_URL="postgresql://me:secret-word@no-such-host.invalid/pricing")
    assert "no-such-host.invalid/pricing does not answer" in sentence
    assert "secret-word" not in sentence


@pytest.mark.parametrize("setting", ["DATABASE_URL", "OWNER_URL", "DAGSTER_URL"])
@pytest.mark.parametrize("url", ["secret-word, no URL", "mysql://me:secret-word@127.0.0.1/pricing"])
def test_an_address_that_names_no_postgresql_database(tmp_path: Path, setting: str, url: str) -> None:
    sentence = refusal(tmp_path, **{"DATABASE_URL": "postgresql://me@127.0.0.1/pricing", setting: url})
    assert f"PRICING_{setting}" in sentence
    assert "postgresql://" in sentence
    assert "secret-word" not in sentence


def test_a_master_key_that_is_none(tmp_path: Path) -> None:
    sentence = refusal(tmp_path, MASTER_KEY="main:canary")
    assert "PRICING_MASTER_KEY cannot be read" in sentence
    assert "canary" not in sentence


def test_an_address_that_others_reach_without_a_login(tmp_path: Path) -> None:
    sentence = refusal(tmp_path, UI_ADDRESS="0.0.0.0")
    assert "PRICING_UI_ADDRESS=0.0.0.0 opens the Dagster UI to other machines" in sentence
    assert "Set PRICING_UI_TOKEN" in sentence


def test_a_token_that_can_be_guessed(tmp_path: Path) -> None:
    sentence = refusal(tmp_path, UI_TOKEN="canary")
    assert "PRICING_UI_TOKEN must have 16 characters" in sentence
    assert "canary" not in sentence


def test_a_value_that_is_none(tmp_path: Path) -> None:
    sentence = refusal(tmp_path, WEB_PORT="eighty")
    assert "PRICING_WEB_PORT='eighty'" in sentence
    assert ".env.example" in sentence
