"""What one login could do to everybody on a server, and must not be allowed to."""

from __future__ import annotations

LOCKS = [
    f"SELECT pg_{attempt}advisory_{kind}lock{mode}({key})"
    for attempt in ("", "try_")
    for kind in ("", "xact_")
    for mode in ("", "_shared")
    for key in ("1", "1, 2")
]


HARMFUL = [
    *LOCKS,
    "DO $$ BEGIN END $$",
    "SELECT pg_logical_emit_message(false, 'x', 'x')",
    "SELECT pg_logical_emit_message(false, 'x', 'x'::bytea)",
    "SELECT lo_create(0)",
    "SET temp_file_limit = -1",
]
