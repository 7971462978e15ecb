"""`backfill start` through Dagster where Dagster is not as it should be; with a real one it is in acceptance/."""

from __future__ import annotations

import json
import threading
from datetime import date
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Self

import pytest

from pricing_pipeline.demand.dagster_runs import Location, Webserver
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import PricingError
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import DAILY, Core
from pricing_pipeline_tests.support.sandbox_server import running_sandbox

FIRST, LAST = date(2013, 1, 10), date(2013, 2, 5)
WINTER = ["--from", FIRST.isoformat(), "--to", LAST.isoformat()]
PLACE = Location("__repository__", "pricing_pipeline", ("2000-01-01", "2013-02-01"), "refresh_prices")


class Answering:
    """Answers each POST with the next of these bodies, which are those of a real Dagster."""

    def __init__(self, *bodies: str) -> None:
        self.requests: list[bytes] = []
        left = list(bodies)
        requests = self.requests

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                requests.append(self.rfile.read(int(self.headers["Content-Length"])))
                body = left.pop(0).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            '{"data": {"launchRun": {"__typename": "PythonError", "message": "Error: no such partition\\n at x"}}}',
            "PythonError): Error: no such partition",
        ),
        (
            '{"data": {"launchRun": {"__typename": "RunConfigValidationInvalid",'
            ' "errors": [{"message": "one"}, {"message": "two"}]}}}',
            "one; two",
        ),
        ('{"data": {"launchRun": {"__typename": "RunConflict"}}}', "it gives no reason"),
        ('{"errors": [{"message": "Cannot query field"}]}', "Cannot query field"),
        ("<html>a proxy</html>", "does not answer"),
        ("[]", "does not answer as expected"),
    ],
)
def test_a_run_that_is_refused_is_said_in_one_sentence(body: str, words: str) -> None:
    with (
        Answering(body) as server,
        Webserver(server.url) as webserver,
        pytest.raises(PricingError) as caught,
    ):
        webserver.launch(PLACE, DAILY, Window(FIRST, LAST), ["AAPL"])
    assert words in str(caught.value)
    assert server.url in str(caught.value)
    assert "\n" not in str(caught.value)


FOUND = (
    '{"data": {"assetNodeOrError": {"__typename": "AssetNode", "partitionKeys": ["2000-01-01", "2013-02-01"],'
    ' "opName": "refresh_prices", "repository": {"name": "r", "location": {"name": "l"}}}}}'
)
LAUNCHED = '{"data": {"launchRun": {"__typename": "LaunchRunSuccess", "run": {"runId": "0b5e"}}}}'


def status(value: str) -> str:
    return f'{{"data": {{"runOrError": {{"__typename": "Run", "status": "{value}"}}}}}}'


def failure(*messages: str) -> str:
    events: list[dict[str, Any]] = [{}, *({"error": {"message": message}} for message in messages), {}]
    return json.dumps({"data": {"logsForRun": {"events": events}}})


@pytest.mark.parametrize(
    ("logs", "sentence"),
    [
        (
            failure("dagster._core.definitions.events.Failure: the backfill needs 5 bytes, but 0 are left.\n"),
            "the backfill needs 5 bytes, but 0 are left.",
        ),
        (failure(), "the run ended as FAILURE before anything was planned: {url}/runs/0b5e"),
        ("no JSON", "the run ended as FAILURE before anything was planned: {url}/runs/0b5e"),
    ],
)
def test_b10_a_run_that_dies_before_it_has_planned_is_told_with_its_reason(
    cli: CommandLine, core: Core, logs: str, sentence: str
) -> None:
    with (
        Answering(FOUND, LAUNCHED, status("QUEUED"), status("FAILURE"), logs) as server,
        cli.running(urls={"dagster": server.url}),
    ):
        said = cli("backfill", "start", "--type", DAILY, *WINTER, "--json")
        plain = sentence.format(url=server.url)
    assert said.exit_code == 1
    assert said.json["backfill_id"] is None
    assert said.json["run_status"] == "FAILURE"
    assert said.stderr == f"error: {plain}\n"


def test_a_run_that_dies_with_tasks_left_is_told(cli: CommandLine, core: Core) -> None:
    plan: dict[str, Any] = {"type": DAILY, "first": FIRST, "last": LAST, "run": "0b5e"}
    core.rows("SELECT pricing.plan_backfill(:type, :first, :last, NULL, :run)", **plan)
    with (
        Answering(FOUND, LAUNCHED, status("CANCELED")) as server,
        cli.running(urls={"dagster": server.url}),
    ):
        said = cli("backfill", "start", "--type", DAILY, *WINTER)
    assert said.exit_code == 1
    assert "the run ended as CANCELED with 5 of 5 tasks still queued" in said.stderr


def test_g6_a_backfill_that_was_cancelled_meanwhile_is_told_as_that(cli: CommandLine, core: Core) -> None:
    """Nothing of it failed, and `task list --status failed` would show nothing."""
    core.rows("UPDATE pricing.provider_capabilities SET window_batch_size = 1")
    plan: dict[str, Any] = {"type": DAILY, "first": FIRST, "last": LAST, "run": "0b5e"}
    (planned,) = core.rows("SELECT * FROM pricing.plan_backfill(:type, :first, :last, NULL, :run)", **plan)
    core.complete(core.claim_one())
    core.call("SELECT pricing.cancel_backfill(:id)", id=planned.backfill_id)
    answers = (FOUND, LAUNCHED, status("FAILURE"))
    with Answering(*answers) as server, cli.running(urls={"dagster": server.url}):
        said = cli("backfill", "start", "--type", DAILY, *WINTER)
    assert said.exit_code == 1
    assert said.stderr == (
        "error: it was cancelled: 4 of 5 tasks are left out. What is stored stays,"
        " and the same command goes on from there.\n"
    )
    assert "1 of 5 tasks done" in said.stdout
    with Answering(*answers) as server, cli.running(urls={"dagster": server.url}):
        told = cli("backfill", "start", "--type", DAILY, *WINTER, "--json").json
    assert (told["tasks"], told["failed"], told["cancelled"], told["failures"]) == (5, 0, 4, [])


def test_days_before_the_first_partition_are_fetched_here(cli: CommandLine, core: Core) -> None:
    core.rows("UPDATE pricing.data_type_registry SET history_from = '1990-01-01' WHERE data_type = :t", t=DAILY)
    with (
        running_sandbox() as sandbox,
        Answering(FOUND) as server,
        cli.running(urls={"dagster": server.url, "sandbox": sandbox.url}),
    ):
        said = cli(
            "backfill",
            "start",
            "AAPL",
            "--type",
            DAILY,
            "--from",
            "1999-12-20",
            "--to",
            "2000-01-05",
            "--json",
        )
    assert said.exit_code == 0
    assert said.json["from"] == "1999-12-20"
    assert said.stderr == ("warning: Dagster's partitions begin on 2000-01-01; the backfill runs in this process.\n")


def test_a_type_that_dagster_has_not_loaded_yet_is_fetched_here(cli: CommandLine, core: Core) -> None:
    core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, fetcher, default_ttl_minutes, history_from)"
        " VALUES ('share_daily', 'daily_bars', 1440, '1990-01-01')"
    )
    with (
        running_sandbox() as sandbox,
        Answering('{"data": {"assetNodeOrError": {"__typename": "AssetNotFoundError"}}}') as server,
        cli.running(urls={"dagster": server.url, "sandbox": sandbox.url}),
    ):
        said = cli("backfill", "start", "AAPL", "--type", "share_daily", *WINTER, "--json")
        calls = len(sandbox.calls("twelvedata"))
    assert (said.exit_code, said.json["run_id"], calls) == (0, None, 1)
    assert "has no asset price_history/share_daily yet; the backfill runs in this process" in said.stderr
