"""`recipient add|list|show|change|remove`: who is notified. An address is read without echo, and never printed
whole."""

from __future__ import annotations

import getpass
import re
import secrets
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import SecretStr

from pricing_pipeline.cli.database import load_settings, open_connection, open_owner
from pricing_pipeline.cli.key import hint_of_master_key, keyring_to_seal
from pricing_pipeline.cli.options import Json
from pricing_pipeline.cli.output import moment, print_change, print_json, print_lines, print_table
from pricing_pipeline.cli.style import listing, zoned
from pricing_pipeline.errors import PricingError
from pricing_pipeline.keys import master_keys
from pricing_pipeline.keys.sealing import LONGEST_SECRET
from pricing_pipeline.operations import operation_types, recipients
from pricing_pipeline.operations.channels import check_address, shown_address
from pricing_pipeline.operations.recipients import ADDRESSED, Address, Recipient

if TYPE_CHECKING:
    from pricing_pipeline.settings import Settings

noun = typer.Typer()

Name = Annotated[str, typer.Argument(metavar="RECIPIENT", help="A recipient of `recipient list`.")]


class Severity(StrEnum):
    """How urgent an alert is: P0 at once, P1 today, P2 some day."""

    P0 = "P0"
    P1 = "P1"
    P2 = "P2"


Quiet = Annotated[
    str | None,
    typer.Option(
        "--quiet",
        metavar="HH:MM-HH:MM",
        help="Messages but P0 wait until the end of this time; none = never.",
    ),
]
QuietZone = Annotated[
    str | None,
    typer.Option("--quiet-zone", metavar="ZONE", help="Time zone of the quiet hours; default: UTC."),
]
AddressFile = Annotated[
    Path | None,
    typer.Option("--address-file", metavar="FILE", help="Read the address from this file instead of asking."),
]
_QUIET = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)")


@noun.command()
def add(
    name: Annotated[str, typer.Argument(metavar="RECIPIENT", help="A name, such as ops.")],
    channel: Annotated[
        str,
        typer.Argument(metavar="CHANNEL", help="email, sms, chat, webhook, log, or an operation type of your own."),
    ],
    severity: Annotated[
        Severity | None,
        typer.Option("--severity", help="Alerts at least this urgent; P0 is the most urgent; default: P1."),
    ] = None,
    quiet: Quiet = None,
    quiet_zone: QuietZone = None,
    allow_private: Annotated[
        bool, typer.Option("--allow-private", help="The address may be in a private network.")
    ] = False,
    address_file: AddressFile = None,
    user: Annotated[
        str | None,
        typer.Option("--user", metavar="USER", help="For price alerts that this user adds over HTTP."),
    ] = None,
    any_user: Annotated[
        bool, typer.Option("--any-user", help="For price alerts that any user adds over HTTP.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Add a recipient.

    A recipient for users gets the price alerts that they add over HTTP, and no alerts about trouble. Its users cannot
    be changed later.

    The command asks for the address, or reads it from a file or standard input, and stores it encrypted. The
    channel log and channels of your own have no address.

    \b
    Example: pricing-pipeline recipient add ops webhook --severity P1 --quiet 22:00-07:00
    """
    settings = load_settings()
    begins, ends = _quiet_hours(quiet)
    is_for_users = user is not None or any_user
    if user is not None and any_user:
        raise typer.BadParameter("give either --user or --any-user")
    if is_for_users and severity is not None:
        raise typer.BadParameter("leave out --severity: a recipient for users gets no alerts about trouble")
    recipient = Recipient(
        name,
        channel,
        least_severity=None if is_for_users else (severity or Severity.P1).value,
        quiet_from=begins,
        quiet_until=ends,
        time_zone=quiet_zone or "UTC",
        allows_private=allow_private,
        user_id=user,
        takes_any_user=any_user,
    )
    with open_owner(settings) as engine:
        with engine.connect() as connection:
            if recipients.stored(connection, name):
                raise PricingError(f"a recipient {name!r} already exists. `recipient change {name}` changes it.")
            operation_types.require_channel(connection, channel)
        address = _asked_address(recipient, address_file)
        with engine.begin() as connection:
            key_file = None
            if address is None:
                recipients.add(connection, recipient)
            else:
                keyring, key_file = keyring_to_seal(connection, settings)
                recipients.add(connection, recipient, address, keyring)
    _report_address(name, address, verb="is added", as_json=as_json)
    if key_file is not None:
        hint_of_master_key(key_file)


@noun.command("list")
@listing
def list_(as_json: Json = False) -> None:
    """List recipients, their channels, and when they are notified.

    \b
    Example: pricing-pipeline recipient list
    """
    with open_connection() as connection:
        found = recipients.stored(connection)
    if as_json:
        print_json({"recipients": [_content(recipient) for recipient in found]})
        return
    print_table(
        ["recipient", "channel", "notified of", "quiet hours", ""],
        [
            (
                recipient.recipient,
                recipient.channel,
                _notified_of(recipient),
                _quiet_words(recipient),
                "" if recipient.is_active else "inactive",
            )
            for recipient in found
        ],
    )
    if not found:
        typer.echo("there is no recipient. `pricing-pipeline recipient add --help` shows how to add one.")


@noun.command()
@zoned
def show(name: Name, as_json: Json = False) -> None:
    """Show one recipient, with only the host of its address.

    \b
    Example: pricing-pipeline recipient show ops
    """
    settings = load_settings()
    with open_connection(settings) as connection:
        recipient = recipients.find(connection, name)
    address = _shown(settings, recipient)
    if as_json:
        print_json({**_content(recipient), "address": address})
        return
    print_lines(
        {
            "recipient": recipient.recipient,
            "channel": recipient.channel,
            "address": address,
            "private": "may be in a private network" if recipient.allows_private else None,
            "notified of": _notified_of(recipient),
            "quiet hours": _quiet_words(recipient) or "none",
            "state": "active" if recipient.is_active else "inactive: nothing is sent",
            "added": moment(recipient.created_at),
        }
    )


@noun.command()
def change(
    name: Name,
    severity: Annotated[
        Severity | None,
        typer.Option("--severity", help="Alerts at least this urgent; P0 is the most urgent."),
    ] = None,
    quiet: Quiet = None,
    quiet_zone: QuietZone = None,
    allow_private: Annotated[
        bool | None,
        typer.Option("--allow-private/--refuse-private", help="Whether the address may be in a private network."),
    ] = None,
    is_active: Annotated[
        bool | None, typer.Option("--active/--inactive", help="Whether anything is sent at all.")
    ] = None,
    new_address: Annotated[
        bool, typer.Option("--address", help="Ask for another address, or read it from standard input.")
    ] = False,
    address_file: AddressFile = None,
    as_json: Json = False,
) -> None:
    """Change when or where a recipient is notified.

    \b
    Example: pricing-pipeline recipient change ops --quiet none
    """
    settings = load_settings()
    changes: dict[str, Any] = {
        "least_severity": None if severity is None else severity.value,
        "time_zone": quiet_zone,
        "allows_private": allow_private,
        "is_active": is_active,
    }
    changes = {column: value for column, value in changes.items() if value is not None}
    if quiet is not None:
        changes["quiet_from"], changes["quiet_until"] = _quiet_hours(quiet)
    new_address |= address_file is not None
    if not changes and not new_address:
        raise typer.BadParameter("give at least one option to change")
    with open_owner(settings) as engine:
        with engine.connect() as connection:
            before = recipients.find(connection, name)
        if new_address and before.channel not in ADDRESSED:
            raise PricingError(f"{name} has no address: the channel {before.channel} takes none. Nothing has changed.")
        address = _asked_address(replace(before, **changes), address_file) if new_address else None
        key_file = None
        with engine.begin() as connection:
            before = recipients.find(connection, name)
            recipients.change(connection, replace(before, **changes))
            if address is not None:
                keyring, key_file = keyring_to_seal(connection, settings)
                if not recipients.readdress(connection, keyring, before, address):
                    raise PricingError(f"another session has just changed {name}. Nothing was changed here.")
    after = replace(before, **changes)
    if as_json:
        print_json(
            {
                "recipient": name,
                "before": _settings(before),
                "after": _settings(after),
                "secret": _plain_secret(address),
            }
        )
    else:
        if changes:
            print_change({"recipient": name}, _settings(before), _settings(after), as_json=False)
        if address is not None:
            _report_address(name, address, verb="has another address", as_json=False)
    if key_file is not None:
        hint_of_master_key(key_file)


@noun.command()
def remove(name: Name, as_json: Json = False) -> None:
    """Delete a recipient. Messages that wait for it are cancelled.

    \b
    Example: pricing-pipeline recipient remove ops
    """
    with open_owner() as engine, engine.begin() as connection:
        recipients.remove(connection, name)
    if as_json:
        print_json({"recipient": name, "removed": True})
    else:
        typer.echo(f"{name} is removed, and gets no more messages.")


def _asked_address(recipient: Recipient, file: Path | None) -> Address | None:
    """The address that was typed unseen, or of a file or standard input; a webhook's secret is made here."""
    if recipient.channel not in ADDRESSED:
        if file is not None:
            raise PricingError(f"the channel {recipient.channel} takes no address. Leave out --address-file")
        return None
    if file is not None:
        with file.open("rb") as opened:
            given = _line(opened.read(2 * LONGEST_SECRET), str(file))
    elif sys.stdin.isatty():
        given = getpass.getpass(f"Address (URL) of {recipient.recipient}: ", stream=sys.stderr)
    else:
        given = _line(sys.stdin.read(2 * LONGEST_SECRET).encode(), "standard input")
    address = given.strip()
    check_address(recipient.channel, address, allow_private=recipient.allows_private)
    secret = SecretStr(secrets.token_urlsafe(32)) if recipient.channel == "webhook" else None
    return Address(SecretStr(address), secret)


def _line(read: bytes, source: str) -> str:
    try:
        text = read.decode()
    except UnicodeDecodeError:
        raise PricingError(f"{source} is not UTF-8 text. Nothing has changed.") from None
    first, *more = text.splitlines() or [""]
    if any(line.strip() for line in more):
        raise PricingError(f"{source} holds more than the one line of an address. Nothing has changed.")
    return first


def _report_address(name: str, address: Address | None, *, verb: str, as_json: bool) -> None:
    secret = _plain_secret(address)
    if as_json:
        print_json({"recipient": name, "secret": secret})
        return
    typer.echo(f"{name} {verb}. `pricing-pipeline notify test {name}` tries it.")
    if secret is not None:
        typer.echo(f"Secret of its signatures, which is not shown again: {secret}")


def _plain_secret(address: Address | None) -> str | None:
    return address.secret.get_secret_value() if address is not None and address.secret is not None else None


def _shown(settings: Settings, recipient: Recipient) -> str | None:
    if recipient.sealed is None:
        return None
    try:
        return shown_address(recipients.open_address(master_keys.load(settings), recipient).url)
    except PricingError as error:
        return f"not readable here: {error}"


def _quiet_hours(typed: str | None) -> Sequence[time | None]:
    if typed is None or typed == "none":
        return None, None
    found = _QUIET.fullmatch(typed)
    if found is None or found.group(1, 2) == found.group(3, 4):
        raise typer.BadParameter(f"--quiet {typed!r} is not a span of a day. Write it like 22:00-07:00")
    begins_hour, begins_minute, ends_hour, ends_minute = map(int, found.groups())
    return time(begins_hour, begins_minute), time(ends_hour, ends_minute)


def _notified_of(recipient: Recipient) -> str:
    if recipient.least_severity is not None:
        return {"P0": "P0", "P1": "P0 and P1", "P2": "all"}[recipient.least_severity]
    return f"prices, for {'any user' if recipient.takes_any_user else recipient.user_id}"


def _quiet_words(recipient: Recipient) -> str:
    if recipient.quiet_from is None or recipient.quiet_until is None:
        return ""
    return f"{recipient.quiet_from:%H:%M} to {recipient.quiet_until:%H:%M} {recipient.time_zone}"


def _settings(recipient: Recipient) -> dict[str, object]:
    return {
        "severity": recipient.least_severity,
        "quiet": _quiet_words(recipient) or None,
        "quiet_zone": recipient.time_zone,
        "allows_private": recipient.allows_private,
        "is_active": recipient.is_active,
    }


def _content(recipient: Recipient) -> dict[str, object]:
    return {
        "recipient": recipient.recipient,
        "channel": recipient.channel,
        "user_id": recipient.user_id,
        "takes_any_user": recipient.takes_any_user,
        "least_severity": recipient.least_severity,
        "quiet_from": None if recipient.quiet_from is None else f"{recipient.quiet_from:%H:%M}",
        "quiet_until": None if recipient.quiet_until is None else f"{recipient.quiet_until:%H:%M}",
        "time_zone": recipient.time_zone,
        "allows_private": recipient.allows_private,
        "is_active": recipient.is_active,
        "created_at": recipient.created_at,
    }
