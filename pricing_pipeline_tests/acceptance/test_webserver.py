"""The Dagster UI behind our guard, as a process: attacks by programs and by pages in Chromium, and ordinary use.

Which requests pass is tried one by one in unit/web_guard/.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from playwright.sync_api import BrowserContext, expect, sync_playwright

from pricing_pipeline.demand.dagster_runs import Webserver
from pricing_pipeline.errors import SettingsError
from pricing_pipeline.processes.ports import require_free_port
from pricing_pipeline_tests.support import chromium
from pricing_pipeline_tests.support.chromium import CHROMIUM, needs_chromium
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until

# Those that share a server run in one process.
pytestmark = pytest.mark.xdist_group("webserver")

ROOT = Path(__file__).parents[2]
# A name that was made to point here.
FLAGS = (*chromium.FLAGS, "--host-resolver-rules=MAP evil.example 127.0.0.1")
TOKEN = "0123456789abcdef-a-token"
CODE = """
import dagster as dg

@dg.asset
def thing() -> None: ...

definitions = dg.Definitions(assets=[thing])
"""
INSTANCE = """
telemetry:
  enabled: false
nux:
  enabled: false
run_coordinator:  # no daemon is there to take runs from a queue
  module: dagster.core.run_coordinator
  class: DefaultRunCoordinator
"""
REPORT = """mutation {
  reportRunlessAssetEvents(eventParams: {eventType: ASSET_MATERIALIZATION, assetKey: {path: ["thing"]}}) {
    __typename
  }
}"""
BY_ADDRESS = f"graphql?{urlencode({'query': REPORT})}"
EVENTS = '{ assetOrError(assetKey: {path: ["thing"]}) { ... on Asset { assetMaterializations { timestamp } } } }'
LAUNCH = """
mutation Launch($params: ExecutionParams!) {
  launchRun(executionParams: $params) { __typename ... on LaunchRunSuccess { run { runId } } }
}
"""
PLACE = "{ repositoriesOrError { ... on RepositoryConnection { nodes { name location { name } } } } }"
STATUS = "query Status($run: ID!) { runOrError(runId: $run) { ... on Run { status } } }"


class UI:
    """A webserver that runs, and a user's program that asks it."""

    def __init__(self, port: int, token: str | None) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.http = httpx.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=PATIENCE,
            trust_env=False,
        )

    def answers(self) -> bool:
        try:
            return self.http.get("/server_info").is_success
        except httpx.TransportError:
            return False

    def graphql(self, query: str, **variables: Any) -> Any:
        answer = self.http.post("/graphql", json={"query": query, "variables": variables})
        return answer.raise_for_status().json()["data"]

    def events(self) -> int:
        """How often the asset was materialized, or is said to have been."""
        return len(self.graphql(EVENTS)["assetOrError"].get("assetMaterializations", ()))

    def run(self) -> str:
        """Run the asset to a good end."""
        (place,) = self.graphql(PLACE)["repositoriesOrError"]["nodes"]
        selector = {
            "repositoryName": place["name"],
            "repositoryLocationName": place["location"]["name"],
            "jobName": "__ASSET_JOB",
        }
        launched = self.graphql(LAUNCH, params={"selector": selector, "mode": "default"})["launchRun"]
        assert launched["__typename"] == "LaunchRunSuccess"
        run: str = launched["run"]["runId"]
        ended = ("SUCCESS", "FAILURE")
        wait_until(lambda: self._status(run) in ended)
        assert self._status(run) == "SUCCESS"
        return run

    def _status(self, run: str) -> str:
        found: str = self.graphql(STATUS, run=run)["runOrError"]["status"]
        return found


@contextmanager
def running(folder: Path, *, token: str | None = None, **settings: str) -> Iterator[UI]:
    """A webserver in an instance of its own; `settings` are variables without their prefix."""
    port = require_free_port(0, "the UI", "the port")
    with subprocess.Popen(
        command(folder),
        env=environment(folder, WEB_PORT=str(port), **settings),
        start_new_session=True,
        cwd=folder,
    ) as process:
        ui = UI(port, token)
        try:
            wait_until(lambda: ui.answers() or process.poll() is not None)
            assert process.poll() is None
            yield ui
        finally:
            ui.http.close()
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(PATIENCE)
            finally:
                with_all(process.pid, signal.SIGKILL)


def with_all(group: int, number: signal.Signals) -> None:
    """Send a signal to what is left of a process group."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return


def command(folder: Path) -> list[str]:
    """How the server is started without `up`, in a folder with a workspace and an empty instance."""
    instance = folder / "instance"
    if not instance.exists():
        instance.mkdir()
        (instance / "dagster.yaml").write_text(INSTANCE)
        (folder / "of_one_asset.py").write_text(CODE)
        (folder / "workspace.yaml").write_text("load_from:\n  - python_file: of_one_asset.py\n")
    return [sys.executable, "-m", "pricing_pipeline.defs.webserver", "workspace.yaml"]


def environment(folder: Path, **settings: str) -> dict[str, str]:
    others = {name: value for name, value in os.environ.items() if not name.startswith(("PRICING_", "DAGSTER_"))}
    ours = {f"PRICING_{name}": value for name, value in settings.items()}
    return {
        **others,
        "PYTHONPATH": str(ROOT),
        "DAGSTER_HOME": str(folder / "instance"),
        "PRICING_HOME": str(folder / "home"),
        **ours,
    }


@pytest.fixture(scope="module")
def ui(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UI]:
    """As it is by default: on loopback, without a login."""
    with running(tmp_path_factory.mktemp("ui")) as ui:
        yield ui


@pytest.fixture(scope="module")
def locked_ui(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UI]:
    """One with a token, in a file of its home."""
    folder = tmp_path_factory.mktemp("locked")
    (folder / "home").mkdir()
    file = folder / "home/ui-token"
    file.write_text(TOKEN)
    file.chmod(0o600)
    with running(folder, token=TOKEN) as ui:
        yield ui


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[BrowserContext]:
    """A browser whose profile is new and empty."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch_persistent_context(
            tmp_path / "profile",
            executable_path=CHROMIUM,
            args=FLAGS,
            viewport={"width": 1500, "height": 950},
        )
        browser.set_default_timeout(PATIENCE * 1000)
        expect.set_options(timeout=PATIENCE * 1000)
        yield browser
        browser.close()


# ── Attacks ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("method", "path", "request_parts", "status"),
    [
        ("GET", BY_ADDRESS, {}, 405),
        ("GET", BY_ADDRESS.replace("?", "%0A?"), {}, 405),
        ("POST", BY_ADDRESS, {}, 415),
        ("POST", BY_ADDRESS, {"data": {"a": "b"}}, 415),
        ("POST", "graphql", {"content": "{}", "headers": {"Content-Type": "text/plain"}}, 415),
        ("POST", "report_asset_materialization/thing", {}, 415),
        ("POST", "report_asset_materialization/?asset_key=thing", {"data": {}}, 415),
        ("POST", "report_asset_check/thing?check_name=c&passed=true", {}, 415),
        ("POST", "report_asset_observation/thing", {}, 415),
        ("POST", "graphql", {"json": {"query": REPORT}, "headers": {"Host": "evil.example"}}, 421),
        ("POST", "graphql", {"json": {"query": REPORT}, "headers": {"Origin": "http://evil.example"}}, 403),
        ("POST", "graphql", {"json": {"query": REPORT}, "headers": {"Origin": "null"}}, 403),
    ],
)
def test_what_a_page_can_make_a_browser_send_changes_nothing(
    ui: UI, method: str, path: str, request_parts: dict[str, Any], status: int
) -> None:
    before = ui.events()
    assert ui.http.request(method, f"/{path}", **request_parts).status_code == status
    assert ui.events() == before


ATTACKS = """
async ([ui, byAddress, mutation]) => {
  const said = {};
  const asked = (name, path, options) =>
    fetch(`${ui}/${path}`, options).then(() => said[name] = 'sent', () => said[name] = 'blocked');
  const socket = (name, url) => new Promise((done) => {
    const opened = new WebSocket(url, 'graphql-ws');
    opened.onopen = () => done(said[name] = 'open');
    opened.onerror = () => done(said[name] = 'refused');
  });
  const loaded = (element) => new Promise((done) => { element.onload = element.onerror = done; });
  for (const kind of ['application/x-www-form-urlencoded', 'text/plain', 'multipart/form-data']) {
    const frame = document.createElement('iframe');
    frame.name = kind;
    document.body.appendChild(frame);
    const form = document.body.appendChild(document.createElement('form'));
    Object.assign(form, {method: 'post', enctype: kind, action: `${ui}/${byAddress}`, target: kind});
    const done = loaded(frame);
    form.submit();
    await done;
  }
  const image = new Image();
  const seen = loaded(image);
  image.src = `${ui}/${byAddress}`;
  await seen;
  const json = JSON.stringify({query: mutation});
  await asked('text', 'graphql', {method: 'POST', mode: 'no-cors', body: json});
  await asked('json', 'graphql', {method: 'POST', body: json, headers: {'Content-Type': 'application/json'}});
  await asked('report', 'report_asset_materialization/thing', {method: 'POST', mode: 'no-cors'});
  await asked('read', 'server_info', {});
  navigator.sendBeacon(`${ui}/${byAddress}`);
  await socket('socket', `${ui.replace('http', 'ws')}/graphql`);
  return said;
}
"""


@contextmanager
def foreign_page() -> Iterator[int]:
    """The port of a web server of a stranger."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>a page</title><body>")

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@needs_chromium
@pytest.mark.parametrize("name", ["evil.example", "127.0.0.1", "localhost"])
def test_a_foreign_page_neither_reads_nor_changes_anything(ui: UI, browser: BrowserContext, name: str) -> None:
    """Also one from this machine: another account may serve pages at another port."""
    before = ui.events()
    page = browser.new_page()
    with foreign_page() as port:
        page.goto(f"http://{name}:{port}/")
        said = page.evaluate(ATTACKS, [ui.url, BY_ADDRESS, REPORT])
    assert said["socket"] == "refused"
    assert (said["json"], said["read"]) == ("blocked", "blocked")
    assert ui.events() == before


@needs_chromium
def test_a_name_that_was_made_to_point_here_reads_nothing(ui: UI, browser: BrowserContext) -> None:
    """DNS rebinding: for the browser this is the stranger's own server."""
    page = browser.new_page()
    answer = page.goto(f"http://evil.example:{ui.port}/server_info")
    assert answer is not None
    assert answer.status == 421
    before = ui.events()
    said = page.evaluate(ATTACKS, [f"http://evil.example:{ui.port}", BY_ADDRESS, REPORT])
    assert said["socket"] == "refused"
    assert ui.events() == before


@pytest.mark.parametrize("begin", [b"GET / HTTP/1.1\r\nHost: x\r\nX: ", b"GET /"], ids=["header", "address"])
def test_a_head_without_end_is_cut_off_before_it_fills_the_memory(locked_ui: UI, begin: bytes) -> None:
    """It is read before anybody asks for the token."""
    with (
        socket.create_connection(("127.0.0.1", locked_ui.port), timeout=PATIENCE) as sent,
        pytest.raises((BrokenPipeError, ConnectionResetError)),
    ):
        sent.sendall(begin + b"a" * 64_000_000)
    assert locked_ui.answers()


def test_localhost_is_nobody_elses_on_the_other_kind_of_ip(locked_ui: UI) -> None:
    """A browser that logs in at http://localhost tries [::1] first, and would send the cookie to anyone who listens."""
    with socket.socket(socket.AF_INET6) as thief:
        thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with pytest.raises(OSError, match=r"Address already in use|Cannot assign"):
            thief.bind(("::1", locked_ui.port))


# ── Ordinary use ─────────────────────────────────────────────────────────────────────────────────

SUBSCRIBE = """
(run) => new Promise((done, failed) => {
  const socket = new WebSocket(`ws://${location.host}/graphql`, 'graphql-ws');
  const query = `subscription { pipelineRunLogs(runId: "${run}") { __typename } }`;
  socket.onerror = () => failed('refused');
  socket.onopen = () => {
    socket.send(JSON.stringify({type: 'connection_init'}));
    socket.send(JSON.stringify({type: 'start', id: '1', payload: {query}}));
  };
  socket.onmessage = (event) => {
    const message = JSON.parse(event.data);
    if (message.type === 'data') done(message.payload.data.pipelineRunLogs.__typename);
  };
})
"""
SUBSCRIBED = "PipelineRunLogsSubscriptionSuccess"


def test_a_program_on_this_machine_launches_a_run_without_a_login(ui: UI) -> None:
    before = ui.events()
    ui.run()
    assert ui.events() == before + 1
    report = ui.http.post("/report_asset_materialization/thing", json={"description": "by hand"})
    assert (report.status_code, ui.events()) == (200, before + 2)


@needs_chromium
def test_pages_load_and_subscribe_without_a_login(ui: UI, browser: BrowserContext) -> None:
    run = ui.run()
    for name in ("127.0.0.1", "localhost"):
        page = browser.new_page()
        page.goto(f"http://{name}:{ui.port}/assets/thing")
        expect(page.get_by_role("button", name="Materialize").first).to_be_visible()
        assert page.evaluate(SUBSCRIBE, run) == SUBSCRIBED


@needs_chromium
def test_a_person_logs_in_by_the_token_and_uses_the_ui(locked_ui: UI, browser: BrowserContext) -> None:
    page = browser.new_page()
    page.goto(f"{locked_ui.url}/assets/thing")
    page.get_by_label("Token").fill("a wrong one")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_text("This is not the token.")).to_be_visible()
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(lambda url: not url.endswith("/login"))
    page.goto(f"{locked_ui.url}/assets/thing")
    expect(page.get_by_role("button", name="Materialize").first).to_be_visible()
    assert page.evaluate(SUBSCRIBE, locked_ui.run()) == SUBSCRIBED
    (cookie,) = browser.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["secure"]) == (True, "Strict", False)
    before = locked_ui.events()
    with foreign_page() as port:  # the same site for the browser, which sends the cookie
        stranger = browser.new_page()
        stranger.goto(f"http://127.0.0.1:{port}/")
        said = stranger.evaluate(ATTACKS, [locked_ui.url, BY_ADDRESS, REPORT])
    assert said["socket"] == "refused"
    assert locked_ui.events() == before


def test_where_a_token_is_set_nothing_is_had_without_it(locked_ui: UI) -> None:
    with httpx.Client(base_url=locked_ui.url, trust_env=False, timeout=PATIENCE) as stranger:
        for path in ("/", "/graphql", "/server_info", "/logs/a", "/download_debug/a", "/static/none.js"):
            assert stranger.get(path).status_code == 401, path
        assert stranger.post("/graphql", json={"query": EVENTS}).status_code == 401
        wrong = {"Authorization": "Bearer wrong"}
        assert stranger.post("/graphql", json={"query": EVENTS}, headers=wrong).status_code == 401
        proxied = stranger.post("/login", data={"token": TOKEN}, headers={"X-Forwarded-Proto": "https"})
    assert "; Secure" in proxied.headers["set-cookie"]


def test_the_command_line_sends_the_token_and_says_when_it_is_wrong(locked_ui: UI) -> None:
    with Webserver(locked_ui.url, TOKEN) as webserver:
        assert webserver.find("none") is None
    for token in (None, "a wrong one"):
        with (
            Webserver(locked_ui.url, token) as webserver,
            pytest.raises(SettingsError, match="Set PRICING_UI_TOKEN"),
        ):
            webserver.find("none")


def test_behind_a_proxy_that_passes_on_host_and_scheme_the_ui_has_another_name(tmp_path: Path) -> None:
    page = {"Host": "prices.example.com", "Origin": "https://prices.example.com"}
    with running(tmp_path, token=TOKEN, UI_HOSTS="prices.example.com", UI_TOKEN=TOKEN) as ui:

        def asked(**headers: str) -> int:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return ui.http.post("/graphql", json={"query": EVENTS}, headers={**page, **named}).status_code

        assert asked(X_Forwarded_Proto="https") == 200
        assert asked() == 403
        assert asked(X_Forwarded_Proto="https", Host="other.example.com") == 421


def test_an_address_that_others_reach_is_refused_without_a_token(tmp_path: Path) -> None:
    done = subprocess.run(
        command(tmp_path),
        env=environment(tmp_path, UI_ADDRESS="0.0.0.0", WEB_PORT="0"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 1
    assert done.stderr.strip().startswith("error: PRICING_UI_ADDRESS=0.0.0.0 opens the Dagster UI")
