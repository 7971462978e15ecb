"""Recorded answers: real ones that lie beside the checkout and are not ours to commit, and those of `provider record`.

`replayed` reads a folder that `provider record` wrote through the parsers of its providers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.observations import Adjustment
from pricing_pipeline.errors import ProviderError, SettingsError
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.base import Question, check_answer
from pricing_pipeline.providers.dialogue import OneRequest
from pricing_pipeline.sandbox.recordings import RecordedFile, checked
from pricing_pipeline.sandbox.recordings import recorded_files as recorded_files_of

FOLDER = Path(__file__).parents[3] / "shared" / "fixtures"


def recorded_files(provider: str) -> set[str]:
    """The names of a provider's recorded bodies. Skips the test where there are no recordings."""
    folder = FOLDER / provider
    if not folder.is_dir():
        pytest.skip("the recorded answers (../shared/fixtures) are not on this machine")
    return {path.name for path in folder.iterdir() if not path.name.endswith(".meta.json")}


def recorded_json(provider: str, file: str) -> Any:
    """What a recorded body says."""
    recorded_files(provider)
    return json.loads((FOLDER / provider / file).read_text())


def recorded(provider: str, file: str) -> Response:
    """A recorded answer with the status and headers it came with."""
    recorded_files(provider)
    path = FOLDER / provider / file
    meta = json.loads(path.with_name(f"{path.stem}.meta.json").read_text())
    headers = {name.lower(): value for name, value in (meta["headers"] or {}).items()}
    if headers.get("retry-after") == "absent":
        del headers["retry-after"]
    body = path.read_bytes()
    return Response(meta["http_status"] or 200, headers, body, len(body))


@dataclass(frozen=True)
class Replayed:
    """One recorded answer of a folder, and what was asked for."""

    provider: str
    name: str
    fetcher: Fetcher
    symbols: list[str]
    at: datetime
    response: Response
    meta: Mapping[str, Any]

    def answer(self) -> Answer:
        """What its provider's parser makes of it. Raises ProviderError."""
        provider = PROVIDERS[self.provider]
        assert isinstance(provider, OneRequest)
        answer = provider.parse(Question(self.fetcher, self.symbols, None, self.at), self.response)
        return check_answer(self.provider, self.symbols, answer)

    @property
    def outcome(self) -> str:
        """What it leads to, in the words of unit/provider_answers.csv."""
        return in_words(self.provider, lambda: (self.symbols, self.answer()))


def replayed(folder: Path) -> list[Replayed]:
    """The recordings of `provider record` in a folder, which may come from a stranger. Raises SettingsError."""
    return [_replayed(file) for file in recorded_files_of(folder)]


def _replayed(file: RecordedFile) -> Replayed:
    meta = file.meta
    try:
        asked = meta["asked"]
        return Replayed(
            provider=PROVIDERS[file.provider].name,
            name=file.path.name,
            fetcher=Fetcher(asked["fetcher"]),
            symbols=[str(symbol) for symbol in asked["symbols"]],
            at=datetime.fromisoformat(asked["at"]),
            response=Response(int(meta["http_status"]), checked(meta["headers"]), file.body, len(file.body)),
            meta=meta,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise SettingsError(
            f"the recording {str(file.path)!r} does not say what was asked as `provider record` does: {error!r}."
        ) from None


def in_words(provider: str, read: Callable[[], tuple[Sequence[str], Answer]]) -> str:
    """What reading an answer leads to: of each symbol its values, documents or failure, or how the call failed."""
    try:
        asked, answer = read()
    except ProviderError as error:
        return f"call: {_words(type(error).__name__)}"
    return "; ".join(_about(symbol, check_answer(provider, asked, answer)) for symbol in asked)


def _about(symbol: str, answer: Answer) -> str:
    found = [
        f"{one.close} {one.currency or 'without currency'} of {_time(one.observed_at)}"
        + (" (splits)" if one.adjustment is Adjustment.SPLITS else "")
        for one in answer.observations
        if one.symbol == symbol
    ]
    documents = sum(one.symbol == symbol for one in answer.records)
    refused = sum(one.symbol == symbol for one in answer.rejected)
    parts = [*_ends(found), *([f"{documents} document{'s' * (documents > 1)}"] if documents else [])]
    parts += [one.kind for one in answer.failures if one.symbol == symbol]
    parts += ["empty"] if symbol in answer.empty else []
    parts += [f"{refused} refused"] if refused else []
    return f"{symbol}: {', '.join(parts)}"


def _ends(found: Sequence[str]) -> list[str]:
    return list(found) if len(found) < 2 else [f"{len(found)} values, {found[0]} to {found[-1]}"]


def _time(at: datetime) -> str:
    return str(at.date()) if at.hour == at.minute == at.second == 0 else f"{at:%Y-%m-%dT%H:%M:%SZ}"


def _words(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
