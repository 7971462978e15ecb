"""Fixtures for all tests. Each subject has its own file in `fixtures`; here they are only put together."""

import gc
import os
import signal

import pytest
from _pytest.nodeid import NodeId  # internal, hence the exact pin
from hypothesis import HealthCheck, Phase, settings

from pricing_pipeline_tests.fixtures import isolation
from pricing_pipeline_tests.fixtures.api import api
from pricing_pipeline_tests.fixtures.cli import cli
from pricing_pipeline_tests.fixtures.core import core, engine, owner_engine
from pricing_pipeline_tests.fixtures.database import (
    POOLED,
    bare_template,
    clock,
    connection,
    database_url,
    owner_url,
    pytest_configure_node,
    pytest_unconfigure,
    server,
    still,
    template,
)
from pricing_pipeline_tests.fixtures.embedded import make_server, used_home
from pricing_pipeline_tests.fixtures.home import open_folder
from pricing_pipeline_tests.fixtures.logins import client, reader, worker
from pricing_pipeline_tests.fixtures.refresher import refresher, reports, sandbox, shared_sandbox
from pricing_pipeline_tests.fixtures.replica import pair
from pricing_pipeline_tests.support.examples import examples

isolation.leave_environment()

# Ignored where the tests were started in the background or with nohup, and inherited by every process they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# The search for garbage walks all objects again and again, and whatever is imported stays to the end.
gc.disable()

# A busy machine must not fail a test: Hypothesis would, for an example that takes 0.2 s or for slow drawing.
settings.register_profile(
    "unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=examples(100)
)
settings.load_profile("unhurried")
# For mutants: that a test fails is enough, and its shortest failure takes minutes to find.
settings.register_profile(
    "no_shrinking", settings.get_profile("unhurried"), phases=set(Phase) - {Phase.shrink, Phase.explain}
)


def pytest_xdist_auto_num_workers() -> int:
    """Half as many again as there are cores: tests wait for other processes a third of their time."""
    return 3 * (os.cpu_count() or 1) // 2


def pytest_collection_finish() -> None:
    """Leave the folder in which the tests were found, and look for garbage from now on, among what they make."""
    isolation.leave_folder()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Say of each test which others it must run beside, and skip what PgBouncer cannot do."""
    if os.environ.get(POOLED):
        for item in items:
            if item.get_closest_marker("own_sessions"):
                item.add_marker(pytest.mark.skip(reason="needs sessions of its own, and PgBouncer shares them"))
    if getattr(config.option, "loadgroup", False):
        name_groups(items)


def name_groups(items: list[pytest.Item]) -> None:
    """Name each test's group in its id, by which `--dist loadgroup` goes.

    pytest-xdist 3.8.0 does so through an attribute that pytest 9.2 no longer reads: without a word, its groups fall
    apart, and each process would start a stack of its own.
    """
    for item in items:
        mark = item.get_closest_marker("xdist_group")
        if mark is not None and not item.nodeid.endswith(f"@{mark.args[0]}"):
            item._id = NodeId.parse(f"{item.nodeid}@{mark.args[0]}")


__all__ = [
    "api",
    "bare_template",
    "cli",
    "client",
    "clock",
    "connection",
    "core",
    "database_url",
    "engine",
    "make_server",
    "open_folder",
    "owner_engine",
    "owner_url",
    "pair",
    "pytest_collection_finish",
    "pytest_collection_modifyitems",
    "pytest_configure_node",
    "pytest_unconfigure",
    "pytest_xdist_auto_num_workers",
    "reader",
    "refresher",
    "reports",
    "sandbox",
    "server",
    "shared_sandbox",
    "still",
    "template",
    "used_home",
    "worker",
]
