"""The PostgreSQL server that we run ourselves: make its cluster, start it, stop it, connect to it.

`embedded_home` has the places of its parts, `embedded_cluster` handles its files. The migrations fill the databases.

A server dies with the process that started it, also by kill -9. Two locks limit a home to one server: `postgres.lock`
in the home belongs to the process that owns the server; every server process inherits `server.lock` in the cluster's
folder, so it is free only when all of them have ended. A process with both locks knows that a `postmaster.pid` is left
over.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self
from urllib.parse import quote

from pricing_pipeline.db import embedded_cluster as cluster_files
from pricing_pipeline.db import embedded_home as places
from pricing_pipeline.db.engine import libpq_url, make_engine, parsed_url
from pricing_pipeline.db.query_loader import query
from pricing_pipeline.errors import EmbeddedServerError
from pricing_pipeline.processes.os_processes import child_setup, last_lines, open_log, without_libpq_variables

if TYPE_CHECKING:
    from sqlalchemy import Connection

Role = Literal["owner", "worker", "location", "superuser"]

DATABASES = ("pricing", "dagster")
"""The first is the owner's. The second is the superuser's, and what is in it the worker's: Dagster's processes know the
worker's password and no other."""
RELOCATION = Path("/var/lib/pricing-pipeline")
"""Where cluster and binaries go when a server started by root cannot reach them in the home."""

_ROLES = {
    "owner": places.OWNER,
    "worker": places.WORKER,
    "location": places.LOCATION,
    "superuser": places.SUPERUSER,
}

# Given on the command line at each start, because safety and our own bookkeeping depend on them.
_FIXED = {
    "listen_addresses": "",
    "port": "5432",
    "unix_socket_permissions": "0700",
    "logging_collector": "off",  # standard error is our log file, rotated with the others
    "fsync": "on",
}
_FOR_TESTS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "400",
    # A client that is frozen while it logs in keeps every DROP DATABASE waiting for this long.
    "authentication_timeout": "15s",
    "scram_iterations": "1",  # of 4096, each of a test's sessions takes 6 ms to log in
}


class EmbeddedServer:
    """PostgreSQL 18 on a private unix socket, for the one process that starts it and its clients.

    Start it from the main thread: it gets a fast shutdown when the thread that started it ends.
    As root it runs as the user `postgres` or `nobody`. With `for_tests`, a crash of the machine loses data.
    """

    def __init__(self, home: Path, *, for_tests: bool = False, relocation: Path = RELOCATION) -> None:
        self.home = home.absolute()
        self._for_tests = for_tests
        self._relocation = relocation
        self._process: subprocess.Popen[bytes] | None = None
        self._owner_lock: int | None = None
        self._log_start = 0

    # ── Where things are ─────────────────────────────────────────────────────────────────────────

    @property
    def log_path(self) -> Path:
        """The server's log, in UTC."""
        return self.home / "logs" / "postgresql.log"

    @property
    def cluster_dir(self) -> Path:
        """Folder of the cluster: in the home, or elsewhere when the server's user cannot enter the home."""
        remembered = places.Remembered.load(self._memory)
        return Path(remembered.cluster) if remembered and remembered.cluster else self.home / "postgres"

    @property
    def data_dir(self) -> Path:
        """PostgreSQL's data directory."""
        return self.cluster_dir / "data"

    @property
    def _memory(self) -> Path:
        return self.home / "postgres.json"

    def url(self, database: str, role: Role = "owner") -> str:
        """Return the libpq URL of a database; it contains the password.

        Needs no running server, so any process that may read the home can ask for it.
        Raises EmbeddedServerError when this home has never had a server.
        """
        remembered = places.Remembered.load(self._memory)
        if remembered is None and not self.home.is_dir():
            raise EmbeddedServerError(
                f"the home {self.home} does not exist. Set PRICING_HOME to the folder where a pipeline was started, "
                "start one there with `pricing-pipeline up`, or set PRICING_DATABASE_URL to a server of your own."
            )
        if remembered is None:
            raise EmbeddedServerError(
                f"there is no database in {self.home} yet. Start it with `pricing-pipeline up`, "
                "or set PRICING_DATABASE_URL to a server of your own."
            )
        name = _ROLES[role]
        folder = quote(str(places.socket_folder(self.home, remembered)), safe="")
        login = f"{name}:{remembered.passwords[name]}"
        return f"postgresql://{login}@/{quote(database, safe='')}?host={folder}&port=5432"

    # ── Running ──────────────────────────────────────────────────────────────────────────────────

    @property
    def pid(self) -> int | None:
        """Process id of the running server, started by any process; None if none runs."""
        if self._process is not None and self._process.poll() is None:
            return self._process.pid
        return cluster_files.server_pid(self.data_dir)

    @property
    def is_running(self) -> bool:
        """Whether a server runs on this home, started by any process."""
        return self.pid is not None

    def poll(self) -> int | None:
        """Return the exit status of the server this object started; None if it runs or never started."""
        return None if self._process is None else self._process.poll()

    def start(self, check: Callable[[], None] = lambda: None) -> None:
        """Start the server, make missing parts (cluster, roles, databases), and return when it can be used.

        Waits without limit while the server recovers after a crash. Raises EmbeddedServerError, with the last
        lines of the log, when the server cannot run; at once when another process runs one on this home.
        `check` is called while waiting and gives up the start by raising.
        """
        # A predecessor whose owner was killed may still be writing its last checkpoint.
        self.launch(60, check)
        try:
            while not self.is_ready():
                check()
                time.sleep(0.01)
            self._complete()
        except BaseException:
            self.stop("immediate")
            raise

    def launch(self, patience: float = 1, check: Callable[[], None] = lambda: None) -> None:
        """Start the server process without waiting for it: for `start`, and to restart one that died.

        Waits up to `patience` seconds for the processes of a predecessor that are still ending.
        """
        if self._process is not None and self._process.poll() is None:
            return
        self._take_ownership()
        try:
            self._launch(patience, check)
        except OSError as error:
            self._release_ownership()
            raise EmbeddedServerError(
                f"PostgreSQL cannot be started in {self.home}: {error}. "
                "Check free space and permissions there, or set PRICING_HOME to another folder."
            ) from error
        except BaseException:
            self._release_ownership()
            raise

    def is_ready(self) -> bool:
        """Tell whether the server accepts connections. Raises EmbeddedServerError when it has died."""
        if self._process is None or self._process.poll() is not None:
            status = "was not started" if self._process is None else f"ended ({self._process.returncode})"
            lines = last_lines(self.log_path, self._log_start)
            raise EmbeddedServerError(
                f"PostgreSQL on {self.data_dir} {status}. Its log {self.log_path} ends with:\n{lines}"
            )
        state = cluster_files.lock_file(self.data_dir)
        return state[:1] == [str(self._process.pid)] and state[7:8] == ["ready"]

    def stop(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        """Stop the server this object started and wait until it is gone; does nothing if none runs.

        `fast` ends transactions and writes a checkpoint; `immediate` leaves recovery to the next start,
        and is what follows when `fast` takes more than 30 seconds.
        """
        process = self._process
        if process is not None:
            if process.poll() is None and mode == "fast":
                process.send_signal(signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(30)
            if process.poll() is None:
                process.send_signal(signal.SIGQUIT)
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
            self._process = None
            self._remove_socket_folder()
        self._release_ownership()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    # ── Steps of a start ─────────────────────────────────────────────────────────────────────────

    def _take_ownership(self) -> None:
        if self._owner_lock is not None:
            return
        try:
            self.home.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.home / "postgres.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise EmbeddedServerError(
                f"the home {self.home} cannot be written: {error.strerror}. Set PRICING_HOME to a folder of yours."
            ) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(descriptor, 20, 0).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            raise EmbeddedServerError(
                f"process {owner} already runs PostgreSQL in {self.home}. Stop it first, "
                "or set PRICING_HOME to another folder."
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._owner_lock = descriptor

    def _release_ownership(self) -> None:
        if self._owner_lock is not None:
            os.close(self._owner_lock)
            self._owner_lock = None

    def _launch(self, patience: float, check: Callable[[], None]) -> None:
        remembered = places.Remembered.load(self._memory)
        if remembered is None and (self.home / "postgres" / "data").exists():
            raise EmbeddedServerError(
                f"{self.home / 'postgres'} holds a database, but {self._memory} with its passwords is "
                "missing. Restore that file from a backup, or move the database away to start with an "
                "empty one."
            )
        remembered = remembered or places.Remembered()
        user = places.server_user(self._data_of(remembered))
        if user is not None and remembered.cluster is None and not user.can_use(self.home):
            remembered.cluster = str(places.new_relocated_cluster(self.home, self._relocation))
        cluster = self._data_of(remembered).parent
        places.make_cluster_folder(cluster, user)
        cluster_lock = cluster_files.lock_cluster(cluster, patience, check)
        try:
            places.prepare_socket_folder(self.home, remembered, user)
            remembered.save(self._memory)
            programs = places.binaries(user, self._relocation)
            password = remembered.passwords[places.SUPERUSER]
            cluster_files.make_cluster(programs, cluster, user, password, sync=not self._for_tests)
            cluster_files.drop_left_over_lock_file(self.data_dir)
            self._spawn(programs, places.socket_folder(self.home, remembered), user, cluster_lock)
        except BaseException:
            places.remove_socket_folder(self.home, remembered)
            raise
        finally:
            os.close(cluster_lock)  # from here on only the server's processes hold it

    def _remove_socket_folder(self) -> None:
        with contextlib.suppress(EmbeddedServerError):  # its record is damaged or gone, and the server has ended anyway
            remembered = places.Remembered.load(self._memory)
            if remembered is not None:
                places.remove_socket_folder(self.home, remembered)

    def _data_of(self, remembered: places.Remembered) -> Path:
        return (Path(remembered.cluster) if remembered.cluster else self.home / "postgres") / "data"

    def _spawn(self, programs: Path, sockets: Path, user: places.ServerUser | None, cluster_lock: int) -> None:
        settings = _FIXED | (_FOR_TESTS if self._for_tests else {})
        settings["unix_socket_directories"] = '"' + str(sockets).replace('"', '""') + '"'
        log = open_log(self.log_path)
        self._log_start = os.fstat(log).st_size
        try:
            self._process = subprocess.Popen(
                [
                    programs / "postgres",
                    "-D",
                    self.data_dir,
                    *(word for name, value in settings.items() for word in ("-c", f"{name}={value}")),
                ],
                cwd=self.data_dir,
                env=cluster_files.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(cluster_lock,),
                start_new_session=True,
                preexec_fn=child_setup(signal.SIGINT),  # fast shutdown
                **(user.popen_options() if user else {}),
            )
        finally:
            os.close(log)

    def _complete(self) -> None:
        """Make the missing roles and databases, and finish a first start that was killed.

        Corrects what an earlier version set up: a worker with the owner's rights, a database of Dagster that the worker
        could change.
        """
        remembered = places.Remembered.load(self._memory)
        if remembered is None:
            raise EmbeddedServerError(f"{self._memory} with the database passwords has disappeared.")
        with _plain_libpq():
            with self._as_superuser("postgres") as connection:
                server = connection.connection.driver_connection.pgconn  # type: ignore[union-attr]
                names = [places.OWNER, places.WORKER, places.LOCATION]
                # Verifiers, so that no password appears in the log of a statement that fails.
                verifiers = [
                    server.encrypt_password(
                        remembered.passwords[name].encode(), name.encode(), b"scram-sha-256"
                    ).decode()
                    for name in names
                ]
                ours = {"owner": places.OWNER, "worker": places.WORKER}
                wanted = ours | {
                    "location": places.LOCATION,
                    "roles": names,
                    "verifiers": verifiers,
                    "groups": list(places.GROUPS),
                    "databases": list(DATABASES),
                }
                connection = connection.execution_options(isolation_level="AUTOCOMMIT")
                for statement in connection.scalars(query("embedded.setup"), wanted).all():
                    connection.exec_driver_sql(statement)
                databases = connection.scalars(query("embedded.open_databases")).all()
                is_others = connection.scalar(query("embedded.is_others"), {"database": "dagster"})
            if is_others:
                self._hand_over("dagster")
            for database in databases:
                with self._as_superuser(database) as connection, connection.begin():
                    for statement in connection.scalars(query("embedded.keep_from_people"), ours).all():
                        connection.exec_driver_sql(statement)
            with self._as_superuser("dagster") as connection, connection.begin():
                theirs = {"worker": places.WORKER, "location": places.LOCATION}
                for statement in connection.scalars(query("embedded.let_locations_report"), theirs).all():
                    connection.exec_driver_sql(statement)
            with self._as_superuser("pricing") as connection, connection.begin():
                connection.execute(query("roles.set_timeouts"))

    def _hand_over(self, database: str) -> None:
        """Take a database from the worker: its owner could change the meaning of names in its sessions."""
        with self._as_superuser(database) as connection, connection.begin():
            for statement in connection.scalars(query("embedded.hand_over"), {"worker": places.WORKER}).all():
                connection.exec_driver_sql(statement)

    @contextlib.contextmanager
    def _as_superuser(self, database: str) -> Iterator[Connection]:
        """Connect so that no name means what another role has made it mean: PostgreSQL's own objects, and no others."""
        url = parsed_url(self.url(database, "superuser"))
        url = url.update_query_dict({"options": "-c search_path=pg_catalog,pg_temp"})
        engine = make_engine(libpq_url(url))
        try:
            with engine.connect() as connection:
                yield connection
        finally:
            engine.dispose()


@contextlib.contextmanager
def _plain_libpq() -> Iterator[None]:
    """Keep PGOPTIONS and similar variables from changing a connection that must not depend on them."""
    before = dict(os.environ)
    hidden = before.keys() - without_libpq_variables(before).keys()
    for name in hidden:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update({name: before[name] for name in hidden})
