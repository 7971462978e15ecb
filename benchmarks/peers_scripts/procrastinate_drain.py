"""procrastinate in its best documented configuration: asynchronous tasks, psycopg pool, many at once.

Run by the peers' environment; speaks the protocol of benchmarks/crew.py.

    procrastinate_drain.py fill TASKS | procrastinate_drain.py drain CONCURRENCY
"""

import asyncio
import json
import os
import sys

import procrastinate

app = procrastinate.App(
    connector=procrastinate.PsycopgConnector(conninfo=os.environ["BENCHMARK_DATABASE_URL"], max_size=20)
)
done = 0


@app.task(name="work", queue="benchmark")
async def work(number: int) -> None:
    """Do nothing, as the others do."""
    global done
    done += 1


async def fill(tasks: int) -> None:
    """Install into an empty database and defer."""
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        await work.batch_defer_async(*[{"number": number} for number in range(tasks)])


async def drain(concurrency: int) -> None:
    """Work until the queue is empty; answers how many jobs were done."""
    async with app.open_async():
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.readline)
        await app.run_worker_async(
            queues=["benchmark"], concurrency=concurrency, wait=False, install_signal_handlers=False
        )
        sys.stdout.write(json.dumps(done) + "\n")


asyncio.run({"fill": fill, "drain": drain}[sys.argv[1]](int(sys.argv[2])))
