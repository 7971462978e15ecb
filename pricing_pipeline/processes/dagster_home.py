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
_AUTOMATION = "auto_materialize:\n  enabled: {0}\n  use_sensors: {0}\n"
_FOR_OTHERS = {
    _AUTOMATION.format("false"): _AUTOMATION.format("true"),
    # Only runs whose own tag says how often.
    "run_retries:\n  enabled: false\n": "run_retries:\n  enabled: true\n  max_retries: 0\n",
}
"""What dagster.yaml has for ours alone, because a daemon for it costs CPU, and what replaces it for others."""


def write(folder: Path, clone: Path, beside: Sequence[CodeLocation] = (), sockets: Path = Path()) -> None:
    """Write dagster.yaml and workspace.yaml from those of the clone.

    The workspace also has the code locations `beside` ours, whose code servers listen in the folder `sockets`. Dagster
    then follows conditions of their assets, and repeats failed runs that ask for it.

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
    for ours, for_others in _FOR_OTHERS.items() if beside else ():
        instance = instance.replace(ours, for_others)
    _put(folder / "dagster.yaml", instance)
    theirs = indent(yaml.safe_dump(entries, sort_keys=False), "  ") if beside else ""
    _put(workspace(folder), _WORKSPACE + theirs)


def workspace(folder: Path) -> Path:
    """The workspace.yaml of such a folder."""
    return folder / "workspace.yaml"


def _put(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)  # earlier releases left a link to the clone's file
    path.write_text(text)
