"""Fixtures for all tests. Each subject has its own `fix_*.py`; here they are only put together."""

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
    "pytest_configure_node",
    "pytest_unconfigure",
    "server",
    "template",
]
