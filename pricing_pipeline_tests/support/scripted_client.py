"""A real client before a server that answers by a script: what tests of its bounds and its secrets share."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import httpcore
import pytest
from pydantic import SecretStr

from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.errors import ProviderError
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.providers.transport import BoundedTransport
from pricing_pipeline_tests.fixtures.server import Script, ScriptedServer
from pricing_pipeline_tests.support.patience import PATIENCE

KEY = "canary-5ecret-key-0123456789"
NOW = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)
QUOTE = json.dumps(
    {
        "symbol": "AAPL",
        "currency": "USD",
        "exchange": "NASDAQ",
        "datetime": "2026-11-20",
        "timestamp": int(NOW.timestamp()),
        "close": "174.83000",
    }
).encode()
NAV = json.dumps(
    {
        "meta": {"scheme_code": 125497, "scheme_name": "SBI Small Cap Fund"},
        "data": [{"date": "19-11-2026", "nav": "186.70090"}],
        "status": "SUCCESS",
    }
).encode()


def twelvedata(
    url: str, *, key: str | None = KEY, deadline: float = PATIENCE, max_bytes: int = 1_000_000
) -> ProviderClient:
    secret = SecretStr(key) if key is not None else None
    return ProviderClient(PROVIDERS["twelvedata"], url, secret, deadline=deadline, max_bytes=max_bytes)


def refused(script: Script, kind: type[ProviderError], **limits: float | int) -> tuple[ProviderError, int]:
    """The error that a call to a server with this script ends in, and the bytes that the server sent."""
    with ScriptedServer(script) as server:
        with twelvedata(server.url, **limits) as client, pytest.raises(ProviderError) as caught:  # type: ignore[arg-type]
            client.fetch(Fetcher.QUOTE, ["AAPL"], now=NOW)
        assert type(caught.value) is kind
        return caught.value, server.sent


def read(transport: BoundedTransport, url: str) -> bytes:
    with transport.send(httpcore.URL(url), b"/", []) as answer:
        return answer.read()
