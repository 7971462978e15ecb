"""Tests: unit, integration (real PostgreSQL) and orchestration (real Dagster) try each rule once; deep, acceptance and
faults take longer. CONTRIBUTING.md says what belongs where. Of the benchmarks, tests see only whether they answer."""
