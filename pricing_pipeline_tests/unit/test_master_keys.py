"""Where master keys come from (F9): the setting, a file it names, the file of the home."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import pytest
from pydantic import SecretStr

from pricing_pipeline.errors import NoMasterKey, SettingsError
from pricing_pipeline.keys import master_keys
from pricing_pipeline.keys.sealing import new_key
from pricing_pipeline.settings import Settings, load_settings


def given(home: Path, value: str | None = None) -> Settings:
    return Settings(home=home, master_key=None if value is None else SecretStr(value))


def test_f9_the_first_master_key_is_made_in_the_home_for_its_owner_alone(tmp_path: Path) -> None:
    settings = given(tmp_path / "home")
    with pytest.raises(NoMasterKey, match=r"home/master\.key does not exist.*key set"):
        master_keys.load(settings)
    keyring, made = master_keys.load_or_make(settings)
    assert made == tmp_path / "home/master.key"
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    again, not_made = master_keys.load_or_make(settings)
    assert (again.ids, not_made) == (keyring.ids, None)
    assert master_keys.load(settings).ids == keyring.ids
    assert list(made.parent.glob("master.key?*")) == []


def test_f9_two_that_make_the_first_master_key_at_once_get_the_same(tmp_path: Path) -> None:
    settings, found = given(tmp_path / "home"), []
    together = threading.Barrier(8)

    def make() -> None:
        together.wait()
        found.append(master_keys.load_or_make(settings))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({keyring.ids for keyring, _ in found}) == 1
    assert sum(made is not None for _, made in found) == 1


def test_f9_a_new_master_key_goes_before_the_others_and_loses_none(tmp_path: Path) -> None:
    settings = given(tmp_path / "home")
    (first,) = master_keys.load_or_make(settings)[0].ids
    added = master_keys.add(settings)
    assert added.ids[1:] == (first,)
    assert master_keys.add(settings).ids[1:] == added.ids
    assert stat.S_IMODE((tmp_path / "home/master.key").stat().st_mode) == 0o600


def test_f9_the_setting_may_hold_keys_or_name_a_file(tmp_path: Path) -> None:
    one, two = new_key("one"), new_key("two")
    assert master_keys.load(given(tmp_path, f" {two}, {one} ,")).ids == ("two", "one")
    path = tmp_path / "elsewhere.key"
    path.write_text(f"# the newest first\n\n{two}\n{one}\n")
    path.chmod(0o640)
    named = given(tmp_path, f"file:{path}")
    assert master_keys.load(named).ids == ("two", "one")
    assert master_keys.add(named).ids[1:] == ("two", "one")
    link = tmp_path / "link.key"
    link.symlink_to(path)
    assert len(master_keys.add(given(tmp_path, f"file:{link}")).ids) == 4
    assert link.is_symlink()


@pytest.mark.parametrize(
    "value",
    ["canary", "a:canary", "a:canary,b:canary", "file:canary/master.key", "file:", ",", f"a:{'A' * 40}"],
)
def test_f9_a_bad_value_is_one_sentence_that_does_not_repeat_it(
    tmp_path: Path, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRICING_HOME", str(tmp_path))
    monkeypatch.setenv("PRICING_MASTER_KEY", value)
    with pytest.raises(SettingsError, match="PRICING_MASTER_KEY") as refused:
        master_keys.load(load_settings())
    said = str(refused.value)
    assert "canary" not in said
    assert "AAAA" not in said
    assert "file:/" in said
    assert "\n" not in said


def test_f9_nothing_is_added_to_keys_that_stand_in_the_setting(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"before the others yourself.*file:/PATH"):
        master_keys.add(given(tmp_path, new_key("one")))


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o660, 0o602])
def test_f9_a_file_that_others_can_open_is_refused(tmp_path: Path, mode: int) -> None:
    settings = given(tmp_path)
    master_keys.load_or_make(settings)
    path = tmp_path / "master.key"
    path.chmod(mode)
    with pytest.raises(SettingsError, match=f"is open to others. Close it: chmod 600 {path}"):
        master_keys.load(settings)


def test_f9_a_damaged_file_is_refused_and_never_written_over(tmp_path: Path) -> None:
    settings = given(tmp_path)
    master_keys.load_or_make(settings)
    path = tmp_path / "master.key"
    path.write_text("canary")
    for attempt in (master_keys.load, master_keys.load_or_make, master_keys.add):
        with pytest.raises(SettingsError, match="restore it from a backup") as refused:
            attempt(settings)
        assert "canary" not in str(refused.value)
    assert path.read_text() == "canary"


def test_f9_a_file_that_is_no_text_is_refused_and_no_byte_of_it_repeated(tmp_path: Path) -> None:
    settings = given(tmp_path)
    (tmp_path / "master.key").write_bytes(b"\x9f" * 32)
    (tmp_path / "master.key").chmod(0o600)
    for attempt in (master_keys.load, master_keys.add):
        with pytest.raises(SettingsError, match="it is not text") as refused:
            attempt(settings)
        assert "9f" not in str(refused.value)


def test_f9_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"the folder .*/nowhere for the master keys cannot be opened"):
        master_keys.load_or_make(given(tmp_path, f"file:{tmp_path}/nowhere/master.key"))
