"""What Dagster sees of the sample: every test here has it in its database."""

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

__all__ = ["dagster_home", "dagster_url", "environment", "stage", "unscheduled"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ignore_what_dagster_deprecates(items, Path(__file__).parent)
