"""The pipeline that is done violence to."""

from pricing_pipeline_tests.fix_stack import stack

__all__ = ["stack"]
