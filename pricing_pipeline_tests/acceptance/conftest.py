"""The pipeline that runs for all acceptance tests."""

from pricing_pipeline_tests.fix_stack import stack

__all__ = ["stack"]
