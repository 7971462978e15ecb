"""The answer of a call, with its cost and its evidence, as the client hands it on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pricing_pipeline.domain.answers import Answer, FailureKind
from pricing_pipeline.domain.calls import Receipt
from pricing_pipeline.providers.base import shown_limit, units_left

MAX_EVIDENCE = 1_000_000
"""How many bytes of an answer are kept for people."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """The answer of a call, and the call's cost.

    `http_status` is None and `wire_bytes` 0 if no symbol could be sent. If the call took several requests, status and
    `headers` are of the last one, `wire_bytes` of the first, and `page_bytes` of the others. `headers` are those about
    limits, with names in lower case. `content_length_missing`: a response did not announce its size. `body` is what
    came, one answer a line.
    """

    answer: Answer
    http_status: int | None = None
    wire_bytes: int = 0
    page_bytes: tuple[int, ...] = ()
    content_length_missing: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = field(default=b"", repr=False)
    hide_keys: Callable[[bytes], bytes] = field(default=bytes, repr=False)

    @property
    def evidence(self) -> bytes:
        """The beginning of the unpacked body, for people, with every key in it replaced."""
        return self.hide_keys(self.body[:MAX_EVIDENCE])

    @property
    def units_left(self) -> int | None:
        """How many units of its limit are left by the provider's headers, if they say so."""
        return units_left(self.headers)

    @property
    def receipt(self) -> Receipt:
        """The cost of the call, and what the answer says about the provider as a whole."""
        is_refused = any(failure.kind is FailureKind.THROTTLED for failure in self.answer.failures)
        shown = shown_limit(self.headers, is_refused=is_refused)
        return Receipt(
            self.http_status,
            self.wire_bytes,
            self.units_left,
            self.answer.failure,
            shown=shown,
            is_unannounced=self.content_length_missing,
        )
