"""What `pricehist` reads of Yahoo: `read_pricehist.py BASE_URL`, JSON to stdout. It has no setting for another host."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from typing import Any

import requests
from moved import YAHOO, move
from pricehist.cli import cli

(base_url,) = sys.argv[1:]
move(requests.Session, {YAHOO: base_url})


def told(*words: str) -> list[Any]:
    """Its exit code and the lines that it writes."""
    out = io.StringIO()
    code: Any = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        try:
            cli(["pricehist", "fetch", "yahoo", *words])
        except SystemExit as ended:
            code = ended.code
    return [code, out.getvalue().splitlines()]


span = ("-s", "2005-02-22", "-e", "2005-03-04")
print(
    json.dumps(
        {
            "csv": told("AAPL", *span, "-o", "csv", "-t", "close"),
            "ledger": told("IBM", *span, "-o", "ledger", "-t", "close"),
            "today": told("VOD.L", "-s", "2026-11-18", "-e", "2026-11-18", "-o", "csv", "-t", "close"),
            "unknown": told("NOPE", *span),
        }
    )
)
