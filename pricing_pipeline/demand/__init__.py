"""Demand: subscriptions, holdings, schedules, backfills, and the pairs that are due."""
