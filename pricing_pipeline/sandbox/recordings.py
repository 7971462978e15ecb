"""Recorded answers, replayed byte for byte where a request matches one. What nobody recorded is made up elsewhere.

A folder holds one folder for each provider; in it, a body `NAME.json` (or .txt, .csv, .html) stands beside
`NAME.meta.json`, which has `url_requested`, `http_status` and `headers`; that of a POST also has `method` and, as a
text, the `json` that was sent. `pricing-pipeline provider record` writes such files. A folder may come from a stranger:
what is read of it is bounded, and no link is followed.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from pricing_pipeline.errors import SettingsError
from pricing_pipeline.sandbox.calls import JSON, ProviderCall, Reply, fields_of

MOST_RECORDINGS = 2000
MOST_BYTES_OF_FACTS = 64 * 1024
MOST_BYTES_OF_A_BODY = 16 * 1024 * 1024
"""The most bytes of one answer that a client reads."""
MOST_BYTES = 256 * 1024 * 1024
"""The most bytes of all bodies of a folder together."""

_SECRETS = frozenset({"apikey", "crumb", "token"})
_SYMBOLS = frozenset({"symbol", "symbols"})
_ROOTS = ("stable/",)
"""Parts of a recorded path that belong to a provider's address, below which the sandbox stands."""
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
        if self.method != call.method:
            return None
        if {name: self.params.get(name) for name in _SYMBOLS} != {
            name: call.params.get(name) for name in _SYMBOLS
        }:
            return None
        shared = self.params.keys() & call.params.keys()
        if any(self.params[name] != call.params[name] for name in shared):
            return None
        return len(shared), len(self.params) - len(shared)


class Recordings:
    """All recordings of a folder. Raises SettingsError for one that cannot be read."""

    def __init__(self, folder: Path) -> None:
        self._found: dict[tuple[str, str], list[_Recording]] = defaultdict(list)
        for file in recorded_files(folder):
            with _explained(file.path):
                if file.meta.get("url_requested") and file.meta.get("http_status"):
                    where, recording = _recording(file)
                    self._found[file.provider, where].append(recording)

    def find(self, provider: str, call: ProviderCall) -> Reply | None:
        """The recording that agrees with a request in most parameters; of equals, one that succeeded."""
        endpoint = call.endpoint.strip("/")
        candidates = [
            (-agreement[0], agreement[1], recording.reply.status != 200, recording.name, recording.reply)
            for recording in self._found.get((provider, endpoint), ())
            if (agreement := recording.agreement(call)) is not None
        ]
        return min(candidates, key=lambda candidate: candidate[:4])[4] if candidates else None


def recorded_files(folder: Path) -> Iterator[RecordedFile]:
    """The recordings of a folder by name, those without a body left out.

    Raises SettingsError for a file that is too large, is no plain file, or has no facts in it; and for too many.
    """
    size = 0
    metas = sorted(islice(folder.glob(f"*/*{_META}"), MOST_RECORDINGS + 1))
    for number, meta in enumerate(metas, 1):
        with _explained(meta):
            if number > MOST_RECORDINGS:
                raise ValueError(f"the folder has more than {MOST_RECORDINGS} recordings")
            if meta.parent.is_symlink():
                raise ValueError("its folder is a link, and links are not followed")
            facts = _facts(_read(meta, MOST_BYTES_OF_FACTS))
            stem = meta.name.removesuffix(_META)
            bodies = [meta.with_name(stem + suffix) for suffix in _SUFFIXES]
            bodies = [body for body in bodies if os.path.lexists(body)]
            if len(bodies) != 1:
                continue
            content = _read(bodies[0], MOST_BYTES_OF_A_BODY)
            size += len(content)
            if size > MOST_BYTES:
                raise ValueError(f"the bodies of the folder have more than {MOST_BYTES} bytes together")
            found = RecordedFile(bodies[0], facts, content)
        yield found


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn what is wrong with a recording into a sentence for people."""
    try:
        yield
    except (OSError, ValueError, RecursionError) as error:
        fault = "its JSON is too deep" if isinstance(error, RecursionError) else str(error)
        raise SettingsError(
            f"the recording {_printable(str(path))} cannot be read: {_printable(fault).rstrip('.')}. "
            "Correct or remove it."
        ) from None


def _read(path: Path, most: int) -> bytes:
    """A plain file of at most so many bytes. A pipe would never end, and a link lead anywhere."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        if path.is_symlink():
            raise ValueError("it is a link, and links are not followed") from None
        raise
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise ValueError("it is no plain file")
    with os.fdopen(opened, "rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"{path.name} has more than {most} bytes")
    return content


def _facts(content: bytes) -> Mapping[str, Any]:
    facts = json.loads(content)
    if not isinstance(facts, dict):
        raise ValueError("its facts are no JSON object")
    return facts


def _recording(file: RecordedFile) -> tuple[str, _Recording]:
    """A recording, and the endpoint that it is of. Raises ValueError for facts that are no request or answer."""
    meta = file.meta
    url, status, sent = meta["url_requested"], meta["http_status"], meta.get("headers") or {}
    if not isinstance(url, str):
        raise ValueError("url_requested is no text")
    if type(status) is not int or not 200 <= status <= 599:
        raise ValueError("http_status is no number from 200 to 599")
    if not isinstance(sent, dict):
        raise ValueError("headers is no JSON object")
    parts = urlsplit(url)
    path = meta.get("asked_path", unquote(parts.path))
    if not isinstance(path, str):
        raise ValueError("asked_path is no text")
    where = path.strip("/")
    for root in _ROOTS:
        where = where.removeprefix(root)
    pairs = parse_qsl(parts.query, max_num_fields=100)
    params = {name: value for name, value in pairs if name not in _SECRETS}
    method, sent_body = meta.get("method", "GET"), meta.get("json", "")
    if method not in ("GET", "POST") or not isinstance(sent_body, str):
        raise ValueError("method is neither GET nor POST, or json is no text")
    if method == "POST":
        params |= fields_of(sent_body)
    headers = {name: value for name, value in checked(sent).items() if value != "absent"}
    kind = headers.pop("content-type", JSON if file.path.suffix == ".json" else "text/plain; charset=utf-8")
    return where, _Recording(file.path.stem, method, params, Reply(status, file.body, kind, headers))


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


def _printable(text: str) -> str:
    """A text of a stranger without signs that a terminal obeys."""
    return "".join(sign if sign.isprintable() else "?" for sign in text[:500])
