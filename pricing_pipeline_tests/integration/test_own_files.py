"""Files and folders that we rely on are in nobody else's hands, whatever umask a pipeline is started with."""

from __future__ import annotations

import os
import pwd
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from pricing_pipeline.db.embedded_home import Remembered, warn_of_account
from pricing_pipeline.errors import EmbeddedServerError, SettingsError, SupervisorError
from pricing_pipeline.keys import master_keys
from pricing_pipeline.keys.sealing import new_key
from pricing_pipeline.local_files.own_files import replace_own
from pricing_pipeline.processes import home as homes
from pricing_pipeline.processes.home import code_socket, prepare_home, temporary_folder, tidy_home
from pricing_pipeline.processes.os_processes import open_log, rotate_log
from pricing_pipeline.settings import Settings

AS_ROOT = os.geteuid() == 0
OTHER = 65534

needs_root = pytest.mark.skipif(not AS_ROOT, reason="only root can give files away")


@pytest.fixture
def careless() -> Iterator[None]:
    """A umask that closes nothing."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_home_is_closed_whatever_the_umask(careless: None, tmp_path: Path) -> None:
    home = tmp_path / "parent" / "home"
    prepare_home(home)
    assert mode(home.parent) == 0o755
    assert mode(home) == (0o711 if AS_ROOT else 0o700)
    assert mode(home / "logs") == 0o700


def test_a_home_that_all_may_write_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(SupervisorError, match=r"may be written by others: run `chmod go-w .*PRICING_HOME"):
        prepare_home(tmp_path)


def test_a_home_that_a_group_may_write_is_closed_to_it(tmp_path: Path) -> None:
    tmp_path.chmod(0o775)
    prepare_home(tmp_path)
    assert mode(tmp_path) == 0o755


@needs_root
def test_a_home_of_somebody_else_is_refused(tmp_path: Path) -> None:
    os.chown(tmp_path, OTHER, OTHER)
    with pytest.raises(SupervisorError, match="belongs to nobody, and this runs as root"):
        prepare_home(tmp_path)


@pytest.mark.parametrize(
    ("owner", "mode", "fault"),
    [
        pytest.param(OTHER, 0o600, "belongs to nobody, and this runs as root", marks=needs_root),
        (os.geteuid(), 0o620, "is open to others. Close it: chmod 600"),
        (os.geteuid(), 0o604, "is open to others. Close it: chmod 600"),
    ],
)
def test_passwords_and_master_keys_in_other_hands_are_refused(
    tmp_path: Path, owner: int, mode: int, fault: str
) -> None:
    passwords, keys = tmp_path / "postgres.json", tmp_path / "keys"
    Remembered().save(passwords)
    keys.write_text(new_key("k1"))
    for path in (passwords, keys):
        path.chmod(mode)
        os.chown(path, owner, -1)
    with pytest.raises(EmbeddedServerError, match=rf"postgres\.json with the database passwords .* {fault}"):
        Remembered.load(passwords)
    settings = Settings(master_key=SecretStr(f"file:{keys}"))
    with pytest.raises(SettingsError, match=f"the file {keys} with the master keys {fault}"):
        master_keys.load(settings)


def test_passwords_that_a_group_may_read_are_refused_and_master_keys_are_not(tmp_path: Path) -> None:
    """A service manager may give master keys to a group; the passwords are written by us alone."""
    passwords, keys = tmp_path / "postgres.json", tmp_path / "keys"
    Remembered().save(passwords)
    keys.write_text(new_key("k1"))
    for path in (passwords, keys):
        path.chmod(0o640)
    with pytest.raises(EmbeddedServerError, match="is open to others"):
        Remembered.load(passwords)
    assert master_keys.load(Settings(master_key=SecretStr(f"file:{keys}"))).ids == ("k1",)


def test_what_is_written_to_stay_is_on_the_disk_with_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.fstat(file).st_ino))
    Remembered().save(tmp_path / "postgres.json")
    assert synced == [(tmp_path / "postgres.json").stat().st_ino, tmp_path.stat().st_ino]


@pytest.mark.parametrize("linked", [False, True])
def test_a_home_below_a_folder_that_all_may_write_is_refused(tmp_path: Path, linked: bool) -> None:
    """They could put a folder of their own in its place while we work in it."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    home = shared / "one" / "home"
    if linked:
        (tmp_path / "elsewhere").mkdir()
        (shared / "one").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SupervisorError, match=rf"{shared} may be written by others\. Run `chmod o-w .*PRICING_HOME"):
        prepare_home(home)
    assert not home.exists()
    shared.chmod(0o1777)  # like /tmp: nobody moves what is somebody else's
    prepare_home(home)


@pytest.mark.parametrize("length", [10, 50, 200], ids=lambda length: f"{length} letters")
def test_sockets_of_a_home_have_a_private_place_and_are_gone_when_it_is_tidied(
    careless: None, open_folder: Path, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    """With 50, the code server's socket has room in the home, and the longer names of temporary ones do not."""
    monkeypatch.setattr("tempfile.tempdir", str(open_folder))
    home = open_folder / ("x" * length)
    prepare_home(home)
    folder = temporary_folder(home)
    assert (folder.parent == home) == (length == 10)
    assert (code_socket(home).parent == home) == (length < 200)
    assert mode(folder) == 0o700
    paths = [code_socket(home), folder / "pymp-12345678" / "listener-12345678"]
    paths[1].parent.mkdir()
    for path in paths:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(path))
    assert folder == temporary_folder(home)
    assert all(path.is_socket() for path in paths)
    tidy_home(home)
    assert [path for path in (*paths, folder) if path.exists()] == []
    assert list(open_folder.iterdir()) == [home]


def test_a_link_in_place_of_temporary_files_is_not_followed(open_folder: Path) -> None:
    victim, home = open_folder / "victim", open_folder / "home"
    for folder in (victim, home):
        folder.mkdir()
    (victim / "kept").touch()
    link = temporary_folder(home)
    link.rmdir()
    link.symlink_to(victim)
    tidy_home(home)
    assert (victim / "kept").exists()
    assert not link.is_symlink()


def test_a_folder_of_the_users_own_is_left_alone(open_folder: Path) -> None:
    """A home may be any folder: a user's, or the root of a container."""
    (open_folder / "tmp").mkdir()
    (open_folder / "tmp" / "kept").touch()
    temporary_folder(open_folder)
    tidy_home(open_folder)
    assert (open_folder / "tmp" / "kept").exists()


@pytest.mark.parametrize("kind", ["link", pytest.param("folder", marks=needs_root)])
@pytest.mark.parametrize("length", [10, 200])
def test_what_others_put_where_a_long_home_has_its_sockets_is_not_touched(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str, length: int
) -> None:
    """A home with a short path starts all the same."""
    monkeypatch.setattr("tempfile.tempdir", str(open_folder))
    name = homes._short_folder_path(folder := open_folder / ("x" * length))
    if kind == "link":
        name.symlink_to("/nonexistent")
    else:
        (name / "kept").mkdir(parents=True)
        os.chown(name, OTHER, OTHER)
    prepare_home(folder)
    tidy_home(folder)
    assert name.is_symlink() or (name / "kept").exists()
    if length == 10:
        assert code_socket(folder).parent == temporary_folder(folder).parent == folder
    else:
        with pytest.raises(SupervisorError, match=r"cannot be made|is somebody else's"):
            code_socket(folder)


@needs_root
def test_a_folder_of_somebody_else_is_no_place_for_sockets(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(open_folder))
    home = open_folder / ("x" * 200)
    home.mkdir()
    os.chown(temporary_folder(home).parent, OTHER, OTHER)
    for place in (temporary_folder, code_socket):
        with pytest.raises(SupervisorError, match=r"is somebody else's; set PRICING_HOME to a shorter path"):
            place(home)


def test_what_a_killed_writer_left_is_removed(careless: None, tmp_path: Path) -> None:
    path = tmp_path / "postgres.json"
    (tmp_path / "postgres.json.new").write_text("half of it, and longer than what comes")
    replace_own(path, "whole")
    assert (path.read_text(), mode(path)) == ("whole", 0o600)
    assert list(tmp_path.iterdir()) == [path]


def test_logs_are_not_written_through_links(tmp_path: Path) -> None:
    victim, log = tmp_path / "victim", tmp_path / "postgresql.log"
    victim.write_text("kept")
    log.symlink_to(victim)
    with pytest.raises(OSError, match="symbolic link"):
        open_log(log)
    log.unlink()
    log.write_text("x" * 100)
    (tmp_path / "postgresql.log.1").symlink_to(victim)
    assert rotate_log(log, limit=10)
    assert victim.read_text() == "kept"
    assert (tmp_path / "postgresql.log.1").read_text() == "x" * 100


@needs_root
def test_whoever_starts_a_server_as_nobody_is_told_who_else_can_use_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a container there is often no other account, so it is not refused."""
    known = pwd.getpwnam

    def without_postgres(name: str) -> pwd.struct_passwd:
        if name == "postgres":
            raise KeyError(name)
        return known(name)

    monkeypatch.setattr(pwd, "getpwnam", without_postgres)
    assert "every program that runs as nobody can read and change" in str(warn_of_account(tmp_path / "data"))
    os.chown(tmp_path, known("daemon").pw_uid, -1)
    assert warn_of_account(tmp_path) is None
