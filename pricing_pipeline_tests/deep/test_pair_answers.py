"""Any mix of good and bad pairs is answered pair by pair, the same by SQL, HTTP, the Python client and in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.integration.test_pair_answers import (
    Caps,
    Model,
    Pair,
    Requests,
    _still,
    entered,
    forget,
    ways,
    without_user,
)
from pricing_pipeline_tests.support.examples import examples

__all__ = ["_still", "ways"]


@pytest.mark.parametrize("function", ["heartbeat", "hold"])
def test_b5_b8_a_mix_of_good_and_bad_pairs_is_answered_pair_by_pair_the_same_every_way(
    core: Core, ways: dict[str, Callable[..., Any]], function: str
) -> None:
    @settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(requests=st.lists(Requests, min_size=1, max_size=2), caps=Caps)
    def judge(requests: list[list[Pair]], caps: tuple[int, int]) -> None:
        forget(core)
        core.cap(*caps)
        model = Model(*caps)
        for pairs in requests:
            changed, expected = model.ask(pairs)
            answers = {way: without_user(ask(function, way, pairs), way) for way, ask in ways.items()}
            answer = answers["sql"]
            assert all(other == answer for other in answers.values()), answers
            assert answer["changed"] == changed
            assert answer["accepted"] + answer["doubtful"] + answer["refused"] == len(expected)
            told = {(each["data_type"], each["given"]): each for each in answer["pairs"]}
            assert list(told) == [
                pair for pair, (outcome, _, symbol) in expected.items() if outcome == "refused" or symbol != pair[1]
            ], "in the order given, and no other"
            for pair, each in told.items():
                assert (each["outcome"], each["code"], each["symbol"]) == expected[pair]
                assert bool(each["reason"]) == (each["outcome"] == "refused")
                assert (each["retry_after"] is None) == (each["code"] != "new_pairs_per_minute")
            refused = [fault for fault in answer["faults"] if fault["outcome"] == "refused"]
            assert sum(fault["pairs"] for fault in refused) == answer["refused"]
            for way in ways:
                assert entered(core, function, way) == model.had

    judge()
