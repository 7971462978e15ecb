"""Files and folders that we rely on are in nobody else's hands, whatever umask a pipeline is started with."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from pricing_pipeline.db.embedded_home import Remembered
from pricing_pipeline.errors import EmbeddedServerError, SettingsError, SupervisorError
from pricing_pipeline.keys import master_keys
from pricing_pipeline.keys.sealing import new_key
from pricing_pipeline.processes.home import code_socket, prepare_home, temporary_folder, tidy_home
from pricing_pipeline.processes.os_processes import open_log, rotate_log
from pricing_pipeline.processes.own_files import replace_own
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


@pytest.mark.parametrize("owner", [pytest.param(OTHER, marks=needs_root), os.geteuid()])
def test_passwords_and_master_keys_in_other_hands_are_refused(tmp_path: Path, owner: int) -> None:
    passwords, keys = tmp_path / "postgres.json", tmp_path / "keys"
    Remembered().save(passwords)
    keys.write_text(new_key("k1"))
    keys.chmod(0o600)
    for path in (passwords, keys):
        os.chown(path, owner, -1)
        if owner == os.geteuid():
            path.chmod(0o620)
    with pytest.raises(EmbeddedServerError, match=r"postgres\.json with the database passwords"):
        Remembered.load(passwords)
    settings = Settings(master_key=SecretStr(f"file:{keys}"))
    with pytest.raises(SettingsError, match=r"the master keys in .* are (not safe|open to others)"):
        master_keys.load(settings)


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


@needs_root
def test_a_folder_of_somebody_else_is_no_place_for_sockets(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
