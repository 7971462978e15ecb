"""Which key a call was made with. What a key's plan allows, the dialects decide."""

from __future__ import annotations

import hmac
import re


def key_name(given: str | None, secret: str) -> str | None:
    """`default` for the secret itself, NAME for the secret with -NAME behind it, None for anything else."""
    raw, known = (given or "").encode(), secret.encode()
    if hmac.compare_digest(raw, known):
        return "default"
    name = raw[len(known) + 1 :].decode(errors="replace")
    is_further = hmac.compare_digest(raw[: len(known) + 1], known + b"-")
    return name if is_further and re.fullmatch("[a-z0-9][a-z0-9_-]{0,47}", name) else None
