"""Keys that can be told from all else are used by an `up` whose providers repeat them in every form.

Then the home, the folder in which it starts, the databases, a backup, all output and the arguments of processes are
searched for them. Files that are meant to hold secrets (MAY_HOLD) are left out. Each key has the mark in it, at both
ends, so that half of one still has it; passwords and master keys, which nobody chooses, are searched for as they are.
"""

from __future__ import annotations

import contextlib
import html
import json
import re
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg
from sqlalchemy import make_url

from pricing_pipeline.db import backup
from pricing_pipeline.db.embedded import EmbeddedServer
from pricing_pipeline_tests.fixtures.server import Connection, ScriptedServer
from pricing_pipeline_tests.fixtures.stack import GROUP, Stack, new_stack
from pricing_pipeline_tests.support.patience import PATIENCE

pytestmark = GROUP

MARK = "cAnArY5eCrEt7q"
DAILY, PROFILE, QUOTE = "equity_daily", "equity_profile", "equity_quote"
MAY_HOLD = {"master.key", "ui-token", "postgres.json", ".env"}
"""By name, in the home and in the folder in which it was started."""


def secret(name: str) -> str:
    return f"{MARK}/{name:-<9}+{MARK}"


TOKEN = secret("token")
ENVIRONMENT, DOTENV, FMP = secret("environ"), secret("dotenv"), secret("fmp")
STORED = {"default": secret("default"), "second": secret("second"), "third": secret("third")}
REPLACED = secret("replaced")

FORMS: dict[str, Callable[[str], bytes]] = {
    "plain": lambda key: key.encode(),
    "lower": lambda key: key.lower().encode(),
    "upper": lambda key: key.upper().encode(),
    "JSON of PHP": lambda key: key.replace("/", "\\/").encode(),
    "in a URL": lambda key: key.replace("/", "%2F").replace("+", "%2b").encode(),
    "in HTML": lambda key: html.escape(key).encode(),
}


def needles(core: str) -> set[bytes]:
    """How the core of a secret may be spelled, in lower case."""
    return {form(core).lower() for form in FORMS.values()}


class Hunt:
    """What was found where."""

    def __init__(self) -> None:
        self.needles = needles(MARK)
        self.found: list[str] = []
        self.places = 0

    def look(self, place: object, text: bytes | str) -> None:
        self.places += 1
        lowered = (text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text).lower()
        for needle in self.needles:
            if (at := lowered.find(needle)) >= 0:
                self.found.append(f"{place}: {lowered[max(0, at - 200) : at + 100]!r}")


# ── A provider that repeats the key ──────────────────────────────────────────────────────────────


def key_of(request: bytes) -> str:
    found = re.search(rb"(?im)^(?:authorization: apikey|apikey:) *(\S+)\r$", request)
    assert found is not None, request
    return found[1].decode()


def quote(**given: object) -> bytes:
    usual: dict[str, object] = {"symbol": "AAPL", "currency": "USD", "datetime": "2026-01-02", "close": "1.5"}
    return json.dumps(usual | {"timestamp": 1767300000} | given).encode()


def plain_head(status: str, more: bytes = b"") -> bytes:
    return f"HTTP/1.1 {status}\r\nConnection: close\r\n".encode() + more + b"\r\n"


PADDING = "x" * 5000
"""Makes a list long: then it is not looked through for every form before it is read."""


def answers(key: str) -> dict[str, bytes]:
    """Whole answers to a quote, by the symbol that is asked for."""
    forms = [form(key) for form in FORMS.values()]
    raw = b" ".join(forms)
    text = raw.decode("latin-1")
    headers = b"".join(b"X-Echo-%d: %s\r\n" % (n, form) for n, form in enumerate(forms) if b"\0" not in form)
    named = b"X-RateLimit-Note: " + key.encode() + b"\r\nRetry-After: " + key.encode() + b"\r\n"

    def error(code: int) -> bytes:
        return json.dumps({"status": "error", "code": code, "message": f"**symbol** {text}"}).encode()

    found = {
        "REASON": plain_head(f"500 {key}", headers + named) + raw,
        "REDIRECT": plain_head("302 Found", b"Location: http://127.0.0.1:9/?key=" + forms[5] + b"\r\n") + raw,
        "REFUSED": plain_head("400 Bad", headers) + error(400),
        "UNKNOWN": plain_head("404 No", named) + error(404),
        "PLAN": plain_head("403 No") + error(403),
        "LIMIT": plain_head("429 Slow", named) + error(429),
        "KEY": plain_head("401 No", named) + error(401),
        "PAGE": plain_head("503 No") + b"<html>" + raw,
        "STATUS": key.encode() + b" " + key.encode() + b"\r\n\r\n",
        "HEADER": b"HTTP/1.1 200 OK\r\n" + key.encode() + b" " + key.encode() + b"\r\n\r\n",
        "PACKED": plain_head("200 OK", b"Content-Encoding: " + key.encode() + b"\r\n"),
        "DRIFT": plain_head("200 OK") + json.dumps({key: key, "symbol": [text]}).encode(),
        "JUNK": plain_head("200 OK") + raw,
        "ABOUT": plain_head("200 OK") + quote(symbol=text),
        "MONEY": plain_head("200 OK") + quote(currency=key),
        "STAMP": plain_head("200 OK") + quote(symbol="STAMP", timestamp=None, datetime=text),
    }
    for n, form in enumerate(forms):
        one = form.decode("latin-1")
        found[f"CLOSE{n}"] = plain_head("200 OK", headers) + quote(symbol=f"CLOSE{n}", close=one, pad=PADDING)
        told = json.dumps({"status": "error", "code": 404, "message": f"**symbol** not found: {one}"})
        found[f"TOLD{n}"] = plain_head("404 No") + told.encode()
    return found


def bars(key: str) -> bytes:
    """A long list in which a part of each bar, or the close, is the key in some form."""
    forms = [form(key).decode("latin-1") for form in FORMS.values()]
    values = [
        {"datetime": f"2025-{n // 28 + 1:02}-{n % 28 + 1:02}", "open": form, "high": "1.5", "low": "1.5"}
        | {"close": form if n % 3 == 2 else "1.5"}
        for n, form in enumerate(forms * 6)
    ]
    meta = {"symbol": "BARS", "interval": "1day", "currency": "USD"}
    return json.dumps({"meta": meta, "values": values, "status": "ok"}).encode()


def profile(key: str) -> bytes:
    """A document, which is stored."""
    text = " ".join(FORMS[name](key).decode() for name in ("plain", "lower", "upper"))
    given = {"symbol": "DOCUMENT", "companyName": key, "currency": "USD", "exchange": "N"}
    return json.dumps([given | {"description": text, "website": f"https://x/?apikey={key}"}]).encode()


class Echo:
    """Answers with the key that it was asked with; remembers who asked what."""

    def __init__(self) -> None:
        self.asked: set[tuple[str, str]] = set()

    def __call__(self, c: Connection) -> None:
        key = key_of(c.request)
        target = c.request.split()[1].decode()
        symbol = httpx.URL(target).params["symbol"]
        if symbol == "BARS":
            c.send(plain_head("200 OK") + bars(key))
        elif symbol == "DOCUMENT":
            c.send(plain_head("200 OK") + profile(key))
        else:
            c.send(answers(key)[symbol])
        self.asked.add((key, symbol))
        raise OSError  # hang up


# ── The pipeline, and where it leaves bytes ──────────────────────────────────────────────────────


class Home:
    """A stack that is run in a folder with a file `.env`."""

    def __init__(self, stack: Stack, folder: Path, hunt: Hunt) -> None:
        self.stack, self.folder, self.hunt = stack, folder, hunt

    def start(self) -> None:
        self.stack.home.mkdir(mode=0o711)  # as `up` makes it: the cluster's user passes through
        token = self.stack.home / "ui-token"
        token.touch(mode=0o600)
        token.write_text(TOKEN)
        lines = (f"PRICING_FMP_API_KEY={FMP}", f"PRICING_TWELVEDATA_API_KEYS=fourth={DOTENV}")
        (self.folder / ".env").write_text("\n".join(lines))
        self.stack.start("sh", "-c", 'exec "$@" --no-demo', "sh", cwd=self.folder)
        self.stack.wait_until("the location", lambda: self.ask("{ repositoriesOrError { __typename } }"))

    def add_own_secrets(self) -> None:
        """The passwords and master keys that were made for this home are searched for, too."""
        made = list(json.loads((self.stack.home / "postgres.json").read_text())["passwords"].values())
        made += re.findall(r":(\S{40,})", (self.stack.home / "master.key").read_text())
        assert len(made) == 4 + 2  # roles, master keys
        for one in made:
            self.hunt.needles |= {one.lower().encode(), one.encode().hex().encode()}

    def run(self, *arguments: str, given: str | None = None, may_fail: bool = False) -> None:
        """A command in that folder; its output is searched."""
        done = subprocess.run(
            [sys.executable, "-m", "pricing_pipeline.cli", *arguments],
            env=self.stack.environment(),
            cwd=self.folder,
            capture_output=True,
            text=True,
            input=given,
            timeout=PATIENCE,
        )
        self.hunt.look(f"command {arguments}", done.stdout + done.stderr)
        assert done.returncode == 0 or may_fail, f"{arguments}: {done.stdout}{done.stderr}"

    def ask(self, query: str) -> dict[str, Any]:
        """A GraphQL answer, searched."""
        url = f"{self.stack.state()['urls']['dagster']}/graphql"
        headers = {"Authorization": f"Bearer {TOKEN}"}
        answer = httpx.post(url, json={"query": query}, headers=headers, timeout=PATIENCE, trust_env=False)
        self.hunt.look("GraphQL", answer.content)
        found: dict[str, Any] = answer.raise_for_status().json()
        assert "errors" not in found, found
        return found

    def connect(self, database: str) -> psycopg.Connection[Any]:
        url = make_url(EmbeddedServer(self.stack.home).url(database, "superuser"))
        return psycopg.connect(url.set(drivername="postgresql").render_as_string(hide_password=False), autocommit=True)

    def look_into_databases(self) -> None:
        """Every row of every table of every database as text, and what is packed in them unpacked."""
        with self.connect("postgres") as connection:
            connection.execute("CHECKPOINT")
            names = [row[0] for row in connection.execute("SELECT datname FROM pg_database WHERE datallowconn")]
        for name in names:
            with self.connect(name) as connection:
                tables = connection.execute(
                    "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname <> 'pg_catalog'"
                ).fetchall()
                for (table,) in tables:
                    for (row,) in connection.execute(f"SELECT t::text FROM {table} t".encode()):
                        self.hunt.look(f"{name} {table}", row)
        with self.connect("pricing") as connection:
            for (body,) in connection.execute("SELECT body FROM pricing.quarantined_bodies"):
                self.hunt.look("body of a quarantined value", zlib.decompress(body))
            self.hunt.look("sessions", str(connection.execute("SELECT * FROM pg_stat_activity").fetchall()))

    def look_into_files(self) -> None:
        """Every file of the home, of the cluster with its write-ahead log, and of the folder where `up` was started."""
        cluster = EmbeddedServer(self.stack.home).data_dir
        assert list(cluster.glob("pg_wal/0*"))
        home = self.stack.home
        for path in {*home.parent.rglob("*"), *cluster.rglob("*"), *self.folder.rglob("*")}:
            if not path.is_file() or path.is_symlink():
                continue
            if path.parent in (home, self.folder) and path.name in MAY_HOLD:
                continue
            self.hunt.look(path, path.read_bytes())

    def look_into_backup(self) -> None:
        path = self.folder / "prices.backup"
        self.run("db", "backup", str(path))
        self.hunt.look(path, path.read_bytes())
        version = backup._server_version(EmbeddedServer(self.stack.home).url("pricing", "superuser"))
        restore = backup._programs(version) / "pg_restore"
        text = subprocess.run([restore, "--file=-", path], capture_output=True, check=True).stdout
        assert b"quarantined_values" in text
        self.hunt.look("the backup as SQL", text)

    def clear_the_way(self) -> bool:
        """No refusal keeps a key or provider from being asked again at once."""
        self.stack.core.rows("UPDATE pricing.provider_keys SET blocked_until = NULL, throttles = 0")
        self.stack.core.rows(
            "UPDATE pricing.provider_state SET breaker = 'closed', breaker_until = NULL, probe_call = NULL,"
            " breaker_since = pricing.clock()"
        )
        self.stack.core.rows(
            "UPDATE pricing.api_call_queue_live SET run_after = pricing.clock() WHERE status = 'scheduled'"
        )
        return True


@contextlib.contextmanager
def watching_processes(hunt: Hunt) -> Iterator[None]:
    """Collect the arguments of all processes, again and again, and search them in the end."""
    over, seen = threading.Event(), set()

    def watch() -> None:
        while not over.wait(0.2):
            for process in psutil.process_iter():
                with contextlib.suppress(psutil.Error):
                    seen.add(tuple(process.cmdline()))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    hunt.look("arguments of processes", str(seen))


EVENTS = """
{ runsOrError(limit: 100) { ... on Runs { results { runId status runConfigYaml tags { key value }
    eventConnection { events { ... on MessageEvent { message } ... on ErrorEvent { error { message stack } } } } } } }
  assetsOrError { ... on AssetConnection { nodes { key { path }
    assetMaterializations { metadataEntries { label description ... on TextMetadataEntry { text }
      ... on MarkdownMetadataEntry { mdStr } ... on JsonMetadataEntry { jsonString } } } } } } }
"""

READS = (
    "status",
    "task list",
    "quarantine list",
    "key list",
    "type list",
    "instrument list",
    "price why CLOSE0",
    "price show CLOSE0",
    "price history BARS --type equity_daily --from 2025-01 --to 2025-12",
    "price gaps BARS",
    "price export BARS --type equity_daily --format ledger",
    "document show DOCUMENT --type equity_profile",
    "backfill list",
    "action list BARS",
)


def test_a4_no_secret_is_found_in_any_byte_that_is_left(tmp_path: Path) -> None:
    hunt, echo = Hunt(), Echo()
    with (
        ScriptedServer(echo) as server,
        new_stack(SANDBOX="false", TWELVEDATA_API_KEY=ENVIRONMENT) as stack,
        watching_processes(hunt),
    ):
        home = Home(stack, tmp_path, hunt)
        home.start()
        symbols = [*answers("x" * 40)]
        use(home, server, symbols)

        def is_asked(*keys: str) -> bool:
            home.clear_the_way()
            asked = echo.asked.copy()  # the server's threads add to it
            return {symbol for _, symbol in asked} >= {*symbols, "BARS", "DOCUMENT"} and {key for key, _ in asked} >= {
                *keys
            }

        stack.wait_until("all answers", lambda: is_asked(DOTENV, FMP, *STORED.values()))
        home.run("key", "rotate", "--new-master-key")
        home.run("key", "set", "twelvedata", "--name", "second", given=REPLACED)
        home.add_own_secrets()
        stack.watch(QUOTE, *symbols, user="bob")
        stack.core.rows("UPDATE pricing.demand SET due_at = pricing.clock(), failures = 0, backoff_until = NULL")
        stack.wait_until("the new key", lambda: is_asked(REPLACED))
        stack.wait_until(
            "quarantined values",
            # Of each form a quote and two bars; and the quotes of another symbol and another currency.
            lambda: stack.core.one("SELECT count(*) FROM pricing.quarantined_values") == 3 * len(FORMS) + 2,
        )
        look_around(home)
        stack.close()
        home.look_into_files()
    assert hunt.places > 1000
    assert hunt.found == [], f"{len(hunt.found)} places"


def use(home: Home, server: ScriptedServer, symbols: list[str]) -> None:
    """Store keys, name the server as both providers, and watch what it answers."""
    core = home.stack.core
    for name, key in STORED.items():
        home.run("key", "set", "twelvedata", "--name", name, given=key)
    core.rows(
        "UPDATE pricing.data_collectors SET base_url = :url, is_active = true WHERE provider IN ('twelvedata', 'fmp')",
        url=server.url,
    )
    core.lift_limits(batch_size=1)
    for data_type, fetcher in ((QUOTE, "quote"), (DAILY, "daily_bars"), (PROFILE, "profile")):
        home.run("type", "add", data_type, "--fetcher", fetcher, "--ttl", "1", "--asset-class", "equity")
    core.rows("DELETE FROM pricing.provider_routing WHERE provider NOT IN ('twelvedata', 'fmp')")
    home.stack.watch(QUOTE, *symbols)
    home.stack.watch(DAILY, "BARS")
    home.stack.watch(PROFILE, "DOCUMENT")


def look_around(home: Home) -> None:
    """Everything that tells something."""
    for command in READS:
        for more in ((), ("--json",)):
            home.run(*command.split(), *more, may_fail=True)  # what refuses tells something, too
    core = home.stack.core
    for row in core.rows("SELECT id FROM pricing.api_call_queue ORDER BY id LIMIT 5"):
        home.run("task", "show", str(row.id))
    for row in core.rows("SELECT value_id FROM pricing.quarantined_values ORDER BY value_id LIMIT 5"):
        home.run("quarantine", "show", str(row.value_id), "--body")
    home.ask(EVENTS)
    home.look_into_backup()
    home.look_into_databases()
