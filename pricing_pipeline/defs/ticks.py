"""How often sensors tick."""

EVERY_LOOP = 1
"""Seconds for a tick in each round of Dagster's daemon. A round comes every 5 s; with that of `up` every 10 s, and
sooner if there is work or a price has changed."""
