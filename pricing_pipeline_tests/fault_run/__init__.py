"""The real system under load, with faults drawn from a seed, and audits after each: `python -m benchmarks faults`."""
