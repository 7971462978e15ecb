"""Recorded answers, replayed byte for byte where a request matches one. What nobody recorded is made up elsewhere.

A folder holds one folder for each provider; in it, a body `NAME.json` (or .txt, .csv) stands beside `NAME.meta.json`,
which has `url_requested`, `http_status` and `headers`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from pricing_pipeline.errors import SettingsError
from pricing_pipeline.sandbox.calls import JSON, ProviderCall, Reply

_SECRETS = frozenset({"apikey", "crumb", "token"})
_SYMBOLS = frozenset({"symbol", "symbols"})
_ROOTS = ("stable/",)
"""Parts of a recorded path that belong to a provider's address, below which the sandbox stands."""
_KEPT_HEADERS = ("retry-after", "location", "api-credits-", "x-ratelimit-", "ratelimit")


@dataclass(frozen=True, slots=True)
class _Recording:
    name: str
    params: Mapping[str, str]
    reply: Reply

    def agreement(self, call: ProviderCall) -> tuple[int, int] | None:
        """How many parameters agree with a request, and how many it lacks.

        None if one differs, or they are not about the same symbols.
        """
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
        for meta in sorted(folder.glob("*/*.meta.json")):
            try:
                self._add(meta)
            except (OSError, ValueError, AttributeError) as error:
                raise SettingsError(
                    f"the recording {meta} cannot be read: {error}. Correct or remove it."
                ) from None

    def find(self, provider: str, call: ProviderCall) -> Reply | None:
        """The recording that agrees with a request in most parameters; of equals, one that succeeded."""
        endpoint = call.endpoint.strip("/")
        candidates = [
            (-agreement[0], agreement[1], recording.reply.status != 200, recording.name, recording.reply)
            for recording in self._found.get((provider, endpoint), ())
            if (agreement := recording.agreement(call)) is not None
        ]
        return min(candidates, key=lambda candidate: candidate[:4])[4] if candidates else None

    def _add(self, path: Path) -> None:
        meta = json.loads(path.read_text())
        stem = path.name.removesuffix(".meta.json")
        bodies = [body for body in path.parent.glob(f"{stem}.*") if body != path and body.suffix in _SUFFIXES]
        if not meta.get("url_requested") or not meta.get("http_status") or len(bodies) != 1:
            return
        url = urlsplit(meta["url_requested"])
        where = unquote(url.path).strip("/")
        for root in _ROOTS:
            where = where.removeprefix(root)
        params = {name: value for name, value in parse_qsl(url.query) if name not in _SECRETS}
        sent_headers = {str(name).lower(): str(value) for name, value in (meta.get("headers") or {}).items()}
        headers = {
            name: value
            for name, value in sent_headers.items()
            if name.startswith(_KEPT_HEADERS) and value != "absent"
        }
        kind = sent_headers.get(
            "content-type", JSON if bodies[0].suffix == ".json" else "text/plain; charset=utf-8"
        )
        reply = Reply(int(meta["http_status"]), bodies[0].read_bytes(), kind, headers)
        self._found[path.parent.name, where].append(_Recording(stem, params, reply))


_SUFFIXES = frozenset({".json", ".txt", ".csv", ".html"})
