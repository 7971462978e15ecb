"""Drafts the declaration of a provider from one of its answers: rows, times, numbers and currency, as they look.

What can be read in two ways is asked; nothing is guessed in silence. The draft is a text with comments, which a person
corrects and `provider try` proves.
"""

from __future__ import annotations

import csv
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from urllib.parse import parse_qsl, urlsplit

from pricing_pipeline.domain.calls import Response
from pricing_pipeline.errors import SchemaDrift
from pricing_pipeline.providers.base import decode_json, safe_words
from pricing_pipeline.providers.bodies import NAMES, CsvForm, decode_csv, decode_xml, kind_of
from pricing_pipeline.providers.currencies import CURRENCIES, PARTS
from pricing_pipeline.providers.declaration_texts import is_key
from pricing_pipeline.providers.declared_times import day, moment
from pricing_pipeline.providers.values import Implausible, calendar_day, decimal_of

Ask = Callable[[str, Sequence[str]], int]
"""Asks a person which of several readings is meant: the number of the answer."""

_DEPTH = 6
_SEEN = 50
"""Rows that are looked at."""
_FORMATS = (
    *(
        "iso_date",
        "iso_time",
        "epoch_milliseconds",
        "epoch_seconds",
        "dotnet",
        "%d.%m.%Y",
        "%d/%m/%Y",
        "%m/%d/%Y",
    ),
    *("%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y%m%d", "%d-%b-%Y", "%d %b %Y", "%b %d, %Y", "%Y-%m-%d %H:%M:%S"),
    *("%d.%m.%Y %H:%M:%S", "%Y-%m", "%Y"),
)
_PRICES = {
    "close": (
        "c|close|closing|schluss|cloture|cierre|chiusura|fechamento|fecho|slot|zamkniecie",
        "last|lastprice|price|p|value|v?al|rate|mid|nav|netassetvalue|obsvalue|kurs|koers|bid|amount",
    ),
    "open": ("o|open|opening|first|eroffnung|ouverture|apertura|abertura|otwarcie",),
    "high": ("h|high|max|dayhigh|hoch|hochst|haut|plushaut|maxim[ao]|massimo|hoogste?|najwyzszy",),
    "low": ("l|low|min|daylow|tief|tiefst|bas|plusbas|minim[ao]|laag|laagste|najnizszy",),
    "volume": ("v|vol|volume|volumen|wolumen",),
}
"""What the parts of a bar are called, in a few languages, without accents. Of two lists, the first goes before."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked, and about whom."""

    url: str
    symbol: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    start: date | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """A declaration, and what its maker has seen."""

    text: str
    shape: list[str]


@dataclass(frozen=True, slots=True)
class _Rows:
    """One way to find rows in an answer: the line of the declaration, and the rows."""

    line: str
    rows: list[object]


@dataclass(frozen=True, slots=True)
class _Signs:
    """How numbers are written."""

    decimal: str = "."
    thousands: str | None = None

    def number(self, raw: object) -> Decimal | None:
        text = raw
        if isinstance(raw, str):
            text = raw.strip()
            if self.thousands:
                text = text.replace(self.thousands, "")
            text = text.replace(self.decimal, ".") if self.decimal != "." else text
        try:
            return None if isinstance(raw, bool) else decimal_of(text, "number")
        except Implausible:
            return None


def draft(response: Response, asked: Asked, ask: Ask, now: datetime) -> Draft:
    """The declaration that an answer suggests. Raises SchemaDrift for one that cannot be read, or has no price."""
    kind, data, body = _decoded(response, now)
    base, _, quote = (asked.symbol or "").partition("/")
    found = [
        replace(one, rows=_about(one.rows, [mark for mark in (asked.symbol, quote, base) if mark]))
        for one in _candidates(data, kind)
    ]
    usable = [one for one in found if _times(one, now) and _numbers(one)]
    if not usable:
        usable = [_Rows("", [data])] if _numbers(_Rows("", [data])) else []
    if not usable:
        raise SchemaDrift(
            f"the answer is {NAMES[kind]}, and no part of it has a price. It begins "  # type: ignore[index]
            f"{safe_words(response.body[:200])!r}"
        )
    usable.sort(key=lambda one: -len(one.rows))
    rows = usable[0]
    if len(usable) > 1 and len(usable[1].rows) == len(rows.rows):
        names = [f"{one.line or 'the whole answer is one row'} ({len(one.rows)} rows)" for one in usable[:4]]
        rows = usable[ask("Which part of the answer are the rows?", names)]
    return _Writer(asked, kind, body, data, rows, ask, now).draft()


def _decoded(response: Response, now: datetime) -> tuple[str, object, str]:
    """The kind, the data, and the line about the body."""
    kind = kind_of(response)
    if kind == "json":
        return kind, decode_json("the service", response), ""
    if kind == "xml":
        return kind, decode_xml("the service", response), "body: {format: xml}"
    if kind != "csv":
        raise SchemaDrift(
            f"the answer is {NAMES[kind]}, which has no prices. It begins {safe_words(response.body[:200])!r}"
        )
    encoding = "utf-8"
    try:
        text = response.body.decode("utf-8-sig")
    except UnicodeDecodeError:
        encoding = "windows-1252"
        text = response.body.decode(encoding, "replace")
    lines = text.splitlines()
    lines = lines[:200] + lines[200:][-20:]
    tables = {one: [next(csv.reader([line], delimiter=one), []) for line in lines] for one in ",;|\t"}
    widths = {one: [len(cells) for cells in table] for one, table in tables.items()}
    sign = max(widths, key=lambda one: (widths[one].count(_commonest(widths[one])), _commonest(widths[one])))
    table, width = tables[sign], _commonest(widths[sign])
    first = next(
        (
            number
            for number, cells in enumerate(table)
            if len(cells) == width and any(_is_time(cell, now) for cell in cells)
        ),
        0,
    )
    heads = [
        number
        for number, cells in enumerate(table[:first])
        if len(cells) == width == len({cell.strip() for cell in cells} - {""})
    ]
    header, skip = bool(heads), heads[0] if heads else first
    ends = {
        cells[0].strip()[:40]
        for cells in table[first:]
        if len(cells) == width and cells[0].strip() and not any(_is_time(cell, now) for cell in cells)
    }
    comments = tuple(sorted(ends)) if len(ends) <= 5 else ()
    form = CsvForm(sign, header, skip, comments, encoding)
    told = {
        "delimiter": "" if sign == "," else f'"{"tab" if sign == chr(9) else sign}"',
        "header": "" if header else "false",
        "skip": str(skip) if skip else "",
        "comments": json.dumps(comments, ensure_ascii=False) if comments else "",
        "encoding": "" if encoding == "utf-8" else encoding,
    }
    more = "".join(f", {name}: {value}" for name, value in told.items() if value)
    return kind, list(decode_csv("the service", response, form)), f"body: {{format: csv{more}}}"


def _is_time(cell: str, now: datetime) -> bool:
    return any(_reads([cell.strip()], text, now) for text in _FORMATS if text != "%Y")


def _commonest(counts: Sequence[int]) -> int:
    wide = [count for count in counts if count > 1]
    return max(set(wide), key=lambda one: (wide.count(one), one)) if wide else 0


class _Path(str):
    """A part of a path that is no plain name."""


def _about(rows: Sequence[object], marks: Sequence[str]) -> list[object]:
    """Rows in which a list of objects is replaced by the one object that names the symbol."""

    def chosen(row: object) -> object:
        if not isinstance(row, dict):
            return row
        found: dict[str, object] = {}
        for name, value in row.items():
            named = [
                (key, one)
                for one in (value if isinstance(value, list) else ())
                if isinstance(one, dict)
                for key, text in one.items()
                if isinstance(text, str) and text in marks
            ]
            if len(named) == 1:
                key, one = named[0]
                found[_Path(f"{quoted(name)}[?{quoted(key)}=='{one[key]}']")] = one
            else:
                found[name] = value
        return found

    return [chosen(row) for row in rows]


def quoted(name: str) -> str:
    """A name as a part of a path."""
    if isinstance(name, _Path):
        return name
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else json.dumps(name, ensure_ascii=False)


def _joined(path: str, name: str) -> str:
    return f"{path}.{quoted(name)}" if path else quoted(name)


def _candidates(data: object, kind: str) -> list[_Rows]:
    if kind == "csv":
        assert isinstance(data, list)  # noqa: S101 - for the type checker
        return [_Rows("", data)]
    return [one for one in _walk(data, "", 0) if one.rows]


def _walk(node: object, path: str, depth: int) -> Iterator[_Rows]:
    if depth > _DEPTH:
        return
    if isinstance(node, list):
        if node and all(isinstance(one, dict | list) for one in node):
            if isinstance(node[0], list) or any(
                not isinstance(one, dict | list) for one in _members(node[0])
            ):
                yield _Rows(f"rows: {path or '@'}", node)
            flat = [inner for one in node if isinstance(one, dict) for inner in one.items()]
            lists: dict[str, list[object]] = {}
            for name, inner in flat:
                if isinstance(inner, list):
                    lists.setdefault(name, []).extend(inner)
            for name, inner in lists.items():
                yield from _walk(
                    inner,
                    f"{path}[].{quoted(name)}[]" if not path.endswith("[]") else f"{path}.{quoted(name)}[]",
                    depth + 1,
                )
        if len(node) <= 3:
            for number, one in enumerate(node):
                if isinstance(one, list | dict):
                    yield from _walk(one, f"{path}[{number}]", depth + 1)
    elif isinstance(node, dict):
        lengths = {len(one) for one in node.values() if isinstance(one, list) and _is_column(one)}
        columns = {name: one for name, one in node.items() if isinstance(one, list) and _is_column(one)}
        if len(columns) > 1 and len(lengths) == 1 and lengths != {0}:
            rows: list[object] = [
                dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
            ]
            others = any(isinstance(one, list) and name not in columns for name, one in node.items())
            chosen = (
                "{" + ", ".join(f"{quoted(name)}: {quoted(name)}" for name in columns) + "}" if others else ""
            )
            yield _Rows(f"columns: {_line('.'.join(filter(None, (path, chosen))) or '@')}", rows)
        if node and all(_is_day(name) for name in node):
            yield _Rows(
                f"rows: {_line(path or '@')}", [{"key": name, "value": one} for name, one in node.items()]
            )
        else:
            for name, one in node.items():
                yield from _walk(one, _joined(path, name), depth + 1)


def _members(node: object) -> Sequence[object]:
    return list(node.values()) if isinstance(node, dict) else node if isinstance(node, list) else ()


def _is_column(values: Sequence[object]) -> bool:
    return bool(values) and not any(isinstance(one, list | dict) for one in values)


def _is_day(text: str) -> bool:
    try:
        calendar_day(text[:10])
    except Implausible:
        return False
    return True


def _fields(row: object, path: str = "", depth: int = 0) -> Iterator[tuple[str, object]]:
    """Every value of a row that holds nothing else, by its path."""
    if depth > 3:
        return
    if isinstance(row, dict):
        for name, one in row.items():
            yield from _fields(one, _joined(path, name), depth + 1)
    elif isinstance(row, list) and (depth == 0 or len(row) == 1):
        for number, one in enumerate(row):
            yield from _fields(one, f"{path}[{number}]", depth + 1)
    elif path:
        yield path, row


def _samples(rows: _Rows) -> dict[str, list[object]]:
    found: dict[str, list[object]] = {}
    for row in [*rows.rows[:_SEEN], *rows.rows[-_SEEN:]]:
        for path, value in _fields(row):
            if value not in (None, ""):
                found.setdefault(path, []).append(value)
    return found


def _reads(values: Sequence[object], text: str, now: datetime) -> bool:
    first = date(1900, 1, 1)
    try:
        days = [day(one, text, None) for one in values]
        if text == "iso_time":
            return all(isinstance(one, str) and ("T" in one or ":" in one) for one in values)
    except (Implausible, ValueError):
        return False
    if text.startswith("epoch"):
        first = date(1990, 1, 1)
    if text in ("%Y", "%Y-%m"):
        return all(first < one < now.date() + timedelta(days=400) for one in days)
    return all(first < one <= now.date() + timedelta(days=1) for one in days)


def _times(rows: _Rows, now: datetime) -> dict[str, list[str]]:
    """The paths that lead to times, with the formats in which all of them can be read."""
    found = {}
    for path, values in _samples(rows).items():
        formats = [text for text in _FORMATS if _reads(values, text, now)]
        if formats:
            found[path] = formats
    return found


def _signs_of(values: Sequence[object]) -> list[_Signs]:
    """The ways in which all values are numbers: more than one if a sign may stand for either."""
    ways = [_Signs(), _Signs(".", ","), _Signs(",", "."), _Signs(".", "'"), _Signs(",", " "), _Signs(",")]
    texts = [one for one in values if isinstance(one, str)]
    groups = {
        ",": r"-?[0-9]{1,3}(,[0-9]{2,3})*,[0-9]{3}(\.[0-9]+)?",
        ".": r"-?[0-9]{1,3}(\.[0-9]{3})+(,[0-9]+)?",
    }

    def fits(way: _Signs) -> bool:
        if way.thousands is not None and not any(way.thousands in text for text in texts):
            return False
        if way.decimal == "," and not any("," in text for text in texts):
            return way.thousands == "." and _all_match(texts, groups["."])
        if way.thousands in groups and not _all_match(texts, groups[way.thousands], way.thousands):
            return False
        return all(way.number(one) is not None for one in values)

    return [way for way in ways if fits(way)]


def _all_match(texts: Sequence[str], pattern: str, sign: str = ".") -> bool:
    with_sign = [text.strip() for text in texts if sign in text]
    return bool(with_sign) and all(re.fullmatch(pattern, text) for text in with_sign)


def _numbers(rows: _Rows) -> dict[str, list[_Signs]]:
    found = {}
    for path, values in _samples(rows).items():
        # A few texts such as N/A may stand for no price.
        numbers = [one for one in values if not isinstance(one, bool) and re.search("[0-9]", str(one))]
        signs = _signs_of(numbers) if 2 * len(numbers) >= len(values) else []
        if signs:
            found[path] = signs
    return found


def _line(path: str) -> str:
    """A path as a scalar of YAML."""
    return path if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]*", path) else "'" + path.replace("'", "''") + "'"


def _letters(name: str) -> str:
    """The letters of a name, small and without accents."""
    return re.sub("[^a-z]", "", unicodedata.normalize("NFKD", name.casefold()))


class _Writer:
    """Writes the draft of one answer."""

    def __init__(
        self, asked: Asked, kind: str, body: str, data: object, rows: _Rows, ask: Ask, now: datetime
    ) -> None:
        self._asked, self._kind, self._body, self._data = asked, kind, body, data
        self._rows, self._ask, self._now = rows, ask, now
        symbol = asked.symbol or ""
        base, slash, quote = symbol.partition("/")
        self._pair = (base, quote) if slash else None
        self._is_of_now = False
        """Whether the time of a row is the time of a quote: one of the last day, and not a midnight."""
        self._doubts: dict[str, str] = {}
        """A comment to check, by the part of a bar whose number was chosen among several."""
        samples = _samples(rows)
        named = [path for path, values in samples.items() if symbol and symbol in values]
        self._of = named[0] if named else None
        """The path to the symbol of each row."""
        self._is_several = bool(named) and (
            symbol not in asked.url or len(set(map(str, samples[named[0]]))) > 1
        )
        self._parts = (
            {"{base}{quote}": base + quote, "{base}": base, "{quote}": quote}
            if slash
            else {"{symbol}": symbol}
        )

    def draft(self) -> Draft:
        times, numbers = _times(self._rows, self._now), _numbers(self._rows)
        is_table = bool(self._rows.line) or self._kind == "csv"
        prices = self._prices(
            {path: one for path, one in numbers.items() if path not in times or not is_table}
        )
        time = self._time({path: formats for path, formats in times.items() if path not in prices.values()})
        is_daily = is_table and "at: fetch" not in time and not self._is_of_now
        answer = [self._body] if self._body else []
        answer += [self._templated(self._rows.line)] if self._rows.line else []
        expected = self._expected() if self._of is None and self._kind != "csv" else []
        answer += expected
        for placeholder, own in self._parts.items():
            told = " ".join([self._asked.url, *answer, *prices.values()])
            if placeholder == "{base}" and own not in told and not expected:
                answer.append(f'expect: {{"\'{own}\'": "{placeholder}"}} # CHECK: all of it is about {own}')
        if self._of is not None:
            answer.append(f"symbol: {_line(self._of)}")
        answer.append(time)
        names = prices if is_daily else {"price": prices["close"]}
        answer += [
            f"{name}: {_line(self._placed(path))}{self._doubts.get('close' if name == 'price' else name, '')}"
            for name, path in names.items()
        ]
        answer += self._numbers_line([numbers[path] for path in prices.values() if path in numbers], prices)
        answer.append(self._currency())
        return Draft(self._text(answer, is_daily=is_daily), self._shape(times, numbers))

    def _expected(self) -> list[str]:
        """Where the answer, beside its rows, names the symbol that was asked for."""
        texts = {self._asked.symbol: "{symbol}"}
        if self._pair:
            base, quote = self._pair
            texts = {f"{base}{sign}{quote}": f"{{base}}{sign}{{quote}}" for sign in ("/", "-", "_", "")}
            texts[base] = "{base}"
        found = [
            (path, texts[one]) for path, one in _fields(self._data) if isinstance(one, str) and one in texts
        ]
        found.sort(key=lambda one: one[1] == "{base}")
        return [f'expect: {{{json.dumps(path, ensure_ascii=False)}: "{text}"}}' for path, text in found[:1]]

    def _shape(self, times: Mapping[str, list[str]], numbers: Mapping[str, object]) -> list[str]:
        lines = [f"{NAMES[self._kind]}, {len(self._rows.rows)} rows ({self._rows.line or 'the whole'})"]  # type: ignore[index]
        for path, values in _samples(self._rows).items():
            what = "time" if path in times else "number" if path in numbers else "text"
            lines.append(f"  {path}: {what}, such as {safe_words(str(values[0]))[:60]}")
        return lines[:40]

    def _placed(self, path: str) -> str:
        """A path with placeholders for the names of the symbol in it."""
        for placeholder, own in self._parts.items():
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
        return f"{name}: {_line(self._placed(path.strip(chr(39))))}"

    def _prices(self, numbers: Mapping[str, object]) -> dict[str, str]:
        found: dict[str, str] = {}
        names = {path: _letters(path.rpartition(".")[2]) for path in numbers}
        for part, lists in _PRICES.items():
            for words in lists:
                pattern = f"({words})(price|s?kurs|s?koers)?"
                matches = [path for path, name in names.items() if re.fullmatch(pattern, name)]
                if matches and part not in found:
                    found[part] = self._one_of(part, matches)
        if "close" not in found and all(re.fullmatch(r"\[[0-9]+\]", path) for path in numbers):
            found = self._by_order(list(numbers))
            if found:
                self._doubt("close", found["close"], numbers)
        if "close" not in found:
            marks = [own for own in self._parts.values() if len(own) > 1]
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

    def _by_order(self, paths: Sequence[str]) -> dict[str, str]:
        """Four numbers in a row of which the second is the highest and the third the lowest: a bar."""
        samples = _samples(self._rows)
        values = [[_Signs().number(one) or Decimal(0) for one in samples[path]] for path in paths]
        for at in range(len(paths) - 3):
            bars = list(zip(*values[at : at + 4], strict=False))
            if bars and all(
                low <= min(first, last) and max(first, last) <= high for first, high, low, last in bars
            ):
                names = dict(zip(("open", "high", "low", "close"), paths[at : at + 4], strict=True))
                return names | ({"volume": paths[at + 4]} if len(paths) == at + 5 else {})
        return {}

    def _with_values(self, paths: Sequence[str]) -> list[str]:
        samples = _samples(self._rows)
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
        sample = _samples(self._rows)[path][0]
        zone = ""
        is_local = (
            text == "iso_time" and not re.search(r"(Z|[+-][0-9]{2}:?[0-9]{2})$", str(sample))
        ) or "%H" in text
        if is_local:
            zone = ", zone: UTC} # CHECK: the times name no offset; whose clock do they show?"
        read = moment(sample, text, "UTC" if is_local else None, self._now)
        is_one = len(self._rows.rows) == 1 or self._is_several
        self._is_of_now = is_one and read.time() != time() and abs(self._now - read) < timedelta(days=1)
        shown = text if re.fullmatch("[a-z_]+", text) else f'"{text}"'
        comment = f" # {safe_words(str(sample))[:30]} is {read:%Y-%m-%d %H:%M}"
        return f"time: {{path: {_line(path)}, format: {shown}{zone or '}' + comment}"

    def _numbers_line(self, signs: Sequence[Sequence[_Signs]], prices: Mapping[str, str]) -> list[str]:
        """The signs in which all prices can be read; a person is asked about two."""
        common = [
            way
            for way in (signs[0] if signs else [])
            if all(way in others or _Signs() in others for others in signs)
        ]
        way = common[0] if common else _Signs()
        samples = [one for path in prices.values() for one in _samples(self._rows).get(path, ())]
        if len(common) > 1:
            example = next(
                (one for one in samples if isinstance(one, str) and re.search("[,.]", one)), samples[0]
            )
            readings = [f"{example} is {way.number(example):f}" for way in common]
            way = common[self._ask("How are numbers written?", readings)]
        words = {str(one) for one in samples if isinstance(one, str) and not re.search("[0-9]", one)}
        units = [
            path
            for path, values in _samples(self._rows).items()
            if re.search("nominal|unit|amount|quantity", path, re.I)
            and path not in prices.values()
            and {str(one) for one in values} & {"10", "100", "1000", "10000"}
        ]
        per = units and self._ask("Is a price for so many units?", [f"yes, {units[0]}", "no, for one"]) == 0
        told = [f"per: {_line(units[0])}"] if per else []
        told += [f'decimal: "{way.decimal}"'] if way.decimal != "." else []
        told += [f'thousands: "{way.thousands}"'] if way.thousands else []
        told += [f"blank: {json.dumps(sorted(words)[:10])}"] if words else []
        return [f"numbers: {{{', '.join(told)}}}"] if told else []

    def _currency(self) -> str:
        if self._pair and self._pair[1] not in CURRENCIES and self._pair[1].upper() in CURRENCIES:
            return f"currency: {{code: {self._pair[1].upper()}}}"
        if self._pair:
            return 'currency: {code: "{quote}"}'
        for path, values in _samples(self._rows).items():
            if all(isinstance(one, str) and one in CURRENCIES | PARTS.keys() for one in values):
                return f"currency: {{row: {_line(path)}}} # {values[0]}"
        for path, value in _fields(self._data):
            if isinstance(value, str) and value in CURRENCIES | PARTS.keys():
                return f"currency: {{answer: {_line(path)}}} # {value}"
        return (
            "currency: {unnamed: true} # CHECK: the answer names none; write {code: USD} if it is always one"
        )

    def _text(self, answer: Sequence[str], *, is_daily: bool) -> str:
        url = urlsplit(self._asked.url)
        host = url.hostname or "api.example.com"
        is_public = url.scheme == "https" and re.search(r"\.[a-z][a-z0-9-]+$", host) is not None
        name = (
            re.sub("[^a-z0-9]+", "_", re.sub(r"^(api|www)\.|\.[a-z]+$", "", host.lower())).strip("_")
            or "draft"
        )
        name = name if name[0].isalpha() else f"p_{name}"
        query, key, dates = self._query(parse_qsl(url.query, keep_blank_values=True))
        path, more = self._filled(url.path or "/")
        dates |= more
        fetcher = "daily_bars" if is_daily else "quote"
        way = "span" if is_daily and not self._is_several else "latest"
        pattern = "[A-Z0-9]{2,10}/[A-Z0-9]{2,10}" if self._pair else "[A-Za-z0-9^][A-Za-z0-9.^-]{0,31}"
        base_url = (
            f"https://{url.netloc}" if is_public else "https://api.example.com # CHECK: the real address"
        )
        lines = [
            "# Drafted from one answer. Correct what says CHECK, then run: pricing-pipeline provider try FILE SYMBOL",
            f"name: {name}",
            f"base_url: {base_url}",
            *key,
            "limits: # CHECK: what its documentation allows, here and in `plans`",
            "  minute: {units: 10, seconds: 60}",
            *self._plans(name, fetcher),
            "symbols:",
            f"  {self._asset_class}: # CHECK: the asset class, here and in `plans`",
            *(['    spelling: "{base}/{quote}"'] if self._pair else []),
            f'    pattern: "{pattern}"',
            "fetchers:",
            f"  {fetcher}:",
            f"    {way}:",
            f"      path: {_line(path)}",
            *([f"      query: {{{', '.join(query)}}}"] if query else []),
            *(f'      dates: "{text}"' for text in dict.fromkeys(dates.values()) if text != "iso_date"),
            *(["      most: 5000"] if self._is_several else []),
            "      answer:",
            *(f"        {line}" for line in answer),
        ]
        return "\n".join(lines) + "\n"

    @property
    def _asset_class(self) -> str:
        return "fx" if self._pair else "equity"

    def _plans(self, name: str, fetcher: str) -> list[str]:
        """A plan with one data type, for `provider use`."""
        data_type = f"{name[:40]}_{'daily' if fetcher == 'daily_bars' else 'quote'}"
        at_least = 240 if fetcher == "daily_bars" else 5
        check = f"    check: {{type: {data_type}, symbol: {json.dumps(self._asked.symbol)}}}"
        return [
            "plans: # what `provider use` writes",
            "  free:",
            "    title: the free plan",
            "    limits: {minute: {units: 10, seconds: 60}}",
            "    types: # kept as fresh as this many minutes",
            f"      {data_type}: {{asset_class: {self._asset_class}, fetcher: {fetcher}, at_least: {at_least}}}",
            *([check] if self._asked.symbol else []),
        ]

    def _query(self, parameters: Sequence[tuple[str, str]]) -> tuple[list[str], list[str], dict[str, str]]:
        key = [f"key: {{query: {name}}}" for name, _ in parameters if is_key(name)][:1]
        for name, value in self._asked.headers.items():
            if is_key(re.sub("^x-", "", name.lower())) or name.lower() == "authorization":
                word = value.partition(" ")[0]
                scheme = f", scheme: {word}" if word in ("Bearer", "Token", "ApiKey", "Apikey", "Key") else ""
                key = [f"key: {{header: {name}{scheme}}}"]
        fixed = {
            name: value
            for name, value in self._asked.headers.items()
            if not key or f"header: {name}" not in key[0]
        }
        if fixed:
            key.append(
                f"headers: {{{', '.join(f'{name}: {json.dumps(value)}' for name, value in fixed.items())}}}"
            )
        query: list[str] = []
        dates: dict[str, str] = {}
        for name, value in parameters:
            if is_key(name):
                continue
            text, found = self._filled(value, dates)
            dates |= found
            query.append(
                f"{json.dumps(name) if not re.fullmatch('[A-Za-z_]+', name) else name}: {json.dumps(text)}"
            )
        return query, key, dates

    def _filled(self, text: str, seen: Mapping[str, str] | None = None) -> tuple[str, dict[str, str]]:
        """A part of the URL with placeholders for symbol and days, and the format of each day."""
        dates: dict[str, str] = {}

        def placed(found: re.Match[str]) -> str:
            name = "start" if "start" not in dates and "start" not in (seen or {}) else "end"
            for form in ("iso_date", "%Y%m%d", "%d.%m.%Y", "%d/%m/%Y", "epoch_milliseconds", "epoch_seconds"):
                if _reads([found[0]], form, self._now + timedelta(days=400)):
                    if name == "start" and self._asked.start not in (None, day(found[0], form, None)):
                        return found[0]
                    dates[name] = form
                    return f"{{{name}}}"
            return found[0]

        text = re.sub(
            r"\d{4}-\d\d-\d\d|\d\d[./]\d\d[./]\d{4}|(?<!\d)\d{8}(?!\d)|(?<!\d)\d{10}(\d{3})?(?!\d)",
            placed,
            text,
        )
        for placeholder, own in self._parts.items():
            if own:
                text = re.sub(rf"(?<![A-Za-z{{]){re.escape(own)}(?![A-Za-z}}])", placeholder, text)
        return text, dates
