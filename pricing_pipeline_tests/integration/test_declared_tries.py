"""What `provider try` and `provider declare` do not do with a file of somebody else (B2, A4)."""

from __future__ import annotations

import getpass
from pathlib import Path
from types import SimpleNamespace

import pytest

from pricing_pipeline.cli import key
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.support.declarations import FRANKFURTER, PAGES
from pricing_pipeline_tests.support.json_server import serving
from pricing_pipeline_tests.support.paged_bars import PagedBars


@pytest.fixture
def prompts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a person at a terminal is asked, who types a key each time."""
    asked: list[str] = []

    def type_key(prompt: str, stream: object) -> str:
        asked.append(prompt)
        return "canary-5ecret-0123456789"

    terminal = SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True), stderr=None)
    monkeypatch.setattr(key, "sys", terminal)
    monkeypatch.setattr(getpass, "getpass", type_key)
    return asked


def test_a4_try_asks_for_no_key_of_a_provider_of_the_code(
    cli: CommandLine, tmp_path: Path, prompts: list[str]
) -> None:
    """Whoever wrote the file would get the key of the real service."""
    path = tmp_path / "rates.yaml"
    path.write_text(PAGES.read_text().replace("name: example_pages", "name: twelvedata"))
    for command in (("try", str(path), "AAPL"), ("declare", str(path))):
        assert cli("provider", *command).error == (
            "twelvedata is a provider already that is not declared. Choose another `name`. Nothing has changed."
        )
    assert not prompts


def test_a4_try_says_where_the_key_goes_before_it_is_typed(cli: CommandLine, prompts: list[str]) -> None:
    server = PagedBars()
    with serving(server):
        cli("provider", "try", str(PAGES), "AAPL", "--at", server.url)
    place = server.url.removeprefix("http://")
    assert prompts == [f"Key default of example_pages, which is sent to {place}: "]
    refused = cli("provider", "try", str(PAGES), "AAPL", "--at", "http://evil.example").error
    assert "would send its key unencrypted to evil.example" in refused
    assert len(prompts) == 1


def test_b2_the_path_of_a_file_steers_no_terminal(cli: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "\u202elmay.setar"
    for command in (("try", str(path), "EUR/USD"), ("declare", str(path))):
        assert "\\u202elmay.setar cannot be read" in cli("provider", *command).error
    path.write_text(FRANKFURTER.read_text().replace("close: rates", "clse: rates"))
    assert "\\u202elmay.setar:" in cli("provider", "declare", str(path)).error
