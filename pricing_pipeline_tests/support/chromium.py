"""The browser that tests look at pages with (Debian: chromium)."""

from __future__ import annotations

import shutil

import pytest

CHROMIUM = shutil.which("chromium")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
