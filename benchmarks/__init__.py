"""Benchmarks: one module per question, each against peers on the same server.

`python -m benchmarks NAME [--quick] [--json]` answers one question;
docs/maintainers/benchmarks.md says what is asked and how.
Nothing here is imported by the product, and nothing here changes what it measures: ours is always the product's
own functions on a migrated database. What the test suite proves does not belong here.
"""
