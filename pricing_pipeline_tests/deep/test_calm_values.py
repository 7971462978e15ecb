"""Values in their usual range are judged at a glance exactly as all rules judge them."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Adjustment, Observation, Rows
from pricing_pipeline.judging import plausibility
from pricing_pipeline.judging.knowledge import Peer, Point, Rival
from pricing_pipeline_tests.support.examples import examples
from pricing_pipeline_tests.support.real_histories import NOON
from pricing_pipeline_tests.unit.test_calm_values import CALM, YESTERDAY

closes = st.sampled_from([Decimal(text) for text in ("1", "1.25", "0.5", "40", "0")])
prices = closes.filter(bool)
times = st.sampled_from([NOON, YESTERDAY])
bases = st.sampled_from(Adjustment)
currencies = st.sampled_from([None, "USD", "EUR"])
points = st.builds(Point, times, prices)
splits = st.tuples(st.tuples(st.sampled_from([NOON.date(), date(2030, 1, 1)]), st.just(2.0)))
changes: dict[str, st.SearchStrategy[Any]] = {
    "currency": currencies,
    "adjustment": bases,
    "lowest": prices,
    "highest": prices,
    "newest_at": times,
    "are_jumps_trusted": st.just(True),
    "stored": st.dictionaries(times, prices, min_size=1, max_size=1),
    "anchors": st.lists(points, max_size=2).map(tuple),
    "witnesses": st.tuples(points),
    "splits": splits,
    "has_splits": st.just(False),
    "is_rate": st.just(True),
    "unnamed": splits,
    "restated": st.frozensets(times, min_size=1),
    "others": st.dictionaries(times, st.builds(Rival, times, prices, st.just("other")), min_size=1, max_size=1),
    "peer": st.builds(Peer, times, prices, st.none(), st.none(), st.none(), st.just("daily"), st.booleans()),
    "rejected": st.frozensets(st.tuples(times, prices), min_size=1, max_size=1),
}


@pytest.mark.parametrize("changed", changes)
@given(data=st.data(), other=st.sampled_from(sorted(changes)), is_latest=st.booleans())
@settings(max_examples=examples(200))
def test_b18_f6_one_value_is_judged_as_by_all_rules(
    changed: str, data: st.DataObject, other: str, is_latest: bool
) -> None:
    known = replace(CALM, **{name: data.draw(changes[name], label=name) for name in (changed, other)})
    known = replace(known, restated=known.restated & known.stored.keys())
    fetcher = data.draw(st.sampled_from([Fetcher.QUOTE, Fetcher.NAV]))
    close = data.draw(closes)
    row = Observation("S", NOON, close, str(close), data.draw(currencies), adjustment=data.draw(bases))
    quick = plausibility.judge(known, Rows([row]), fetcher, is_latest=is_latest)
    with mock.patch.object(plausibility, "_is_calm", return_value=False):
        assert quick == plausibility.judge(known, Rows([row]), fetcher, is_latest=is_latest)
