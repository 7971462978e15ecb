"""The sandbox as tests use it: `running_sandbox` over real HTTP, `Asked` in process without a server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import httpx

from pricing_pipeline.sandbox.calls import Reply
from pricing_pipeline.sandbox.server import create_app, listen, make_server
from pricing_pipeline.sandbox.service import Clock, Sandbox, system_clock
from pricing_pipeline.sandbox.settings import SandboxSettings
from pricing_pipeline_tests.support.loopback import NO_TLS
from pricing_pipeline_tests.support.patience import PATIENCE


class RunningSandbox:
    """A sandbox that listens on `url`. `sandbox` is the one inside, for what HTTP does not show."""

    def __init__(self, url: str, sandbox: Sandbox, client: httpx.Client) -> None:
        self.url = url
        self.twelvedata_url = f"{url}/twelvedata"
        self.mfapi_url = f"{url}/mfapi"
        self.yahoo_url = f"{url}/yahoo"
        self.fmp_url = f"{url}/fmp"
        self.octo_url = f"{url}/octo"
        self.headout_url = f"{url}/headout"
        self.uex_url = f"{url}/uex"
        self.key = sandbox.settings.key
        self.sandbox = sandbox
        self._client = client

    def calls(self, provider: str | None = None, *, since: int = 0, limit: int = 200_000) -> list[dict[str, Any]]:
        """The log, oldest call first."""
        params: dict[str, str | int] = {"provider": provider or "", "since": since, "limit": limit}
        calls: list[dict[str, Any]] = self._answer("GET", "calls", params=params)
        return calls

    def behave(self, kind: str, **fields: object) -> None:
        """Commit a fault from now on: see `pricing_pipeline.sandbox.faults.Behaviour`."""
        self._answer("POST", "behaviour", json={"kind": kind, **fields})

    def behave_well(self) -> None:
        """End all faults."""
        self._answer("DELETE", "behaviour")

    def change_slots(self, percent: int, *, seed: int = 0) -> None:
        """Change about so many percent of all slots: see `pricing_pipeline.sandbox.slots.SlotChange`."""
        self._answer("POST", "slots", json={"percent": percent, "seed": seed})

    def change_tour(self, number: int, **fields: object) -> None:
        """Change one tour: see `pricing_pipeline.sandbox.slots.TourChange`."""
        self._answer("POST", "tour", json={"number": number, **fields})

    def reset(self) -> None:
        """Forget calls, faults, changes and charges."""
        self._answer("POST", "reset")

    def _answer(self, method: str, path: str, **request: Any) -> Any:
        answer = self._client.request(method, f"{self.url}/_sandbox/{path}", **request)
        assert answer.status_code == 200, answer.text
        return answer.json()


@contextmanager
def running_sandbox(*, clock: Clock = system_clock, **settings: Any) -> Iterator[RunningSandbox]:
    """A sandbox on a free port in a thread of this process, stopped on leaving. Settings as SandboxSettings."""
    chosen = SandboxSettings(**{"port": 0, **settings})
    with listen(chosen) as sock, httpx.Client(timeout=PATIENCE, verify=NO_TLS) as client:
        app = create_app(chosen, clock)
        server = make_server(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, name="sandbox", daemon=True)
        thread.start()
        try:
            yield RunningSandbox(f"http://127.0.0.1:{sock.getsockname()[1]}", app.state.sandbox, client)
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
        assert not thread.is_alive(), "the sandbox did not stop"


class Asked:
    """A sandbox without a server, asked at a time that the test sets."""

    def __init__(self, now: datetime | None = None, **settings: Any) -> None:
        self.now = now or datetime(2026, 11, 18, 15, 30, 20, tzinfo=UTC)
        self.settings = SandboxSettings(**settings)
        self.sandbox = Sandbox(self.settings, lambda: self.now)

    def twelvedata(self, endpoint: str, *, headers: dict[str, str] | None = None, **params: str) -> Reply:
        """The reply with the headers the server would send. The key goes along unless `headers` are given."""
        if headers is None:
            params.setdefault("apikey", self.settings.key)
        return self.ask("twelvedata", endpoint, params, headers or {})

    def mfapi(self, endpoint: str, **params: str) -> Reply:
        return self.ask("mfapi", endpoint, params, {})

    def yahoo(self, endpoint: str, **params: str) -> Reply:
        return self.ask("yahoo", endpoint, params, {})

    def fmp(self, endpoint: str, *, headers: dict[str, str] | None = None, **params: str) -> Reply:
        """Likewise for FMP. `from_` asks for `from`."""
        params = {name.rstrip("_"): value for name, value in params.items()}
        return self.ask("fmp", endpoint, params, {"apikey": self.settings.key} if headers is None else headers)

    def bars(self, symbol: str, **params: str) -> list[dict[str, str]]:
        """Daily bars, oldest first; all that one page holds, unadjusted, unless told otherwise."""
        asked = {"interval": "1day", "order": "ASC", "outputsize": "5000", "adjust": "none"} | params
        reply = self.twelvedata("time_series", headers=None, symbol=symbol, **asked)
        values: list[dict[str, str]] = parsed(reply)["values"]
        return values

    def ask(
        self, name: str, endpoint: str, params: dict[str, str], headers: dict[str, str], method: str = "GET"
    ) -> Reply:
        """The reply of any provider, with the headers the server would send; a POST has its body in `params`."""
        provider = self.sandbox.providers[name]
        call = provider.read(endpoint, params, headers, self.now, method)
        charge = provider.charge(call)
        reply = provider.refusal(call, charge) or provider.answer(call)
        shown = {} if charge is None else provider.limit_headers(charge)
        return replace(reply, headers={**shown, **reply.headers})


def parsed(reply: Reply) -> Any:
    return json.loads(reply.body)
