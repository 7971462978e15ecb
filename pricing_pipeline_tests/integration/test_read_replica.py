"""A real streaming standby: prices can be read from it, the queue is worked on the primary only (B20)."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Engine, text

from pricing_pipeline import sample
from pricing_pipeline.db import embedded_cluster as cluster
from pricing_pipeline.db import embedded_home as places
from pricing_pipeline.db.embedded import RELOCATION, EmbeddedServer
from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.db.migrate import upgrade
from pricing_pipeline.demand import staleness
from pricing_pipeline.errors import DatabaseError, ReadReplica
from pricing_pipeline.processes.os_processes import child_setup
from pricing_pipeline.queue import task_queue
from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline_tests.fixtures.core import QUOTE, TWELVEDATA, Core
from pricing_pipeline_tests.support.patience import wait_until


@dataclass(frozen=True)
class Pair:
    """A primary as its worker and owner see it, and its standby as the worker does."""

    primary: Core
    standby: Engine


@contextmanager
def following(server: EmbeddedServer, home: Path, data: Path) -> Iterator[Path]:
    """Run a standby on a copy of the stopped primary's data; yields its socket folder."""
    folder = home / "standby"
    user = places.server_user(server.data_dir)
    folder.mkdir(mode=0o700)
    places.give(folder, user)
    source = server.url("postgres", "superuser").replace("'", "''")
    with (data / "postgresql.auto.conf").open("a") as settings:
        settings.write(f"primary_conninfo = '{source}'\n")
    (data / "standby.signal").touch()
    programs = places.binaries(user, RELOCATION)
    with (home / "standby.log").open("wb") as log:
        process = subprocess.Popen(
            [
                programs / "postgres",
                *("-D", data, "-c", "listen_addresses=", "-c", f"unix_socket_directories={folder}"),
                *("-c", "fsync=off", "-c", "port=5432"),
                *("-c", "max_connections=400"),  # a standby needs as many
            ],
            cwd=data,
            env=cluster.environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=child_setup(signal.SIGINT),
            **(user.popen_options() if user else {}),
        )
    try:
        yield folder
    finally:
        process.send_signal(signal.SIGQUIT)
        process.wait()


def answers(standby: Engine) -> bool:
    try:
        standby.connect().close()
    except DatabaseError:  # it is still starting
        return False
    return True


@pytest.fixture
def pair(open_folder: Path) -> Iterator[Pair]:
    server = EmbeddedServer(open_folder, for_tests=True)
    with server:
        upgrade(server.url("pricing"))
        assert sample.load(server.url("pricing"))
        server.stop()
        data = open_folder / "copy"
        subprocess.run(["cp", "-a", server.data_dir, data], check=True)
        server.start()
        with following(server, open_folder, data) as folder:
            url = server.url("pricing", "worker")
            there = url.replace(url.split("host=")[1].split("&")[0], str(folder).replace("/", "%2F"))
            engines = [make_engine(url), make_engine(server.url("pricing")), make_engine(there)]
            try:
                wait_until(lambda: answers(engines[2]))
                yield Pair(Core(engines[0], engines[1]), engines[2])
            finally:
                for engine in engines:
                    engine.dispose()
    shutil.rmtree(data)


def test_b20_a_read_replica_shows_prices_and_refuses_the_queue(pair: Pair) -> None:
    core = pair.primary
    core.heartbeat("ann", (QUOTE, "AAPL"))
    core.refresh(price="146.55")
    core.enqueue(QUOTE, "IBM")

    def replicated() -> bool:
        with pair.standby.connect() as standby:
            return len(task_queue.tasks(standby, ["pending", "completed"], 9)) == 2

    wait_until(replicated)
    replica = Core(pair.standby, pair.standby)
    price = replica.latest("AAPL")
    assert price is not None
    assert str(price.price) == "146.55"
    assert replica.one("SELECT pg_is_in_recovery()")

    before = core.tasks()
    works = [staleness.run_duties, staleness.enqueue_due, task_queue.promote]
    for work in [*works, lambda connection: task_queue.claim(connection, TWELVEDATA, "w", 1, None)]:
        with pytest.raises(ReadReplica, match="it is a read replica"), pair.standby.begin() as connection:
            work(connection)  # type: ignore[operator]
    with Refresher(pair.standby, {}, worker="lost") as refresher:
        with pytest.raises(ReadReplica) as refusal:
            refresher.drain(5)
        with pytest.raises(ReadReplica):
            refresher._work_until(lambda: False)
    assert "***" in str(refusal.value), "the password is not shown"
    for function in ("require_primary", "run_duties", "enqueue_due"):
        with pair.standby.connect() as connection:
            driver = connection.connection.driver_connection
            assert driver is not None
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction, match="works on the primary only"):
                driver.execute(f"SELECT pricing.{function}()")
    assert core.tasks() == before
    with core.engine.begin() as connection:
        connection.execute(text("SELECT pricing.require_primary()"))
