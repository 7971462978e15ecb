"""What the bodies of requests and answers have in common."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

_MOST_KEYS = 100


class Shape(BaseModel):
    """An object of JSON. The OpenAPI document has the words that stand at each of its fields."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class Body(Shape):
    """A JSON object that a request sends. A key that is not known is refused.

    What takes a list says `fail_fast`: to tell each of ten thousand faults would keep all requests waiting.
    """

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _has_few_keys(cls, content: Any) -> Any:
        if isinstance(content, dict) and len(content) > _MOST_KEYS:
            raise ValueError(f"it has {len(content)} keys, and a request has at most {_MOST_KEYS}")
        return content
