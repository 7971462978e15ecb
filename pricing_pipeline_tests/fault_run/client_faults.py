"""Faults around the queue: receivers, the notifier, the API, the pooler, and people who change things at once."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable
from itertools import count

import psycopg
from sqlalchemy.exc import IntegrityError

from pricing_pipeline_tests.fault_run.kinds import Scene, kind
from pricing_pipeline_tests.fault_run.stage import stopped, well
from pricing_pipeline_tests.fixtures.core import QUOTE
from pricing_pipeline_tests.support.receivers import Script

# --- receivers, notifier, API ---------------------------------------------------------------------


def _receives(scene: Scene, script: Script) -> None:
    received = len(scene.stage.receiver.posted)
    scene.stage.receiver.script = script
    try:
        time.sleep(scene.dice.uniform(1.1, 2.0))  # a message is sent each second
    finally:
        scene.stage.receiver.script = well
    scene.happened = len(scene.stage.receiver.posted) > received


@kind("receiver_hangs", "a receiver of messages takes them and does not answer")
def _receiver_hangs(scene: Scene) -> None:
    _receives(scene, lambda post: time.sleep(4))


@kind("receiver_fails", "a receiver of messages answers 500")
def _receiver_fails(scene: Scene) -> None:
    _receives(scene, lambda post: post.answer(500))


@kind("notifier_killed", "the notifier is killed")
def _notifier_killed(scene: Scene) -> None:
    time.sleep(scene.dice.uniform(0, 1))
    scene.stage.programs["notifier"].kill()


@kind("notifier_frozen", "the notifier stands still")
def _notifier_frozen(scene: Scene) -> None:
    with stopped(scene.stage.programs["notifier"].pid):
        time.sleep(scene.dice.uniform(0.4, 1.6))


@kind("api_killed", "the API is killed, with its streams")
def _api_killed(scene: Scene) -> None:
    scene.stage.programs["api"].kill()


@kind("api_frozen", "the API stands still")
def _api_frozen(scene: Scene) -> None:
    with stopped(scene.stage.programs["api"].pid):
        time.sleep(scene.dice.uniform(0.4, 1.6))


@kind("api_stopped_in_order", "the API is told to stop (SIGTERM)", weight=2)
def _api_stopped(scene: Scene) -> None:
    scene.stage.programs["api"].end(10)


@kind("unfinished_requests", "connections to the API send half a request")
def _unfinished(scene: Scene) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(100):
            with contextlib.suppress(OSError):
                other = stack.enter_context(socket.create_connection(("127.0.0.1", scene.stage.api_port), 2))
                other.sendall(b"GET /v1/prices HTTP/1.1\r\nHost:")
        time.sleep(scene.dice.uniform(0.5, 1.5))
        if not scene.stage.api_answers():
            scene.notes.append("the API answers nobody beside unfinished requests")


@kind("pooler_frozen", "the pooler stands still", weight=3, needs=lambda stage: stage.pooler is not None)
def _pooler_frozen(scene: Scene) -> None:
    with stopped(scene.stage.pooler_pid()):
        time.sleep(scene.dice.uniform(0.4, 1.4))


# --- hands ----------------------------------------------------------------------------------------


def _at_once(scene: Scene, url: str, *acts: Callable[[psycopg.Connection], object]) -> None:
    """Each in a session of its own, again and again for a moment; being refused is an answer."""
    ends = time.monotonic() + scene.dice.uniform(0.6, 1.2)
    deadlocks: list[str] = []

    def go_on(act: Callable[[psycopg.Connection], object]) -> None:
        with psycopg.connect(url, autocommit=True, connect_timeout=5) as session:
            while time.monotonic() < ends:
                try:
                    act(session)
                except psycopg.errors.DeadlockDetected as error:
                    deadlocks.append(str(error))
                except psycopg.Error:
                    pass
                time.sleep(0.02)

    threads = [threading.Thread(target=go_on, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    if deadlocks:
        scene.notes.append(f"{len(deadlocks)} deadlocks: {deadlocks[0]}")


def _ids(session: psycopg.Connection, table: str) -> list[int]:
    rows = session.execute(f"SELECT id FROM pricing.{table} ORDER BY random() LIMIT 5".encode()).fetchall()
    return [row[0] for row in rows]


def _cancel(session: psycopg.Connection) -> None:
    session.execute("SELECT pricing.cancel_tasks(%s)", [_ids(session, "api_call_queue_live")])


def _retry(session: psycopg.Connection) -> None:
    session.execute("SELECT pricing.retry_tasks(%s)", [_ids(session, "api_call_queue_dead")])


def _recover(session: psycopg.Connection) -> None:
    session.execute("SELECT pricing.recover_tasks()")


def _duties(session: psycopg.Connection) -> None:
    session.execute("SELECT pricing.run_duties()")


def _decide(session: psycopg.Connection) -> None:
    rows = session.execute(
        "SELECT value_id FROM pricing.quarantined_values WHERE decided_at IS NULL ORDER BY random() LIMIT 3"
    ).fetchall()
    for decision in ("released", "rejected"):
        session.execute("SELECT pricing.decide_quarantined(%s, %s, 'ann')", [[row[0] for row in rows], decision])


@kind("hands_at_once", "people cancel, retry, release and reject at once, while duties run", weight=5)
def _hands(scene: Scene) -> None:
    _at_once(scene, scene.stage.worker_url, _cancel, _retry, _recover, _duties, _decide, _cancel, _retry)


@kind("demand_at_once", "heartbeats, holdings and leaves of one user in shuffled order", weight=5)
def _demand(scene: Scene) -> None:
    symbols = [f"W{number}" for number in range(12)]

    def act(name: str) -> Callable[[psycopg.Connection], object]:
        dice = scene.dice.__class__(f"{scene.dice.random()}")
        return lambda session: session.execute(
            f"SELECT pricing.{name}(%s, %s)".encode(),
            [[QUOTE] * 5, dice.sample(symbols, 5)],
        )

    names = ("heartbeat", "unsubscribe", "hold", "release", "heartbeat", "unsubscribe")
    _at_once(scene, scene.stage.worker_url, *map(act, names))


_ROUNDS = count()


@kind("two_producers", "several producers queue the same work at once", weight=5)
def _two_producers(scene: Scene) -> None:
    keys = [(QUOTE, f"T{os.getpid()}X{next(_ROUNDS)}N{number}") for number in range(20)]
    kind_ = scene.load.ledger.attempt(len(keys))
    scene.load.ledger.shared.update(keys)
    told: list[int] = []
    failed: list[str] = []

    def produce(number: int) -> None:
        symbols = [symbol for _, symbol in keys]
        symbols = symbols[number * 5 :] + symbols[: number * 5]
        try:
            with psycopg.connect(scene.stage.worker_url, connect_timeout=5) as session:
                row = session.execute("SELECT pricing.enqueue(%s, %s, %s)", [QUOTE, symbols, [1] * 20]).fetchone()
                session.commit()
                told.append(row[0] if row else 0)
        except psycopg.Error as error:
            failed.append(str(error))

    threads = [threading.Thread(target=produce, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    if failed:
        scene.notes.append(f"a producer beside others was refused: {failed[0]}")
        return
    scene.load.ledger.acknowledge(kind_, keys)
    if sum(told) < len(keys):
        scene.notes.append(f"{told} were told to be new, of {len(keys)}")


@kind("type_retired", "a data type is retired with work in flight, and revived", weight=3)
def _type_retired(scene: Scene) -> None:
    scene.stage.core.rows("UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = 'equity_daily'")
    time.sleep(scene.dice.uniform(0.4, 1.2))
    scene.stage.core.rows("UPDATE pricing.data_type_registry SET is_active = true WHERE data_type = 'equity_daily'")


@kind("type_deleted", "a data type is deleted with work in the queue", weight=3)
def _type_deleted(scene: Scene) -> None:
    name = f"brief_{next(_ROUNDS)}"
    scene.stage.core.rows(
        "INSERT INTO pricing.data_type_registry (data_type, description, asset_class, fetcher, default_ttl_minutes,"
        " refresh_strategy, schedule_timezone, estimated_data_size_bytes, staleness_function)"
        " SELECT :name, 'Deleted soon.', asset_class, fetcher, default_ttl_minutes, refresh_strategy,"
        " schedule_timezone, estimated_data_size_bytes, staleness_function"
        " FROM pricing.data_type_registry WHERE data_type = 'equity_quote'",
        name=name,
    )
    scene.stage.sandbox.behave("delay", seconds=0.6, provider="twelvedata", path="quote")
    with contextlib.suppress(psycopg.Error), psycopg.connect(scene.stage.worker_url) as session:
        scene.load.enqueue(session, [(name, f"G{name[6:]}N{number}") for number in range(30)])
    time.sleep(scene.dice.uniform(0, 0.4))
    try:
        scene.stage.core.rows("DELETE FROM pricing.data_type_registry WHERE data_type = :name", name=name)
    except IntegrityError:  # it has prices by now, and can only be retired
        scene.happened = False
        scene.stage.core.rows(
            "UPDATE pricing.data_type_registry SET is_active = false WHERE data_type = :name", name=name
        )


@kind("provider_switched_off", "a provider is switched off with work in flight, and on again", weight=3)
def _switched_off(scene: Scene) -> None:
    switch = "UPDATE pricing.data_collectors SET is_active = :on WHERE provider = 'twelvedata'"
    scene.stage.core.rows(switch, on=False)
    time.sleep(scene.dice.uniform(0.5, 1.5))
    scene.stage.core.rows(switch, on=True)


@kind("quota_reached", "a provider's quota is used up, and raised a moment later", weight=3)
def _quota_reached(scene: Scene) -> None:
    core = scene.stage.core
    core.rows(
        "UPDATE pricing.data_collectors SET quota_bytes = greatest(1, pricing.bytes_used(provider, pricing.clock()))"
        " WHERE provider = 'twelvedata'"
    )
    time.sleep(1)
    before = core.one("SELECT count(*) FROM pricing.collector_call_log WHERE provider = 'twelvedata'")
    time.sleep(scene.dice.uniform(0.5, 1))
    after = core.one("SELECT count(*) FROM pricing.collector_call_log WHERE provider = 'twelvedata'")
    core.rows("UPDATE pricing.data_collectors SET quota_bytes = 21474836480 WHERE provider = 'twelvedata'")
    if after > before:
        scene.notes.append(f"{after - before} calls were claimed beyond the quota")
