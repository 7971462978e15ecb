"""Every recorded answer leads to the outcome that provider_answers.md gives it (B18, A11, F8).

The table is the test: a row per file, how it was asked, and what follows. A provider's files are all there or the test
fails; a new provider gets its rows by writing them. What the parsers are to do in detail stands in their own tests.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.data_types import Contents, Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.judging.knowledge import Known
from pricing_pipeline.judging.plausibility import judge
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline_tests.support.recordings import FOLDER, in_words, recorded, recorded_files

PAGE = Path(__file__).with_name("provider_answers.md")
NOW = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)
"""Later than every recording, so that none of them lies in the future."""


@dataclass(frozen=True)
class Row:
    """A line of the table. `asked` is None for files of endpoints that are not called."""

    provider: str
    file: str
    asked: str | None
    outcome: str


def table() -> list[Row]:
    rows, provider = [], ""
    for line in PAGE.read_text().splitlines():
        if heading := re.fullmatch(r"## `(\w+)`", line):
            provider = heading[1]
        elif cells := re.fullmatch(r"\| `([^`]+)` \| (.+?) \| (.+?) \|", line):
            asked = None if cells[2] == "not asked" else cells[2].strip("`")
            rows.append(Row(provider, cells[1], asked, cells[3]))
    return rows


ROWS = table()


def read(row: Row) -> tuple[Fetcher, list[str], Answer]:
    """What was asked for when the row's file was recorded, and its answer. Raises ProviderError."""
    fetcher, symbols, *days = (row.asked or "").split(" ")
    window = Window(*map(date.fromisoformat, days[0].split(".."))) if days else None
    provider, asked = PROVIDERS[row.provider], symbols.split(",")
    answer = provider.parse(Fetcher(fetcher), asked, window, recorded(row.provider, row.file), now=NOW)
    return Fetcher(fetcher), asked, answer


def outcome(row: Row) -> str:
    """What the row's file leads to, in the words of the page."""
    return in_words(row.provider, lambda: read(row)[1:])


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.asked], ids=lambda row: f"{row.provider}-{row.file}"
)
def test_b18_every_recorded_answer_has_its_outcome(row: Row) -> None:
    recorded_files(row.provider)
    assert outcome(row) == row.outcome


HISTORIES = [row for row in ROWS if row.asked and re.search(r": \d+ values", row.outcome)]
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


def test_b18_every_provider_with_histories_is_among_them() -> None:
    assert {row.provider for row in HISTORIES} == {"fmp", "mfapi", "twelvedata", "yahoo"}


@pytest.mark.parametrize("provider", sorted({row.provider for row in ROWS}))
def test_every_recorded_answer_is_on_the_page(provider: str) -> None:
    listed = [row.file for row in ROWS if row.provider == provider]
    assert len(listed) == len(set(listed))
    assert set(listed) == recorded_files(provider)


def test_every_provider_with_recordings_is_on_the_page() -> None:
    if not FOLDER.is_dir():
        pytest.skip("the recorded answers (../shared/fixtures) are not on this machine")
    # What is no price and no document has no words here: its tests read the recorded answers themselves.
    told = {
        name
        for name, provider in PROVIDERS.items()
        if {fetcher.contents for fetcher in provider.fetchers} <= {Contents.PRICES, Contents.DOCUMENTS}
    }
    assert {name for name in told if (FOLDER / name).is_dir()} == {row.provider for row in ROWS}
