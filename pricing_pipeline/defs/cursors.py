"""The state that sensors keep between ticks. A person may edit a cursor, so an unreadable one counts as none."""

from hashlib import blake2s
from typing import Annotated, TypeVar

import dagster as dg
from pydantic import Field, TypeAdapter, ValidationError

Kept = TypeVar("Kept")
Moment = Annotated[float, Field(ge=0, lt=2**35, allow_inf_nan=False)]
"""Unix seconds, before the year 3059."""


def read(context: dg.SensorEvaluationContext, kind: type[Kept]) -> Kept | None:
    """The state in a sensor's cursor; None, with a warning in the tick's log, if it cannot be read."""
    if not context.cursor:
        return None
    try:
        return TypeAdapter(kind).validate_json(context.cursor, strict=True)
    except ValidationError as error:
        (fault, *_) = error.errors()
        where = "".join(f" {part}:" for part in fault["loc"])
        context.log.warning(
            f"the cursor {context.cursor[:200]} cannot be read, so this tick starts over:{where} {fault['msg']}"
        )
        return None


def digest(*parts: object) -> str:
    """Stands for texts in a cursor, which Dagster stores with each tick."""
    return blake2s(repr(parts).encode(), digest_size=6).hexdigest()


def dump(kept: object) -> str:
    """The cursor that `read` understands."""
    return TypeAdapter(type(kept)).dump_json(kept).decode()
