"""The fixture of acceptance tests: one pipeline that runs for all of them."""

from pricing_pipeline_tests.fix_stack import stack

__all__ = ["stack"]
