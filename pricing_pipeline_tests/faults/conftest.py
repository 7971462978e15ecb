"""The pipeline that is done violence to, and the sessions that are left open beside it."""

from pricing_pipeline_tests.fixtures.logins import sessions
from pricing_pipeline_tests.fixtures.stack import stack

__all__ = ["sessions", "stack"]
