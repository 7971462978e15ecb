"""How often sensors tick."""

EVERY_LOOP = 4
"""Seconds for a tick in each loop of Dagster's daemon, which comes every 5 s. Its comparison is strict, so 5 would skip
every other loop."""
EVERY_SECOND_LOOP = 9
"""Seconds for less urgent ticks: each tick costs the daemon about 25 ms of CPU, also when nothing happens."""
