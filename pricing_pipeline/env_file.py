"""The file `.env` of the current folder, from which every command takes settings that the environment lacks.

Nothing here imports anything slow, so that `--help` is quick.
"""

from __future__ import annotations

import os
from pathlib import Path

from pricing_pipeline.errors import SettingsError

_PREFIX = "PRICING_"


def env_file() -> Path | None:
    """The file that is read; None when there is none."""
    path = Path(".env").absolute()
    return path if path.is_file() else None


def read_env_file() -> None:
    """Add its settings (`PRICING_...`) to the environment, which goes before it. Values are taken as they are.

    Raises SettingsError for a file that cannot be read, or a line that says nothing: it must not be passed over.
    """
    path = env_file()
    if path is None:
        return
    from dotenv.parser import parse_stream

    try:
        with path.open(encoding="utf-8") as file:
            lines = list(parse_stream(file))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise SettingsError(
            f"{path} cannot be read: {reason}. It holds settings; mend it or move it away."
        ) from None
    for line in lines:
        if line.error or (line.key is not None and line.value is None):
            # The line itself is not shown: it may hold a secret.
            raise SettingsError(
                f"line {line.original.line} of {path} cannot be read. Write it like PRICING_WEB_PORT=3000, with quotes "
                "around what holds quotes or #."
            )
    for line in lines:
        if line.key is not None and line.value is not None and line.key.upper().startswith(_PREFIX):
            os.environ[line.key] = os.environ.get(line.key) or line.value
