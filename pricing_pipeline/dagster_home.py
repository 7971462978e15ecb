"""The folder that Dagster's processes of `up` read: the clone's dagster.yaml with a storage, and one code server."""

from __future__ import annotations

from pathlib import Path

_STORAGE = """
# Its tables are made by `up`; looked for by whoever opens the storage, they would cost three connections for each tick.
storage:
  postgres:
    postgres_url:
      env: PRICING_DAGSTER_URL
    should_autocreate_tables: false
"""
_WORKSPACE = """\
# One code server, shared by the webserver and the daemon; on a unix socket, so that two never share a port.
load_from:
  - grpc_server:
      socket:
        env: PRICING_CODE_SOCKET
      location_name: pricing_pipeline
"""


def write(folder: Path, clone: Path) -> None:
    """Write dagster.yaml and workspace.yaml anew, from those of the clone as they are now."""
    folder.mkdir(exist_ok=True)
    _put(folder / "dagster.yaml", (clone / "dagster.yaml").read_text() + _STORAGE)
    _put(workspace(folder), _WORKSPACE)


def workspace(folder: Path) -> Path:
    """The workspace.yaml of such a folder."""
    return folder / "workspace.yaml"


def _put(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)  # earlier releases left a link to the clone's file
    path.write_text(text)
