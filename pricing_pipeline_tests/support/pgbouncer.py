"""A real PgBouncer in transaction mode in front of a server of these tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from sqlalchemy import URL, make_url

from pricing_pipeline.db import embedded_home as places
from pricing_pipeline_tests.support.patience import PATIENCE

PROGRAM = shutil.which("pgbouncer", path=os.environ.get("PATH", "") + ":/usr/sbin")
HOW_TO_GET_IT = "no pgbouncer here (Debian: apt-get install pgbouncer)"

_SETTINGS = """
[databases]
* = host={host} port={port} auth_user={administrator}
[pgbouncer]
listen_addr =
listen_port = 6432
unix_socket_dir = {sockets}
auth_type = scram-sha-256
auth_file = {folder}/users.txt
pool_mode = transaction
default_pool_size = {sessions}
max_client_conn = 1000
server_check_query = select 1
server_idle_timeout = 5
{more}
"""


@contextmanager
def bouncing(server_url: str, folder: Path, *, sessions: int = 3, more: str = "") -> Iterator[str]:
    """Run a PgBouncer that lends `sessions` of the server to each login and database; yields its socket's folder.

    `server_url` is that of the superuser, with whose rights it looks up passwords.
    """
    direct = make_url(server_url)
    settings, users, sockets = (folder / name for name in ("pgbouncer.ini", "users.txt", "pgbouncer"))
    sockets.mkdir()
    settings.write_text(
        _SETTINGS.format(
            host=direct.query["host"],
            port=direct.query["port"],
            administrator=direct.username,
            sockets=sockets,
            folder=folder,
            sessions=sessions,
            more=more,
        )
    )
    users.write_text(f'"{direct.username}" "{direct.password}"\n')
    user = places.server_user(folder)  # as root it refuses to run
    for path in (settings, users, sockets):
        places.give(path, user)
    assert PROGRAM is not None, HOW_TO_GET_IT
    log_path = folder / "pgbouncer.log"
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            [PROGRAM, settings], stdout=log, stderr=log, **(user.popen_options() if user else {})
        )
    try:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                psycopg.connect(through(server_url, str(sockets))).close()
                break
            except psycopg.OperationalError:
                assert process.poll() is None, log_path.read_text()
                assert time.monotonic() < deadline, log_path.read_text()
                time.sleep(0.02)
        yield str(sockets)
    finally:
        process.kill()
        process.wait()


def through(url: str | URL, sockets: str) -> str:
    """The same URL by way of the PgBouncer whose sockets are in this folder."""
    changed = make_url(url).update_query_dict({"host": sockets, "port": "6432"})
    return changed.render_as_string(hide_password=False)
