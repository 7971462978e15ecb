"""Changes to the pipeline that a test must notice, and which tests should. mutants.py makes them and runs those."""

from __future__ import annotations

from pricing_pipeline_tests.tools import (
    mutants_of_demand,
    mutants_of_forecast,
    mutants_of_operations,
    mutants_of_plans,
    mutants_of_values,
    mutants_of_work,
)

MUTANTS = (
    *mutants_of_work.MUTANTS,
    *mutants_of_values.MUTANTS,
    *mutants_of_demand.MUTANTS,
    *mutants_of_plans.MUTANTS,
    *mutants_of_forecast.MUTANTS,
    *mutants_of_operations.MUTANTS,
)
