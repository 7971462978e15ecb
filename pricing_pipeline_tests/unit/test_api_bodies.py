"""However wrong a body is, few faults are told of it: the answer to it keeps all other requests waiting (B7)."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from pricing_pipeline.api import alerts, backfills, demand, ids, instruments, lists, price_alerts
from pricing_pipeline.api.bodies import Body

PAIR = {"data_type": "equity_quote", "symbol": "AAPL"}
MANY = {f"k{number}": 1 for number in range(10_000)}


@pytest.mark.parametrize(
    ("model", "content"),
    [
        (demand.Pairs, {"pairs": [{}] * 10_000}),
        (demand.Pairs, {"pairs": [1] * 10_000}),
        (demand.Pairs, {"pairs": [PAIR, PAIR | MANY]}),
        (demand.Pairs, {"pairs": [PAIR], **MANY}),
        (demand.Held, {"pairs": [PAIR | {"quantity": "x"}] * 10_000}),
        (ids.Ids, {"ids": [None] * 1000}),
        (ids.FailedIds, {"ids": ["x"] * 1000}),
        (instruments.PauseSymbols, {"asset_class": "equity", "symbols": [1] * 500}),
        (lists.Fewer, {"list": "mine", "symbols": [1] * 500}),
    ],
)
def test_b7_few_faults_are_told(model: type[BaseModel], content: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(content)
    assert caught.value.error_count() <= 2


def test_b7_every_body_is_bounded() -> None:
    modules = (alerts, backfills, demand, ids, instruments, lists, price_alerts)
    closed = {
        model
        for module in modules
        for model in vars(module).values()
        if isinstance(model, type) and issubclass(model, BaseModel) and model.model_config.get("extra") == "forbid"
    }
    assert {model for model in closed if not issubclass(model, Body)} == {demand.Pair, demand.HeldPair}


def test_b7_the_words_say_what_is_too_much() -> None:
    with pytest.raises(ValidationError, match="it has 10001 keys, and a request has at most 100"):
        demand.Pairs.model_validate({"pairs": [PAIR], **MANY})
    with pytest.raises(ValidationError, match="a pair has only the keys data_type, symbol"):
        demand.Pairs.model_validate({"pairs": [PAIR | {"user": "bob"}]})
