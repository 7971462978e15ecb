"""The request of a drafted declaration: what was asked once, with placeholders for the symbol and the days."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from urllib.parse import parse_qsl, urlsplit

from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.declaration_texts import is_key
from pricing_pipeline.providers.declared_times import day
from pricing_pipeline.providers.drafted_readings import reads

_DATES = ("iso_date", "%Y%m%d", "%d.%m.%Y", "%d/%m/%Y", "epoch_milliseconds", "epoch_seconds")
_SCHEMES = ("Bearer", "Token", "ApiKey", "Apikey", "Key")
_LONGEST_NAME = 48


@dataclass(frozen=True, slots=True)
class Asked:
    """The request that was made, and the symbol that it is about."""

    url: str
    symbol: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    start: date | None = None

    @property
    def pair(self) -> tuple[str, str] | None:
        """Base and quote, if the symbol is a pair."""
        base, slash, quote = (self.symbol or "").partition("/")
        return (base, quote) if slash else None

    @property
    def parts(self) -> dict[str, str]:
        """The texts that placeholders stand for, the longest first."""
        if self.pair is None:
            return {"{symbol}": self.symbol or ""}
        base, quote = self.pair
        return {"{base}{quote}": base + quote, "{base}": base, "{quote}": quote}

    @property
    def key_headers(self) -> dict[str, str]:
        """The headers whose names look like keys; the file has the others."""
        return {
            name: value
            for name, value in self.headers.items()
            if is_key(re.sub("^x-", "", name.lower())) or name.lower() == "authorization"
        }

    @property
    def provider(self) -> str | None:
        """A name for the provider, from its host; None where that is an address."""
        host = (urlsplit(self.url).hostname or "").lower()
        name = re.sub("[^a-z0-9]+", "_", re.sub(r"^(api|www)\.|\.[a-z]+$", "", host)).strip("_")
        is_address = ":" in host or re.fullmatch("[0-9.]*", host)
        if is_address or not name:
            return None
        name = (name if name[0].isalpha() else f"p_{name}")[:_LONGEST_NAME].strip("_")
        return f"{name}_declared" if name in PROVIDERS else name

    @property
    def base_url(self) -> str | None:
        """The address below which all requests go; None if its host is not public."""
        url = urlsplit(self.url)
        is_public = url.scheme == "https" and re.fullmatch(r"([a-z0-9-]+\.)+[a-z][a-z0-9-]+", url.hostname or "")
        return f"https://{url.netloc}" if is_public else None


class Template:
    """Path and query with placeholders, how their days are written, and how the key travels."""

    def __init__(self, asked: Asked, now: datetime, *, is_several: bool) -> None:
        self._asked, self._now = asked, now
        url = urlsplit(asked.url)
        self.dates: dict[str, str] = {}
        """The format of {start} and of {end}."""
        self.query: dict[str, str] = {}
        parameters = parse_qsl(url.query, keep_blank_values=True)
        self.most, self.separator = "5000", ","
        """Of an answer about several symbols: how many of them a call takes, and what stands between them."""
        for name, value in parameters:
            if is_key(name):
                continue
            symbols = re.split("[,;|]", value)
            if is_several and len(symbols) > 1 and asked.symbol in symbols:
                self.query[name] = "{symbols}"
                self.most = f"{len(symbols)} # CHECK: how many it takes in one call"
                self.separator = value[len(symbols[0])]
            else:
                self.query[name] = self._filled(value)
        self.path = self._filled(url.path or "/")
        self.key = [f"key: {{query: {name}}}" for name, _ in parameters if is_key(name)][:1]
        """Lines about the key and about headers that are not secret."""
        fixed = {}
        for name, value in asked.headers.items():
            if name in asked.key_headers:
                word = value.partition(" ")[0]
                self.key = [f"key: {{header: {name}{f', scheme: {word}' if word in _SCHEMES else ''}}}"]
            else:
                fixed[name] = value
        if fixed:
            told = ", ".join(f"{name}: {json.dumps(value)}" for name, value in fixed.items())
            self.key.append(f"headers: {{{told}}}")

    @property
    def is_about_one(self) -> bool:
        """Whether it names a single symbol."""
        return any(re.search("{(symbol|base|quote)}", text) for text in (self.path, *self.query.values()))

    def without_days(self) -> dict[str, str]:
        """Take the parameters with days out of the query; returns them."""
        taken = {name: text for name, text in self.query.items() if re.search("{(start|end)}", text)}
        self.query = {name: text for name, text in self.query.items() if name not in taken}
        return taken

    def _filled(self, text: str) -> str:
        """A part of the URL with placeholders for symbol and days."""

        def placed(found: re.Match[str]) -> str:
            name = "end" if "start" in self.dates else "start"
            for form in _DATES:
                if reads([found[0]], form, self._now + timedelta(days=400)):
                    if name == "start" and self._asked.start not in (None, day(found[0], form, None)):
                        return found[0]
                    self.dates[name] = form
                    return f"{{{name}}}"
            return found[0]

        text = re.sub(
            r"\d{4}-\d\d-\d\d|\d\d[./]\d\d[./]\d{4}|(?<!\d)\d{8}(?!\d)|(?<!\d)\d{10}(\d{3})?(?!\d)",
            placed,
            text,
        )
        for placeholder, own in self._asked.parts.items():
            if own:
                text = re.sub(rf"(?<![A-Za-z{{]){re.escape(own)}(?![A-Za-z}}])", placeholder, text)
        return text
