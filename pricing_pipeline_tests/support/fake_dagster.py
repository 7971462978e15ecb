"""A webserver that answers GraphQL as Dagster does for one location: each run that is started stays queued."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pricing_pipeline_tests.support.patience import PATIENCE

RUN = "0b5e2f7a-8a0f-4a51-9a5b-1d2e3f405162"


class FakeDagster:
    """At `url`; `launched` are the parameters of the runs that were started, `statuses` those of runs by id."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.found: list[dict[str, Any]] = []
        """The keys of assets that were asked for."""
        self.launched: list[dict[str, Any]] = []
        self.statuses: dict[str, str] = {}
        self.failure: str | None = None
        self.authorizations: list[str | None] = []
        self.answers = threading.Event()
        """While it is not set, the webserver hangs."""
        self.answers.set()

    def data(self, query: str, variables: dict[str, Any]) -> dict[str, Any]:
        """What a query brings."""
        if "assetNodeOrError" in query:
            self.found.append(variables["asset"])
            repository = {"name": "r", "location": {"name": "l"}}
            node = {
                "partitionKeys": ["2000-01-01", "2100-01-01"],
                "opName": "refresh_prices",
                "repository": repository,
            }
            return {"assetNodeOrError": {"__typename": "AssetNode", **node}}
        if "launchRun" in query:
            self.launched.append(variables["params"])
            self.statuses[RUN] = "QUEUED"
            return {"launchRun": {"__typename": "LaunchRunSuccess", "run": {"runId": RUN}}}
        if "runOrError" in query:
            status = self.statuses.get(variables["run"])
            return {"runOrError": {"__typename": "Run", "status": status} if status else {"__typename": "RunNotFound"}}
        events = [] if self.failure is None else [{"error": {"message": self.failure}}]
        return {"logsForRun": {"events": events}}


@contextmanager
def fake_dagster() -> Iterator[FakeDagster]:
    """A running one, stopped on leaving."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            dagster.authorizations.append(self.headers["Authorization"])
            dagster.answers.wait(PATIENCE)
            body = json.dumps({"data": dagster.data(asked["query"], asked["variables"])}).encode()
            with suppress(ConnectionError):  # anyone who asked may have given up
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    dagster = FakeDagster(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield dagster
    finally:
        dagster.answers.set()
        server.shutdown()
        thread.join()
        server.server_close()
