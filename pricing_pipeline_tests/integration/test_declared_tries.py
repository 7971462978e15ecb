"""What `provider try` and `provider declare` do not do with a file of somebody else (B2, A4)."""

from __future__ import annotations

import getpass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from pricing_pipeline.cli import key
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.server import Connection, ScriptedServer
from pricing_pipeline_tests.support.declarations import FRANKFURTER, PAGES, ROOT
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


def test_a4_try_asks_for_no_key_of_a_provider_of_the_code(cli: CommandLine, tmp_path: Path, prompts: list[str]) -> None:
    """Anyone who wrote the file would get the key of the real service."""
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


def test_f11_a_draft_of_a_url_is_a_file_that_try_takes(cli: CommandLine, tmp_path: Path) -> None:
    """As a new user works: one URL, a draft, and a try with it."""
    asked: list[bytes] = []
    day = f"{datetime.now(UTC).date() - timedelta(days=3)}"

    def serve(connection: Connection) -> None:
        asked.append(connection.request)
        connection.answer(f"Date;Close\r\n{day};59.726,44\r\n".encode())

    with ScriptedServer(serve) as server:
        url = f"{server.url}/prices/IBM.csv?token=canary-5ecret-0123456789&from=2026-01-01&to=2026-12-31"
        said = cli(
            "provider",
            "draft",
            url,
            "--symbol",
            "IBM",
            "--header",
            "X-Region: eu",
            database_url="postgresql://no",
        )
        assert said.exit_code == 0, said
        assert b"token=canary-5ecret-0123456789" in asked[0]
        assert b"X-Region: eu" in asked[0]
        assert "canary" not in said.stdout + said.stderr
        assert f"{day} 00:00  59726.44" in said.stderr
        path = tmp_path / "draft.yaml"
        path.write_text(said.stdout.replace("{unnamed: true}", "{code: EUR}"))
        tried = cli(
            *("provider", "try", str(path), "IBM", "--from", day, "--to", day, "--at", server.url),
            stdin="canary-5ecret-0123456789",
        )
    assert "59726.44" in tried.stdout.partition("would be stored: 1 value")[2]
    assert "parameter token: (your key)" in tried.stdout
    assert "canary" not in tried.stdout + tried.stderr
    assert b"token=canary-5ecret-0123456789" in asked[1]


def test_f11_a_short_header_hides_nothing_of_an_answer_and_a_token_stays_hidden_without_its_word(
    cli: CommandLine,
) -> None:
    def serve(connection: Connection) -> None:
        connection.answer(b"Date,Close,Note\r\n2026-11-20,211.25,canary-t0k\r\n")

    with ScriptedServer(serve) as server:
        given = ("--header", "X-Version: 1", "--header", "Authorization: Bearer canary-t0k")
        said = cli("provider", "draft", f"{server.url}/A.csv", "--symbol", "A", *given)
    assert said.exit_code == 0, said
    assert 'headers: {X-Version: "1"}' in said.stdout
    assert "Close: number, such as 211.25" in said.stderr
    assert "canary" not in said.stdout + said.stderr


def test_f11_a_draft_of_a_saved_answer_asks_nobody_and_tells_what_it_took(cli: CommandLine, tmp_path: Path) -> None:
    body = tmp_path / "answer.json"
    body.write_text('[{"d": "03/04/2026", "c": "1,234"}]')
    said = cli("provider", "draft", "https://api.example.com/v1/A", "--body", str(body), "--symbol", "A")
    assert "How are days written in d? Taken: %d/%m/%Y. Or: %m/%d/%Y." in said.stderr
    assert "How are numbers written? Taken: 1,234 is 1234. Or: 1,234 is 1.234." in said.stderr
    assert "base_url: https://api.example.com\n" in said.stdout
    assert "cannot be read" in cli("provider", "draft", "--body", str(tmp_path / "none")).error
    assert "give a URL" in cli("provider", "draft").stderr
    body.write_text("No data")
    assert "the answer is text" in cli("provider", "draft", "--body", str(body)).error


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (
            "401 Unauthorized",
            b'{"error": "bad key"}',
            "answered 401: bad key. Check the key that you gave.",
        ),
        ("200 OK", b"Error: invalid API key supplied.", "`errors: rules` of its declaration can say so."),
        ("404 Not Found", b'{"error": "no data in span"}', "`errors: rules` of its declaration can say so."),
    ],
)
def test_f11_a_refusal_is_told_with_what_the_file_or_the_user_can_change(
    cli: CommandLine, status: str, body: bytes, words: str
) -> None:
    def serve(connection: Connection) -> None:
        assert connection.request
        connection.answer(body, status=status)

    with ScriptedServer(serve) as server:
        file = str(ROOT / "docs/examples/finnhub.yaml")
        tried = cli("provider", "try", file, "AAPL", "--at", server.url, stdin="canary-5ecret-0123456789").stderr
        drafted = cli("provider", "draft", f"{server.url}/A?apikey=canary-5ecret-0123456789").stderr
    assert words in tried
    assert "key list" not in tried + drafted
    assert not status.startswith("401") or drafted.rstrip().endswith(
        "A key goes into the URL, or into --header 'NAME: VALUE'."
    )


def test_f11_try_shows_no_column_that_is_empty(cli: CommandLine) -> None:
    day = datetime.now(UTC).date() - timedelta(days=3)

    def serve(connection: Connection) -> None:
        assert connection.request
        connection.answer(f'{{"base": "EUR", "date": "{day}", "rates": {{"USD": 1.1241}}}}'.encode())

    with ScriptedServer(serve) as server:
        said = cli("provider", "try", str(FRANKFURTER), "EUR/USD", "--at", server.url)
    (heading,) = (line for line in said.stdout.splitlines() if line.startswith("symbol"))
    assert heading.split() == ["symbol", "time", "price", "currency"]
