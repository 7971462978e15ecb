"""Whether an answer keeps to the OpenAPI document, formats included."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any
from uuid import UUID

from jsonschema_rs import Draft202012Validator

_FORMATS: Mapping[str, Callable[[str], bool]] = {
    "date-time": lambda text: "T" in text and datetime.fromisoformat(text).tzinfo is not None,
    "date": lambda text: bool(date.fromisoformat(text)),
    "uuid": lambda text: bool(UUID(text)),
}


def _checked(has_format: Callable[[str], bool]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            return has_format(text)
        except ValueError:
            return False

    return check


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
    judge = Draft202012Validator(
        {**schema, "components": document["components"]},
        validate_formats=True,
        formats={name: _checked(has_format) for name, has_format in _FORMATS.items()},
    )
    return [f"{fault.instance_path}: {fault.message}" for fault in judge.iter_errors(answer)]
