"""Every command as it is typed: arguments, options, help. A module for each noun.

What a command does is in the module of the same name one folder up, imported when the command runs. So `--help`
answers at once, and a command pays only for what it uses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import typer

from pricing_pipeline.cli.commands import (
    action,
    alert,
    backfill,
    calendar,
    commodity,
    data_type,
    db,
    document,
    export,
    holding,
    instrument,
    key,
    limit,
    notify,
    operation,
    operation_type,
    page,
    price,
    price_alert,
    product,
    provider,
    quarantine,
    recipient,
    route,
    sandbox,
    status,
    subscription,
    task,
    token,
    up,
)

PROCESSES: Sequence[Callable[..., None]] = (up.up, status.status, page.page, sandbox.sandbox)
"""Commands of one word: two of them run until Ctrl-C, and `status` and `page` are about everything."""

NOUNS: Mapping[str, typer.Typer] = {
    "subscription": subscription.noun,
    "holding": holding.noun,
    "price": price.noun,
    "document": document.noun,
    "product": product.noun,
    "commodity": commodity.noun,
    "backfill": backfill.noun,
    "export": export.noun,
    "instrument": instrument.noun,
    "calendar": calendar.noun,
    "type": data_type.noun,
    "task": task.noun,
    "provider": provider.noun,
    "route": route.noun,
    "limit": limit.noun,
    "key": key.noun,
    "quarantine": quarantine.noun,
    "action": action.noun,
    "alert": alert.noun,
    "price-alert": price_alert.noun,
    "recipient": recipient.noun,
    "notify": notify.noun,
    "operation": operation.noun,
    "operation-type": operation_type.noun,
    "token": token.noun,
    "db": db.noun,
}
"""All others are a verb to a noun."""
