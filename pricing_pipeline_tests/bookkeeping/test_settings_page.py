"""C3: `.env.example` and the settings say the same, both ways."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from pricing_pipeline.settings import Settings, load_settings

ROOT = Path(__file__).parents[2]
PAGE = ROOT / ".env.example"
_LINE = re.compile(r"^#?(PRICING_[A-Z0-9_]+)=(.*)$", re.MULTILINE)


def documented() -> dict[str, str]:
    return dict(_LINE.findall(PAGE.read_text()))


def test_c3_every_setting_is_documented_and_every_documented_one_exists() -> None:
    assert documented().keys() == {f"PRICING_{name.upper()}" for name in Settings.model_fields}


def test_c3_no_setting_is_documented_twice() -> None:
    assert len(_LINE.findall(PAGE.read_text())) == len(documented())


def test_c3_the_page_with_every_line_uncommented_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in documented():
        monkeypatch.delenv(name, raising=False)
    defaults = load_settings()
    for name, value in documented().items():
        monkeypatch.setenv(name, value)
    assert load_settings() == defaults


def test_c3_each_setting_is_explained_right_above_its_line() -> None:
    lines = PAGE.read_text().splitlines()
    bare = [line for above, line in itertools.pairwise(lines) if _LINE.match(line) and above[:2] != "# "]
    assert bare == []


@pytest.mark.parametrize("where", ["pricing_pipeline", "docs", "README.md", "Makefile"])
def test_c3_every_setting_that_is_spoken_of_exists(where: str) -> None:
    place = ROOT / where
    files = [f for f in place.rglob("*") if f.suffix in {".py", ".md", ".sql"}] if place.is_dir() else [place]
    spoken_of = {
        name
        for file in files
        if file.exists()
        for name in re.findall(r"\bPRICING_[A-Z0-9]+(?:_[A-Z0-9]+)*\b(?![_<{*])", file.read_text())
        if not name.startswith("PRICING_TEST_")  # the test run's own
    }
    of_the_script = re.findall(
        r"^\\getenv \w+ (\w+)", (ROOT / "deploy/postgres/10-roles.sql").read_text(), re.MULTILINE
    )
    assert spoken_of <= documented().keys() | set(of_the_script)
