"""The files of one recorded answer, in the format that the sandbox and the tests replay (sandbox/recordings.py)."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from pricing_pipeline.errors import PricingError
from pricing_pipeline.local_files.own_files import replace_own, sync_folder

if TYPE_CHECKING:
    from pricing_pipeline.domain.calls import Response
    from pricing_pipeline.providers.base import Request

_SUFFIXES = (".json", ".txt", ".html", ".csv")
_MOST_OF_A_NAME = 80
# Cookies, and what only carries the bytes, are nobody's business.
_KEPT_HEADERS = (
    "content-type",
    "date",
    "retry-after",
    "location",
    "api-credits-",
    "x-ratelimit-",
    "ratelimit",
)
_MOST_HEADERS = 30


@dataclass(frozen=True, slots=True)
class Recording:
    """Where one answer is kept: a body, and beside it `NAME.meta.json`, which makes it a recording."""

    folder: Path
    name: str

    @classmethod
    def of(cls, folder: Path, provider: str, data_type: str, symbols: Sequence[str]) -> Recording:
        """The place of an answer below a folder of recordings."""
        words = "_".join((data_type, *symbols))
        # No dot: a body must not look like the facts of another one.
        return cls(folder / provider, re.sub("[^A-Za-z0-9-]+", "_", words)[:_MOST_OF_A_NAME])

    def page(self, number: int) -> Recording:
        """The place of the answer to the call's request of this number, from 1; the first one is the call's own."""
        return self if number == 1 else Recording(self.folder, f"{self.name}_page{number}")

    @property
    def meta(self) -> Path:
        return self.folder / f"{self.name}.meta.json"

    def body_of(self, response: Response) -> Path:
        """The file of its body, named by the body's format."""
        start = response.body[:200].lstrip()[:1]
        suffix = ".json" if start in (b"{", b"[") else ".html" if start == b"<" else ".txt"
        return self.folder / f"{self.name}{suffix}"

    def check_room(self, *, is_forced: bool) -> None:
        """Raise PricingError if a file of this name is there and may not be replaced."""
        for path in () if is_forced else (self.meta, *self._bodies()):
            if os.path.lexists(path):
                raise PricingError(
                    f"there is a file {path} already, so no call was made. --force replaces it, and --out names "
                    "another folder."
                )

    def make_folder(self) -> None:
        """Make its folder. Raises PricingError if nothing can be written there."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise PricingError(f"{self.folder} cannot be made: {error.strerror}. No call was made.") from error
        if not os.access(self.folder, os.W_OK | os.X_OK):
            raise PricingError(f"{self.folder} cannot be written. No call was made.")

    def write(
        self,
        address: str,
        request: Request,
        response: Response,
        *,
        asked: Mapping[str, object],
        kind: str,
        hide: Callable[[str], str],
    ) -> None:
        """Write both files, for us alone: the facts last, so that no half of a recording is ever one.

        `address` is the base URL that was asked. A replay goes by the path below it.
        """
        url = address + quote(request.path, safe="/%:@!$&'()*+,;=~")
        facts = {
            "kind": kind,
            "url_requested": hide(f"{url}?{urlencode(request.params)}" if request.params else url),
            "asked_path": hide(request.path),
            **_posted(request, hide),
            "http_status": response.status,
            "headers": _kept(response.headers),
            "body_file": self.body_of(response).name,
            "bytes": len(response.body),
            "asked": asked,
        }
        try:
            for path in (self.meta, *self._bodies()):
                path.unlink(missing_ok=True)
            replace_own(self.body_of(response), response.body)
            replace_own(self.meta, f"{json.dumps(facts, indent=1)}\n")
            sync_folder(self.folder)
        except OSError as error:
            raise PricingError(f"{self.folder} cannot be written: {error.strerror}.") from error

    def _bodies(self) -> list[Path]:
        return [self.folder / f"{self.name}{suffix}" for suffix in _SUFFIXES]


def _posted(request: Request, hide: Callable[[str], str]) -> dict[str, object]:
    """The body of a POST; a GET has all in its path and query."""
    if request.method == "GET":
        return {}
    return {"method": request.method, "json": hide(json.dumps(request.json, ensure_ascii=False))}


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that matter, of those that can be replayed. A redirect may have a session in its query."""
    kept: dict[str, str] = {}
    for name, sent in headers.items():
        value = sent.partition("?")[0] if name == "location" else sent
        is_plain = re.fullmatch("[a-z0-9-]{1,100}", name) and re.fullmatch("[ -~]{0,500}", value)
        if is_plain and name.startswith(_KEPT_HEADERS) and len(kept) < _MOST_HEADERS:
            kept[name] = value
    return kept
