"""The settings say where the UI is served, by which names it is called, and whether it asks for a token."""

from __future__ import annotations

import os
from ipaddress import ip_address
from pathlib import Path

import pytest

from pricing_pipeline.errors import SettingsError
from pricing_pipeline.processes.web_guard import own_hosts, ui_token
from pricing_pipeline.settings import Settings
from pricing_pipeline_tests.support.guarded import TOKEN


def write_token(home: Path, text: str = f"{TOKEN}\n", mode: int = 0o600) -> Path:
    path = home / "ui-token"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_on_loopback_no_token_is_needed(tmp_path: Path) -> None:
    assert ui_token(Settings(home=tmp_path)) is None
    assert ui_token(Settings(home=tmp_path / "none", ui_address="::1")) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.168.1.5", "fd00::1"])
def test_an_address_that_others_reach_needs_one(tmp_path: Path, address: str) -> None:
    open_to_others = Settings(home=tmp_path, ui_address=address)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match=f"{address} opens the Dagster UI .* no login. Set PRICING_UI_TOKEN"):
        ui_token(open_to_others)
    assert ui_token(open_to_others.model_copy(update={"ui_token": Settings(ui_token=TOKEN).ui_token})) == TOKEN  # type: ignore[arg-type]
    write_token(tmp_path)
    assert ui_token(open_to_others) == TOKEN


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602])
def test_a_token_file_that_others_may_open_is_refused(tmp_path: Path, mode: int) -> None:
    path = write_token(tmp_path, mode=mode)
    with pytest.raises(SettingsError, match=f"is open to others. Close it: chmod 600 {path}"):
        ui_token(Settings(home=tmp_path))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_token_file_of_another_user_is_refused(tmp_path: Path) -> None:
    os.chown(write_token(tmp_path), 12345, -1)
    with pytest.raises(SettingsError, match="belongs to user 12345, and this runs as root"):
        ui_token(Settings(home=tmp_path))


@pytest.mark.parametrize("token", ["short", "a token with spaces", "", "mit-Umlauten-ääääää"])
def test_a_token_that_cannot_work_is_refused_and_not_repeated(tmp_path: Path, token: str) -> None:
    write_token(tmp_path, token)
    with pytest.raises(SettingsError, match="16 characters or more") as caught:
        ui_token(Settings(home=tmp_path))
    assert not token or token not in str(caught.value)
    with pytest.raises(SettingsError, match="in PRICING_UI_TOKEN must have 16"):
        ui_token(Settings(home=tmp_path, ui_token=token))  # type: ignore[arg-type]


def test_a_token_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ui-token").write_bytes(b"\xff" * 20)
    (tmp_path / "ui-token").chmod(0o600)
    with pytest.raises(SettingsError, match="cannot be read"):
        ui_token(Settings(home=tmp_path))


def test_a_server_is_called_by_loopback_its_address_and_the_names_of_the_settings() -> None:
    settings = Settings(ui_hosts="Prices.example.com, 10.0.0.5:4000,[fd00::1]:80")  # type: ignore[arg-type]
    hosts = own_hosts(ip_address("192.168.1.5"), 3000, settings.ui_hosts)
    for host in ("localhost:3000", "127.0.0.1:3000", "[::1]:3000", "192.168.1.5:3000", "10.0.0.5:4000"):
        assert host in hosts
    assert {"Prices.example.com", "Prices.example.com:3000", "[fd00::1]:80"} < hosts
    assert "[fd00::2]:3000" in own_hosts(ip_address("fd00::2"), 3000, ())
    assert "0.0.0.0:3000" not in own_hosts(ip_address("0.0.0.0"), 3000, ())


@pytest.mark.parametrize("hosts", ["*", "*.example.com", "http://prices.example.com", "a b", "prices/", "fd00::1"])
def test_what_no_browser_sends_as_host_is_refused(hosts: str) -> None:
    with pytest.raises(ValueError, match="write names as in a URL"):
        Settings(ui_hosts=hosts)  # type: ignore[arg-type]
