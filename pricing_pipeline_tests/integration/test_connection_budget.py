"""How many sessions of the database each process opens at most, as docs/deployment.md says."""

from __future__ import annotations

import re

from pricing_pipeline.api.app import MOST_OF_REPLICA, MOST_SESSIONS
from pricing_pipeline.db.engine import make_engine
from pricing_pipeline.refresh.refresher import SESSIONS
from pricing_pipeline_tests.support.pages import ROOT

PAGE = (ROOT / "docs/deployment.md").read_text()
BUDGET = {process: int(most) for process, most in re.findall(r"^\| (?:`|)(.+?)(?:`|) \| (\d+) \|", PAGE, re.MULTILINE)}
WARNINGS = 1
"""The session that writes the counts of warnings."""


def test_the_page_says_what_the_code_sets() -> None:
    usual = make_engine("postgresql:///pricing")
    of_pool = usual.pool.size() + usual.pool._max_overflow  # type: ignore[attr-defined]
    usual.dispose()
    assert {
        "api": MOST_SESSIONS + WARNINGS,
        "api, of the replica": MOST_OF_REPLICA + 1 + WARNINGS,
        "notifier": of_pool + WARNINGS,
        "a run, and the code server": 2 * SESSIONS + 1 + WARNINGS,
        "the daemon of up": 1 + WARNINGS,  # it listens
    } == {name: most for name, most in BUDGET.items() if name != "a command"}
