"""Drafts the declaration of a provider from one of its answers: rows, times, numbers and currency, judged by their
form.

The answer is decoded and its rows are found (drafted_rows.py), their values are read as times, numbers and prices
(drafted_readings.py), the request becomes a template (drafted_request.py), and here a file is written of it. If an
answer can be read in two ways, a person is asked; nothing is guessed silently. The draft is a text with comments, which
a person corrects and `provider try` proves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta

from pricing_pipeline.domain.calls import Response
from pricing_pipeline.errors import SchemaDrift
from pricing_pipeline.providers.base import safe_words
from pricing_pipeline.providers.bodies import NAMES
from pricing_pipeline.providers.currencies import CURRENCIES, PARTS
from pricing_pipeline.providers.declared_times import moment
from pricing_pipeline.providers.drafted_readings import (
    Signs,
    named_prices,
    numbers_in,
    prices_by_order,
    times_in,
)
from pricing_pipeline.providers.drafted_request import Asked, Template
from pricing_pipeline.providers.drafted_rows import Decoded, Rows, about, decoded, fields_of, quoted, scalar

Ask = Callable[[str, Sequence[str]], int]
"""Asks a person which of several readings is meant: the number of the answer."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A drafted declaration, and what was found in the answer."""

    text: str
    shape: list[str]


def draft(response: Response, asked: Asked, ask: Ask, now: datetime) -> Draft:
    """The declaration that an answer suggests. Raises SchemaDrift for one that cannot be read, or has no price."""
    answer = decoded(response, now)
    marks = [mark for mark in (asked.symbol, *reversed(asked.pair or ())) if mark]
    found = [about(one, marks) for one in answer.candidates]
    usable = [one for one in found if times_in(one.samples, now) and numbers_in(one.samples)]
    whole = about(answer.whole, marks)
    if not usable and not times_in(whole.samples, now):  # it has no day at all
        usable = [one for one in answer.candidates if one.paths_to(asked.symbol) and numbers_in(one.samples)]
    if not usable and numbers_in(whole.samples):  # its day stands outside of its rows
        usable = [whole]
    if not usable:
        raise SchemaDrift(
            f"the answer is {NAMES[answer.kind]}, and no part of it has a price"
            f"{'' if asked.symbol else ' that is known without --symbol'}. It begins "
            f"{safe_words(response.body[:200])!r}"
        )
    usable.sort(key=lambda one: -len(one.rows))
    rows = usable[0]
    if len(usable) > 1 and len(usable[1].rows) == len(rows.rows):
        names = [f"{one.line or 'the whole answer is one row'} ({len(one.rows)} rows)" for one in usable[:4]]
        rows = usable[ask("Which part of the answer are the rows?", names)]
    return _Writer(asked, answer, rows, ask, now).draft()


class _Writer:
    """Writes the draft of one answer."""

    def __init__(self, asked: Asked, answer: Decoded, rows: Rows, ask: Ask, now: datetime) -> None:
        self._asked, self._answer, self._rows, self._ask, self._now = asked, answer, rows, ask, now
        self._is_of_now = False
        """Whether the time of a row is the time of a quote: one of the last day, and not a midnight."""
        self._is_of_day = False
        """Whether it is a day alone."""
        self._doubts: dict[str, str] = {}
        """A comment to check, by the part of a bar whose number was chosen among several."""
        self._samples = rows.samples
        self._of = next((path for path in rows.paths_to(asked.symbol) if "[?" not in path), None)
        """The path to the symbol of each row."""
        self._is_several = self._of is not None and (
            str(asked.symbol) not in asked.url or len(set(map(str, self._samples[self._of]))) > 1
        )

    def draft(self) -> Draft:
        times, numbers = times_in(self._samples, self._now), numbers_in(self._samples)
        is_table = bool(self._rows.line) or self._answer.kind == "csv"
        prices = self._prices({path: one for path, one in numbers.items() if path not in times or not is_table})
        time = self._time({path: formats for path, formats in times.items() if path not in prices.values()})
        is_daily = "at: fetch" not in time and not self._is_of_now and (is_table or self._is_of_day)
        answer = [self._answer.line] if self._answer.line else []
        answer += [self._templated(self._rows.line)] if self._rows.line else []
        expected = self._expected() if self._of is None and self._answer.kind != "csv" else []
        answer += expected
        for placeholder, own in self._asked.parts.items():
            told = " ".join([self._asked.url, *answer, *prices.values()])
            if placeholder == "{base}" and own not in told and not expected:
                answer.append(f'expect: {{"\'{own}\'": "{placeholder}"}} # CHECK: all of it is about {own}')
        if self._of is not None:
            answer.append(f"symbol: {scalar(self._of)}")
        answer.append(time)
        names = prices if is_daily else {"price": prices["close"]}
        answer += [
            f"{name}: {scalar(self._placed(path))}{self._doubts.get('close' if name == 'price' else name, '')}"
            for name, path in names.items()
        ]
        answer += self._numbers_line([numbers[path] for path in prices.values() if path in numbers], prices)
        answer.append(self._currency())
        is_span = is_daily and is_table and not self._is_several
        text = self._text(answer, "daily_bars" if is_daily else "quote", "span" if is_span else "latest")
        return Draft(text, self._shape(times, numbers))

    def _expected(self) -> list[str]:
        """Where the answer, beside its rows, names the symbol that was asked for."""
        texts = {self._asked.symbol: "{symbol}"}
        if self._asked.pair:
            base, quote = self._asked.pair
            texts = {f"{base}{sign}{quote}": f"{{base}}{sign}{{quote}}" for sign in ("/", "-", "_", "")}
            texts[base] = "{base}"
        found = [
            (path, texts[one]) for path, one in fields_of(self._answer.data) if isinstance(one, str) and one in texts
        ]
        found.sort(key=lambda one: one[1] == "{base}")
        return [f'expect: {{{json.dumps(path, ensure_ascii=False)}: "{text}"}}' for path, text in found[:1]]

    def _shape(self, times: Mapping[str, list[str]], numbers: Mapping[str, object]) -> list[str]:
        lines = [f"{NAMES[self._answer.kind]}, {len(self._rows.rows)} rows ({self._rows.line or 'the whole'})"]
        for path, values in self._samples.items():
            what = "time" if path in times else "number" if path in numbers else "text"
            lines.append(f"  {path}: {what}, such as {safe_words(str(values[0]))[:60]}")
        return lines[:40]

    def _placed(self, path: str) -> str:
        """A path with placeholders for the names of the symbol in it."""
        for placeholder, own in self._asked.parts.items():
            if own and len(own) > 1:
                path = path.replace(f"'{own}'", f"'{placeholder}'")
                path = re.sub(
                    rf'(?<![A-Za-z0-9])"?([A-Za-z]*){re.escape(own)}"?(?![A-Za-z0-9])',
                    rf'"\1{placeholder}"',
                    path,
                )
        return path

    def _templated(self, line: str) -> str:
        name, _, path = line.partition(": ")
        return f"{name}: {scalar(self._placed(path.strip(chr(39))))}"

    def _prices(self, numbers: Mapping[str, object]) -> dict[str, str]:
        found = {part: self._one_of(part, paths) for part, paths in named_prices(numbers).items()}
        if "close" not in found and all(re.fullmatch(r"\[[0-9]+\]", path) for path in numbers):
            found = prices_by_order(self._samples, list(numbers))
            if found:
                self._doubt("close", found["close"], numbers)
        if "close" not in found:
            marks = [own for own in self._asked.parts.values() if len(own) > 1]
            own = [path for path in numbers if any(mark in path for mark in marks)]
            rest = own or [path for path in numbers if path not in found.values()]
            if not rest:
                raise SchemaDrift("the answer has no number that could be a price")
            found["close"] = self._one_of("close", rest)
        return {part: found[part] for part in ("open", "high", "low", "close", "volume") if part in found}

    def _one_of(self, part: str, paths: Sequence[str]) -> str:
        """The path of a part; of several the one that a person chooses, which the file says to check."""
        if len(paths) == 1:
            return paths[0]
        question = "Which number is the price?" if part == "close" else f"Which number is the {part}?"
        path = paths[self._ask(question, self._with_values(paths))]
        self._doubt(part, path, paths)
        return path

    def _doubt(self, part: str, path: str, paths: Iterable[str]) -> None:
        others = safe_words(", ".join(one for one in paths if one != path))
        self._doubts[part] = f" # CHECK: or is it one of these? {others}"

    def _with_values(self, paths: Sequence[str]) -> list[str]:
        samples = self._samples
        return [f"{path}, such as {safe_words(str(samples[path][0]))[:40]}" for path in paths[:20]]

    def _time(self, times: Mapping[str, list[str]]) -> str:
        if not times:
            return "time: {at: fetch} # no part of the answer is a time: that of the call is stored"
        paths = sorted(times, key=lambda path: (times[path][0] in ("%Y", "%Y-%m"), path != "key"))
        named = [path for path in paths if re.search("date|time|stamp|day|^key$|^t$|^d$|at$", path, re.I)]
        path = (named or paths)[0]
        formats = times[path]
        two = [text for text in formats if text in ("%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y")]
        text = two[self._ask(f"How are days written in {path}?", two)] if len(two) > 1 else formats[0]
        sample = self._samples[path][0]
        zone = ""
        is_local = (text == "iso_time" and not re.search(r"(Z|[+-][0-9]{2}:?[0-9]{2})$", str(sample))) or "%H" in text
        if is_local:
            zone = ", zone: UTC} # CHECK: the times name no offset; whose clock do they show?"
        # A month or a year stands for its last day, which may be to come.
        read = moment(sample, text, "UTC" if is_local else None, self._now + timedelta(days=400))
        is_one = len(self._rows.rows) == 1 or self._is_several
        self._is_of_day = text == "iso_date" or ("%d" in text and "%H" not in text)
        self._is_of_now = is_one and read.time() != time() and abs(self._now - read) < timedelta(days=1)
        shown = text if re.fullmatch("[a-z_]+", text) else f'"{text}"'
        comment = f" # {safe_words(str(sample))[:30]} is {read:%Y-%m-%d %H:%M}"
        return f"time: {{path: {scalar(path)}, format: {shown}{zone or '}' + comment}"

    def _numbers_line(self, signs: Sequence[Sequence[Signs]], prices: Mapping[str, str]) -> list[str]:
        """The signs in which all prices can be read; a person is asked about two."""
        common = [
            way for way in (signs[0] if signs else []) if all(way in others or Signs() in others for others in signs)
        ]
        way = common[0] if common else Signs()
        samples = [one for path in prices.values() for one in self._samples.get(path, ())]
        if len(common) > 1:
            example = next((one for one in samples if isinstance(one, str) and re.search("[,.]", one)), samples[0])
            readings = [f"{example} is {way.number(example):f}" for way in common]
            way = common[self._ask("How are numbers written?", readings)]
        words = {str(one) for one in samples if isinstance(one, str) and not re.search("[0-9]", one)}
        units = [
            path
            for path, values in self._samples.items()
            if re.search("nominal|unit|amount|quantity", path, re.I)
            and path not in prices.values()
            and {str(one) for one in values} & ({"10", "100", "1000", "10000"} | ({"1"} if "ominal" in path else set()))
        ]
        per = units and self._ask("Is a price for so many units?", [f"yes, {units[0]}", "no, for one"]) == 0
        told = [f"per: {scalar(self._placed(units[0]))}"] if per else []
        told += [f'decimal: "{way.decimal}"'] if way.decimal != "." else []
        told += [f'thousands: "{way.thousands}"'] if way.thousands else []
        told += [f"blank: {json.dumps(sorted(words)[:10])}"] if words else []
        return [f"numbers: {{{', '.join(told)}}}"] if told else []

    def _currency(self) -> str:
        if self._asked.pair:
            quote = self._asked.pair[1]
            if quote not in CURRENCIES and quote.upper() in CURRENCIES:
                return f"currency: {{code: {quote.upper()}}}"
            return 'currency: {code: "{quote}"}'
        for path, values in self._samples.items():
            if all(isinstance(one, str) and one in CURRENCIES | PARTS.keys() for one in values):
                return f"currency: {{row: {scalar(self._placed(path))}}} # {values[0]}"
        for path, value in fields_of(self._answer.data):
            if isinstance(value, str) and value in CURRENCIES | PARTS.keys():
                return f"currency: {{answer: {scalar(path)}}} # {value}"
        return "currency: {unnamed: true} # CHECK: the answer names none; write {code: USD} if it is always one"

    def _errors(self) -> list[str]:
        """Where the answer has a place for the words of a refusal: one that is empty now tells one."""
        root = self._answer.data
        for name, value in root.items() if isinstance(root, dict) else ():
            if re.fullmatch("err(or)?s?([ _]?(message|msg|text|description))?|message|msg", name, re.I):
                path = quoted(name) + ("[0]" if isinstance(value, list) else "")
                if value in (None, "", []):
                    return [f"errors: {{message: {scalar(path)}, rules: [{{means: refused, where: {scalar(path)}}}]}}"]
                inner = next((key for key in ("message", "msg") if isinstance(value, dict) and key in value), None)
                if isinstance(value, str) or inner:
                    return [f"errors: {{message: {scalar(path + f'.{inner}' if inner else path)}}}"]
        return []

    def _pages(self) -> list[str]:
        """Where the answer leads to its next page: by a URL, which is followed, or in a way that a person looks up."""
        if not self._rows.line or not isinstance(self._answer.data, dict):
            return []
        named = [
            (path, value)
            for path, value in fields_of(self._answer.data)
            if "[" not in path and re.search(r"(^|[._])(next|cursor|has_?more|total_?pages)", path, re.I)
        ]
        for path, value in named:
            if isinstance(value, str) and re.match("https?://|[/?]", value):
                return [f"pages: {{next: {scalar(path)}}}"]
        return [f"# CHECK: do more pages follow, as {path} may say? Then add `pages`" for path, _ in named[:1]]

    def _text(self, answer: Sequence[str], fetcher: str, way: str) -> str:
        request = Template(self._asked, self._now, is_several=self._is_several)
        left_out = request.without_days() if way == "latest" else {}
        query = ", ".join(
            f"{name if re.fullmatch('[A-Za-z_]+', name) else json.dumps(name)}: {json.dumps(text)}"
            for name, text in request.query.items()
        )
        why = f" # CHECK: without {', '.join(left_out)}, so that it asks for the latest" if left_out else ""
        symbol = self._asked.symbol
        told = " ".join([request.path, *request.query.values(), *answer])
        if symbol and self._of is None and not re.search("{(symbols?|base|quote)}", told):
            why += f' # CHECK: put "{{symbol}}" for what stands for {safe_words(symbol)}, and add it to `names`'
        name = self._asked.provider or "my_provider"
        pattern = "[A-Z0-9]{2,10}/[A-Z0-9]{2,10}" if self._asked.pair else "[A-Za-z0-9^][A-Za-z0-9.^-]{0,31}"
        lines = [
            "# Drafted from one answer. Correct what says CHECK, then run: pricing-pipeline provider try FILE SYMBOL",
            f"name: {name}{'' if self._asked.provider else ' # CHECK: any name that no other provider has'}",
            f"base_url: {self._asked.base_url or 'https://api.example.com # CHECK: the real address'}",
            *request.key,
            "limits: # CHECK: what its documentation allows, here and in `plans`",
            "  minute: {units: 10, seconds: 60}",
            *self._plans(name, fetcher, has_history=way == "span"),
            "symbols:",
            f"  {self._asset_class}: # CHECK: the asset class, here and in `plans`",
            *(['    spelling: "{base}/{quote}"'] if self._asked.pair else []),
            f'    pattern: "{pattern}"',
            *self._errors(),
            "fetchers:",
            f"  {fetcher}:",
            f"    {way}:",
            f"      path: {scalar(request.path)}{'' if query else why}",
            *([f"      query: {{{query}}}{why}"] if query else []),
            *(
                f'      dates: "{text}"'
                for text in dict.fromkeys(request.dates.values())
                if text != "iso_date" and not left_out
            ),
            *([f"      most: {request.most}"] if self._is_several and not request.is_about_one else []),
            *([f'      separator: "{request.separator}"'] if request.separator != "," else []),
            *(f"      {line}" for line in self._pages()),
            "      answer:",
            *(f"        {line}" for line in answer),
        ]
        return "\n".join(lines) + "\n"

    @property
    def _asset_class(self) -> str:
        return "fx" if self._asked.pair else "equity"

    def _plans(self, name: str, fetcher: str, *, has_history: bool) -> list[str]:
        """A plan with one data type, for `provider use`."""
        data_type = f"{name[:40]}_{'daily' if fetcher == 'daily_bars' else 'quote'}"
        at_least = 240 if fetcher == "daily_bars" else 5
        history = ", history_from: 2000-01-01} # CHECK: the first day of its history" if has_history else "}"
        check = f"    check: {{type: {data_type}, symbol: {json.dumps(self._asked.symbol)}}}"
        return [
            "plans: # what `provider use` writes",
            "  free:",
            "    title: the free plan",
            "    limits: {minute: {units: 10, seconds: 60}}",
            "    types: # kept as fresh as this many minutes",
            f"      {data_type}: {{asset_class: {self._asset_class}, fetcher: {fetcher}, at_least: {at_least}{history}",
            *([check] if self._asked.symbol else []),
        ]
