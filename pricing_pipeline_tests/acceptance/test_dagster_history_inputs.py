"""Histories as inputs of assets of others, in runs of several months and of each annotated type."""

from __future__ import annotations

from typing import Any

import dagster as dg
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pricing_pipeline.dagster import PriceHistoryIOManager
from pricing_pipeline_tests.fixtures.dagster import RANGE_END, RANGE_START
from pricing_pipeline_tests.orchestration.test_history_inputs import (
    DAYS,
    MONTHS,
    UPSTREAM,
    an_asset,
    days_of,
    loaded,
    manager,
    stored,
)

__all__ = ["manager"]

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")


def test_g8_several_months_and_all_are_loaded_at_once(manager: PriceHistoryIOManager) -> None:
    by_month = an_asset(partitions_def=MONTHS, backfill_policy=dg.BackfillPolicy.single_run())
    run = loaded(manager, by_month, tags={RANGE_START: "2020-02-01", RANGE_END: "2020-05-01"})
    assert days_of(run.output_for_node("made")) == stored(*DAYS[1:5])
    assert days_of(loaded(manager, an_asset()).output_for_node("made")) == stored(*DAYS[:5]), "all there are"
    apart = an_asset(mapping=dg.SpecificPartitionsPartitionMapping(["2020-01-01", "2020-03-01", "2020-05-01"]))
    assert days_of(loaded(manager, apart).output_for_node("made")) == stored(DAYS[0], *DAYS[3:5])
    last = an_asset(mapping=dg.LastPartitionMapping())
    assert days_of(loaded(manager, last).output_for_node("made")) == stored()
    whole = dg.AssetSpec(UPSTREAM.key)
    assert days_of(loaded(manager, an_asset(), whole).output_for_node("made")) == stored(*DAYS)


def test_g8_an_input_is_the_frame_that_it_is_annotated_as(manager: PriceHistoryIOManager) -> None:
    for annotation, frame in (
        (None, pd.DataFrame),
        (Any, pd.DataFrame),
        (pl.DataFrame, pl.DataFrame),
        (pa.Table, pa.Table),
    ):
        found = loaded(manager, an_asset(annotation=annotation)).output_for_node("made")
        assert isinstance(found, frame)
        assert len(found) == 10
