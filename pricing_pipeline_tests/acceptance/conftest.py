"""Whole processes as users start them: `up` with all that it runs, Dagster's own programs, a browser, and programs of
others that read prices.
"""

from pathlib import Path

import pytest

from pricing_pipeline_tests.fixtures.dagster import (
    dagster_home,
    dagster_url,
    environment,
    ignore_what_dagster_deprecates,
    stage,
    unscheduled,
)
from pricing_pipeline_tests.fixtures.stack import stack

__all__ = ["dagster_home", "dagster_url", "environment", "stack", "stage", "unscheduled"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ignore_what_dagster_deprecates(items, Path(__file__).parent)
