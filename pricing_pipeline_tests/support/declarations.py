"""The declared providers of tests, from their files: copies of coded ones, and the examples of the documentation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pricing_pipeline.providers.declaration_file import Declared, read_file, read_text
from pricing_pipeline.providers.declared import DeclaredProvider

ROOT = Path(__file__).parents[2]
FUNDS = ROOT / "pricing_pipeline_tests" / "declarations" / "funds.yaml"
SHARES = ROOT / "pricing_pipeline_tests" / "declarations" / "shares.yaml"
FRANKFURTER = ROOT / "docs" / "examples" / "frankfurter.yaml"
FILES = (FUNDS, SHARES, FRANKFURTER)

DECLARED: Mapping[str, DeclaredProvider] = {
    provider.name: provider for provider in (DeclaredProvider(read_file(path)) for path in FILES)
}
"""Declared providers by name."""


def changed(path: Path, *changes: tuple[str, str]) -> Declared:
    """The declaration of a file after some changes of its text, each of what stands in it."""
    text = path.read_text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    return read_text(text, path.name)
