"""Make one claimed call with the stored facts that it needs; every fault becomes an error of its kind.

refresher.py decides when, settling.py what an answer or an error means.
"""

from __future__ import annotations

import logging

from sqlalchemy import Engine
from sqlalchemy.exc import DataError, DBAPIError

from pricing_pipeline.db.errors import reason
from pricing_pipeline.domain.calls import Call, is_late
from pricing_pipeline.errors import (
    ClientFault,
    DatabaseError,
    Misconfigured,
    NotMade,
    PricingError,
    ProviderError,
)
from pricing_pipeline.providers.client import ProviderClient
from pricing_pipeline.providers.fetched import Fetched
from pricing_pipeline.queue.pages import ClaimedPages
from pricing_pipeline.refresh import writing
from pricing_pipeline.refresh.tally import Tally

_LOG = logging.getLogger(__name__)


def make(engine: Engine, client: ProviderClient, call: Call, pages: ClaimedPages) -> Fetched | ProviderError:
    """The answer of a call, or why it failed as a whole. Raises only what the database raises between its requests.

    Then nothing is settled: the lease returns the tasks.
    """
    try:
        prepared = writing.prepare(engine, call)
        if is_late(call.asked_at):
            return NotMade(
                f"a call to {call.provider} was not made: its worker stood still after the claim, or the database did"
            )
        return client.make(call, call.symbols, pages=pages, prepared=prepared)
    except ProviderError as error:
        return error
    except DataError as error:  # stored values cannot be used; waiting for the lease's end would change nothing
        return ClientFault(f"a call to {call.provider} cannot be prepared: {reason(error)}")
    except (DatabaseError, DBAPIError):
        raise
    except PricingError as error:
        return Misconfigured(f"{call.provider} cannot be asked: {error}")
    except Exception as error:  # our own faults must be as visible as a provider's
        _LOG.exception("call %d to %s failed because of our own fault", call.id, call.provider)
        return ClientFault(f"the call to {call.provider} failed because of our own fault: {error!r}")


def with_pages(tally: Tally, pages: ClaimedPages) -> Tally:
    """The tally of a call, and of its pages, which are calls of their own."""
    tally.calls += pages.made
    tally.latest_calls += pages.made if tally.latest_calls else 0
    tally.wire_bytes += pages.wire_bytes
    return tally
