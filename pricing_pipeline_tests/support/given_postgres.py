"""A server run from PostgreSQL binaries that are not the wheel's, to prove that other versions do.

For tests only: the product runs its own server (`db/embedded.py`) or uses one that somebody else runs.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg

from pricing_pipeline.db import embedded_cluster as cluster
from pricing_pipeline.db import embedded_home as places
from pricing_pipeline.processes.os_processes import child_setup
from pricing_pipeline_tests.support.patience import PATIENCE

_ROLES = {"superuser": places.SUPERUSER, "owner": places.OWNER, "worker": places.WORKER}
"""The names by which the embedded server calls them."""


class GivenPostgres:
    """PostgreSQL from the programs in `programs`, with the embedded server's roles and settings.

    Unless it is `durable`, its data is lost when the machine crashes. It dies with the thread that started it.
    """

    def __init__(self, programs: Path, home: Path, *, tcp_port: int | None = None, durable: bool = False) -> None:
        """`programs` are those of a PostgreSQL. With `tcp_port` it listens there, too, and has no roles but its own."""
        self._programs = programs
        self._home = home
        self._tcp_port = tcp_port
        self._is_durable = durable
        self._passwords = {name: secrets.token_urlsafe(24) for name in (places.SUPERUSER, places.OWNER, places.WORKER)}
        self._user = places.server_user(home / "data")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process id of the running server; None if none runs."""
        return self._process.pid if self.is_running and self._process else None

    @property
    def is_running(self) -> bool:
        """Whether it runs."""
        return self._process is not None and self._process.poll() is None

    def poll(self) -> int | None:
        """The exit status of the server; None if it runs or never started."""
        return None if self._process is None else self._process.poll()

    def url(self, database: str, role: str = "owner") -> str:
        """The libpq URL of a database, with the password of `role`."""
        role = _ROLES.get(role, role)
        folder = quote(str(self._home / "run"), safe="")
        return f"postgresql://{role}:{self._passwords[role]}@/{database}?host={folder}&port={self._port}"

    @property
    def _port(self) -> int:
        return self._tcp_port or 5432

    def start(self) -> None:
        """Return when it can be used; the first time, make its cluster and its roles."""
        is_new = not (self._home / "run").exists()
        if is_new:
            self._make_cluster()
        self._spawn()
        self._wait()
        if is_new and self._tcp_port is None:
            self._make_roles()

    def _make_cluster(self) -> None:
        for name in ("cluster", "run"):
            (self._home / name).mkdir(mode=0o700)
            places.give(self._home / name, self._user)
        password = self._home / "cluster" / "password"
        password.write_text(self._passwords[places.SUPERUSER])
        places.give(password, self._user)
        subprocess.run(
            [
                self._programs / "initdb",
                f"--pgdata={self._home / 'cluster' / 'data'}",
                f"--username={places.SUPERUSER}",
                f"--pwfile={password}",
                *("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"),
            ],
            cwd=self._home / "cluster",
            env=cluster.environment(),
            check=True,
            capture_output=True,
            **self._options(),
        )

    def _options(self) -> dict[str, Any]:
        return dict(self._user.popen_options()) if self._user else {}

    def _spawn(self) -> None:
        settings = cluster._TUNING | {
            "listen_addresses": "" if self._tcp_port is None else "127.0.0.1",
            "port": str(self._port),
            "unix_socket_directories": str(self._home / "run"),
            "max_connections": "300",
            "authentication_timeout": "15s",
        }
        if not self._is_durable:
            settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        del settings["reserved_connections"]  # since 16
        with (self._home / "postgresql.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    self._programs / "postgres",
                    *("-D", self._home / "cluster" / "data"),
                    *(word for name, value in settings.items() for word in ("-c", f"{name}={value}")),
                ],
                cwd=self._home / "cluster",
                env=cluster.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=child_setup(signal.SIGINT),
                **self._options(),
            )

    def stop(self, mode: str = "immediate") -> None:
        """End it; `fast` ends transactions first."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT if mode == "fast" else signal.SIGQUIT)
            self._process.wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            assert self._process is not None
            assert self._process.poll() is None, (self._home / "postgresql.log").read_text()
            try:
                psycopg.connect(self.url("postgres", places.SUPERUSER)).close()
                return
            except psycopg.OperationalError:
                assert time.monotonic() < deadline, "it does not start"
                time.sleep(0.02)

    def _make_roles(self) -> None:
        with psycopg.connect(self.url("postgres", places.SUPERUSER), autocommit=True) as connection:
            for role in (places.OWNER, places.WORKER):
                connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{self._passwords[role]}'")
            for role in places.GROUPS:
                connection.execute(f"CREATE ROLE {role} NOLOGIN")


def given_binaries() -> Path | None:
    """The folder that PRICING_TEST_POSTGRES_BIN names; None when the embedded server is to be used."""
    given = os.environ.get("PRICING_TEST_POSTGRES_BIN")
    return Path(given) if given else None
