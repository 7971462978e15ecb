"""The file `.env` of the current folder, from which every command takes settings that the environment lacks.

Nothing here imports anything slow, so that `--help` is quick.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from pricing_pipeline.errors import SettingsError
from pricing_pipeline.local_files.own_files import close_to_group, who_else_may_change

if TYPE_CHECKING:
    from dotenv.parser import Original

_IS_OURS = re.compile(r"\s*(export\s+)?['\"]?PRICING_", re.IGNORECASE)
"""The beginning of a line with one of our settings, or meant to have one."""


def env_file() -> Path | None:
    """The file that is read; None if it does not exist."""
    path = Path(".env").absolute()
    return path if path.is_file() else None


def refuse(fault: str) -> NoReturn:
    """The reaction of a command to a fault of the settings: raises SettingsError."""
    raise SettingsError(fault)


def read_env_file(complain: Callable[[str], object] = refuse) -> None:
    """Add its settings (`PRICING_...`) to the environment, which goes before it. Values are taken as they are.

    A file that names another home than the environment is for that home, and is ignored. Other variables in it belong
    to other programs. Complains of a file that cannot be read or that others may write, and of a setting without a
    value, which must not be ignored silently.
    """
    path = env_file()
    if path is None:
        return
    from dotenv.parser import parse_stream

    try:
        # Somebody else's lines may hold bytes of any encoding.
        with path.open(encoding="utf-8", errors="surrogateescape") as file:
            lines = [line for line in parse_stream(file) if _IS_OURS.match(line.original.string)]
            if lines:  # otherwise it belongs to another program
                if path.is_symlink() and path.lstat().st_uid not in (os.geteuid(), 0):
                    complain(f"{path} is a link of another user's. Put the settings into the environment instead.")
                    return
                close_to_group(file.fileno())
                if (fault := who_else_may_change(path, file.fileno())) is not None:
                    complain(f"{path} holds settings, and {fault}. Or put them into the environment and move it away.")
                    return
    except OSError as error:
        complain(f"{path} cannot be read: {error.strerror}. It holds settings; correct it or move it away.")
        return
    home = os.environ.get("PRICING_HOME")
    named = next((line.value for line in reversed(lines) if line.key == "PRICING_HOME" and line.value), None)
    if home and named and _absolute(home) != _absolute(named):
        return
    for line in lines:
        if line.error or line.key is None or line.value is None or not _is_text(line.value):
            # The line itself is not shown: it may hold a secret.
            complain(
                f"line {_number(line.original)} of {path} cannot be read. Write it like PRICING_WEB_PORT=3000, in "
                "UTF-8, with quotes around what holds quotes or #."
            )
        else:
            os.environ[line.key] = os.environ.get(line.key) or line.value


def _absolute(home: str) -> Path:
    return Path(os.path.expandvars(home)).expanduser().absolute()


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _number(original: Original) -> int:
    """The number of a line in its file: the parser counts from the empty lines before it."""
    text = original.string
    return original.line + text[: len(text) - len(text.lstrip())].count("\n")
