"""B27: PostgreSQL is killed, or hangs, under live streams. They lose nothing and do not look as if nothing were new."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest
from sqlalchemy import text

from pricing_pipeline import sample
from pricing_pipeline.api import access, stream_hub
from pricing_pipeline.db.embedded import EmbeddedServer
from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.db.migrate import upgrade
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.errors import DatabaseError
from pricing_pipeline_tests.fixtures.core import QUOTE
from pricing_pipeline_tests.fixtures.embedded import MakeServer
from pricing_pipeline_tests.support.api_server import Caller, running_api
from pricing_pipeline_tests.support.frozen_server import frozen
from pricing_pipeline_tests.support.patience import PATIENCE, wait_until
from pricing_pipeline_tests.support.streams import streaming

LAST = 60
STORE = text(
    "SELECT count(*) FROM pricing.merge_prices('equity_quote', 'twelvedata', 1, true, ARRAY['AAPL'],"
    " ARRAY[timestamptz '2026-01-05 15:00Z' + CAST(:number AS integer) * interval '1 second'],"
    " ARRAY[CAST(:number AS bigint)], ARRAY[NULL::bigint], ARRAY[NULL::bigint], ARRAY[NULL::bigint],"
    " ARRAY[2::smallint], ARRAY['USD'], ARRAY[NULL::numeric], ARRAY['x'], ARRAY['raw'])"
)


@pytest.fixture
def server(make_server: MakeServer) -> Iterator[EmbeddedServer]:
    """A server of its own, which keeps what it has acknowledged, with the sample in it."""
    with make_server(durable=True) as server:
        upgrade(server.url("pricing"))
        sample.load(server.url("pricing"))
        yield server


def test_b27_streams_outlive_a_killed_database_and_lose_nothing(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_hub, "PACE_SECONDS", 0.02)
    engine, owner = make_engine(server.url("pricing", "worker")), make_engine(server.url("pricing"))
    is_half, is_killed = threading.Event(), threading.Event()
    with engine.begin() as connection:
        connection.execute(STORE, {"number": 0})

    def store_all() -> None:
        """Each price, again until it is acknowledged: one that was stored already changes nothing."""
        number = 1
        while number <= LAST:
            try:
                with engine.begin() as connection:
                    connection.execute(STORE, {"number": number})
                number += 1
            except DatabaseError:
                continue
            if number == LAST // 2:
                is_half.set()
                is_killed.wait()  # else a fast disk stores them all before, and no writer waits for the server

    writer = threading.Thread(target=store_all, daemon=True)
    with running_api(engine, owner) as api:
        ann = api.caller(Scope.READ, Scope.WATCH, user="ann")
        with streaming(ann, pairs=f"{QUOTE}:AAPL") as whole, streaming(ann, pairs=f"{QUOTE}:AAPL") as cut:
            whole.until("ready")
            cut.until("ready")
            writer.start()
            read = [told(cut.next()) for _ in range(10)]
            last_id = cut.last_id
            is_half.wait()
            os.kill(server.pid or 0, signal.SIGKILL)
            is_killed.set()
            wait_until(lambda: server.poll() is not None)
            server.launch(patience=PATIENCE)
            writer.join()
            assert [told(whole.next()) for _ in range(LAST)] == list(range(1, LAST + 1))
        with streaming(ann, last_id, pairs=f"{QUOTE}:AAPL") as stream:
            read += [told(event) for event in stream.until("ready")[:-1]]
        assert read == list(range(1, LAST + 1))
    engine.dispose()
    owner.dispose()


def test_b27_streams_of_a_database_that_hangs_end_and_go_on_when_it_does(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A comment now and then would say that nothing is new, and nobody would connect again."""
    monkeypatch.setattr(stream_hub, "_OUTAGE_SECONDS", 1.5)
    monkeypatch.setattr(access, "_PATIENCE_SECONDS", 1.0)
    engine, owner = make_engine(server.url("pricing", "worker")), make_engine(server.url("pricing"))
    with engine.begin() as connection:
        connection.execute(STORE, {"number": 0})
    with running_api(engine, owner) as api:
        ann = api.caller(Scope.READ, Scope.WATCH, user="ann")
        with streaming(ann, pairs=f"{QUOTE}:AAPL") as cut:
            cut.until("ready")
            with frozen(server):
                assert cut.next() is None
                api.app.state.tokens._read_at = float("-inf")  # as five seconds later
                waiting = threading.Thread(target=refused, args=(ann,), daemon=True)
                waiting.start()  # the one that reads the tokens waits as long as the database hangs
                wait_until(api.app.state.tokens._turn.locked)
                assert refused(ann) == (503, "urn:pricing-pipeline:database-busy")
                assert api.client.get("/livez").text == "ok\n"
            waiting.join()
        with engine.begin() as connection:
            connection.execute(STORE, {"number": 1})
        with streaming(ann, cut.last_id, pairs=f"{QUOTE}:AAPL") as stream:
            assert [told(event) for event in stream.until("ready")[:-1]] == [1]
    engine.dispose()
    owner.dispose()


def refused(caller: Caller) -> tuple[int, str]:
    """What a request for a stream is answered."""
    answer = caller.ask("GET", "stream", params={"pairs": "nosuch:AAPL"})
    return answer.status_code, answer.json()["type"]


def told(event: object) -> int:
    """The number of a price."""
    data = getattr(event, "data", None)
    assert data is not None, event
    return round(float(data["price"]) * 100)
