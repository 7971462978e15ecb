"""Cursors of our sensors: what they remember from tick to tick, as JSON."""

import json
from typing import Any


def read_cursor(cursor: str | None) -> dict[str, Any]:
    """What a cursor holds; nothing when it is not ours. A person may have set it by hand."""
    try:
        kept = json.loads(cursor or "{}")
    except ValueError:
        return {}
    return kept if isinstance(kept, dict) else {}
