"""Tests, by level: unit, integration (real PostgreSQL), migrations, orchestration, acceptance, faults; benchmarks
only whether they answer."""
