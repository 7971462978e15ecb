"""Real answers of providers, recorded by others, that lie beside the checkout and are not ours to commit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pricing_pipeline.domain.calls import Response

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
