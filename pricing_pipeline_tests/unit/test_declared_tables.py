"""Random tables in every form that a declaration can name (F11): read back exactly, and mutated without a lie."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from pricing_pipeline.domain.answers import Answer
from pricing_pipeline.domain.calls import Response
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.domain.windows import Window
from pricing_pipeline.errors import ProviderError
from pricing_pipeline.providers.declaration_file import read_text
from pricing_pipeline.providers.declared import DeclaredProvider
from pricing_pipeline_tests.support.declarations import answered

NOW = datetime(2026, 11, 20, 15, tzinfo=UTC)
WINDOW = Window(date(2026, 1, 1), date(2026, 11, 19))

FRAME = """
name: tables
base_url: https://tables.example.com
limits: {{minute: {{units: 1, seconds: 60}}}}
symbols: {{equity: {{}}}}
fetchers:
  daily_bars:
    span:
      path: /{{symbol}}
      answer:
        {body}
        time: {{path: {time}, format: "{format}"}}
        close: {close}
        volume: {volume}
        numbers: {{decimal: "{decimal}"{thousands}}}
        currency: {{code: USD}}
"""


class Row(NamedTuple):
    day: date
    close: Decimal
    volume: int


class Writing(NamedTuple):
    """How days and numbers are written."""

    format: str
    decimal: str
    thousands: str | None

    def number(self, value: Decimal | int) -> str:
        text = f"{value:,f}" if self.thousands else f"{value:f}"
        return text.translate(str.maketrans({",": self.thousands or "", ".": self.decimal}))

    def day(self, of: date) -> str:
        return of.isoformat() if self.format == "iso_date" else of.strftime(self.format)


def epoch(of: date) -> int:
    return int(datetime(of.year, of.month, of.day, tzinfo=UTC).timestamp())


def lines(rows: Sequence[Sequence[str]], delimiter: str) -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter).writerows(rows)
    return out.getvalue()


def written(form: str, rows: Sequence[Row], how: Writing) -> tuple[bytes, str]:
    """The body, and the declaration that reads it."""
    cells = [(how.day(row.day), how.number(row.close), how.number(row.volume)) for row in rows]
    named: list[dict[str, Any]] = [dict(zip(("d", "c", "v"), row, strict=True)) for row in cells]
    body, paths, text = "rows: rows", ("d", "c", "v"), b""
    match form:
        case "objects":
            text = json.dumps({"rows": named}).encode()
        case "lists":
            text, paths = json.dumps({"rows": cells}).encode(), ('"[0]"', '"[1]"', '"[2]"')
        case "map":
            text, paths = (
                json.dumps({"rows": {row["d"]: row for row in named}}).encode(),
                ("key", "value.c", "value.v"),
            )
        case "columns":
            columns = {name: [row[name] for row in named] for name in ("d", "c", "v")}
            text, body = json.dumps({"a": columns, "n": 5}).encode(), "columns: a"
        case "numbers":
            literal = ",".join(f'{{"d": {epoch(r.day)}, "c": {r.close:f}, "v": {r.volume}}}' for r in rows)
            text, how = f'{{"rows": [{literal}]}}'.encode(), Writing("epoch_seconds", ".", None)
        case "csv" | "csv;" | "csv|" | "csv\t":
            sign = form[3:] or ","
            name = "tab" if sign == "\t" else sign
            text = "\ufeff".encode() + ("# a comment\n" + lines([("d", "c", "v"), *cells], sign)).encode()
            body = f'body: {{format: csv, delimiter: "{name}", comments: ["#"]}}'
            text = text.removeprefix(b"\xef\xbb\xbf") if sign == "|" else text
        case "bare csv":
            text, paths = lines([("x",) * 3, *cells], ",").encode("utf-16"), ('"[0]"', '"[1]"', '"[2]"')
            body = "body: {format: csv, header: false, skip: 1, encoding: utf-16}"
        case "attributes":
            text = "".join(f'<r d="{d}" c="{c}" v="{v}"/>' for d, c, v in cells).join(("<a><b>", "</b></a>")).encode()
            body = "body: {format: xml}\n        rows: b[].r[]"
        case "elements":
            inner = "".join(f"<n:r><d>{d}</d><c>{c}</c><v> {v}\n</v></n:r>" for d, c, v in cells)
            text = f'<?xml version="1.0"?><a xmlns:n="urn:n"><rows>{inner}</rows></a>'.encode()
            body = "body: {format: xml}\n        rows: rows[].r[]"
    thousands = "" if how.thousands is None else f', thousands: "{how.thousands}"'
    when, close, volume = paths
    return text, FRAME.format(
        body=body,
        time=when,
        format=how.format,
        close=close,
        volume=volume,
        decimal=how.decimal,
        thousands=thousands,
    )


FORMS = (
    *("objects", "lists", "map", "columns", "numbers", "csv", "csv;", "csv|", "csv\t", "bare csv"),
    *("attributes", "elements"),
)
ROWS = st.lists(
    st.builds(
        Row,
        st.dates(WINDOW.start, WINDOW.end),
        st.decimals("0.0001", "99999999999", places=4) | st.decimals("0.01", "9999", places=2),
        st.integers(0, 10**10),
    ),
    min_size=2,
    max_size=12,
    unique_by=lambda row: row.day,
).map(sorted)
WRITINGS = st.builds(
    Writing,
    st.sampled_from(["iso_date", "%d.%m.%Y", "%Y%m%d", "%d-%b-%Y", "%m/%d/%y"]),
    st.just("."),
    st.sampled_from([None, ",", "'", " "]),
) | st.builds(Writing, st.sampled_from(["iso_date", "%d.%m.%Y"]), st.just(","), st.sampled_from([None, ".", " "]))


def read(provider: DeclaredProvider, body: bytes) -> Answer:
    return answered(provider, Fetcher.DAILY_BARS, ["A"], WINDOW, Response(200, {}, body, len(body)), now=NOW)


@given(rows=ROWS, how=WRITINGS, form=st.sampled_from(FORMS))
def test_a9_a_table_in_any_form_is_read_to_the_last_digit(rows: list[Row], how: Writing, form: str) -> None:
    body, text = written(form, rows, how)
    answer = read(DeclaredProvider(read_text(text, "tables.yaml")), body)
    assert not answer.failures
    assert not answer.rejected
    assert [(one.observed_at.date(), one.close, one.volume) for one in answer.observations] == [
        (row.day, row.close, Decimal(row.volume)) for row in rows
    ]


@given(data=st.data())
def test_b18_a_mutated_table_is_read_without_a_crash_or_a_lie(data: st.DataObject) -> None:
    """Some bytes are changed, taken out or doubled: no value of a row that was not touched changes."""
    rows, how = data.draw(ROWS), data.draw(WRITINGS)
    body, text = written(data.draw(st.sampled_from(FORMS)), rows, how)
    at = data.draw(st.integers(0, len(body) - 1))
    length = data.draw(st.integers(0, 6))
    put = data.draw(st.binary(max_size=4) | st.sampled_from([b",", b";", b'"', b"\n", b"<", b"}", b"\0", b"1e9", body]))
    try:
        answer = read(DeclaredProvider(read_text(text, "tables.yaml")), body[:at] + put + body[at + length :])
    except ProviderError:
        return
    true = {row.day: row for row in rows}
    untouched = [one for one in answer.observations if one.observed_at.date() in true]
    wrong = [one for one in untouched if one.close != true[one.observed_at.date()].close]
    # One row was touched, and its neighbour if the end of a line was.
    assert len(wrong) <= 2
    assert len(list(answer.observations)) <= 2 * len(rows) + 2
