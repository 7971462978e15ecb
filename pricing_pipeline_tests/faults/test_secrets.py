"""A password and a key that can be told from all else appear nowhere but where they are needed."""

from __future__ import annotations

import contextlib
import logging
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import psycopg
import pytest
import typer
from pydantic import SecretStr
from sqlalchemy import Engine, event, make_url

from pricing_pipeline.cli import app
from pricing_pipeline.db.engine import make_engine, masked
from pricing_pipeline.errors import CredentialError, PricingError
from pricing_pipeline.keys import credentials, master_keys
from pricing_pipeline.keys.clients import open_clients
from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline.settings import Settings
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import FX, QUOTE, Core
from pricing_pipeline_tests.fixtures.database import TestServer
from pricing_pipeline_tests.support.patience import wait_until
from pricing_pipeline_tests.support.refreshing import refreshing, work_until
from pricing_pipeline_tests.support.sandbox_server import running_sandbox

CANARY = "canary-5ecret-0123456789"
KEY = f"{CANARY}-key"

STORED = f"{CANARY}-stored"

FRANKFURTER = str(Path(__file__).parents[2] / "docs/examples/frankfurter.yaml")
TRADES = str(Path(__file__).parents[1] / "data/holdings/trading212.csv")
COMMANDS = {
    "subscription watch": ["AAPL", "--type", "no_such_type"],
    "subscription end": ["AAPL", "--type", QUOTE, "--user", "ann"],
    "subscription list": [],
    "holding list": [],
    "holding open": ["AAPL", "--type", QUOTE, "--user", "ann"],
    "holding import": [TRADES, "--user", "ann"],
    "holding close": ["AAPL", "--type", QUOTE, "--user", "ann"],
    "price show": ["AAPL"],
    "price why": ["AAPL"],
    "price history": ["AAPL", "--type", QUOTE],
    "price gaps": ["AAPL"],
    "price export": ["--type", QUOTE, "--format", "ledger"],
    "provider draft": ["http://127.0.0.1:9/latest"],
    "provider try": [FRANKFURTER, "EUR/USD", "--at", "http://127.0.0.1:9"],
    "provider undeclare": ["frankfurter"],
    "provider symbols": ["frankfurter"],
    "provider declare": [FRANKFURTER],
    "commodity routes": [],
    "commodity show": ["gold"],
    "commodity terminal": ["UEX:12"],
    "commodity list": [],
    "commodity sync": [],
    "product set-zone": ["TOUR-1", "Europe/London"],
    "product availability": ["TOUR-1"],
    "product show": ["TOUR-1"],
    "product list": [],
    "document show": ["AAPL", "--type", "company_profile"],
    "export list": [],
    "export run": [],
    "export move": ["--dry-run"],
    "backfill list": [],
    "calendar list": ["XNYS"],
    "calendar add-session": ["XNSE", "2026-11-08"],
    "calendar close-day": ["XNSE", "2026-11-09"],
    "calendar undo": ["XNSE", "2026-11-08"],
    "backfill show": ["00000000-0000-0000-0000-000000000000"],
    "backfill cancel": ["00000000-0000-0000-0000-000000000000"],
    "status": [],
    "task list": [],
    "task show": ["1"],
    "task retry": ["1"],
    "task forget": ["1"],
    "task cancel": ["1"],
    "alert list": [],
    "alert show": ["1"],
    "alert acknowledge": ["1"],
    "price-alert add": ["mailbox", "AAPL", "--type", "equity_quote", "--above", "1"],
    "price-alert list": [],
    "price-alert show": ["1"],
    "price-alert remove": ["1"],
    "alert silence": ["breaker_open", "--hours", "1"],
    "alert unsilence": ["breaker_open"],
    "list add": ["mine", "AAPL"],
    "list show": [],
    "list remove": ["mine"],
    "token add": ["web-shop", "--scope", "read", "--any-user"],
    "token list": [],
    "page": [],
    "token remove": ["web-shop"],
    "recipient add": ["ops", "webhook"],
    "recipient list": [],
    "recipient show": ["ops"],
    "recipient change": ["ops", "--address"],
    "notify log": [],
    "operation list": [],
    "operation show": ["1"],
    "operation status": [],
    "operation retry": ["--all-failed"],
    "operation cancel": ["1"],
    "operation-type list": [],
    "operation-type add": ["post", "--field", "to=string"],
    "operation-type show": ["post"],
    "operation-type change": ["post", "--max-attempts", "2"],
    "operation-type remove": ["post"],
    "recipient remove": ["ops"],
    "type list": [],
    "type add": ["crypto_quote", "--fetcher", "quote", "--ttl", "1"],
    "type show": [QUOTE],
    "type set-ttl": [QUOTE, "--ttl", "1"],
    "type change": ["crypto_quote", "--thin-after", "30"],
    "type refresh": ["mf_nav"],
    "type retire": ["crypto_quote"],
    "type revive": ["crypto_quote"],
    "provider list": [],
    "provider show": ["twelvedata"],
    "provider change": ["twelvedata", "--active"],
    "provider probe": ["twelvedata"],
    "provider use": ["twelvedata", "--plan", "free", "--no-check"],
    "provider undo": ["twelvedata"],
    "provider record": ["twelvedata", "AAPL", "--type", "no_such_type"],
    "route list": [],
    "route add": ["yahoo", "--type", "crypto_quote"],
    "route remove": ["yahoo", "--type", "crypto_quote"],
    "limit list": [],
    "limit set": ["twelvedata", "minute", "2000"],
    "limit remove": ["twelvedata", "day"],
    "limit set-caps": ["--pairs", "10000"],
    "instrument list": [],
    "instrument show": ["AAPL"],
    "instrument add": ["MSFT", "--asset-class", "equity"],
    "instrument change": ["AAPL", "--scale", "2"],
    "instrument find": ["vodafone"],
    "instrument spell": ["AAPL", "--at", "yahoo", "--as", "AAPL"],
    "instrument remove": ["NOPE"],
    "instrument merge": ["NOPE", "AAPL"],
    "instrument pause": ["AAPL"],
    "instrument resume": ["AAPL"],
    "action list": ["AAPL"],
    "action show": ["AAPL", "2020-08-31"],
    "action add": ["AAPL", "2020-08-31", "--split", "4:1"],
    "action remove": ["AAPL", "2020-08-31"],
    "quarantine list": [],
    "quarantine show": ["1"],
    "quarantine release": ["1"],
    "quarantine reject": ["1"],
    "key set": ["twelvedata"],
    "key list": [],
    "key change": ["twelvedata", "--unblock"],
    "key rotate": [],
    "key remove": ["twelvedata"],
    "db upgrade": [],
    "db url": [],
}
ANSWERED = "SELECT count(*) FROM pricing.collector_call_log WHERE 'IBM' = ANY (symbols) AND finished_at IS NOT NULL"
ELSEWHERE = {"up", "backfill start", "sandbox", "db backup", "db restore", "db psql", "notify test"}
"""These start processes or Dagster, or wait for one: tests of theirs look into what those write."""


def leaves() -> set[str]:
    found: set[str] = set()

    def walk(group: Any, path: tuple[str, ...]) -> None:
        for name, command in getattr(group, "commands", {}).items():
            walk(command, (*path, name))
            if not hasattr(command, "commands"):
                found.add(" ".join((*path, name)))

    walk(typer.main.get_command(app), ())
    return found


@pytest.fixture
def canaries(server: TestServer, database_url: str) -> Iterator[dict[str, str]]:
    """URLs of worker and owner whose passwords are canaries: roles of this test, members of ours."""
    names = {role: f"{role}_{uuid4().hex[:12]}" for role in ("worker", "owner")}
    here = make_url(server.admin_url).set(database=make_url(database_url).database)
    with psycopg.connect(here.render_as_string(hide_password=False), autocommit=True) as admin:
        for role, name in names.items():
            admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{CANARY}-{role}' IN ROLE pricing_{role}".encode())
        yield {
            role: make_url(database_url)
            .set(username=name, password=f"{CANARY}-{role}")
            .render_as_string(hide_password=False)
            for role, name in names.items()
        }
        for name in names.values():
            admin.execute(f"DROP ROLE {name}".encode())


@pytest.fixture
def line(canaries: dict[str, str], tmp_path: Path, caplog: pytest.LogCaptureFixture) -> CommandLine:
    caplog.set_level(logging.DEBUG)
    return CommandLine(canaries["worker"], canaries["owner"], tmp_path / "home")


def test_no_command_tells_a_secret(core: Core, line: CommandLine, caplog: pytest.LogCaptureFixture) -> None:
    assert COMMANDS.keys() | ELSEWHERE == leaves()
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh()
    for command, arguments in COMMANDS.items():
        for more in ([], ["--json"]):
            said = line(*command.split(), *arguments, *more, stdin=STORED, twelvedata_api_key=KEY, dagster_url="")
            assert CANARY not in said.stdout + said.stderr, command
            assert "canary" not in said.stdout + said.stderr, command
    assert "canary" not in caplog.text
    assert line("status", "--json").json["database"]["url"].count("***") == 1


@pytest.mark.parametrize(
    "broken",
    [
        "postgresql://ann:{canary}@127.0.0.1:9/pricing",
        "postgresql://ann@127.0.0.1:9/pricing?password={canary}",
        "postgresql://ann:{canary}@127.0.0.1:port/pricing",
        "mysql://ann:{canary}@127.0.0.1/pricing",
        "ann:{canary}@127.0.0.1",
        "postgresql://ann:{canary}@127.0.0.1:9/pricing?no_such_option=1",
    ],
)
def test_no_broken_address_tells_its_password(line: CommandLine, broken: str, caplog: pytest.LogCaptureFixture) -> None:
    url = broken.format(canary=CANARY)
    for command in ("status", "price show", "db upgrade", "type add"):
        for more in ([], ["--json"]):
            said = line(*command.split(), *COMMANDS[command], *more, database_url=url, owner_url=url, dagster_url=url)
            assert said.exit_code != 0
            assert CANARY not in said.stdout + said.stderr
    with pytest.raises(PricingError) as failed:
        make_engine(url).connect()
    assert CANARY not in "".join(traceback.format_exception(failed.value))
    assert "canary" not in caplog.text


def test_a_refused_password_is_not_repeated(canaries: dict[str, str], line: CommandLine) -> None:
    wrong = make_url(canaries["worker"]).set(password=f"{CANARY}-wrong").render_as_string(hide_password=False)
    said = line("price", "show", "AAPL", database_url=wrong)
    assert "password authentication failed" in said.error
    assert CANARY not in said.stderr


def test_settings_do_not_show_what_they_hold() -> None:
    settings = Settings(
        database_url=SecretStr(f"postgresql://a:{CANARY}@h/d"),
        owner_url=SecretStr(f"postgresql://a:{CANARY}@h/d"),
        dagster_url=SecretStr(f"postgresql://a:{CANARY}@h/d"),
        twelvedata_api_key=SecretStr(KEY),
    )
    shown = f"{settings!r} {settings} {settings.model_dump_json()} {settings.model_dump()}"
    assert CANARY not in shown + masked(f"postgresql://a:{CANARY}@h/d")
    engine = make_engine(f"postgresql://a:{CANARY}@h/d")
    assert CANARY not in f"{engine!r} {engine.url} {engine.pool!r}"


def told_by_the_database(core: Core) -> str:
    """Every row of every table of ours as text, the way a dump has them, bytes also as what they spell."""
    shown = []
    for row in core.rows(
        "SELECT relname FROM pg_class WHERE relnamespace = 'pricing'::regnamespace AND relkind IN ('r', 'p')"
    ):
        shown += [found.shown for found in core.rows(f"SELECT t::text AS shown FROM pricing.{row.relname} t")]
    shown += [
        found.shown
        for found in core.rows("SELECT encode(ciphertext, 'escape') AS shown FROM pricing.provider_credentials")
    ]
    return "\n".join(shown)


def test_a4_a_stored_key_is_seen_nowhere_from_its_setting_to_its_use(
    core: Core,
    canaries: dict[str, str],
    owner_url: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Set, used for good and for refused calls, rotated, removed: no row, session, log line, URL, exception or
    argument of a process has it; not the master key either."""
    caplog.set_level(logging.DEBUG)
    watched = make_engine(owner_url)
    activity: list[str] = []

    @event.listens_for(watched, "after_cursor_execute")
    def look(*arguments: Any) -> None:
        activity.extend(
            row.shown
            for row in core.rows("SELECT a::text AS shown FROM pg_stat_activity a WHERE datname = current_database()")
        )

    def put(secret: str) -> None:
        keyring, _ = master_keys.load_or_make(settings)
        with watched.begin() as connection:
            credentials.store(connection, keyring, "twelvedata", "default", SecretStr(secret))

    def is_done() -> bool:
        activity.extend(row.shown for row in core.rows("SELECT a::text AS shown FROM pg_stat_activity a"))
        processes.append(_arguments_of_all_processes())
        return {"pending", "processing"}.isdisjoint(core.statuses().values())

    processes: list[str] = []
    settings = Settings(home=tmp_path, sandbox=False)
    put(STORED)
    master = (tmp_path / "master.key").read_text().splitlines()[-1].partition(":")[2]
    engine = make_engine(canaries["worker"])
    with running_sandbox(key=CANARY) as sandbox:
        core.rows(
            "UPDATE pricing.data_collectors SET base_url = CAST(:url AS text) || '/' || provider",
            url=sandbox.url,
        )
        core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "NOPE1"))
        with (
            open_clients(settings, engine, look_seconds=0.05) as clients,
            Refresher(engine, clients, worker="w") as refresher,
        ):
            work_until(refresher, is_done)
            assert core.latest("AAPL") is not None
            put("canary-that-is-wrong-9876543210")
            wait_until(lambda: "canary-that" in clients["twelvedata"]._keys["default"].get_secret_value())
            core.heartbeat("ann", (QUOTE, "IBM"))
            work_until(refresher, lambda: core.one(ANSWERED) > 0)
            credentials.reseal(watched, master_keys.add(settings))
        calls = str(sandbox.calls())
    dump = told_by_the_database(core)
    broken = _broken(core, settings, engine)
    engine.dispose()
    watched.dispose()
    logs = "".join(
        log.read_text() for log in Path(str(make_url(owner_url).query["host"])).parent.rglob("postgresql.log")
    )
    places = {
        "dump": dump,
        "sessions": "\n".join(activity),
        "processes": "\n".join(processes),
        "calls": calls,
        "log": caplog.text,
        "output": "".join(capfd.readouterr()),
        "server's log": logs.replace(f"{CANARY}-worker", "").replace(f"{CANARY}-owner", ""),
        "exception": "".join(traceback.format_exception(broken)),
    }
    for place, text in places.items():
        for secret in (STORED, "canary-that-is-wrong", STORED.encode().hex(), master):
            assert secret not in text, place
    assert "pg_stat_activity" in places["sessions"], "sessions were really looked at"


def _broken(core: Core, settings: Settings, engine: Engine) -> Exception:
    """What is raised where a row does not open."""
    core.rows("UPDATE pricing.provider_credentials SET row_version = row_version + 100")
    with engine.connect() as connection:
        (row,) = credentials.stored(connection)
    with pytest.raises(CredentialError) as refused:
        master_keys.load(settings).open(row.sealed)
    return refused.value


def _arguments_of_all_processes() -> str:
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            found.append(" ".join(process.cmdline()))
    return "\n".join(found)


def test_a_drain_leaves_no_secret_behind(
    core: Core, canaries: dict[str, str], owner_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither in what it stores and logs, nor in what the server shows of sessions and writes to its log."""
    caplog.set_level(logging.DEBUG)
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "NOPE1"), (FX, "EUR/USD"))
    engine = make_engine(canaries["worker"])
    activity: list[str] = []

    def is_done() -> bool:
        activity.extend(row.shown for row in core.rows("SELECT a::text AS shown FROM pg_stat_activity a"))
        return "pending" not in core.statuses().values() and "processing" not in core.statuses().values()

    with running_sandbox(key=KEY) as sandbox:
        with refreshing(engine, sandbox.url, key=SecretStr(KEY)) as refresher:
            work_until(refresher, is_done)
            engine.dispose()
        assert core.latest("AAPL") is not None
        core.heartbeat("ann", (QUOTE, "IBM"))
        engine = make_engine(canaries["worker"])
        with refreshing(engine, sandbox.url, key=SecretStr(f"{KEY}-wrong")) as refresher:
            work_until(refresher, lambda: core.one(ANSWERED) > 0)
    engine.dispose()
    assert CANARY not in "\n".join(activity)
    assert "canary" not in caplog.text
    for row in core.rows(
        "SELECT relname FROM pg_class WHERE relnamespace = 'pricing'::regnamespace AND relkind IN ('r', 'p')"
    ):
        assert core.one(f"SELECT count(*) FROM pricing.{row.relname} t WHERE t::text LIKE '%canary%'") == 0
    folder = Path(str(make_url(owner_url).query["host"])).parent
    for log in folder.rglob("postgresql.log"):
        assert f"{CANARY}-worker" not in log.read_text()
