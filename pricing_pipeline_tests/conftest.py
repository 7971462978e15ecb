"""Fixtures for all tests. Each subject has its own `fix_*.py`; here they are only put together."""

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

from pricing_pipeline_tests.fix_cli import cli
from pricing_pipeline_tests.fix_core import core, engine, owner_engine
from pricing_pipeline_tests.fix_database import (
    clock,
    connection,
    database_url,
    owner_url,
    pytest_configure_node,
    pytest_unconfigure,
    server,
    template,
)
from pricing_pipeline_tests.fix_home import open_folder

# Ignored where the tests were started in the background or with nohup, and inherited by every process they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# A busy machine must not fail a test: Hypothesis would, for an example that takes 0.2 s or for slow drawing.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")


def pytest_xdist_auto_num_workers() -> int:
    """Twice as many as there are cores: tests wait for other processes half of their time."""
    return 2 * (os.cpu_count() or 1)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Let `no_cover` pause coverage in the workers of pytest-xdist too.

    pytest-cov 7.1 starts the controller's collector in each worker as well, below the worker's own: pausing the upper
    one would wake it.
    """
    plugin = session.config.pluginmanager.getplugin("_cov")
    if hasattr(session.config, "workerinput") and plugin is not None and plugin.cov_controller is not None:
        plugin.cov_controller.cov.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Measure coverage where it tells something: tracing costs Python code more than half as much again.

    Where nearly everything happens in other processes it tells nothing, and little where a test runs once more with
    other parameters.
    """
    seen = set()
    for item in items:
        test = (item.path, getattr(item, "originalname", item.name))
        if test in seen or item.path.parent.name in ("acceptance", "faults"):
            item.add_marker("no_cover")
        seen.add(test)


__all__ = [
    "cli",
    "clock",
    "connection",
    "core",
    "database_url",
    "engine",
    "open_folder",
    "owner_engine",
    "owner_url",
    "pytest_collection_modifyitems",
    "pytest_configure_node",
    "pytest_sessionstart",
    "pytest_unconfigure",
    "pytest_xdist_auto_num_workers",
    "server",
    "template",
]
