"""The folder that Dagster's processes read."""

from __future__ import annotations

from pathlib import Path

import pytest

from pricing_pipeline.errors import SettingsError
from pricing_pipeline.processes.dagster_home import workspace, write

ROOT = Path(__file__).parents[2]


def test_the_folder_has_a_storage_and_one_code_server(tmp_path: Path) -> None:
    folder = tmp_path / "dagster"
    for _ in range(2):
        write(folder, ROOT)
    assert "PRICING_DAGSTER_URL" in (folder / "dagster.yaml").read_text()
    assert "PRICING_CODE_SOCKET" in workspace(folder).read_text()


def test_settings_that_would_go_before_ours_are_refused(tmp_path: Path) -> None:
    """Dagster reads a `.env` of its working folder, and lets it go before the environment."""
    (tmp_path / ".env").write_text("PRICING_SANDBOX=false\n")
    with pytest.raises(SettingsError, match=r"Dagster would read .*/\.env before the settings\. Move its lines"):
        write(tmp_path, ROOT)
    assert not (tmp_path / "dagster.yaml").exists()
