"""The requests of a call after its first: who lets them be made, and how many there may be.

The client asks for each (client.py). Whether limits allow it is decided where calls are claimed (queue/pages.py), since
no provider and no client knows the database.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pricing_pipeline.domain.calls import Receipt

MAX_REQUESTS = 50
"""The most requests of one call. Whatever needs more must be asked in smaller parts."""
HOPELESS_SECONDS = 3600.0
"""When a call is tried again that needs more requests than one call may make. Sooner, it would end alike."""


class Pages(Protocol):
    """Lets one call make requests after its first: each is a call of its own in the call log."""

    def begin(self, spent: Sequence[int]) -> None:
        """Have the next request allowed and logged; this may take minutes.

        `spent` are the bytes on the wire of each request of the call so far. Raises Unfinished if it may not be made.
        """

    def end(self, receipt: Receipt) -> None:
        """Settle the request that has been begun."""


class Uncounted:
    """Lets all requests through: for a caller that books the call afterwards (`Fetched.page_bytes`), and for tests."""

    def begin(self, spent: Sequence[int]) -> None:
        """Allow it."""

    def end(self, receipt: Receipt) -> None:
        """Nothing is booked."""
