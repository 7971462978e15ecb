"""Providers by declaration in the database (F11, B2): written whole or not at all, known to running workers, undone."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import DeclarationRefused, UnknownProvider
from pricing_pipeline.keys import credentials, master_keys
from pricing_pipeline.keys.clients import open_clients
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.providers.configured import client_of
from pricing_pipeline.providers.declaration_file import read_file
from pricing_pipeline.providers.declared import DeclaredProvider
from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline.registry import declarations, provider_rules
from pricing_pipeline.registry.declarations import known_providers
from pricing_pipeline.settings import Settings
from pricing_pipeline_tests.fixtures.cli import CommandLine, Said
from pricing_pipeline_tests.fixtures.core import DAILY, NAV, Core
from pricing_pipeline_tests.fixtures.server import Connection, ScriptedServer
from pricing_pipeline_tests.support.declarations import (
    DECLARED,
    FILES,
    FRANKFURTER,
    FUNDS,
    PAGES,
    SHARES,
    changed,
)
from pricing_pipeline_tests.support.json_server import serving
from pricing_pipeline_tests.support.paged_bars import FIRST, LAST, PagedBars, bars
from pricing_pipeline_tests.support.patience import wait_until

pytestmark = pytest.mark.usefixtures("still")


def declare(core: Core, path: Path, *changes: tuple[str, str]) -> declarations.Written:
    with core.owner.begin() as connection:
        return declarations.declare(connection, changed(path, *changes))


def everything(core: Core) -> list[object]:
    """All rows that a declaration may write."""
    tables = ("data_collectors", "provider_declarations", "provider_capabilities", "provider_limits")
    return [sorted(map(str, core.rows(f"SELECT * FROM pricing.{table}"))) for table in tables]


def test_f11_a_declaration_writes_the_rows_that_code_providers_have(core: Core) -> None:
    for path in FILES:
        assert declare(core, path).is_new
    before = everything(core)
    assert declare(core, FUNDS).before == declare(core, FUNDS).after
    assert everything(core) == before, "the same file once more changes nothing"
    (row,) = core.rows("SELECT * FROM pricing.data_collectors WHERE provider = 'shares'")
    assert (row.base_url, row.request_delay_ms, row.is_active) == ("https://shares.example.com/v2", 20, True)
    sizes = {
        (row.provider, row.fetcher): (
            row.batch_size,
            row.batch_from,
            row.window_batch_size,
            row.routes_new_types,
        )
        for row in core.rows("SELECT * FROM pricing.provider_capabilities WHERE provider IN ('shares', 'funds')")
    }
    assert sizes == {
        ("funds", "nav"): (5000, 20, 1, False),
        ("shares", "quote"): (50, 1, 1, False),
        ("shares", "daily_bars"): (1, 1, 1, False),
    }
    with core.engine.connect() as connection:
        limits = {limit.name: limit for limit in provider_rules.limits(connection, "shares")}
        assert limits["day"].day_timezone == "America/New_York"
        known = known_providers(connection)
        assert known.keys() == PROVIDERS.keys() | DECLARED.keys()
        assert known["funds"] is known_providers(connection)["funds"]


def test_f11_declaring_again_changes_what_the_file_says_and_tells_it(core: Core) -> None:
    declare(core, SHARES)
    core.rows("UPDATE pricing.provider_limits SET units = 7 WHERE provider = 'shares' AND name = 'minute'")
    core.rows("UPDATE pricing.data_collectors SET is_active = false WHERE provider = 'shares'")
    written = declare(
        core,
        SHARES,
        ("  day: {units: 20000, day: America/New_York}\n", "  hour: {units: 9, seconds: 3600}\n"),
    )
    assert written.before["limit_minute"] == "7 units in 60 s"
    assert written.after["limit_minute"] == "300 units in 60 s"
    assert written.after["limit_hour"] == "9 units in 3600 s"
    assert "limit_day" in written.before
    assert "limit_day" not in written.after
    assert not core.one("SELECT is_active FROM pricing.data_collectors WHERE provider = 'shares'")


def test_f11_a_changed_path_is_told_too(core: Core) -> None:
    before, after = declare(core, FUNDS), declare(core, FUNDS, ("price: ", "price: other || "))
    told = {name: value for name, value in after.after.items() if after.before.get(name) != value}
    assert before.is_new
    assert list(told) == ["fetchers.nav.answer.price"]
    assert str(told["fetchers.nav.answer.price"]).startswith("other || ")


def test_b2_no_declaration_takes_the_name_or_the_host_of_another(core: Core) -> None:
    declare(core, SHARES)
    before = everything(core)
    for old, new, words in (
        ("name: funds", "name: mfapi", "mfapi is a provider already"),
        ("https://funds.example.com", "https://api.mfapi.in", "api.mfapi.in is asked by the provider mfapi"),
        ("https://funds.example.com", "https://API.MFAPI.IN:8443/x", "is asked by the provider mfapi"),
        ("https://funds.example.com", "https://shares.example.com", "is asked by the provider shares"),
    ):
        with pytest.raises(DeclarationRefused, match=re.escape(words)):
            declare(core, FUNDS, (old, new))
    assert everything(core) == before


def test_b2_a_stored_key_never_goes_to_another_host(core: Core, cli: CommandLine, tmp_path: Path) -> None:
    """Not by a new declaration, not by SQL on its row, not by another address in the provider's row."""
    declare(core, SHARES)
    assert cli("key", "set", "shares", stdin="canary-5ecret-0123456789", sandbox="false").exit_code == 0
    before = everything(core)
    with pytest.raises(DeclarationRefused, match=r"would go to evil\.example.*Nothing has changed"):
        declare(core, SHARES, ("https://shares.example.com/v2", "https://evil.example/v2"))
    with pytest.raises(DBAPIError, match="a key of shares is stored"):
        core.rows("UPDATE pricing.provider_declarations SET host = 'evil.example' WHERE provider = 'shares'")
    assert everything(core) == before
    declare(core, SHARES, ("https://shares.example.com/v2", "https://shares.example.com/v3"))
    # A base URL or a text that no declaration has written leads nowhere.
    core.rows("UPDATE pricing.data_collectors SET base_url = 'https://evil.example' WHERE provider = 'shares'")
    with core.engine.connect() as connection:
        service = known_providers(connection)["shares"]
    with client_of(Settings(home=tmp_path, sandbox=False), service, "https://evil.example", {}) or pytest.fail(
        "nobody"
    ) as client:
        assert client.base_url == "https://shares.example.com/v3"
    core.rows(
        "UPDATE pricing.provider_declarations SET content = replace(content, 'shares.example.com', 'evil.example')"
    )
    with core.engine.connect() as connection:
        assert "shares" not in known_providers(connection)


def move(core: Core, settings: Settings, key: str, **row: str) -> None:
    """Take the key of `shares` back, declare it at another host, and store the key of that host."""
    with core.owner.begin() as connection:
        credentials.remove(connection, "shares", "default")
        declarations.declare(connection, changed(SHARES, ("https://shares.", "https://moved.")))
        for column, value in row.items():
            connection.execute(text(f"UPDATE pricing.provider_declarations SET {column} = :v"), {"v": value})
        keyring, _ = master_keys.load_or_make(settings)
        credentials.store(connection, keyring, "shares", "default", SecretStr(key))


def test_b2_a_key_is_never_read_beside_the_host_of_another_declaration(
    core: Core, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Host and key change between two statements of a worker that begins."""
    declare(core, SHARES)
    assert cli("key", "set", "shares", stdin="old-5ecret-0123456789", sandbox="false").exit_code == 0
    settings, read = Settings(home=cli.home, sandbox=False), credentials.stored
    moved: list[bool] = []

    def stored(connection: Any, *only: str) -> Any:
        if not moved:
            moved.append(True)
            move(core, settings, "new-5ecret-0123456789")
        return read(connection, *only)

    monkeypatch.setattr(credentials, "stored", stored)
    with open_clients(settings, core.engine, look_seconds=3600) as clients:
        client = clients["shares"]
        assert client.base_url == "https://shares.example.com/v2"
        assert [key.get_secret_value() for key in client._keys.values()] == ["old-5ecret-0123456789"]


def test_b2_a_declaration_that_a_worker_cannot_follow_gives_no_key_to_the_older_host(
    core: Core, cli: CommandLine
) -> None:
    declare(core, SHARES)
    assert cli("key", "set", "shares", stdin="old-5ecret-0123456789", sandbox="false").exit_code == 0
    settings = Settings(home=cli.home, sandbox=False)
    with open_clients(settings, core.engine, look_seconds=0.05) as clients:
        client = clients["shares"]
        assert client.key_names == {"default"}
        move(core, settings, "new-5ecret-0123456789", content="of: a later version")
        wait_until(lambda: [key.get_secret_value() for key in client._keys.values()] != ["old-5ecret-0123456789"])
        assert not client._keys


def test_b2_only_the_owner_declares(core: Core) -> None:
    declare(core, FUNDS)
    for statement in (
        "INSERT INTO pricing.provider_declarations (provider, host, content) VALUES ('mfapi', 'x', 'x')",
        "UPDATE pricing.provider_declarations SET content = 'x'",
        "DELETE FROM pricing.provider_declarations",
    ):
        with core.engine.connect() as connection, pytest.raises(DBAPIError, match="permission denied"):
            connection.execute(text(statement))


def test_f11_undeclare_is_refused_while_it_is_used_and_takes_everything_with_it(core: Core, cli: CommandLine) -> None:
    before = everything(core)
    declare(core, FUNDS)
    with core.owner.begin() as connection:
        provider_rules.add_route(connection, "funds", NAV, "118632", 1)
    core.enqueue(NAV, "118632")
    told = cli("provider", "undeclare", "funds").error
    assert told.startswith("funds serves mf_nav. Take its routes away first")
    assert "route remove funds 118632 --type mf_nav" in told
    with pytest.raises(DeclarationRefused, match="funds serves mf_nav"):
        declare(
            core,
            FUNDS,
            ("  nav:\n", "  daily_bars:\n"),
            ("price: nav", "close: nav"),
            ("price: nav", "close: nav"),
        )
    with core.owner.begin() as connection:
        provider_rules.remove_route(connection, "funds", NAV, "118632")
    if core.one("SELECT count(*) FROM pricing.api_call_queue_live WHERE provider = 'funds'"):
        assert "still wait for funds" in cli("provider", "undeclare", "funds").error
        core.rows("DELETE FROM pricing.api_call_queue_live WHERE provider = 'funds'")
    assert cli("provider", "undeclare", "funds").exit_code == 0
    assert everything(core) == before
    for name in ("funds", "mfapi"):
        with (
            core.owner.begin() as connection,
            pytest.raises(UnknownProvider, match="is declared; none is"),
        ):
            declarations.undeclare(connection, name)


def test_f11_a_declaration_of_another_version_costs_no_other_provider(
    core: Core, caplog: pytest.LogCaptureFixture
) -> None:
    declare(core, FUNDS)
    declare(core, SHARES)
    core.rows("UPDATE pricing.provider_declarations SET content = 'nmae: funds' WHERE provider = 'funds'")
    with core.engine.connect() as connection:
        assert known_providers(connection).keys() == PROVIDERS.keys() | {"shares"}
    assert "declaration of funds:1: unknown key `nmae`; did you mean `name`?" in caplog.text


# --- end to end ---


# --- commands ---


def frankfurter(connection: Connection) -> None:
    """Answers in the shape of the public API."""
    target = connection.request.split(b" ")[1].decode()
    if "symbols=USD" not in target:
        connection.answer(b'{"message":"not found"}', "404 Not Found")
    elif ".." in target:
        connection.answer(
            b'{"amount":1.0,"base":"EUR","start_date":"2020-01-02","end_date":"2020-01-03",'
            b'"rates":{"2020-01-02":{"USD":1.1193},"2020-01-03":{"USD":1.1147}}}'
        )
    else:
        connection.answer(b'{"amount":1.0,"base":"EUR","date":"2020-01-03","rates":{"USD":1.11470}}')


def test_f11_try_shows_request_answer_and_what_would_be_stored_from_the_file_alone(cli: CommandLine) -> None:
    with ScriptedServer(frankfurter) as server:

        def tried(*words: str) -> object:
            return cli(
                "provider",
                "try",
                str(FRANKFURTER),
                *words,
                "--at",
                server.url,
                database_url="postgresql://nowhere",
            )

        said = tried("EUR/USD")
        assert said.exit_code == 0, said
        assert f"GET {server.url}/latest?base=EUR&symbols=USD" in said.stdout
        assert "HTTP 200" in said.stdout
        assert '"rates":{"USD":1.11470}' in said.stdout
        assert "1.11470" in said.stdout.partition("would be stored: 1 value")[2]
        span = tried("EUR/USD", "--from", "2020-01-01", "--to", "2020-01-31", "--json").json
        assert [(one["observed_at"][:10], one["price"], one["currency"]) for one in span["values"]] == [
            ("2020-01-02", "1.1193", "USD"),
            ("2020-01-03", "1.1147", "USD"),
        ]
        unknown = tried("EUR/XXX")
        assert unknown.exit_code == 1
        assert "knows no EUR/XXX" in unknown.stderr
        assert re.search(r"line [0-9]+ of its declaration", unknown.stderr)
    assert "has no symbols spelled like" in cli("provider", "try", str(FRANKFURTER), "AAPL").stderr


def paging(cli: CommandLine, server: PagedBars, *words: str, path: Path = PAGES, key: str = "demo5") -> Said:
    with serving(server):
        span = ("--from", FIRST.isoformat(), "--to", LAST.isoformat(), "--at", server.url)
        return cli("provider", "try", str(path), "AAPL", *span, *words, stdin=key)


def test_f11_try_shows_every_page_that_is_posted(cli: CommandLine) -> None:
    server = PagedBars()
    said = paging(cli, server)
    assert said.exit_code == 0, said
    assert said.stdout.count(f"POST {server.url}/bars/search") == 3
    assert '"tickers": ["AAPL"]' in said.stdout
    assert '"after": "x4"' in said.stdout
    shown = paging(cli, PagedBars(), "--json").json
    assert [one["method"] for one in shown["requests"]] == ["POST"] * 3
    assert len(shown["values"]) == 5


@pytest.mark.parametrize("key", ["demo5", "canary-5ecret-0123456789"])
def test_b2_try_shows_no_key_that_a_provider_names_as_the_place_of_its_next_page(cli: CommandLine, key: str) -> None:
    server = PagedBars(instead={1: lambda content: content | {"meta": {"next": key}}})
    said = paging(cli, server, key=key)
    assert "names a next page with its API key" in said.stderr
    assert key not in said.stdout + said.stderr


def test_f11_try_makes_no_more_requests_than_the_declared_limits_allow(cli: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "pages.yaml"
    path.write_text(PAGES.read_text().replace("units: 30", "units: 2"))
    server = PagedBars()
    said = paging(cli, server, path=path)
    assert "its declared limits allow 2 requests at once" in said.stderr
    assert len(server.asked) == 2


def test_f11_try_shows_nothing_that_steers_a_terminal(cli: CommandLine) -> None:
    def hostile(connection: Connection) -> None:
        connection.answer(b'{"base":"EUR","date":"2020-01-03","rates":{"USD":"\\u001b[2J\\u202e1"}}')

    with ScriptedServer(hostile) as server:
        said = cli("provider", "try", str(FRANKFURTER), "EUR/USD", "--at", server.url)
    assert said.exit_code == 1
    assert "would be refused: \\x1b[2J\\u202e1" in said.stdout
    assert not set("\x1b\u202e") & set(said.stdout + said.stderr)


def test_f11_declare_tells_the_lines_of_faults_and_what_comes_next(
    core: Core, cli: CommandLine, tmp_path: Path
) -> None:
    wrong = tmp_path / "rates.yaml"
    wrong.write_text(FRANKFURTER.read_text().replace("close: rates", "clse: rates"))
    assert re.fullmatch(
        rf"{re.escape(str(wrong))}:[0-9]+: unknown key `clse`; did you mean `close`\?",
        cli("provider", "declare", str(wrong)).error,
    )
    said = cli("provider", "declare", str(FRANKFURTER), sandbox="true")
    assert said.exit_code == 0, said
    assert "frankfurter is declared" in said.stdout
    assert "route add frankfurter" in said.stderr
    assert "the sandbox does not know frankfurter" in said.stderr
    assert "not asked while PRICING_SANDBOX is on" in cli("provider", "show", "frankfurter", sandbox="true").stdout
    assert "api.frankfurter.dev" in cli("provider", "show", "frankfurter", sandbox="false").stdout


def test_f11_each_page_of_a_declared_provider_is_a_call_of_its_own(core: Core) -> None:
    declare(core, PAGES)
    with core.owner.begin() as connection:
        provider_rules.add_route(connection, "example_pages", DAILY, "AAPL", 1)
    today = core.clock().date()
    days = Window(today - timedelta(days=34), today - timedelta(days=30))
    server = PagedBars(rows=bars(days.start, days.end))
    provider = DeclaredProvider(read_file(PAGES))
    with (
        serving(server),
        ProviderClient(provider, server.url, SecretStr("canary-5ecret-0123456789")) as client,
        Refresher(core.engine, {"example_pages": client}, worker="w") as refresher,
    ):
        refresher.backfill(refresher.plan_backfill(DAILY, days, ["AAPL"]))
    calls = core.rows(
        "SELECT call_id, page_of, units, outcome, wire_bytes FROM pricing.collector_call_log"
        " WHERE provider = 'example_pages' ORDER BY call_id"
    )
    assert [(call.page_of, call.units, call.outcome) for call in calls] == [
        (None, 1, "ok"),
        (calls[0].call_id, 1, "ok"),
        (calls[0].call_id, 1, "ok"),
    ]
    assert sum(call.wire_bytes for call in calls) == server.sent
    assert core.one("SELECT count(*) FROM pricing.price_history WHERE data_type = :t", t=DAILY) == 5
