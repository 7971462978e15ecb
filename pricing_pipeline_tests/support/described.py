"""Whether an answer keeps to the OpenAPI document, formats included."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any
from uuid import UUID

from jsonschema import Draft202012Validator, FormatChecker

_FORMATS = FormatChecker(())


@_FORMATS.checks("date-time", ValueError)
def _is_moment(value: object) -> bool:
    return not isinstance(value, str) or ("T" in value and datetime.fromisoformat(value).tzinfo is not None)


@_FORMATS.checks("date", ValueError)
def _is_day(value: object) -> bool:
    return not isinstance(value, str) or bool(date.fromisoformat(value))


@_FORMATS.checks("uuid", ValueError)
def _is_uuid(value: object) -> bool:
    return not isinstance(value, str) or bool(UUID(value))


def with_responses(document: Mapping[str, Any], operation: Mapping[str, Any]) -> dict[str, Any]:
    """An operation with its responses in the place of references to them."""
    shared = document["components"]["responses"]
    return {
        **operation,
        "responses": {
            status: shared[response["$ref"].rpartition("/")[2]] if "$ref" in response else response
            for status, response in operation["responses"].items()
        },
    }


def judged_by(document: Mapping[str, Any], method: str, path: str, status: int, answer: object) -> list[str]:
    """Where an answer differs from what the document says of it."""
    template = next(
        known
        for known in sorted(document["paths"], key=lambda known: known.count("{"))
        if re.fullmatch(re.sub(r"\\\{\w+\\\}", ".+", re.escape(known)), path)
    )
    response = with_responses(document, document["paths"][template][method])["responses"][str(status)]
    (schema,) = (one["schema"] for media, one in response["content"].items() if "json" in media)
    judge = Draft202012Validator({**schema, "components": document["components"]}, format_checker=_FORMATS)
    return [f"{fault.json_path}: {fault.message}" for fault in judge.iter_errors(answer)]
