"""Programs of other packages that some tests need, where they are installed."""

from __future__ import annotations

import shutil
from pathlib import Path


def faketime() -> Path | None:
    """The library that Debian's package faketime preloads into programs; None where it is not installed."""
    program = shutil.which("faketime")
    found = Path(program).parents[1].glob("lib/*/faketime/libfaketimeMT.so.1") if program else ()
    return next(iter(found), None)
