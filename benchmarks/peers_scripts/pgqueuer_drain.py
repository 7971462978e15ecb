"""pgqueuer in its best documented configuration: asyncpg on one connection, uvloop, durable, its own autovacuum
settings, batches as ours. Run by the peers' environment; speaks the protocol of benchmarks/crew.py.

    pgqueuer_drain.py fill TASKS | pgqueuer_drain.py drain BATCH
"""

import asyncio
import json
import os
import sys
from datetime import timedelta

import asyncpg
import uvloop
from pgqueuer import PgQueuer, Queries
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.types import QueueExecutionMode


async def fill(tasks: int) -> None:
    """Install into an empty database and enqueue."""
    queries = Queries(AsyncpgDriver(await asyncpg.connect(os.environ["BENCHMARK_DATABASE_URL"])))
    await queries.install()
    await queries.optimize_autovacuum()
    for begin in range(0, tasks, 1000):
        count = min(1000, tasks - begin)
        await queries.enqueue(["work"] * count, [b"x"] * count, [0] * count)


async def drain(batch: int) -> None:
    """Work until the queue is empty; answers how many jobs were done."""
    queuer = PgQueuer(AsyncpgDriver(await asyncpg.connect(os.environ["BENCHMARK_DATABASE_URL"])))
    done = 0

    @queuer.entrypoint("work")
    async def work(job: Job) -> None:
        nonlocal done
        done += 1

    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.readline)
    await queuer.run(dequeue_timeout=timedelta(seconds=1), batch_size=batch, mode=QueueExecutionMode.drain)
    sys.stdout.write(json.dumps(done) + "\n")


uvloop.run({"fill": fill, "drain": drain}[sys.argv[1]](int(sys.argv[2])))
