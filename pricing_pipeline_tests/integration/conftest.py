"""Who works with a database of these tests: a client, a reader, the worker."""

from pricing_pipeline_tests.fixtures.logins import client, reader, worker

__all__ = ["client", "reader", "worker"]
