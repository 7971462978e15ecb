"""What the package `mftool` reads: `read_mftool.py BASE_URL CODE...`, JSON to stdout.

It reads the list of schemes from another site, AMFI's, before anything else; here the codes are given instead.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import mftool

base_url, *codes = sys.argv[1:]


class Moved(mftool.Mftool):
    """The client below BASE_URL."""

    def __init__(self) -> None:
        super().__init__()
        self._get_scheme_url = f"{base_url}/mf/"

    def get_scheme_codes(self, as_json: bool = False) -> dict[str, str]:
        return dict.fromkeys(codes, "")


tool = Moved()
found: dict[str, Any] = {
    code: {"details": tool.get_scheme_details(code), "history": tool.get_scheme_historical_nav(code)} for code in codes
}
print(json.dumps(found))
