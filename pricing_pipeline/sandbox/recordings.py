"""Recorded answers, replayed byte for byte where a request matches one. What nobody recorded is made up elsewhere.

A folder holds one folder for each provider; in it, a body `NAME.json` (or .txt, .csv, .html) stands beside
`NAME.meta.json`, which has `url_requested`, `http_status` and `headers`; that of a POST also has `method` and, as a
text, the `json` that was sent. `pricing-pipeline provider record` writes such files.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pricing_pipeline.errors import SettingsError
from pricing_pipeline.sandbox.calls import JSON, ProviderCall, Reply, fields_of

MOST_RECORDINGS = 2000
MOST_BYTES = 256 * 1024 * 1024
"""The most bytes of all files of a folder together."""

_SECRETS = frozenset({"apikey", "crumb", "token"})
_SYMBOLS = frozenset({"symbol", "symbols"})
_ROOT = "stable/"
"""A part of FMP's recorded paths that belongs to its address, below which the sandbox stands."""
_KEPT_HEADERS = ("date", "retry-after", "location", "api-credits-", "x-ratelimit-", "ratelimit")
_SUFFIXES = (".json", ".txt", ".csv", ".html")
_META = ".meta.json"


@dataclass(frozen=True, slots=True)
class RecordedFile:
    """A body and its facts as they are in a folder: `meta` is what its JSON says, unchecked but for its kind."""

    path: Path
    meta: Mapping[str, Any]
    body: bytes

    @property
    def provider(self) -> str:
        return self.path.parent.name


class _Facts(BaseModel):
    """The facts of a recording that the sandbox reads."""

    model_config = ConfigDict(strict=True)

    url_requested: str
    http_status: int = Field(ge=200, le=599)
    headers: dict[str, object] | None = None
    asked_path: str | None = None
    method: Literal["GET", "POST"] = "GET"
    sent: str = Field("", alias="json")


@dataclass(frozen=True, slots=True)
class _Recording:
    name: str
    method: str
    params: Mapping[str, str]
    reply: Reply

    def agreement(self, call: ProviderCall) -> tuple[int, int] | None:
        """How many parameters agree with a request, and how many it lacks.

        None if one differs, or the method, or they are not about the same symbols.
        """
        shared = self.params.keys() & call.params.keys()
        if self.method != call.method or any(self.params[name] != call.params[name] for name in shared):
            return None
        if _SYMBOLS & (self.params.keys() ^ call.params.keys()):
            return None
        return len(shared), len(self.params) - len(shared)


class Recordings:
    """All recordings of a folder. Raises SettingsError for one that cannot be read."""

    def __init__(self, folder: Path) -> None:
        self._found: dict[tuple[str, str], list[_Recording]] = defaultdict(list)
        for file in recorded_files(folder):
            if file.meta.get("url_requested") and file.meta.get("http_status"):
                try:
                    where, recording = _recording(file)
                except ValueError as error:
                    raise _unreadable(file.path, error) from None
                self._found[file.provider, where].append(recording)

    def find(self, provider: str, call: ProviderCall) -> Reply | None:
        """The recording that agrees with a request in most parameters; of equals, one that succeeded."""
        candidates = [
            (-agreement[0], agreement[1], recording.reply.status != 200, recording.name, recording.reply)
            for recording in self._found.get((provider, call.endpoint.strip("/")), ())
            if (agreement := recording.agreement(call)) is not None
        ]
        return min(candidates, key=lambda candidate: candidate[:4])[4] if candidates else None


def recorded_files(folder: Path) -> Iterator[RecordedFile]:
    """The recordings of a folder by name, those without a body left out.

    Raises SettingsError for one whose facts cannot be read, and for too many.
    """
    size = 0
    for count, meta in enumerate(sorted(folder.glob(f"*/*{_META}")), 1):
        bodies = [meta.with_name(meta.name.removesuffix(_META) + suffix) for suffix in _SUFFIXES]
        bodies = [body for body in bodies if body.exists()]
        try:
            size += sum(file.stat().st_size for file in (meta, *bodies))
            if count > MOST_RECORDINGS or size > MOST_BYTES:
                raise ValueError(f"the folder has more than {MOST_RECORDINGS} recordings or {MOST_BYTES} bytes")
            facts = json.loads(meta.read_bytes())
            if not isinstance(facts, dict):
                raise ValueError("its facts are no JSON object")
            found = [RecordedFile(body, facts, body.read_bytes()) for body in bodies]
        except (OSError, ValueError, RecursionError) as error:
            raise _unreadable(meta, error) from None
        if len(found) == 1:
            yield found[0]


def _recording(file: RecordedFile) -> tuple[str, _Recording]:
    """A recording and its endpoint. Raises ValueError for facts that are not a request and an answer."""
    facts = _Facts.model_validate(file.meta)
    parts = urlsplit(facts.url_requested)
    where = (unquote(parts.path) if facts.asked_path is None else facts.asked_path).strip("/")
    pairs = parse_qsl(parts.query, max_num_fields=100)
    params = {name: value for name, value in pairs if name not in _SECRETS}
    if facts.method == "POST":
        params |= fields_of(facts.sent)
    headers = {name: value for name, value in checked(facts.headers or {}).items() if value != "absent"}
    kind = headers.pop("content-type", JSON if file.path.suffix == ".json" else "text/plain; charset=utf-8")
    reply = Reply(facts.http_status, file.body, kind, headers)
    return where.removeprefix(_ROOT), _Recording(file.path.stem, facts.method, params, reply)


def checked(sent: Mapping[str, object]) -> dict[str, str]:
    """The headers that are replayed. One with a line end in it would add others, or a second answer."""
    headers = {}
    for name, value in ((name.lower(), str(value)) for name, value in sent.items()):
        if name != "content-type" and not name.startswith(_KEPT_HEADERS):
            continue
        if not re.fullmatch("[a-z0-9-]{1,100}", name) or not re.fullmatch("[ -~]{0,1000}", value):
            raise ValueError("a header has signs that no header can carry, or is too long")
        headers[name] = value
    return headers


def _unreadable(path: Path, error: Exception) -> SettingsError:
    """The fault of a recording as a sentence for people."""
    fault = str(error)
    if isinstance(error, ValidationError):
        fault = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
    text = f"the recording {path} cannot be read: {fault.rstrip('.')}. Correct or remove it."
    return SettingsError("".join(sign if sign.isprintable() else "?" for sign in text))
