"""B27: a stream does not go on in another database, such as one that a backup was restored to."""

from __future__ import annotations

from pathlib import Path

import pytest

from pricing_pipeline.db import backup
from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.integration.test_api_stream import AAPL, ann, quick
from pricing_pipeline_tests.support.api_server import Caller
from pricing_pipeline_tests.support.streams import streaming, tell

__all__ = ["ann", "quick"]

pytestmark = pytest.mark.usefixtures("still")


@pytest.mark.parametrize("what", ["a backup of it", "another one"])
def test_b27_a_stream_does_not_go_on_in_another_database(
    ann: Caller, core: Core, clock: Clock, owner_url: str, tmp_path: Path, what: str
) -> None:
    """Its positions are as high, and say something else: what they skip would be lost, and nobody would know."""

    def store(price: str) -> None:
        clock.advance(1)
        core.enqueue(QUOTE, "AAPL")
        core.refresh(price=price)

    core.heartbeat("bob", (QUOTE, "AAPL"))
    core.refresh(price="1")
    with streaming(ann, pairs=AAPL) as stream:
        stream.until("ready")
        if what == "a backup of it":
            backup.back_up(owner_url, tmp_path / "prices.dump")
        store("2")
        last_id = stream.until("price")[-1].id
        if what == "another one":
            core.rows("UPDATE pricing.stream_head SET log_id = gen_random_uuid()")
            assert [event.kind for event in stream.until("ready")] == ["missed", "price", "ready"]
    if what == "a backup of it":
        backup.restore(owner_url, tmp_path / "prices.dump")
    with streaming(ann, pairs=AAPL) as other:
        other.until("ready")
        store("3")
        other.until("price")
        store("4")
        other.until("price")
        with streaming(ann, last_id, pairs=AAPL) as stream:
            missed, price, _ = stream.until("ready")
            assert (missed.kind, tell(price)[:3]) == ("missed", ("price", "AAPL", "4.00"))
