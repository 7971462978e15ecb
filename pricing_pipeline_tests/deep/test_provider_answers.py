"""Every day of every recorded history is believed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pricing_pipeline.judging.knowledge import Known
from pricing_pipeline.judging.plausibility import judge
from pricing_pipeline_tests.support.recordings import recorded_files
from pricing_pipeline_tests.unit.test_provider_answers import HISTORIES, Row, read

_MISTAKES = {"mf_119551_full_history.json": {datetime(2024, 6, 24, tzinfo=UTC)}}
"""Days on which a source was wrong: a bond fund 13 % above both its neighbours."""


@pytest.mark.parametrize("row", HISTORIES, ids=lambda row: f"{row.provider}-{row.file}")
def test_b18_f6_no_true_day_of_a_recorded_history_is_refused(row: Row) -> None:
    """Over their splits and dividends, in all of their currencies and by every provider."""
    recorded_files(row.provider)
    fetcher, asked, answer = read(row)
    for symbol in asked:
        rows = [one for one in answer.observations if one.symbol == symbol]
        quarantined = judge(Known(), rows, fetcher, is_latest=False).doubted
        assert {doubt.observation.observed_at for doubt in quarantined} == _MISTAKES.get(row.file, set())
