"""The definitions for Dagster: assets, jobs, sensors, schedules, checks, resources. Only this code imports dagster.

Modules here have no `from __future__ import annotations`: Dagster reads annotations as they are defined.
"""
