"""What Dagster sees of the sample: every test here has it in its database."""

from pathlib import Path

import pytest

from pricing_pipeline_tests.fix_core import sample_template
from pricing_pipeline_tests.fix_dagster import dagster_home, dagster_url, environment, stage

template = sample_template

__all__ = ["dagster_home", "dagster_url", "environment", "sample_template", "stage", "template"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Dagster itself uses what it calls deprecated; what we use of it stays an error."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::DeprecationWarning:dagster"))
