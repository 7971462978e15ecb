"""`task show|retry|cancel`: what a person can see of a task, and do about it."""

from __future__ import annotations

import pytest

from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline_tests.fixtures.cli import CommandLine
from pricing_pipeline_tests.fixtures.core import MFAPI, NAV, QUOTE, Core

pytestmark = pytest.mark.usefixtures("still")


def dead(core: Core, symbol: str = "AAPL") -> int:
    core.heartbeat("ann", (QUOTE, symbol))
    core.fail(core.claim_one(), FailureKind.UNKNOWN_SYMBOL, "no such symbol")
    task_id: int = core.task(symbol).id
    return task_id


def test_a8_a_task_is_shown_with_its_whole_history(cli: CommandLine, core: Core) -> None:
    task_id = dead(core)
    task = cli("task", "show", str(task_id), "--json").json
    assert task.keys() == {
        *(
            "id",
            "data_type",
            "symbol",
            "window_start",
            "window_end",
            "provider",
            "status",
            "priority",
            "attempt",
        ),
        *("max_attempts", "enqueued_at", "run_after", "claimed_at", "lease_until", "worker", "backfill_id"),
        *("finished_at", "failure_kind", "resolved_at", "errors", "call_id", "call_outcome", "http_status"),
        *("wire_bytes", "run_id", "backoff_until"),
    }
    assert (task["id"], task["status"], task["failure_kind"], task["attempt"]) == (
        task_id,
        "failed",
        "unknown_symbol",
        1,
    )
    (error,) = task["errors"]
    assert error.keys() == {"at", "attempt", "kind", "message"}
    assert (error["attempt"], error["kind"], error["message"]) == (1, "unknown_symbol", "no such symbol")
    assert task["backoff_until"].endswith("Z")
    said = cli("task", "show", str(task_id)).stdout
    for words in ("equity_quote AAPL, the latest price", "no such symbol", "1 of 4", "backs off:"):
        assert words in said


def test_a8_a_task_can_be_shown_in_every_state(cli: CommandLine, core: Core) -> None:
    def shows(status: str) -> bool:
        shown = cli("task", "show", task_id, "--json").json
        assert cli("task", "show", task_id).exit_code == 0
        return (shown["status"], shown["errors"]) == (status, [])

    core.enqueue(QUOTE, "AAPL")
    task_id = str(core.task("AAPL").id)
    assert shows("pending")
    call = core.claim_one()
    assert shows("processing")
    core.finish(call)
    assert shows("completed")


def test_a8_a_failed_task_is_retried_by_its_id(cli: CommandLine, core: Core) -> None:
    task_id = dead(core)
    said = cli("task", "retry", str(task_id), "--json")
    assert said.exit_code == 0
    assert said.json == {
        "tasks": [{"task_id": task_id, "outcome": "retried", "live_id": task_id}],
        "counts": {"retried": 1},
    }
    assert (core.task("AAPL").status, core.task("AAPL").attempt) == ("pending", 0)
    again = cli("task", "retry", str(task_id))
    assert again.exit_code == 0
    assert "nothing to do: it is not dead" in again.stdout


def test_a8_all_failed_tasks_are_retried_or_those_of_a_type_or_provider(cli: CommandLine, core: Core) -> None:
    first, second = dead(core, "AAPL"), dead(core, "IBM")
    core.enqueue(NAV, "118632")
    core.fail(core.claim_one(MFAPI), FailureKind.UNKNOWN_SYMBOL)
    assert cli("task", "retry", "--all-failed", "--provider", "mfapi", "--type", QUOTE, "--json").json == {
        "tasks": [],
        "counts": {},
    }
    assert cli("task", "retry", "--all-failed", "--provider", "mfapi", "--json").json["counts"] == {"retried": 1}
    said = cli("task", "retry", "--all-failed").stdout
    assert f"task {first}: pending again" in said
    assert f"task {second}: pending again" in said
    assert set(core.statuses().values()) == {"pending"}
    assert "no failed task" in cli("task", "retry", "--all-failed").stdout


def test_e4_failed_tasks_are_forgotten_by_command(cli: CommandLine, core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"), (QUOTE, "IBM"))
    core.fail(core.claim_one(), FailureKind.UNKNOWN_SYMBOL)
    first, second = (task.id for task in core.tasks())
    assert cli("task", "forget", str(first)).stdout == f"task {first}: forgotten: it no longer counts.\n"
    said = cli("task", "forget", "--all-failed", "--type", QUOTE, "--json").json
    assert (said["counts"], said["tasks"][0]["task_id"]) == ({"forgotten": 1}, second)
    assert "no failed task" in cli("task", "forget", "--all-failed").stdout
    assert cli("task", "forget", "999").exit_code == 1
    assert "not both" in cli("task", "forget").error


def test_e4_tasks_are_cancelled_by_their_ids(cli: CommandLine, core: Core) -> None:
    core.enqueue(QUOTE, "AAPL", "IBM")
    ids = [str(task.id) for task in core.tasks()]
    said = cli("task", "cancel", *ids, "--json")
    assert said.exit_code == 0
    assert said.json["counts"] == {"cancelled": 2}
    assert set(core.statuses().values()) == {"cancelled"}
    again = cli("task", "cancel", ids[0])
    assert (again.exit_code, again.stdout) == (0, f"task {ids[0]}: nothing to do: it has finished already.\n")


def test_what_makes_no_sense_is_said_in_one_sentence(cli: CommandLine) -> None:
    for arguments, code, words in (
        (["show", "4711"], 1, "there is no task 4711"),
        (["show", "AAPL"], 2, "valid int"),
        (["retry"], 2, "give --all-failed; not both"),
        (["retry", "1", "--all-failed"], 2, "not both"),
        (["retry", "1", "--provider", "mfapi"], 2, "leave them out with ids"),
        (["retry", "99999999999999999999"], 1, "a number is larger than the database can hold"),
        (["retry", "--all-failed", "--type", "equity_qoute"], 1, "there is no active data type"),
        (
            ["retry", "--all-failed", "--provider", "mfapi.in"],
            1,
            "no provider is called 'mfapi.in'. Known: fmp,",
        ),
        (["cancel"], 2, "Missing argument 'ID'"),
        (["cancel", "0"], 2, "Input should be greater than or equal to 1"),
    ):
        said = cli("task", *arguments)
        assert said.exit_code == code
        assert words in said.error


def test_a_task_nobody_knows_is_told_and_the_exit_code_says_so(cli: CommandLine, core: Core) -> None:
    task_id = dead(core)
    for act in ("retry", "cancel"):
        said = cli("task", act, "4711")
        assert (said.exit_code, said.stdout) == (1, "task 4711: there is no such task.\n")
    said = cli("task", "retry", "4711", str(task_id), "--json")
    assert said.exit_code == 1
    assert said.json["counts"] == {"unknown": 1, "retried": 1}, "the others are done all the same"


def test_a8_the_list_fits_80_columns_and_the_task_tells_the_rest(cli: CommandLine, core: Core) -> None:
    core.heartbeat("ann", (QUOTE, "AAPL"))
    long = "it is refused, " + "and went on about it " * 15
    core.fail(core.claim_one(), FailureKind.UNKNOWN_SYMBOL, long)
    said = cli("task", "list").stdout
    assert max(map(len, said.splitlines())) <= 80
    assert "it is refused" in said
    assert "AAPL" in said
    assert long.strip() in cli("task", "show", str(core.task("AAPL").id)).stdout
    assert cli("task", "list", "--json").json["tasks"][0]["last_error"].startswith(long.strip())
