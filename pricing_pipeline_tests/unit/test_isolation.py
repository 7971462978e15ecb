"""No test sees what its user has set: neither in the environment, nor in a file `.env`, nor in the home folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pricing_pipeline.settings import Settings, load_settings

ROOT = Path(__file__).parents[2]
OTHERS = {
    "PRICING_NO_SUCH_SETTING": "1",  # every command refuses it
    "AWS_ACCESS_KEY_ID": "of-the-user",
    "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
    "DAGSTER_HOME": "/nowhere",
    "PGHOST": "/nowhere",
    "PGOPTIONS": "-c nonsense=1",
    "LC_ALL": "xx_XX",
    "TZ": "Asia/Kathmandu",
    "HTTP_PROXY": "http://127.0.0.1:9",
}


def other_than_default(name: str) -> str:
    """A value that a setting takes, and that is not its default."""
    default = Settings.model_fields[name].default
    if isinstance(default, bool):
        return str(not default).lower()
    if name == "user_agent":
        return "of-the-user/1.0"
    if name.endswith("_port") or isinstance(default, int | float):
        return "33"
    if name == "asset_prefix":
        return "of_the_user"
    if name.endswith("_address"):
        return "127.0.0.2"
    if name.endswith("_keys"):
        return "second=of-the-user"
    if name.endswith("_url"):
        return "s3://of-the-user/prices" if name == "export_url" else "http://127.0.0.1:9"
    return "33" if name == "uex_request_delay_ms" else "/nowhere/of-the-user"


def of_a_user() -> dict[str, str]:
    return {f"PRICING_{name.upper()}": other_than_default(name) for name in Settings.model_fields} | OTHERS


def test_c3_settings_have_their_defaults_here_and_in_processes() -> None:
    assert load_settings() == Settings.model_construct()
    seen = [name for name in of_a_user() if name in os.environ]
    assert (seen, os.listdir(os.environ["HOME"])) == ([], [])
    shown = "from pricing_pipeline.settings import load_settings; print(load_settings().model_dump_json())"
    run = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == load_settings().model_dump_json()


@pytest.mark.parametrize("way", ["environment", "file"])
def test_c3_what_a_user_has_set_reaches_no_test(tmp_path: Path, way: str) -> None:
    """Tests that fail when they see a setting are run where every setting is set."""
    settings = of_a_user()
    if way == "file":
        (tmp_path / ".env").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    caller = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)} | (settings if way == "environment" else {})
    tests = [f"{__file__}::test_c3_settings_have_their_defaults_here_and_in_processes"]
    tests.append(str(ROOT / "pricing_pipeline_tests/unit/test_settings_page.py"))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n0",
        "-p",
        "no:cacheprovider",
        "-c",
        ROOT / "pyproject.toml",
    ]
    run = subprocess.run(
        [*command, *tests], cwd=tmp_path, env=caller, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout
