"""What Dagster sees: assets, jobs, sensors, schedules, checks, resources. The only code that imports dagster.

Modules here have no `from __future__ import annotations`: Dagster reads annotations as they are defined.
"""
