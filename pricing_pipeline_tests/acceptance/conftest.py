"""The fixture of acceptance tests, one pipeline that runs for all of them, and what keeps them together."""

from __future__ import annotations

import pytest
from _pytest.nodeid import NodeId  # internal, hence the exact pin

from pricing_pipeline_tests.fix_stack import stack

__all__ = ["stack"]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Name each test's group in its id, by which `--dist loadgroup` goes.

    pytest-xdist 3.8.0 does so through an attribute that pytest 9.2 no longer reads: without a word, its
    groups fall apart, and each process would start a stack of its own.
    """
    if not getattr(config.option, "loadgroup", False):
        return
    for item in items:
        mark = item.get_closest_marker("xdist_group")
        if mark is not None and not item.nodeid.endswith(f"@{mark.args[0]}"):
            item._id = NodeId.parse(f"{item.nodeid}@{mark.args[0]}")
