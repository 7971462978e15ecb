"""A sandbox, and a refresher whose clients ask it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pricing_pipeline.refresh.refresher import Refresher
from pricing_pipeline_tests.fix_core import Core
from pricing_pipeline_tests.refreshing import Reports, refreshing
from pricing_pipeline_tests.sandbox_server import RunningSandbox, running_sandbox


@pytest.fixture
def sandbox() -> Iterator[RunningSandbox]:
    """A sandbox of this test's own, in this process."""
    with running_sandbox() as sandbox:
        yield sandbox


@pytest.fixture
def reports() -> Reports:
    """What `refresher` reports."""
    return Reports()


@pytest.fixture
def refresher(core: Core, sandbox: RunningSandbox, reports: Reports) -> Iterator[Refresher]:
    """A refresher on this test's database, of a run named "run 7"."""
    with refreshing(core.engine, sandbox.url, run_id="run 7", reports=reports) as refresher:
        yield refresher
