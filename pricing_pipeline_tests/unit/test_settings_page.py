"""C3: `.env.example` and the settings say the same, both ways."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from pricing_pipeline.settings import Settings, load_settings

PAGE = Path(__file__).parents[2] / ".env.example"
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
