"""The address of the channel `rest`: a JSON document that says where a table is and what a record of it looks like.

It holds a key, so errors never repeat what it says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, SecretStr, ValidationError, model_validator

from pricing_pipeline.errors import OperationFailed
from pricing_pipeline.operations.channels.posting import checked_url

OF_PRICES = ("data_type", "symbol", "price", "currency", "observed_at", "provider", "call_id")
"""Placeholders for what each price of a message has."""
OF_MESSAGES = ("recipient", "title", "body")
"""Placeholders for what the message itself has."""

_LONGEST = 3000
"""So many characters can be sealed, with room for what JSON adds."""
_PLACEHOLDER = re.compile(r"\$(?:(\$)|([a-z_]+)(:number)?)?")
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
_OURS = {
    "content-length",
    "content-type",
    "host",
    "idempotency-key",
    "transfer-encoding",
    "connection",
    "user-agent",
}

_HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$")]
_HeaderText = Annotated[str, Field(pattern=r"^[ -~]*$")]


class RestTable(BaseModel):
    """Where a table is, and what is sent there.

    A string of `record` may hold placeholders: `$symbol` and other names of OF_PRICES and OF_MESSAGES, and `$$` for a
    dollar sign. A string that is `"$price:number"` and nothing else becomes a JSON number with the same digits.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, hide_input_in_errors=True)

    url: str
    method: Literal["POST", "PATCH", "PUT"] = "POST"
    key: SecretStr | None = None
    header: _HeaderName = "Authorization"
    scheme: _HeaderText = "Bearer"
    headers: dict[_HeaderName, _HeaderText] = Field(default={}, max_length=20)
    records: str | None = Field(default="records", min_length=1)
    most: int = Field(default=10, ge=1, le=1000)
    record: dict[str, JsonValue] = Field(min_length=1)
    others: dict[str, JsonValue] = Field(default={}, alias="with")

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.key is not None and re.fullmatch("[!-~]+", self.key.get_secret_value()) is None:
            raise ValueError("key has letters that no header can carry")
        if any(name.lower() in _OURS for name in (self.header, *self.headers)):
            raise ValueError(f"these headers are the pipeline's own: {', '.join(sorted(_OURS))}")
        if self.records is None and self.others:
            raise ValueError(
                "without a name for the list of records there is no place for what stands in `with`"
            )
        if self.records in self.others:
            raise ValueError("`with` must not hold the list of records")
        if not _is_json([self.record, self.others]):
            raise ValueError("`record` and `with` hold a number that no JSON can hold")
        for text in _strings(self.record):
            _require_placeholders(text)
        return self

    @property
    def wants_prices(self) -> bool:
        """Whether a record is about one price; else it is about a message."""
        found = (match[2] for text in _strings(self.record) for match in _PLACEHOLDER.finditer(text))
        return any(name in OF_PRICES for name in found)

    def sent_headers(self) -> dict[str, str]:
        """The headers that the service asks for, the key among them."""
        if self.key is None:
            return dict(self.headers)
        return {**self.headers, self.header: f"{self.scheme} {self.key.get_secret_value()}".lstrip()}

    def body(self, rows: list[Mapping[str, object]]) -> bytes:
        """The body of one request: a record for each row. Raises OperationFailed for a price that is no number."""
        records = f"[{','.join(_filled_json(self.record, row) for row in rows)}]"
        if self.records is None:
            return records.encode()
        others = (f"{json.dumps(name)}:{json.dumps(value)}" for name, value in self.others.items())
        return f"{{{','.join((f'{json.dumps(self.records)}:{records}', *others))}}}".encode()


def read_table(document: str, *, allow_private: bool) -> RestTable:
    """The table that a document describes. Raises OperationFailed with a sentence that does not repeat it."""
    table, wrong = None, ""
    # Raising in an except block would keep the error, which holds the document.
    try:
        table = RestTable.model_validate_json(document)
    except ValidationError as error:
        wrong = _sentence(error)
    if table is None:
        raise OperationFailed(f"the document of a table cannot be used: {wrong}", is_permanent=True)
    checked_url(table.url, allow_private=allow_private, what="the table's url")
    return table


def compact(document: str) -> str:
    """A document that can be read, without the spaces between its parts. Raises OperationFailed if it is too long."""
    short = json.dumps(json.loads(document), separators=(",", ":"))
    if len(short) > _LONGEST:
        raise OperationFailed(f"the document of a table has at most {_LONGEST} characters", is_permanent=True)
    return short


def _sentence(error: ValidationError) -> str:
    """The first fault, in words. A field that is not known is named if its name cannot be a key."""
    fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    if fault["type"] == "json_invalid":
        return f"it is no JSON ({fault['msg'].removeprefix('Invalid JSON: ')})"
    place = str(fault["loc"][0]) if fault["loc"] else ""
    known = sorted(field.alias or name for name, field in RestTable.model_fields.items())
    if fault["type"] == "extra_forbidden":
        name = place if re.fullmatch("[a-z_]{1,20}", place) else "a field"
        return f"{name} is not known; there are {', '.join(known)}"
    if fault["type"] == "missing":
        return f"{place} is missing"
    if fault["type"] == "string_pattern_mismatch":
        return f"{place} has letters that no header can carry"
    said = fault["msg"].removeprefix("Value error, ")
    return f"{place}: {said}" if place in known else said


def _is_json(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return True


def _strings(value: JsonValue) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for each in value.values():
                yield from _strings(each)
        case list():
            for each in value:
                yield from _strings(each)


def _require_placeholders(text: str) -> None:
    for found in _PLACEHOLDER.finditer(text):
        if found[0] == "$":
            raise ValueError("record: write $$ for a dollar sign that begins no placeholder")
        if found[2] is not None and found[2] not in (*OF_PRICES, *OF_MESSAGES):
            names = ", ".join(f"${name}" for name in (*OF_PRICES, *OF_MESSAGES))
            shown = found[0] if len(found[0]) <= 20 else "a placeholder"
            raise ValueError(f"record: {shown} is not known; there are {names}")
        if found[3] is not None and found[0] != text:
            raise ValueError("record: a placeholder with :number stands alone in its string")


def _filled_json(template: JsonValue, row: Mapping[str, object]) -> str:
    """A template as JSON text. It is written here, because no float has all digits of a price."""
    match template:
        case dict():
            pairs = (f"{json.dumps(name)}:{_filled_json(each, row)}" for name, each in template.items())
            return f"{{{','.join(pairs)}}}"
        case list():
            return f"[{','.join(_filled_json(each, row) for each in template)}]"
        case str():
            found = _PLACEHOLDER.fullmatch(template)
            if found is None or found[2] is None:
                return json.dumps(_PLACEHOLDER.sub(lambda match: _text(match, row), template))
            value = row.get(found[2])
            return _number(found[2], value) if found[3] else json.dumps(value)
    return json.dumps(template)


def _text(found: re.Match[str], row: Mapping[str, object]) -> str:
    if found[1] is not None:
        return "$"
    value = row.get(found[2])
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def _number(name: str, value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    if value is not None and _NUMBER.fullmatch(text) is None:
        raise OperationFailed(f"{name} of a message is no number, so no record holds it", is_permanent=True)
    return text
