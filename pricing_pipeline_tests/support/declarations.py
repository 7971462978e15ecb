"""The declared providers of tests, from their files: copies of coded ones, and the examples of the documentation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.providers.base import Provider, Question, Request
from pricing_pipeline.providers.declaration_file import Declared, read_file, read_text
from pricing_pipeline.providers.declared import DeclaredProvider
from pricing_pipeline.providers.dialogue import dialogue_of

ROOT = Path(__file__).parents[2]
FUNDS = ROOT / "pricing_pipeline_tests" / "declarations" / "funds.yaml"
SHARES = ROOT / "pricing_pipeline_tests" / "declarations" / "shares.yaml"
FRANKFURTER = ROOT / "docs" / "examples" / "frankfurter.yaml"
PAGES = ROOT / "docs" / "examples" / "pages.yaml"
FILES = (FUNDS, SHARES, *sorted((ROOT / "docs" / "examples").glob("*.yaml")))

DECLARED: Mapping[str, DeclaredProvider] = {
    provider.name: provider for provider in (DeclaredProvider(read_file(path)) for path in FILES)
}
"""Declared providers by name."""


def changed(path: Path, *changes: tuple[str, str]) -> Declared:
    """The declaration of a file after some changes of its text, each of what stands in it."""
    text = path.read_text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    return read_text(text, path.name)


def asked(
    provider: Provider, fetcher: Fetcher, symbols: Sequence[str], window: Window | None, *, now: datetime
) -> Request:
    """The first request of a call."""
    return next(dialogue_of(provider, Question(fetcher, symbols, window, now)))


def answered(
    provider: Provider,
    fetcher: Fetcher,
    symbols: Sequence[str],
    window: Window | None,
    *responses: Response,
    now: datetime,
) -> Answer:
    """The answer of a call, made of these responses."""
    dialogue = dialogue_of(provider, Question(fetcher, symbols, window, now))
    next(dialogue)
    for response in responses:
        try:
            dialogue.send(response)
        except StopIteration as end:
            answer: Answer = end.value
            return answer
    raise AssertionError("the provider asks for more")
