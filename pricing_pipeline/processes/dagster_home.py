"""The folder that Dagster's processes of `up` read: the clone's dagster.yaml with a storage, and one code server."""

from __future__ import annotations

from pathlib import Path

from pricing_pipeline.errors import SettingsError

_STORAGE = Path("deploy/dagster/storage.yaml")
_WORKSPACE = """\
# One code server, shared by the webserver and the daemon; on a unix socket, so that two never share a port.
load_from:
  - grpc_server:
      socket:
        env: PRICING_CODE_SOCKET
      location_name: pricing_pipeline
"""


def write(folder: Path, clone: Path) -> None:
    """Write dagster.yaml and workspace.yaml anew, from those of the clone as they are now.

    Raises SettingsError for a `.env` in the folder: Dagster's processes work there, and would let it go before the
    settings that `up` gives them.
    """
    folder.mkdir(exist_ok=True)
    if (folder / ".env").exists():
        raise SettingsError(
            f"Dagster would read {folder / '.env'} before the settings. Move its lines to the .env of the folder that "
            "you start in, or delete it."
        )
    _put(folder / "dagster.yaml", (clone / "dagster.yaml").read_text() + (clone / _STORAGE).read_text())
    _put(workspace(folder), _WORKSPACE)


def workspace(folder: Path) -> Path:
    """The workspace.yaml of such a folder."""
    return folder / "workspace.yaml"


def _put(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)  # earlier releases left a link to the clone's file
    path.write_text(text)
