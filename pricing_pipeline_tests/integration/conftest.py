"""Who works with a database of these tests, and a standby that follows one."""

from pricing_pipeline_tests.fixtures.logins import client, reader, worker
from pricing_pipeline_tests.fixtures.replica import pair

__all__ = ["client", "pair", "reader", "worker"]
