"""The sources of master keys: the setting PRICING_MASTER_KEY, a file that it names, or our own file in the home.

A file is read each time, so that a new master key needs no restart. What is done with the keys is in `sealing`.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from pricing_pipeline.errors import NoMasterKey, SettingsError
from pricing_pipeline.keys.sealing import Keyring, new_key
from pricing_pipeline.local_files.own_files import NotPrivate, read_private, replace_own
from pricing_pipeline.processes.home import prepare_home
from pricing_pipeline.settings import Settings

_SETTING = "PRICING_MASTER_KEY"
_IN_FILE = "file:"
_HEADING = """\
# Master keys of the pricing pipeline, newest first. They seal API keys and addresses of recipients: the newest seals,
# each opens what it has sealed. A person with this file and the database can read them all. Without it they are lost.
"""


def master_key_file(settings: Settings) -> Path | None:
    """The path of the file with the master keys, existing or not; None if the setting has the keys themselves.

    Raises SettingsError when the setting names a file by a path that is not absolute.
    """
    setting = settings.master_key.get_secret_value().strip() if settings.master_key else ""
    if not setting:
        return settings.home.absolute() / "master.key"
    if not setting.startswith(_IN_FILE):
        return None
    path = Path(setting.removeprefix(_IN_FILE))
    if not path.is_absolute():
        raise SettingsError(f"{_SETTING} must name its file by a whole path, like file:/etc/pricing/master.key.")
    return path


def load(settings: Settings) -> Keyring:
    """The current master keys.

    Raises NoMasterKey if none exists yet, and SettingsError if the existing ones cannot be used. Neither repeats
    anything of a key.
    """
    path = master_key_file(settings)
    if path is not None:
        return _read(path)
    assert settings.master_key is not None  # noqa: S101 - otherwise there is a file
    try:
        return Keyring.parse(filter(None, map(str.strip, settings.master_key.get_secret_value().split(","))))
    except ValueError as error:
        raise SettingsError(
            f"PRICING_MASTER_KEY cannot be read: {error}. Write id:base64,id:base64 with the newest first, or "
            "file:/PATH; `openssl rand -base64 32` makes a key."
        ) from None


def load_or_make(settings: Settings) -> tuple[Keyring, Path | None]:
    """The master keys, and the file that has been made for the first one, if there was none."""
    try:
        return load(settings), None
    except NoMasterKey:
        path = _file_to_write(settings)
    with _locked(path):
        if path.exists():  # another process was quicker
            return _read(path), None
        _write(path, [new_key(_new_id())])
    return _read(path), path


def add(settings: Settings) -> Keyring:
    """Make a new master key, which is the newest from now on; the others stay. Raises SettingsError without a file."""
    path = _file_to_write(settings)
    with _locked(path):
        lines = _lines(path) if path.exists() else []
        if lines:
            _read(path)  # the old content must be valid before it is replaced
        _write(path, [new_key(_new_id()), *lines])
    return _read(path)


def _file_to_write(settings: Settings) -> Path:
    path = master_key_file(settings)
    if path is None:
        raise SettingsError(
            f"the master keys are in {_SETTING} itself, where nothing can be added. Put a new id:base64 before the "
            "others yourself, or move them all into a file and set PRICING_MASTER_KEY=file:/PATH."
        )
    if settings.master_key is None:
        prepare_home(settings.home)
    return path.resolve()  # not the link, if it is one


def _read(path: Path) -> Keyring:
    try:
        return Keyring.parse(_lines(path))
    except ValueError as error:
        raise _damaged(path, error) from None


def _damaged(path: Path, why: object) -> SettingsError:
    return SettingsError(
        f"the master keys in {path} cannot be read: {why}. It has one key in a line, newest first; restore it from a "
        "backup."
    )


def _lines(path: Path) -> list[str]:
    try:
        text = read_private(path, group_may_read=True)  # a service manager may give it to a group
    except NotPrivate as fault:
        raise SettingsError(f"the file {path} with the master keys {fault}.") from None
    except (FileNotFoundError, NotADirectoryError):
        raise NoMasterKey(
            f"there is no master key yet: {path} does not exist. If keys are stored already, restore it from a "
            f"backup or set {_SETTING}; otherwise `pricing-pipeline key set` makes one."
        ) from None
    except OSError as error:
        raise SettingsError(
            f"the master keys in {path} cannot be read ({error.strerror}). Run this as the user who runs the pipeline."
        ) from None
    except UnicodeError:
        raise _damaged(path, "it is not text") from None  # Python's own words repeat a byte of it
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _write(path: Path, lines: list[str]) -> None:
    replace_own(path, _HEADING + "".join(f"{line}\n" for line in lines), durable=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One command of ours at a time changes a file in this folder."""
    try:
        folder = os.open(path.parent, os.O_RDONLY)
    except OSError as error:
        raise SettingsError(
            f"the folder {path.parent} for the master keys cannot be opened ({error.strerror}). Make it, or set "
            f"{_SETTING} to another one."
        ) from None
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _new_id() -> str:
    return f"{datetime.now(UTC):%Y%m%d}-{secrets.token_hex(3)}"
