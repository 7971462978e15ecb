"""A6: what a provider has shown of its limits is remembered, kept to, told, and forgotten."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime

import pytest

from pricing_pipeline.domain.calls import Call, Receipt, ShownLimit
from pricing_pipeline.errors import Throttled
from pricing_pipeline.queue import limits
from pricing_pipeline.refresh.settling import settle_failure
from pricing_pipeline.registry import plans
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import QUOTE, TWELVEDATA, Core, symbols
from pricing_pipeline_tests.fixtures.database import Clock
from pricing_pipeline_tests.support.free_plan import free_plan, why

pytestmark = pytest.mark.usefixtures("still")

TWO = datetime(2026, 3, 10, 14, 2, tzinfo=UTC)


@pytest.fixture
def small(core: Core, clock: Clock) -> Core:
    """102 credits a minute are written down, and 60 symbols wait."""
    clock.set(TWO)
    core.rows("UPDATE pricing.provider_limits SET units = 102 WHERE provider = 'twelvedata'")
    core.rows("UPDATE pricing.provider_capabilities SET batch_size = 1, batch_from = 1")
    core.enqueue(QUOTE, *symbols(500))
    return core


def show(core: Core, shown: ShownLimit | None, units_left: int | None = None, call: Call | None = None) -> None:
    """A call is answered, and the answer shows a limit."""
    call = call or core.claim_one()
    with core.engine.begin() as connection:
        limits.settle(connection, call.id, Receipt(200, 600, units_left, shown=shown))


def shown(core: Core) -> dict[tuple[str, str], int]:
    rows = core.rows("SELECT key_name, name, shown_units FROM pricing.shown_limits")
    return {(row.key_name, row.name): row.shown_units for row in rows}


def left(core: Core) -> int:
    return core.allowance().units_left


def test_a6_a_shown_limit_is_kept_to_in_later_windows(small: Core, clock: Clock) -> None:
    show(small, (8, 60), units_left=7)
    assert left(small) == 7, "what is left is counted against the limit that was shown"
    clock.advance(62)
    assert (left(small), small.allowance().units_limit) == (8, 8)
    assert sum(len(call.tasks) for call in small.claim(max_calls=100)) == 8


@pytest.mark.parametrize("units_left", [0, 50])
def test_a6_units_left_are_those_of_a_minute_whatever_a_day_allows(small: Core, clock: Clock, units_left: int) -> None:
    """Taken for those of the longer window, they would stop nearly all work for a day."""
    small.rows(
        "INSERT INTO pricing.provider_limits (provider, name, units, window_seconds)"
        " VALUES ('twelvedata', 'rolling day', 100000, 86400)"
    )
    show(small, None, units_left=units_left)
    assert left(small) == units_left
    clock.advance(62)
    assert left(small) == 102
    small.rows("DELETE FROM pricing.provider_limits WHERE name = 'minute'")
    show(small, None, units_left=units_left)
    assert left(small) == 100_000 - 2, "where no minute is limited, they say nothing of the day"


def test_a6_a_refusal_that_names_its_limit_is_remembered(small: Core, clock: Clock) -> None:
    settle_failure(small.engine, small.claim_one(), Throttled("429", http_status=429, shown=(8, 60)))
    clock.advance(62)
    assert left(small) == 8


def test_a6_a_later_higher_showing_replaces_a_lower_one(small: Core) -> None:
    show(small, (8, 60))
    show(small, (55, 60))
    assert small.allowance().units_limit == 55
    show(small, (7, 60))
    show(small, (102, 60))
    assert shown(small) == {}


def test_a6_a_shown_limit_is_forgotten_after_a_day(small: Core, clock: Clock) -> None:
    show(small, (8, 60))
    clock.advance(23 * 3600)
    show(small, (8, 60))
    clock.advance(24 * 3600 - 1)
    assert small.allowance().units_limit == 8
    clock.advance(2)
    assert small.allowance().units_limit == 102


def test_a6_a_limit_is_of_its_window_and_its_key(small: Core) -> None:
    free_plan(small)
    small.call("SELECT pricing.register_keys('twelvedata', '{default,second}')")
    first = small.claim_one()
    show(small, (500, 86_400), call=first)
    show(small, (4, 60))
    show(small, (3, 3600))
    others = {"default", "second"} - {first.key_name}
    assert shown(small) == {(first.key_name, "day"): 500, (others.pop(), "minute"): 4}


def test_a6_who_writes_a_limit_is_believed_at_once(small: Core, cli: CommandLine) -> None:
    show(small, (8, 60))
    assert cli("limit", "set", TWELVEDATA, "minute", "102").exit_code == 0
    assert small.allowance().units_limit == 102
    show(small, (8, 60))
    small.rows("INSERT INTO pricing.provider_keys (provider, key_name) VALUES ('twelvedata', 'default')")
    assert cli("limit", "set", TWELVEDATA, "minute", "90", "--key", "default").exit_code == 0
    assert small.allowance().units_limit == 90
    show(small, (8, 60))
    assert cli("limit", "remove", TWELVEDATA, "minute", "--key", "default").exit_code == 0
    assert small.allowance().units_limit == 102
    show(small, (8, 60))
    with small.owner.begin() as connection:
        name, free = plans.plan_of(connection, TWELVEDATA, "free")
        plans.use(connection, TWELVEDATA, name, free.with_limits(minute=30, day=None), 20)
    assert shown(small) == {}
    show(small, (8, 60))
    assert cli("limit", "remove", TWELVEDATA, "minute").exit_code == 0
    assert shown(small) == {}


def test_a6_an_impossible_task_is_one_by_what_is_written(small: Core) -> None:
    """A hint fails no task."""
    show(small, (1, 60))
    assert small.call("SELECT pricing.fail_impossible_tasks()") == 0


# What people are told


def test_f4_what_corrects_the_limit_is_told(small: Core, clock: Clock, cli: CommandLine) -> None:
    small.heartbeat("ann", (QUOTE, "S0499"))
    small.call("SELECT pricing.begin_drain('w', NULL, 120)")
    show(small, (1, 60))
    told = (
        "twelvedata has shown a limit of 1 unit in 60 s for key default at 2026-03-10 14:02:00 UTC; "
        'the limit "minute" says 102. Correct it: '
    )
    command = "pricing-pipeline limit set twelvedata minute 1"
    found = why(small, "S0499")
    assert found.state == "rate_limited"
    assert "twelvedata allows 1 unit in 60 s, and 1 are used" in found.sentence
    assert found.sentence.endswith(f". {told}{command}")
    assert f"warning:     {told}{command}\n" in cli("status").stdout
    (content,) = cli("status", "--json").json["shown_limits"]
    assert content | {"shown_at": None} == {
        "provider": "twelvedata",
        "key_name": "default",
        "name": "minute",
        "units": 102,
        "shown_units": 1,
        "shown_at": None,
        "words": told + command,
        "correction": command,
    }
    small.throttle(TWELVEDATA, 30)
    found = why(small, "S0499")
    assert (found.state, found.sentence.endswith(command)) == ("throttled", True)

    assert cli(*shlex.split(command)[1:]).exit_code == 0
    assert cli("status", "--json").json["shown_limits"] == []
    assert small.one("SELECT units FROM pricing.provider_limits WHERE provider = 'twelvedata'") == 1


def test_f4_the_command_names_the_key_where_there_are_several(small: Core, cli: CommandLine) -> None:
    small.call("SELECT pricing.register_keys('twelvedata', '{default,second}')")
    call = small.claim_one()
    show(small, (8, 60), call=call)
    (told,) = cli("status", "--json").json["shown_limits"]
    assert told["correction"] == f"pricing-pipeline limit set twelvedata minute 8 --key {call.key_name}"
    assert cli(*shlex.split(told["correction"])[1:]).exit_code == 0
    assert small.allowance().units_limit == 8 + 102


def test_f4_a_plan_in_use_is_used_anew(small: Core, cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    with small.owner.begin() as connection:
        name, free = plans.plan_of(connection, TWELVEDATA, "free")
        plans.use(connection, TWELVEDATA, name, free, 30)
    show(small, (4, 60))
    (told,) = cli("status", "--json").json["shown_limits"]
    command = "pricing-pipeline provider use twelvedata --plan free --symbols 30 --minute 4 --day 800"
    assert told["correction"] == command
    assert cli(*shlex.split(command)[1:], "--no-check").exit_code == 0
    rows = small.rows("SELECT name, units FROM pricing.provider_limits WHERE provider = 'twelvedata'")
    assert {row.name: row.units for row in rows} == {"minute": 4, "day": 800}
    assert cli("status", "--json").json["shown_limits"] == []
