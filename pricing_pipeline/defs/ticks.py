"""How often sensors tick."""

EVERY_LOOP = 1
"""Seconds for a tick in each loop of Dagster's daemon. It comes every 5 s; with the daemon of `up` sooner, if there is
work."""
EVERY_SECOND_LOOP = 9
"""Seconds for less urgent ticks: each tick costs the daemon about 25 ms of CPU, also when nothing happens."""
