"""Celery with Redis, as docs/deployment.md has it: a broker, and a worker on each of several hosts."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from sqlalchemy import make_url

from pricing_pipeline.processes.ports import require_free_port
from pricing_pipeline_tests.support.hosts import Address, Host, forwarded, seen_from, server_of
from pricing_pipeline_tests.support.patience import wait_until
from pricing_pipeline_tests.support.plain_processes import PlainProcesses

ROOT = Path(__file__).parents[2]
PACKAGES = ROOT / ".packages-celery"
"""Where `make celery-install` puts Celery."""
COMMAND = (
    "--app=dagster_celery.app",
    "worker",
    "--queues=dagster",
    "--concurrency=1",
    "--max-tasks-per-child=1",
    "--disable-prefetch",
)


def why_no_celery() -> str | None:
    """Why Celery cannot be tried here; None if it can."""
    if not (PACKAGES / "dagster_celery").is_dir():
        return "Celery is not installed: make celery-install"
    missing = [name for name in ("redis-server", "unshare") if shutil.which(name) is None]
    return f"no {missing[0]} here (Debian: redis-server, util-linux)" if missing else None


@contextmanager
def redis(processes: PlainProcesses, folder: Path) -> Iterator[Address]:
    """A broker on loopback; gives where it listens."""
    port = require_free_port(0, "Redis", "the port")
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    processes.start("redis", command, os.environ, folder)
    wait_until(lambda: "Ready to accept connections" in processes.log("redis"))
    yield "127.0.0.1", port


class Machine:
    """A host with a Celery worker, which takes one run at a time. What it starts is in a session of its own."""

    def __init__(self, host: Host, name: str) -> None:
        self.host = host
        self.name = name

    @contextmanager
    def reaching(self, environment: Mapping[str, str], broker: Address, sandbox_url: str) -> Iterator[dict[str, str]]:
        """The settings of a process on this host, which reaches the same servers by other addresses."""
        host, there = self.host, make_url(sandbox_url)
        with ExitStack() as stack:
            enter = stack.enter_context
            urls = {}
            for name in ("PRICING_DATABASE_URL", "PRICING_DAGSTER_URL"):
                port = enter(forwarded(host.database, server_of(environment[name])))
                urls[name] = seen_from(environment[name], host.database, port)
            redis_port = enter(forwarded(host.provider, broker))
            provider_port = enter(forwarded(host.provider, (str(there.host), int(there.port or 0))))
            queue = f"redis://{host.provider}:{redis_port}"
            yield {
                **environment,
                **urls,
                "CELERY_BROKER_URL": f"{queue}/0",
                "CELERY_RESULT_BACKEND": f"{queue}/1",
                "OF_TEST_PROVIDER": json.dumps([host.provider, provider_port]),
            }

    def start(self, processes: PlainProcesses, environment: Mapping[str, str], folder: Path) -> None:
        """Start its Celery worker, with a host name of its own."""
        there = ["ip", "netns", "exec", self.host.name, "unshare", "--uts"]
        processes.start(self.name, [*there, sys.executable, "-m", __name__, self.name], environment, folder)


def main(arguments: Sequence[str]) -> None:
    """Be the machine: the sandbox answers to nobody who calls it by another name than loopback."""
    (name,) = arguments
    socket.sethostname(name)
    address = json.loads(os.environ.pop("OF_TEST_PROVIDER"))
    with forwarded("127.0.0.1", tuple(address)) as port:
        environment = {**os.environ, "PRICING_SANDBOX_URL": f"http://127.0.0.1:{port}"}
        subprocess.run([sys.executable, "-m", "celery", *COMMAND, f"--hostname={name}"], env=environment, check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
