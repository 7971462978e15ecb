"""B27: a live stream tells what holds of its pairs, then what changes, and goes on where it was cut off."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from sqlalchemy import Engine, text

from pricing_client.events import Event, read_events
from pricing_pipeline.api import access, live_stream, server, stream, stream_hub
from pricing_pipeline.api.app import AT_ONCE, AT_ONCE_OF_ONE
from pricing_pipeline.demand import stream_log
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.keys import api_tokens
from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.api_server import Caller, RunningApi, running_api
from pricing_pipeline_tests.support.loopback import NO_TLS
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until
from pricing_pipeline_tests.support.streams import streaming, tell

pytestmark = pytest.mark.usefixtures("still")

MINUTE = 60
AAPL, MSFT = f"{QUOTE}:AAPL", f"{QUOTE}:MSFT"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks come one after the other, and subscriptions and tokens are looked at all the time."""
    monkeypatch.setattr(stream_hub, "PACE_SECONDS", 0.05)
    for name in ("_UPKEEP_SECONDS", "_BEAT_SECONDS", "_TOKENS_SECONDS"):
        monkeypatch.setattr(stream_hub, name, 0.1)
    monkeypatch.setattr(access, "REMEMBERED_SECONDS", 0.1)


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
        assert stream.so_far(0.5) == []
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
    with streaming(ann, ready.id, pairs=[MSFT, AAPL]) as stream:
        assert [event.kind for event in stream.until("ready")] == ["ready"]
    with streaming(ann, ready.id, pairs=AAPL) as stream:
        kinds = [event.kind for event in stream.until("ready")]
        assert kinds == ["missed", "price", "ready"], "other pairs"


def test_e9_an_empty_line_ends_an_event_with_data_and_nothing_else(
    ann: Caller, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    """httpx-sse takes each empty line for an event, also one behind a comment, an id or a retry alone."""
    monkeypatch.setattr(stream, "_COMMENT_SECONDS", 0.05)
    core.heartbeat("bob", (QUOTE, "AAPL"))
    core.refresh(price="1")
    headers = {"Authorization": f"Bearer {ann.token}"}
    client = httpx.Client(base_url=ann.url, timeout=PATIENCE, verify=NO_TLS)
    lines: list[str] = []
    with client, client.stream("GET", "/v1/stream", params={"pairs": AAPL}, headers=headers) as response:
        for line in response.iter_lines():
            lines.append(line)
            if lines.count(": nothing new") == 3:
                break
    assert lines[0].startswith("retry: ")
    *events, rest = "\n".join(lines).split("\n\n")
    names = [[line.partition(":")[0] for line in event.split("\n")] for event in events]
    assert names == [["retry", "event", "data"], ["id", "event", "data"]]
    last_id, *silence = rest.split("\n")
    assert (set(silence), silence.count(last_id)) == ({": nothing new", last_id}, 2)
    told = [event.id for event in read_events(lines)]
    assert told[1:] == [last_id.removeprefix("id: ")] * 4, "an id while nothing happens, too"


def test_b27_a_stream_without_pairs_shows_what_its_user_watches(ann: Caller, core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.heartbeat("bob", (QUOTE, "IBM"))
    with streaming(ann) as stream:
        assert [(event.kind, event.data.get("symbol")) for event in stream.until("ready")] == [
            ("missing", "AAPL"),
            ("ready", None),
        ]
        core.heartbeat("ann", (QUOTE, "MSFT"))
        assert [(event.kind, event.data.get("symbol")) for event in stream.until("ready")] == [
            ("missing", "MSFT"),
            ("ready", None),
        ]
        core.unsubscribe("ann", (QUOTE, "AAPL"))
        assert [(event.kind, event.data.get("symbol")) for event in stream.until("ready")] == [
            ("left", "AAPL"),
            ("ready", None),
        ]
        core.refresh(price="3")
        event = stream.next()
        assert event is not None
        assert tell(event) == ("price", "MSFT", "3.00", True)
        last_id = stream.last_id
    core.heartbeat("ann", (QUOTE, "IBM"))
    with streaming(ann, last_id) as stream:
        missed, *told = stream.until("ready")
        assert missed.kind == "missed", "what came of MSFT meanwhile is not told"
        assert [event.data.get("symbol") for event in told] == ["IBM", "MSFT", None]


def test_b27_what_a_user_begins_to_watch_during_a_look_is_told_after_it(
    ann: Caller, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    look, follow = stream_hub._look, stream_hub.StreamHub._follow
    is_slow, has_followed = threading.Event(), threading.Event()

    async def noted_follow(hub: stream_hub.StreamHub) -> None:
        await follow(hub)
        if any(("IBM" in {symbol for _, symbol in stream.wanted}) for stream in hub._streams):
            has_followed.set()

    def slow_look(*arguments: Any) -> Any:
        seen = look(*arguments)
        if is_slow.is_set() and ("MSFT" in {symbol for _, symbol in arguments[2]}):
            is_slow.clear()
            core.heartbeat("ann", (QUOTE, "IBM"))
            assert has_followed.wait(PATIENCE)
        return seen

    monkeypatch.setattr(stream_hub, "_look", slow_look)
    monkeypatch.setattr(stream_hub.StreamHub, "_follow", noted_follow)
    core.heartbeat("ann", (QUOTE, "AAPL"))
    with streaming(ann) as stream:
        stream.until("ready")
        is_slow.set()
        core.heartbeat("ann", (QUOTE, "MSFT"))
        told = [event.data.get("symbol") for event in [*stream.until("ready"), *stream.until("ready")]]
        assert told == ["MSFT", None, "IBM", None]


def test_b5_b27_an_open_stream_is_a_viewer(ann: Caller, core: Core, clock: Clock) -> None:
    seen = "SELECT count(*) FROM pricing.active_subscriptions WHERE user_id = 'ann' AND last_seen_at >= pricing.clock()"
    with streaming(ann, pairs=AAPL) as stream:
        stream.until("ready")
        for _ in range(2):
            clock.advance(4 * MINUTE)
            wait_until(lambda: core.one(seen) == 1)
            assert core.clean() == 0
    clock.advance(6 * MINUTE)
    wait_until(lambda: core.clean() == 1)


def test_b27_a_slow_reader_is_told_what_it_missed(
    api: RunningApi, ann: Caller, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More comes at once than it has room for."""
    monkeypatch.setattr(live_stream, "MOST_PENDING", 3)
    core.heartbeat("bob", (QUOTE, "AAPL"))
    core.refresh(price="1")
    with streaming(ann, pairs=AAPL) as stream:
        stream.until("ready")
        hub: stream_hub.StreamHub = api.app.state.streams
        (open_stream,) = hub._streams
        for number in range(1, 6):
            open_stream.offer(number, b"event: price\ndata: {}\n\n")
        stream.until("missed")
        assert stream.last_id is None, "anyone who is cut off here begins anew"
        assert [event.kind for event in stream.until("ready")] == ["price", "ready"]


@pytest.mark.parametrize("who", ["its own heartbeat", "another stream"])
def test_b27_a_stream_whose_pair_was_forgotten_is_told_that_it_missed_something(
    api: RunningApi, ann: Caller, core: Core, clock: Clock, monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    """Nobody notes prices of a pair between when it was forgotten and when somebody streams it again."""
    monkeypatch.setattr(stream_hub, "_BEAT_SECONDS", 3600)
    core.heartbeat("bob", (QUOTE, "AAPL"))
    core.refresh(price="1")
    with ExitStack() as stack:
        stream = stack.enter_context(streaming(ann, pairs=AAPL))
        stream.until("ready")
        clock.advance(16 * MINUTE)
        wait_until(lambda: core.one("SELECT count(*) FROM pricing.streamed_pairs") == 0)
        core.enqueue(QUOTE, "AAPL")
        core.refresh(price="2")
        if who == "another stream":
            stack.enter_context(streaming(api.caller(Scope.READ, Scope.WATCH, user="cid"), pairs=AAPL))
        else:
            monkeypatch.setattr(stream_hub, "_BEAT_SECONDS", 0.1)
        stream.until("missed")
        price, _ = stream.until("ready")
        assert tell(price) == ("price", "AAPL", "2.00", True)


def test_b27_a_stream_that_cannot_be_is_refused(ann: Caller) -> None:
    for params, status, words in (
        ({"pairs": "AAPL"}, 422, "data_type:symbol"),
        ({"pairs": f"{QUOTE}:"}, 422, "data_type:symbol"),
        ({"pairs": "nosuch:AAPL"}, 404, "active data type of prices is called 'nosuch'"),
        ({"pairs": "company_profile:AAPL"}, 404, "such as documents and slots, are not streamed"),
        ({"pairs": f"{QUOTE}:BTC/USD"}, 422, "not a symbol of"),
        ({"pairs": ",".join(f"{QUOTE}:S{i}" for i in range(1001))}, 422, "1001"),
    ):
        problem = ann.refusal("GET", "stream", params=params)
        assert problem["status"] == status
        assert words in problem["detail"]


def test_b27_streams_are_capped_for_a_user_and_for_the_server(
    api: RunningApi, ann: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_hub, "MOST_OF_USER", 1)
    monkeypatch.setattr(stream_hub, "MOST_STREAMS", 2)
    monkeypatch.setattr(stream, "_COMMENT_SECONDS", 0.1)  # it notices who is gone when it writes
    bob, cid = (api.caller(Scope.READ, Scope.WATCH, user=user) for user in ("bob", "cid"))
    with streaming(ann, pairs=AAPL):
        problem = ann.refusal("GET", "stream", params={"pairs": MSFT})
        assert (problem["status"], problem["type"]) == (429, "urn:pricing-pipeline:too-many-streams")
        with streaming(bob, pairs=AAPL):
            assert cid.refusal("GET", "stream", params={"pairs": AAPL})["status"] == 503
    hub: stream_hub.StreamHub = api.app.state.streams
    wait_until(lambda: not hub._streams)
    with streaming(ann, pairs=AAPL) as again:
        again.until("ready")


def test_b27_an_application_leaves_streams_to_others(api: RunningApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its token may name any user, so the cap of a user does not bound it."""
    monkeypatch.setattr(stream_hub, "MOST_OF_TOKEN", 2)
    shop, other = (api.caller(Scope.READ, Scope.WATCH) for _ in range(2))
    with streaming(shop, pairs=AAPL, user="ann"), streaming(shop, pairs=AAPL, user="bob"):
        problem = shop.refusal("GET", "stream", params={"pairs": AAPL, "user": "cid"})
        assert (problem["status"], problem["type"]) == (429, "urn:pricing-pipeline:too-many-streams")
        assert "token" in problem["detail"]
        with streaming(other, pairs=AAPL, user="cid") as stream:
            stream.until("ready")


def test_b27_streams_leave_the_threads_to_other_requests(api: RunningApi, ann: Caller) -> None:
    with ExitStack() as stack:
        for _ in range(AT_ONCE):
            stack.enter_context(streaming(ann, pairs=AAPL)).until("ready")
        assert ann.get("prices", symbols="AAPL")["missing"]


def test_b7_b27_streams_that_begin_leave_the_turns_of_their_token_to_other_requests(
    api: RunningApi, ann: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a restart the streams of an application all come back at once, and share a look."""
    look, may_look = stream_hub._look, threading.Event()

    def slow_look(*arguments: Any) -> Any:
        assert may_look.wait(PATIENCE)
        return look(*arguments)

    monkeypatch.setattr(stream_hub, "_look", slow_look)
    hub: stream_hub.StreamHub = api.app.state.streams
    began: list[int] = []
    opening = [
        threading.Thread(target=lambda: began.append(len(opened(ann))), daemon=True) for _ in range(2 * AT_ONCE_OF_ONE)
    ]
    for thread in opening:
        thread.start()
    try:
        wait_until(lambda: len(hub._streams) == len(opening))
        assert ann.get("prices", symbols="AAPL")["missing"]
    finally:
        may_look.set()
    for thread in opening:
        thread.join()
    assert began == [2] * len(opening)


def opened(caller: Caller) -> list[Event]:
    with streaming(caller, pairs=AAPL) as stream:
        return stream.until("ready")


def test_b27_a_stream_of_a_removed_token_ends(ann: Caller, owner_engine: Engine) -> None:
    with streaming(ann, pairs=AAPL) as stream:
        stream.until("ready")
        with owner_engine.begin() as connection:
            (token,) = api_tokens.stored(connection)
            api_tokens.remove(connection, token.name)
        assert stream.next() is None


def test_b27_a_server_that_ends_ends_its_streams_at_once(
    engine: Engine, owner_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would wait for them longer than the test waits for its end."""
    monkeypatch.setattr(server, "_ENDING_SECONDS", 2 * int(PATIENCE))
    with ExitStack() as stack:
        with running_api(engine, owner_engine) as api:
            ann = api.caller(Scope.READ, Scope.WATCH, user="ann")
            stream = stack.enter_context(streaming(ann, pairs=AAPL))
            stream.until("ready")
        assert stream.next() is None


def test_b27_a_position_that_was_told_outlives_a_crash(core: Core, clock: Clock) -> None:
    """A look that changes nothing need not be on disk. One that only forgets a pair moves the head, and must be."""
    with core.engine.begin() as connection:
        stream_log.look(connection, None, [(QUOTE, "AAPL")])

    def look() -> tuple[int, str]:
        with core.engine.begin() as connection:
            position = stream_log.look(connection, None).position
            return position, connection.execute(text("SHOW synchronous_commit")).scalar_one()

    before, waits = look()
    assert waits == "off"
    clock.advance(16 * MINUTE)
    assert look() == (before + 1, "on")
    assert look() == (before + 1, "off")


def test_b27_the_log_is_bounded_and_says_from_where_it_is_kept(core: Core) -> None:
    """Beyond 100,000 events, however young; a look deletes a part of what is too much, so that none takes long."""
    core.rows(
        "INSERT INTO pricing.stream_events (position, noted_at, data_type, symbol, is_new_price)"
        " SELECT n, pricing.clock(), 'equity_quote', 'AAPL', true FROM generate_series(1, 107000) n"
    )
    core.rows("UPDATE pricing.stream_head SET position = 107000")
    for kept_from in (5000, 7000, 7000):
        with core.engine.begin() as connection:
            assert stream_log.look(connection, None).kept_from == kept_from
        assert core.one("SELECT min(position) FROM pricing.stream_events") == kept_from + 1
