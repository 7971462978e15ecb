"""`provider record` keeps what a service said, without keys; the sandbox and the parsers replay it (A4, A6, B18)."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from pydantic import SecretStr

from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.errors import ProviderError
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.providers.configured import SANDBOX_KEY
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline_tests.fixtures.cli import CommandLine, Said
from pricing_pipeline_tests.fixtures.core import QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.fixtures.server import Connection, ScriptedServer
from pricing_pipeline_tests.support.recordings import replayed
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox, running_sandbox
from pricing_pipeline_tests.support.slots_synced import load_types

pytestmark = pytest.mark.usefixtures("still")

KEY = "canary-5ecret/0123456789+xyz"
FORMS = {
    "plain": KEY,
    "upper": KEY.upper(),
    "in a URL": quote(KEY, safe=""),
    "JSON": json.dumps(KEY).replace("/", "\\/"),
}
DAILY = "equity_daily"
CALLS = "SELECT count(*) FROM pricing.collector_call_log WHERE worker = 'provider record'"
SWITCHED_OFF = "UPDATE pricing.data_collectors SET is_active = false"


def ask_at(core: Core, url: str) -> None:
    """Put a server in the place of the real providers."""
    core.rows("UPDATE pricing.data_collectors SET base_url = CAST(:url AS text) || '/' || provider", url=url)


@pytest.fixture
def service(core: Core) -> Iterator[RunningSandbox]:
    """A sandbox in the place of the real providers, with Twelve Data's free plan and a key."""
    with running_sandbox(key=KEY, credits_per_minute=8, credits_per_day=800) as sandbox:
        ask_at(core, sandbox.url)
        core.rows("UPDATE pricing.provider_limits SET units = 8 WHERE (provider, name) = ('twelvedata', 'minute')")
        yield sandbox


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "recordings"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Answer]:
    """What the client of the command has read from each answer."""
    answers: list[Answer] = []
    true_fetch = ProviderClient.fetch

    def fetch(self: ProviderClient, *arguments: Any, **more: Any) -> Fetched:
        fetched = true_fetch(self, *arguments, **more)
        answers.append(fetched.answer)
        return fetched

    monkeypatch.setattr(ProviderClient, "fetch", fetch)
    return answers


def record(cli: CommandLine, folder: Path, *words: str) -> Said:
    keys = {"twelvedata_api_key": KEY, "fmp_api_key": KEY}
    return cli("provider", "record", *words, "--out", str(folder), sandbox="false", **keys)


def files(folder: Path) -> dict[str, Path]:
    return {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}


def assert_no_key(*texts: str) -> None:
    for text in texts:
        for form, spelled in FORMS.items():
            assert spelled.strip('"').lower() not in text.lower(), form


# --- recorded and replayed ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "data_type", "symbols"),
    [
        (TWELVEDATA, QUOTE, ["AAPL", "NOPE1"]),
        (TWELVEDATA, DAILY, ["AAPL"]),
        ("yahoo", QUOTE, ["AAPL", "IBM"]),
        ("mfapi", "mf_nav", ["118632"]),
        ("fmp", "company_profile", ["AAPL"]),
    ],
)
@pytest.mark.usefixtures("service")
def test_b18_what_is_recorded_reads_as_the_answer_did_and_so_does_its_replay(
    cli: CommandLine,
    folder: Path,
    read: list[Answer],
    provider: str,
    data_type: str,
    symbols: list[str],
) -> None:
    said = record(cli, folder, provider, *symbols, "--type", data_type)
    assert said.exit_code == 0, said
    (live,) = read
    (recording,) = replayed(folder)
    assert recording.answer() == live
    # Another sandbox invents other prices: what it says again was replayed.
    with running_sandbox(key=KEY, seed=7, recordings=folder) as sandbox:
        address = f"{sandbox.url}/{provider}"
        with ProviderClient(PROVIDERS[provider], address, SecretStr(KEY)) as client:
            again = client.fetch(recording.fetcher, symbols, now=recording.at)
            assert again.answer == live
            assert again.body == recording.response.body
            recorded = recording.response.headers
            assert again.headers == {name: value for name, value in recorded.items() if "credits" in name}
        other = ProviderClient(PROVIDERS["yahoo"], f"{sandbox.url}/yahoo")
        with other:
            assert other.fetch(Fetcher.QUOTE, ["MSFT"]).http_status == 200


def test_b18_posts_are_recorded_and_replayed(cli: CommandLine, core: Core, folder: Path, read: list[Answer]) -> None:
    load_types(core)
    words = ("provider", "record", "octo", "OCT-1001", "--type", "slots_week", "--out")
    with running_sandbox(clock=core.clock) as sandbox:
        ask_at(core, sandbox.url)
        said = cli(*words, str(folder), sandbox="false", octo_api_key=SANDBOX_KEY.get_secret_value())
        assert said.exit_code == 0, said
        assert len(sandbox.calls("octo")) == len(list(folder.rglob("*.meta.json")))
    with running_sandbox(clock=core.clock, seed=7, recordings=folder) as sandbox:
        ask_at(core, sandbox.url)
        said = cli(
            *words,
            str(folder.with_name("again")),
            sandbox="false",
            octo_api_key=SANDBOX_KEY.get_secret_value(),
        )
        assert said.exit_code == 0, said
    live, again = read
    assert live == again, "the other sandbox has made something up"
    assert live.records


def test_a4_the_files_are_ours_alone_and_have_no_key(cli: CommandLine, service: RunningSandbox, folder: Path) -> None:
    said = record(cli, folder, TWELVEDATA, "AAPL", "--type", QUOTE, "--type", DAILY)
    assert said.exit_code == 0, said
    written = files(folder)
    assert sorted(written) == [
        "twelvedata/equity_daily_AAPL.json",
        "twelvedata/equity_daily_AAPL.meta.json",
        "twelvedata/equity_quote_AAPL.json",
        "twelvedata/equity_quote_AAPL.meta.json",
    ]
    for path in written.values():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert_no_key(said.stdout, said.stderr, *(path.read_text() for path in written.values()))
    meta = json.loads(written["twelvedata/equity_quote_AAPL.meta.json"].read_text())
    # The address that was asked, and not the one of the real service.
    assert meta["url_requested"] == f"{service.url}/twelvedata/quote?symbol=AAPL"
    assert meta["asked_path"] == "/quote"
    assert meta["http_status"] == 200
    # Two calls: the headers of the first say what it left.
    assert meta["headers"]["api-credits-left"] == "7"
    assert meta["headers"].keys() <= {
        *("content-type", "date", "api-credits-used", "api-credits-left", "api-credits-request")
    }
    assert [call["status"] for call in service.calls(TWELVEDATA)] == [200, 200]


def test_b18_a_replay_has_no_header_about_limits_that_was_not_recorded(
    cli: CommandLine, service: RunningSandbox, folder: Path
) -> None:
    assert record(cli, folder, TWELVEDATA, "AAPL", "--type", QUOTE).exit_code == 0
    meta = folder / "twelvedata/equity_quote_AAPL.meta.json"
    meta.write_text(json.dumps(json.loads(meta.read_text()) | {"headers": {}}))
    with running_sandbox(key=KEY, recordings=folder) as sandbox:
        client = ProviderClient(PROVIDERS[TWELVEDATA], sandbox.twelvedata_url, SecretStr(KEY))
        with client:
            assert client.fetch(Fetcher.QUOTE, ["AAPL"]).headers == {}
            assert client.fetch(Fetcher.QUOTE, ["IBM"]).headers["api-credits-left"] == "1998"


def test_a4_a_hostile_answer_that_echoes_the_key_is_masked(cli: CommandLine, core: Core, folder: Path) -> None:
    echo = " ".join(FORMS.values())
    body = json.dumps({"message": echo, "deep": [{KEY: FORMS["in a URL"]}]}).encode()

    def answer(c: Connection) -> None:
        c.answer(body, "400 Bad", RateLimit_Policy=echo, Content_Type=f"text/plain; key={KEY}")

    with ScriptedServer(answer) as server:
        ask_at(core, server.url)
        said = record(cli, folder, TWELVEDATA, "AAPL", "--type", QUOTE, "--json")
        assert KEY.encode() in server.requests[0]
    assert said.exit_code == 0, said
    (facts,) = said.json["recordings"]
    assert facts["http_status"] == 400
    content = [path.read_bytes() for path in files(folder).values()]
    assert_no_key(said.stdout, said.stderr, *(one.replace(b"\0", b"").decode("latin-1") for one in content))
    assert all(b"***" in one for one in content)
    row = core.rows("SELECT error, outcome FROM pricing.collector_call_log WHERE worker = 'provider record'")[0]
    assert row.outcome == "failed"
    assert_no_key(row.error)


def test_a4_a_symbol_with_the_key_is_asked_of_nobody(
    cli: CommandLine, core: Core, service: RunningSandbox, folder: Path
) -> None:
    key = "CANARY5ECRET0123456789"
    said = cli(
        *("provider", "record", TWELVEDATA, key, "--type", QUOTE, "--out", str(folder)),
        sandbox="false",
        twelvedata_api_key=key,
    )
    assert said.error == "a symbol contains the API key. No call was made."
    assert (core.one(CALLS), service.calls(), files(folder) if folder.exists() else {}) == (0, [], {})


# --- counted and limited -----------------------------------------------------------------------


def test_a6_each_call_is_counted_and_none_is_made_beyond_the_limit(
    cli: CommandLine, core: Core, service: RunningSandbox, folder: Path
) -> None:
    def ask(name: str, *symbols: str) -> Said:
        return record(cli, folder / name, TWELVEDATA, *symbols, "--type", QUOTE)

    five = ("AAPL", "IBM", "MSFT", "GOOG", "META")
    assert ask("five", *five).exit_code == 0
    assert "its limits leave no room for 5 units" in ask("five more", *five).error
    assert ask("three", *five[:3]).exit_code == 0
    assert core.allowance().units_left == 0
    assert ask("one", "AAPL").error.startswith(
        "equity_quote is not recorded: twelvedata allows 8 units in 60 s, and 8 are used; the next comes at "
    )
    assert core.one(CALLS) == len(service.calls(TWELVEDATA)) == 2
    assert core.one("SELECT count(*) FROM pricing.collector_call_log WHERE outcome = 'ok' AND wire_bytes > 0") == 2
    assert core.one("SELECT count(*) FROM pricing.price_history") == 0


def test_a5_a_symbol_is_asked_and_recorded_as_its_provider_spells_it(
    cli: CommandLine, core: Core, service: RunningSandbox, folder: Path
) -> None:
    said = record(cli, folder, "yahoo", "BRK.B", "--type", QUOTE)
    assert said.exit_code == 0, said
    (recording,) = replayed(folder)
    assert recording.response.status == 200
    assert "BRK-B" in str(recording.outcome), "the parser finds what was asked"


def test_a6_the_first_refusal_of_yahoo_is_recorded_while_it_is_switched_off(
    cli: CommandLine, core: Core, service: RunningSandbox, folder: Path
) -> None:
    core.rows(SWITCHED_OFF)
    service.behave("browsers_only", provider="yahoo")
    said = record(cli, folder, "yahoo", "AAPL", "--type", QUOTE)
    assert said.exit_code == 0, said
    assert "yahoo answered HTTP 429, 23 bytes: " in said.stdout
    assert "It looks at the User-Agent" in " ".join(said.stdout.split())
    (recording,) = replayed(folder)
    assert (recording.response.body, recording.outcome) == (b"Edge: Too Many Requests", "call: throttled")
    # The refusal pauses the provider for this command, too.
    error = record(cli, folder / "again", "yahoo", "AAPL", "--type", QUOTE).error
    assert error.startswith(
        "equity_quote is not recorded: yahoo has answered none of our calls so far (yahoo answered 429"
    )
    assert len(service.calls("yahoo")) == 1
    with (
        running_sandbox(recordings=folder) as sandbox,
        ProviderClient(PROVIDERS["yahoo"], sandbox.yahoo_url) as client,
        pytest.raises(ProviderError, match="429: Edge"),
    ):
        client.fetch(Fetcher.QUOTE, ["AAPL"])


def test_a6_what_opened_a_breaker_can_be_recorded(
    cli: CommandLine, core: Core, service: RunningSandbox, folder: Path
) -> None:
    core.one("SELECT pricing.open_breaker('twelvedata', '10 of 10 calls failed')")
    service.behave("html")
    assert record(cli, folder, TWELVEDATA, "AAPL", "--type", QUOTE).exit_code == 0
    assert replayed(folder)[0].outcome == "call: schema_drift"
    assert sorted(files(folder)) == [
        "twelvedata/equity_quote_AAPL.html",
        "twelvedata/equity_quote_AAPL.meta.json",
    ]
    assert core.one("SELECT breaker FROM pricing.provider_state WHERE provider = 'twelvedata'") == "open"


def test_b18_what_a_hostile_service_sends_as_headers_can_be_replayed(
    cli: CommandLine, core: Core, folder: Path
) -> None:
    many = {f"RateLimit_{number}": "\\" * 400 for number in range(60)}

    def answer(c: Connection) -> None:
        c.answer(b"", "302 Found", Location="https://consent.example/x?session=1", Retry_After="\xe9", **many)

    with ScriptedServer(answer) as server:
        ask_at(core, server.url)
        said = record(cli, folder, TWELVEDATA, "AAPL", "--type", QUOTE)
    assert said.exit_code == 0, said
    (recording,) = replayed(folder)
    assert recording.response.headers["location"] == "https://consent.example/x"
    assert "retry-after" not in recording.response.headers
    assert len(recording.response.headers) == 30
    with running_sandbox(key=KEY, recordings=folder) as sandbox:
        client = ProviderClient(PROVIDERS[TWELVEDATA], sandbox.twelvedata_url, SecretStr(KEY))
        with client, pytest.raises(ProviderError, match=r"a redirect to https://consent\.example/x"):
            client.fetch(Fetcher.QUOTE, ["AAPL"])


def test_a6_without_an_answer_nothing_is_recorded_and_the_call_counts(
    cli: CommandLine, core: Core, service: RunningSandbox, folder: Path
) -> None:
    service.behave("cut")
    error = record(cli, folder, TWELVEDATA, "AAPL", "--type", QUOTE).error
    assert error.endswith("Nothing was recorded.")
    assert files(folder) == {}
    row = core.rows("SELECT outcome, failure_kind FROM pricing.collector_call_log WHERE worker = 'provider record'")[0]
    assert tuple(row) == ("failed", "provider_down")


# --- refused before anybody is asked -------------------------------------------------------------


def test_a6_a_file_is_replaced_only_when_that_is_asked_for(
    cli: CommandLine, service: RunningSandbox, folder: Path
) -> None:
    words = (TWELVEDATA, "AAPL", "--type", QUOTE)
    assert record(cli, folder, *words).exit_code == 0
    before = {name: path.read_bytes() for name, path in files(folder).items()}
    error = record(cli, folder, *words).error
    assert "equity_quote_AAPL.meta.json already, so no call was made. --force replaces it" in error
    (folder / "twelvedata/equity_quote_AAPL.meta.json").unlink()
    assert "equity_quote_AAPL.json already" in record(cli, folder, *words).error
    assert len(service.calls(TWELVEDATA)) == 1
    service.behave("status", status=500, body="down")
    assert record(cli, folder, *words, "--force").exit_code == 0
    after = {name: path.read_bytes() for name, path in files(folder).items()}
    assert sorted(after) == ["twelvedata/equity_quote_AAPL.meta.json", "twelvedata/equity_quote_AAPL.txt"]
    assert before.keys() != after.keys()
    assert replayed(folder)[0].outcome == "call: provider_down"


def test_a_folder_that_cannot_be_written_is_told_before_anybody_is_asked(
    cli: CommandLine, service: RunningSandbox, folder: Path
) -> None:
    folder.write_text("a file")
    error = record(cli, folder, TWELVEDATA, "AAPL", "--type", QUOTE).error
    assert error == f"{folder / TWELVEDATA} cannot be made: Not a directory. No call was made."
    assert service.calls() == []


def test_a6_what_cannot_be_asked_is_refused_before_any_call(
    cli: CommandLine, core: Core, service: RunningSandbox, folder: Path
) -> None:
    for words, sentence in (
        (("nobody", "AAPL", "--type", QUOTE), "no provider is called 'nobody'"),
        ((TWELVEDATA, "AAPL", "--type", "no_type"), "there is no data type 'no_type'"),
        ((TWELVEDATA, "118632", "--type", "mf_nav"), "twelvedata cannot be asked for mf_nav"),
        (("yahoo", "AAPL", "IBM", "--type", DAILY), "takes 1 symbol, and 2 are named"),
        (("mfapi", "1", "2", "--type", "mf_nav"), "takes 1 symbol, and 2 are named"),
        (("yahoo", "../x", "--type", QUOTE), "yahoo has no symbols spelled like '../x'"),
    ):
        assert sentence in record(cli, folder, *words).error
        assert (core.one(CALLS), service.calls(), folder.exists()) == (0, [], False)


def test_a6_without_a_key_nobody_is_asked(cli: CommandLine, service: RunningSandbox, folder: Path) -> None:
    said = cli("provider", "record", TWELVEDATA, "AAPL", "--type", QUOTE, "--out", str(folder), sandbox="false")
    assert said.error.startswith("twelvedata needs an API key, and none is stored or set")
    assert service.calls() == []


def test_c3_with_the_sandbox_on_its_own_key_is_sent(cli: CommandLine, folder: Path) -> None:
    with running_sandbox() as sandbox:
        said = cli(
            *("provider", "record", TWELVEDATA, "AAPL", "--type", QUOTE, "--out", str(folder)),
            sandbox_url=sandbox.url,
        )
        assert said.exit_code == 0, said
        assert "the sandbox was asked, and not the real service" in " ".join(said.stderr.split())
        assert [call["status"] for call in sandbox.calls(TWELVEDATA)] == [200]
    (recording,) = replayed(folder)
    assert recording.meta["kind"] == "sandbox"
    assert "sandbox-key" not in "".join(path.read_text() for path in files(folder).values())
