"""B27: a live stream tells what holds of its pairs, then what changes, and goes on where it was cut off."""

from __future__ import annotations

import pytest

from pricing_pipeline.keys.api_tokens import Scope
from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.api_server import Caller, RunningApi
from pricing_pipeline_tests.support.streams import streaming, tell

pytestmark = pytest.mark.usefixtures("still")

MINUTE = 60
AAPL, MSFT = f"{QUOTE}:AAPL", f"{QUOTE}:MSFT"


@pytest.fixture
def ann(api: RunningApi) -> Caller:
    return api.caller(Scope.READ, Scope.WATCH, user="ann")


def test_b27_the_first_events_say_what_holds_and_then_what_changes(ann: Caller, core: Core) -> None:
    core.heartbeat("bob", (QUOTE, "AAPL"))
    core.refresh(price="146.5500")
    with streaming(ann, pairs=f"{AAPL},{MSFT}") as stream:
        priced, missing, ready = stream.until("ready")
        assert tell(priced) == ("price", "AAPL", "146.55", True)
        assert priced.data["observed_at"].endswith("Z")
        assert priced.id is None
        assert (missing.kind, missing.data["symbol"]) == ("missing", "MSFT")
        assert missing.data["why"]["state"] == "no_worker"
        assert ready.data == {"pairs": 2}
        core.refresh(price="12.30")
        event = stream.next()
        assert event is not None
        assert tell(event) == ("price", "MSFT", "12.30", True)


def test_b27_a_stream_tells_when_a_price_becomes_stale_and_why(ann: Caller, core: Core, clock: Clock) -> None:
    core.heartbeat("bob", (QUOTE, "AAPL"))
    core.refresh(price="1")
    with streaming(ann, pairs=AAPL) as stream:
        stream.until("ready")
        clock.advance(MINUTE)  # its TTL is over, but it may be refreshed in time
        assert stream.so_far() == []
        clock.advance(6)
        event = stream.next()
        assert event is not None
        assert tell(event) == ("freshness", "AAPL", "1.00", False)
        assert event.data["why"]["state"] == "due"
        core.enqueue(QUOTE, "AAPL")
        core.refresh(price="2")
        event = stream.next()
        assert event is not None
        assert tell(event) == ("price", "AAPL", "2.00", True)


def test_b27_a_stream_goes_on_where_it_was_cut_off(ann: Caller, core: Core, clock: Clock) -> None:
    core.heartbeat("bob", (QUOTE, "AAPL"), (QUOTE, "MSFT"))
    core.refresh(price="1")
    with streaming(ann, pairs=f"{AAPL},{MSFT}") as stream:
        stream.until("ready")
        last_id = stream.last_id
    for price in ("2", "3"):
        clock.advance(1)
        core.enqueue(QUOTE, "AAPL")
        core.refresh(price=price)
    with streaming(ann, last_id, pairs=f"{MSFT},{AAPL}") as stream:
        *told, ready = stream.until("ready")
        assert [tell(event)[:3] for event in told] == [("price", "AAPL", "2.00"), ("price", "AAPL", "3.00")]
        first = told[0].id
    with streaming(ann, first, pairs=f"{MSFT},{AAPL}") as stream:
        *told, ready = stream.until("ready")
        assert [tell(event)[:3] for event in told] == [("price", "AAPL", "3.00")]
    with streaming(ann, ready.id, pairs=f"{MSFT},{AAPL}") as stream:
        assert [event.kind for event in stream.until("ready")] == ["ready"]
    with streaming(ann, ready.id, pairs=AAPL) as stream:
        assert [event.kind for event in stream.until("ready")] == ["price", "ready"], "other pairs"
