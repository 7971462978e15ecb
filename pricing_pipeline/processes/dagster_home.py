"""The folder that Dagster's processes of `up` read: the clone's dagster.yaml with a storage, and the code servers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import indent

import yaml

from pricing_pipeline.errors import SettingsError
from pricing_pipeline.processes.code_locations import CodeLocation

_STORAGE = Path("deploy/dagster/storage.yaml")
_WORKSPACE = """\
# One code server, shared by the webserver and the daemon; on a unix socket, so that two never share a port.
load_from:
  - grpc_server:
      socket:
        env: PRICING_CODE_SOCKET
      location_name: pricing_pipeline
"""
_NO_AUTOMATION = "auto_materialize:\n  enabled: false\n  use_sensors: false\n"
_AUTOMATION = "auto_materialize:\n  enabled: true\n  use_sensors: true\n"


def write(folder: Path, clone: Path, beside: Sequence[CodeLocation] = (), sockets: Path = Path()) -> None:
    """Write dagster.yaml and workspace.yaml anew, from those of the clone as they are now.

    The workspace also has the code locations `beside` ours, whose code servers listen in the folder `sockets`. Their
    assets may have conditions, which Dagster then follows.

    Raises SettingsError for a `.env` in the folder: Dagster's processes work there, and would let it go before the
    settings that `up` gives them.
    """
    folder.mkdir(exist_ok=True)
    if (folder / ".env").exists():
        raise SettingsError(
            f"Dagster would read {folder / '.env'} before the settings. Move its lines to the .env of the folder that "
            "you start in, or delete it."
        )
    instance = (clone / "dagster.yaml").read_text() + (clone / _STORAGE).read_text()
    entries = [location.entry(sockets) for location in beside]
    _put(folder / "dagster.yaml", instance.replace(_NO_AUTOMATION, _AUTOMATION) if beside else instance)
    theirs = indent(yaml.safe_dump(entries, sort_keys=False), "  ") if beside else ""
    _put(workspace(folder), _WORKSPACE + theirs)


def workspace(folder: Path) -> Path:
    """The workspace.yaml of such a folder."""
    return folder / "workspace.yaml"


def _put(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)  # earlier releases left a link to the clone's file
    path.write_text(text)
