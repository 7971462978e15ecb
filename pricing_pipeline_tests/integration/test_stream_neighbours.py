"""B27: what one stream, one user or one moment does to the database stops no other stream, and no subscription."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import Connection, text

from pricing_pipeline.api import stream_hub
from pricing_pipeline.api.live_stream import Stream
from pricing_pipeline.api.stream_hub import StreamHub
from pricing_pipeline.demand import stream_log, viewers
from pricing_pipeline.demand.stream_log import Look
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline_tests.fixtures.core import QUOTE, Core, observation
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.api_server import Caller, RunningApi
from pricing_pipeline_tests.support.loopback import NO_TLS
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until
from pricing_pipeline_tests.support.sessions import wait_for_locks
from pricing_pipeline_tests.support.streams import streaming, tell

pytestmark = pytest.mark.usefixtures("still")

AAPL = f"{QUOTE}:AAPL"


@pytest.fixture
def ann(api: RunningApi) -> Caller:
    return api.caller(Scope.READ, Scope.WATCH, user="ann")


@pytest.mark.parametrize(("took", "rest"), [(0.0, 0.5), (0.1, 0.9), (0.2, 1.8), (2.0, 2.0), (30.0, 2.0)])
def test_b27_after_any_look_the_next_one_comes_soon(took: float, rest: float) -> None:
    """After one that had hung for 15 s, no stream was told anything for two minutes."""
    assert stream_hub._rest_after(took) == pytest.approx(rest)


def test_b27_whoever_waits_for_a_lock_holds_up_no_other_user(api: RunningApi, ann: Caller, core: Core) -> None:
    """Mallory has begun a pair in a transaction that stays open, and opens streams, each of which waits for it."""
    mallory = api.caller(Scope.READ, Scope.WATCH, user="mallory")
    core.heartbeat("bob", (QUOTE, "AAPL"))
    core.refresh(price="1")

    def open_one(number: int) -> int:
        headers = {"Authorization": f"Bearer {mallory.token}"}
        params = {"pairs": f"{QUOTE}:N{number}"}
        where = f"{mallory.url}/v1/stream"
        with httpx.stream("GET", where, params=params, headers=headers, timeout=PATIENCE, verify=NO_TLS) as answer:
            return answer.status_code

    with (
        streaming(ann, pairs=AAPL) as stream,
        core.engine.connect() as own,
        ThreadPoolExecutor(20) as pool,
    ):
        stream.until("ready")
        own.exec_driver_sql("SELECT pricing.heartbeat('mallory', ARRAY['equity_quote'], ARRAY['MINE'])")
        opening: list[Future[int]] = [pool.submit(open_one, number) for number in range(20)]
        hub: StreamHub = api.app.state.streams
        wait_until(lambda: len(hub._streams) == 21)
        core.enqueue(QUOTE, "AAPL")
        core.refresh(price="2")
        assert tell(stream.next()) == ("price", "AAPL", "2.00", True)
        with streaming(api.caller(Scope.READ, Scope.WATCH, user="cid"), pairs=AAPL) as other:
            other.until("ready")
        assert sum(one.done() for one in opening) < 10, "they have waited for all of these"
        own.rollback()


def test_b27_a_flood_of_new_prices_is_told_to_be_one(ann: Caller, core: Core, clock: Clock) -> None:
    """The log has only a thousand of them, and anyone who goes on from before it must know."""
    core.heartbeat("bob", (QUOTE, "AAPL"))
    core.refresh(price="1")
    with streaming(ann, pairs=AAPL) as stream:
        stream.until("ready")
        last = stream.last_id
    clock.advance(60)
    start = core.clock()
    core.enqueue(QUOTE, "AAPL")
    (call,) = core.claim(max_calls=1)
    core.store(
        call,
        *(
            observation("AAPL", f"{100 + number / 1000:.3f}", start - timedelta(seconds=30, milliseconds=-number))
            for number in range(1001)
        ),
    )
    with streaming(ann, last, pairs=AAPL) as stream:
        assert [event.kind for event in stream.until("ready")] == ["missed", "price", "ready"]
        last = stream.last_id
    with streaming(ann, last, pairs=AAPL) as stream:
        assert [event.kind for event in stream.until("ready")] == ["ready"], "it has been told once"


def test_b5_b27_a_beat_has_no_bound_of_pairs(
    api: RunningApi, core: Core, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One heartbeat takes 10,000. Beyond, none of the subscriptions was kept alive."""
    beat, sizes = viewers.heartbeat, []

    def counted(connection: Connection, user: str, pairs: Sequence[tuple[str, str]], **more: Any) -> Any:
        sizes.append(len(pairs))
        return beat(connection, user, pairs, **more)

    assert stream_hub._MOST_BEATEN <= 10_000
    monkeypatch.setattr(stream_hub, "_MOST_BEATEN", 2)
    monkeypatch.setattr(viewers, "heartbeat", counted)
    pairs = {(QUOTE, f"N{number}") for number in range(5)}
    hub: StreamHub = api.app.state.streams
    hub._send_beats({"ann": pairs}, {})
    clock.advance(400)
    hub._send_beats({"ann": pairs}, {})
    assert sizes == [2, 2, 1] * 2
    assert core.clean() == 0
    assert core.one("SELECT count(*) FROM pricing.active_subscriptions WHERE user_id = 'ann'") == 5


def test_b5_b27_a_beat_begins_nothing_that_its_user_has_left(api: RunningApi, core: Core) -> None:
    """A stream that follows its user knows what the user watched some seconds ago."""
    both = {(QUOTE, "AAPL"), (QUOTE, "MSFT")}
    core.heartbeat("ann", *both)
    core.unsubscribe("ann", (QUOTE, "MSFT"))
    hub: StreamHub = api.app.state.streams
    hub._send_beats({}, {"ann": both})
    watched = "SELECT symbol FROM pricing.active_subscriptions WHERE user_id = 'ann'"
    assert core.rows(watched) == [("AAPL",)]
    hub._send_beats({"ann": {(QUOTE, "IBM")}}, {"ann": both})
    assert core.rows(f"{watched} ORDER BY 1") == [("AAPL",), ("IBM",)]


def test_b5_b27_a_pair_beyond_the_cap_ends_no_other_subscription(api: RunningApi, core: Core, clock: Clock) -> None:
    """Its user has left it for another one, while a stream still names it."""
    core.heartbeat("ann", (QUOTE, "MSFT"), (QUOTE, "IBM"))
    core.cap(2, 1000)
    hub: StreamHub = api.app.state.streams
    nobody: dict[str, set[tuple[str, str]]] = {}
    for followed in (nobody, {"ann": {(QUOTE, "MSFT"), (QUOTE, "IBM")}}):
        for _ in range(3):
            clock.advance(121)
            core.heartbeat("ann", *([] if followed else [(QUOTE, "IBM")]))
            hub._send_beats({"ann": {(QUOTE, "AAPL"), (QUOTE, "MSFT")}}, followed)
            assert core.clean() == 0
    assert core.one("SELECT count(*) FROM pricing.active_subscriptions WHERE user_id = 'ann'") == 2


def test_b27_what_was_left_while_a_stream_was_read_too_slowly_is_told() -> None:
    """Else a program shows its last price for ever."""
    first, second = (QUOTE, "AAPL"), (QUOTE, "MSFT")
    look = Look("log", 1, 0, [], {}, [])

    async def told() -> str:
        stream = Stream("token", "ann", "ann", True, None)
        stream.begin(look, frozenset({first, second}))
        stream.take()
        stream.overrun(0)
        stream.begin(look, frozenset({first}))
        return stream.take().decode()

    kinds = [line for line in asyncio.run(told()).splitlines() if line.startswith(("event", "data"))]
    assert kinds[0] == "event: missed"
    assert kinds[2] == "event: left"
    assert '"MSFT"' in kinds[3]


def test_b5_b27_who_leaves_during_a_beat_has_left(core: Core) -> None:
    """The beat had the pair locked, and leaving skipped it: the stream alone went on watching it."""
    core.heartbeat("bob", (QUOTE, "AAPL"), (QUOTE, "MSFT"))
    wait_for_locks(core)
    with ThreadPoolExecutor(1) as pool:
        with core.engine.begin() as beat:
            mine = beat.execute(text("SELECT pg_backend_pid()")).scalar_one()
            stream_log.renew(beat, "bob")
            leaving = pool.submit(core.unsubscribe, "bob", (QUOTE, "AAPL"))
            waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND :mine = ANY (pg_blocking_pids(pid))"
            wait_until(lambda: core.one(waits, mine=mine) or leaving.done())
        assert leaving.result() == 1
    assert [symbol for (symbol,) in core.rows("SELECT symbol FROM pricing.active_subscriptions")] == ["MSFT"]
