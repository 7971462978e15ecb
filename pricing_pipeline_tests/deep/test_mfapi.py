"""The longest list of mfapi.in."""

from __future__ import annotations

import gzip
import json

from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline_tests.fixtures.server import ScriptedServer
from pricing_pipeline_tests.unit.test_mfapi import NOW, PROVIDER, listed


def test_f1_a_list_of_forty_thousand_schemes_fits_into_one_call() -> None:
    """12 MB and more, by the bounds that every call has."""
    body = json.dumps([listed(code, schemeName="A name " * 12) for code in range(100_000, 140_000)]).encode()
    assert 12_000_000 < len(body) < 16_000_000
    with (
        ScriptedServer(lambda c: c.answer(gzip.compress(body, 1), Content_Encoding="gzip")) as server,
        ProviderClient(PROVIDER, server.url) as client,
    ):
        fetched = client.fetch(Fetcher.NAV, [str(code) for code in range(100_000, 105_000)], now=NOW)
        assert fetched.wire_bytes == server.sent
    assert len(fetched.answer.observations) == 5000
    assert fetched.answer.failures == ()
