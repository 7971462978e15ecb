"""The pipeline that is done violence to."""

from pricing_pipeline_tests.fixtures.stack import stack

__all__ = ["stack"]
