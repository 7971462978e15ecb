"""Every provider keeps its contract when any node of a good answer is spoiled, and for any JSON at all (B18)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.observations import Observation
from pricing_pipeline.errors import ProviderError
from pricing_pipeline.providers.base import Schema
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.provider_contract import (
    batch,
    every,
    good,
    outcome,
    parse,
    values_of,
    widened,
)
from pricing_pipeline_tests.support.provider_samples import (
    Sample,
    literal,
)

NOTHING = re.compile("nothing was stored", re.IGNORECASE)
JUNK = st.sampled_from([None, "", "x", [], {}, [None], True, -1, 10**30, *map(literal, ("NaN", "1e400", "-0.5"))])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def paths(node: object, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every node of a JSON value but its root, by keys and indexes."""
    items: list[tuple[Any, object]] = []
    if isinstance(node, dict):
        items = list(node.items())
    elif isinstance(node, list):
        items = list(enumerate(node))
    for key, inner in items:
        yield (*here, key)
        yield from paths(inner, (*here, key))


def changed(node: Any, path: tuple[Any, ...], change: Callable[[Any, Any], None]) -> Any:
    """A copy in which `change` was applied to the container and key that the path leads to."""
    copy = json.loads(json.dumps(node))
    at = copy
    for key in path[:-1]:
        at = at[key]
    change(at, path[-1])
    return copy


def names_of_ours(result: Answer | ProviderError) -> set[str]:
    """Names of response models, and of Python's and pydantic's types, in what operators are told."""
    if isinstance(result, Answer):
        told = [one.message for one in result.failures] + [one.reason for one in result.rejected]
    else:
        told = [str(result)]
    models, names = list(Schema.__subclasses__()), {"NoneType", "Decimal", "dict", "str", "ValidationError"}
    while models:
        model = models.pop()
        names.add(model.__name__)
        models += model.__subclasses__()
    return names & set(re.findall(r"\w+", " ".join(told)))


def delete(container: Any, key: Any) -> None:
    del container[key]


@every
@settings(max_examples=examples(40), deadline=None)
@given(data=st.data())
def test_b18_a_spoiled_node_never_changes_another_price(sample: Sample, data: st.DataObject) -> None:
    """Any node of a good answer is dropped or replaced: what is still stored is what was good before."""
    asked = batch(sample)
    body = sample.body(asked, widened(good(sample, *asked)))
    true = {(one.symbol, one.observed_at.date()): one for one in parse(sample, sample.encode(body), asked).observations}
    path = data.draw(st.sampled_from(sorted(paths(body), key=repr)))
    junk = data.draw(st.none() | JUNK.map(lambda value: (value,)))
    if junk is None:
        spoiled = changed(body, path, delete)
    else:
        spoiled = changed(body, path, lambda container, key: container.__setitem__(key, junk[0]))
    result = outcome(sample, sample.encode(spoiled), asked)
    assert not names_of_ours(result) - set(re.findall(r"\w+", str(body))), (path, junk)
    if isinstance(result, Answer):
        assert {one.symbol for one in result.records} <= set(asked)
        stored = {one.symbol for one in (*result.observations, *result.records)}
        untrue = [one.reason for one in result.rejected if one.symbol in stored and NOTHING.search(one.reason)]
        assert not untrue, "one bad row among good ones is one bad row"
        for one in result.observations:
            assert _agrees(one, true[one.symbol, one.observed_at.date()]), (path, junk)


def _agrees(one: Observation, true: Observation) -> bool:
    """The same price, no newer than it is; what else was said of it is the same or missing."""
    may_be_missing = ("currency", "open", "high", "low", "volume")
    is_same = (one.close, one.text) == (true.close, true.text) and one.observed_at <= true.observed_at
    return is_same and all(getattr(one, name) in (None, getattr(true, name)) for name in may_be_missing)


@every
@settings(max_examples=examples(20), deadline=None)
@given(body=ANYTHING, status=st.sampled_from([200, 400, 404, 503]))
def test_b18_no_json_at_all_makes_a_parser_crash(sample: Sample, body: object, status: int) -> None:
    assert values_of(outcome(sample, json.dumps(body).encode(), batch(sample), status)) == []
