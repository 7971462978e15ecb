"""Hosts of their own on this machine: network namespaces, each with one link to the database and one to the providers.

A link can be cut, as a cable is: what was sent is lost, and nobody is told. Needs Linux, root and `ip` (iproute2).
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import IO, Any

from sqlalchemy import make_url

from pricing_pipeline_tests.support.refreshing import run_worker

Address = tuple[str, int] | str
"""A host and a port, or the path of a Unix socket."""


def why_no_hosts() -> str | None:
    """Why no namespace can be made here; None if one can."""
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    if shutil.which("ip") is None:
        return "no ip here (Debian: apt-get install iproute2)"
    made = subprocess.run(["ip", "netns", "add", f"pp{os.getpid()}"], capture_output=True, text=True)
    if made.returncode:
        return f"no network namespace can be made: {made.stderr.strip()}"
    _ip("netns", "del", f"pp{os.getpid()}")
    return None


class Host:
    """A network namespace. `database` and `provider` are this machine's addresses on its two links."""

    def __init__(self, number: int) -> None:
        self.name = f"pp{os.getpid()}-{number}"
        net = f"10.{200 + os.getpid() % 50}.{number}"
        self.database, self.provider = f"{net}.1", f"{net}.5"
        self._links = {self.database: f"pd{os.getpid()}-{number}", self.provider: f"pp{os.getpid()}-{number}"}

    def add(self) -> None:
        _ip("netns", "add", self.name)
        for address, link in self._links.items():
            net, _, last = address.rpartition(".")
            far = f"{net}.{int(last) + 1}/30"
            _ip("link", "add", link, "type", "veth", "peer", "name", "far", "netns", self.name)
            _ip("-n", self.name, "link", "set", "far", "name", f"far{last}")
            _ip("addr", "add", f"{address}/30", "dev", link)
            _ip("-n", self.name, "addr", "add", far, "dev", f"far{last}")
            _ip("link", "set", link, "up")
            _ip("-n", self.name, "link", "set", f"far{last}", "up")
        _ip("-n", self.name, "link", "set", "lo", "up")

    def remove(self) -> None:
        """Remove it with its links."""
        _ip("netns", "del", self.name)

    def cut(self, address: str) -> None:
        """Cut the link on which this address is."""
        _ip("link", "set", self._links[address], "down")

    def mend(self, address: str) -> None:
        _ip("link", "set", self._links[address], "up")


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@contextmanager
def hosts(count: int) -> Iterator[list[Host]]:
    """So many hosts, removed on leaving."""
    with ExitStack() as stack:
        made = [Host(number) for number in range(1, count + 1)]
        for host in made:
            stack.callback(_removed, host)
            host.add()
        yield made


def _removed(host: Host) -> None:
    with suppress(subprocess.CalledProcessError):
        host.remove()


@contextmanager
def forwarded(address: str, to: Address) -> Iterator[int]:
    """Take connections on a free port of this address and carry them on; gives the port."""
    carried: list[socket.socket] = []
    with socket.create_server((address, 0), backlog=64) as listener:
        thread = threading.Thread(target=_accept, args=(listener, to, carried), daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        for one in (listener, *carried):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)  # ends what waits for it
        thread.join()


def _accept(listener: socket.socket, to: Address, carried: list[socket.socket]) -> None:
    threads = []
    with suppress(OSError):
        while True:
            near, _ = listener.accept()
            far = socket.socket(socket.AF_UNIX if isinstance(to, str) else socket.AF_INET)
            carried += [near, far]
            far.connect(to)
            for source, target in ((near, far), (far, near)):
                threads.append(threading.Thread(target=_carry, args=(source, target), daemon=True))
                threads[-1].start()
    for thread in threads:
        thread.join()
    for one in carried:
        one.close()


def _carry(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def server_of(url: str) -> Address:
    """Where the server of a libpq URL listens."""
    parsed = make_url(url)
    folder = parsed.query.get("host")
    port = int(str(parsed.query.get("port") or parsed.port or 5432))
    return f"{folder}/.s.PGSQL.{port}" if folder else (str(parsed.host), port)


def seen_from(url: str, host: str, port: int) -> str:
    """The libpq URL of the same database where its server is known by another address."""
    parsed = make_url(url).difference_update_query(["host", "port"])
    return parsed.set(host=host, port=port).render_as_string(hide_password=False)


class HostWorker:
    """A drain as a process on a host. Use as a context manager: it never outlives it."""

    def __init__(self, host: Host, environment: Mapping[str, str], **arguments: Any) -> None:
        # `ip netns exec` becomes the program that it starts.
        self._process = subprocess.Popen(
            ["ip", "netns", "exec", host.name, sys.executable, "-m", __name__, json.dumps(arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )

    def __enter__(self) -> HostWorker:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            _given(pipe).close()

    def hear(self) -> str:
        return _given(self._process.stdout).readline().rstrip("\n")

    def go(self) -> None:
        stdin = _given(self._process.stdin)
        stdin.write("go\n")
        stdin.flush()

    def kill(self) -> None:
        """Kill it as `kill -9` does, and wait until it is gone."""
        self._process.kill()
        self._process.wait()

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None


def _given(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


def main() -> None:
    """Be the drain on a host."""

    def say(word: str) -> None:
        print(word, flush=True)

    arguments = json.loads(sys.argv[1])
    say("ready")
    sys.stdin.readline()
    # The sandbox answers to nobody who calls it by another name than loopback.
    with forwarded("127.0.0.1", tuple(arguments.pop("provider"))) as port:
        say(json.dumps(run_worker(say, sandbox_url=f"http://127.0.0.1:{port}", **arguments)))


if __name__ == "__main__":
    main()
