"""Every recorded answer leads to the outcome that provider_answers.csv gives it (B18, A11, F8).

Add a row with each new recording; a file without a row fails. The recordings are not part of this repository. `asked`
is the request: fetcher, symbols, days. The outcome gives for each symbol one of these:

- its value and time, of several values the first and the last; `splits` marks prices divided by later splits
- its number of documents
- `empty`: a valid answer without a value
- the kind of failure

Refused single days are counted. `call:` and a kind is a failure of the whole call. If an endpoint is never called,
`asked` is empty, and the outcome says why. Calls for slots take several requests, and lists of commodities are read
differently: test_octo.py, test_headout.py and test_uex.py read their recordings.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.data_types import Contents, Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import SchemaDrift
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.base import Question
from pricing_pipeline_tests.support.recordings import FOLDER, in_words, recorded, recorded_files

TABLE = Path(__file__).with_name("provider_answers.csv")
NOW = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)
"""Later than every recording, so that none of them lies in the future."""


@dataclass(frozen=True)
class Row:
    """A line of the table. `asked` is empty for files of endpoints that are not called."""

    provider: str
    file: str
    asked: str
    outcome: str


with TABLE.open(newline="") as file:
    ROWS = [Row(**row) for row in csv.DictReader(file)]


def read(row: Row) -> tuple[Fetcher, list[str], Answer]:
    """What was asked for when the row's file was recorded, and its answer. Raises ProviderError."""
    fetcher, symbols, *days = row.asked.split(" ")
    window = Window(*map(date.fromisoformat, days[0].split(".."))) if days else None
    provider, asked = PROVIDERS[row.provider], symbols.split(",")
    answer = provider.parse(Question(Fetcher(fetcher), asked, window, NOW), recorded(row.provider, row.file))
    return Fetcher(fetcher), asked, answer


def outcome(row: Row) -> str:
    """What the row's file leads to, in the words of the table."""
    return in_words(row.provider, lambda: read(row)[1:])


@pytest.mark.parametrize("row", [row for row in ROWS if row.asked], ids=lambda row: f"{row.provider}-{row.file}")
def test_b18_every_recorded_answer_has_its_outcome(row: Row) -> None:
    recorded_files(row.provider)
    assert outcome(row) == row.outcome


OTHERS = [row for row in ROWS if not row.asked and row.file != "v3_quote_AAPL.json"]


@pytest.mark.parametrize("row", OTHERS, ids=lambda row: f"{row.provider}-{row.file}")
def test_b18_answers_of_other_endpoints_are_never_taken_for_what_was_asked(row: Row) -> None:
    """Except the quote of an older API, which says the same about its price."""
    provider, response = PROVIDERS[row.provider], recorded(row.provider, row.file)
    for fetcher in provider.fetchers:
        with pytest.raises(SchemaDrift):
            provider.parse(Question(fetcher, ["IBM"], None, NOW), response)


HISTORIES = [row for row in ROWS if row.asked and re.search(r": \d+ values", row.outcome)]


def test_b18_every_provider_with_histories_is_among_them() -> None:
    assert {row.provider for row in HISTORIES} == {"fmp", "mfapi", "twelvedata", "yahoo"}


@pytest.mark.parametrize("provider", sorted({row.provider for row in ROWS}))
def test_every_recorded_answer_is_in_the_table(provider: str) -> None:
    listed = [row.file for row in ROWS if row.provider == provider]
    assert len(listed) == len(set(listed))
    assert set(listed) == recorded_files(provider)


def test_every_provider_with_recordings_is_in_the_table() -> None:
    if not FOLDER.is_dir():
        pytest.skip("the recorded answers (../shared/fixtures) are not on this machine")
    # What is neither a price nor a document has no words here: its tests read the recorded answers themselves.
    told = {
        name
        for name, provider in PROVIDERS.items()
        if {fetcher.contents for fetcher in provider.fetchers} <= {Contents.PRICES, Contents.DOCUMENTS}
    }
    assert {name for name in told if (FOLDER / name).is_dir()} == {row.provider for row in ROWS}
