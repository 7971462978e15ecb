"""A pipeline whose parts all do their work, as the database sees it, each part of which can stand still."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from pricing_pipeline.operations import health
from pricing_pipeline_tests.fixtures.core import QUOTE, Core
from pricing_pipeline_tests.fixtures.database import Clock

PAIR = (QUOTE, "AAPL")
STEP = 60.0
"""Seconds between two signs of life of a part that works, at most."""


def start(core: Core) -> None:
    """The pipeline starts now, whenever the sample was made."""
    with core.engine.begin() as connection:
        health.note_start(connection)


def late(core: Core) -> set[str]:
    """The parts that are late."""
    with core.engine.connect() as connection:
        return {part.part for part in health.late(health.measure(connection))}


def words(core: Core) -> dict[str, str]:
    """What is said of the parts that are late."""
    with core.engine.connect() as connection:
        return {part.part: part.says or "" for part in health.late(health.measure(connection))}


def tick(core: Core, sensor: str) -> None:
    with health.ticking(core.engine, sensor):
        pass


def go_on(core: Core, but: Collection[str] = ()) -> None:
    """Let each part do its work once, except those that are named. A daemon that stands still ticks no sensor."""
    if "duties" not in but:
        core.call("SELECT pricing.run_duties()")
    if "staleness_check" not in but:
        core.enqueue_due()
    if not {"sensor", "daemon"} & {*but}:
        tick(core, "refresh_watched")
    if "daemon" not in but:
        tick(core, "report_prices")
    if "drain" not in but:
        drain = core.call("SELECT pricing.begin_drain('w', NULL, 1)")
        core.call("SELECT count(pricing.end_drain(:drain))", drain=drain)
    if "schedules" not in but:
        core.rows("UPDATE pricing.schedule_walks SET next_slot = pricing.clock() + interval '1 hour'")
    if "notifier" not in but:
        core.call(
            "SELECT count(pricing.note_life(part, 0)) FROM unnest(ARRAY['look_for_alerts', 'send_messages']) part"
        )
    if "queue" not in but:
        core.refresh()


def let_pass(core: Core, clock: Clock, seconds: float, but: Collection[str] = (), viewers: bool = True) -> None:
    """Let time pass, in which somebody watches and every part works but those that are named."""
    left = timedelta(seconds=seconds)
    while left > timedelta():
        step = min(left, timedelta(seconds=STEP))
        clock.advance(step.total_seconds())
        left -= step
        if viewers:
            core.heartbeat("ann", PAIR)
        go_on(core, but)
