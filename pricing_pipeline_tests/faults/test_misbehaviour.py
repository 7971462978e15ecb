"""Every fault of transport and of values that the sandbox commits, one after the other: no bad row is written."""

from __future__ import annotations

from typing import Any

from pricing_pipeline_tests.fixtures.core import DAILY, NAV, QUOTE, Core
from pricing_pipeline_tests.fixtures.refresher import reset_sandbox
from pricing_pipeline_tests.integration.test_misbehaviour import ask, stored
from pricing_pipeline_tests.support.patience import PATIENCE
from pricing_pipeline_tests.support.sandbox_server import RunningSandbox
from pricing_pipeline_tests.tools.audit import audit

sandbox = reset_sandbox

TRANSPORT: dict[str, dict[str, Any]] = {
    "drip": {"kind": "drip", "seconds": 0.2},
    "hang": {"kind": "hang"},
    "truncated": {"kind": "truncate"},
    "cut": {"kind": "cut"},
    "bomb": {"kind": "bomb", "factor": 40},
    "html": {"kind": "html"},
    "redirect": {"kind": "redirect", "location": "http://169.254.169.254/latest/meta-data/"},
    "500": {"kind": "status", "status": 500},
    "retry at a date": {"kind": "throttle", "retry_after": "Wed, 21 Oct 2026 07:28:00 GMT"},
}
VALUES: dict[str, dict[str, Any]] = {
    **{value: {"kind": "price", "value": value} for value in ("NaN", "1e400", "-1.0")},
    "x100": {"kind": "times", "factor": 100},
    "ahead": {"kind": "ahead", "seconds": 30 * 86_400},
    "stale": {"kind": "stale", "seconds": 30 * 86_400},
}


def test_b18_f6_no_fault_of_transport_or_value_writes_a_row(core: Core, sandbox: RunningSandbox) -> None:
    assert ask(core, sandbox) == set()
    before = stored(core)
    assert {row.data_type for row in before} == {QUOTE, DAILY, NAV}
    for name, fault in (TRANSPORT | VALUES).items():
        sandbox.behave(**fault)
        kinds = ask(core, sandbox, deadline=0.8 if name in ("drip", "hang") else PATIENCE)
        assert stored(core) == before, name
        assert kinds, f"{name} went unnoticed"
        sandbox.behave_well()
        core.rows("UPDATE pricing.provider_state SET breaker = 'closed', breaker_until = NULL, probe_call = NULL")
    quarantined = {row.kind for row in core.rows("SELECT DISTINCT kind FROM pricing.quarantined_values")}
    assert {"refused", "unit"} <= quarantined
    audit(core)
