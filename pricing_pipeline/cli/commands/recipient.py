"""The commands of `recipient` as they are typed."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pricing_pipeline.cli.options import Json
from pricing_pipeline.cli.style import listing, zoned

noun = typer.Typer(help="Manage who is told of trouble and prices, by which channel, and when.")

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
        help="Messages wait for the end of this time, unless they are P0; none = never.",
    ),
]
QuietZone = Annotated[
    str | None, typer.Option("--quiet-zone", metavar="ZONE", help="Time zone of the quiet hours; else UTC.")
]

AddressFile = Annotated[
    Path | None,
    typer.Option("--address-file", metavar="FILE", help="Read the address from this file instead of asking."),
]


@noun.command()
def add(
    name: Annotated[str, typer.Argument(metavar="RECIPIENT", help="A name, such as ops.")],
    channel: Annotated[
        str,
        typer.Argument(
            metavar="CHANNEL", help="email, sms, chat, webhook, rest, log, or an operation type of your own."
        ),
    ],
    severity: Annotated[
        Severity | None,
        typer.Option("--severity", help="Alerts at least this urgent; P0 is the most urgent; else P1."),
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

    One for users is told of the price alerts that they add over HTTP, and not of trouble. For whom it is cannot be
    changed later.

    The command asks for the address, or reads it from a file or standard input, and stores it encrypted. The address of
    a table (rest) is a JSON document. The channel log and channels of your own have no address.

    \b
    Example: pricing-pipeline recipient add ops webhook --severity P1 --quiet 22:00-07:00
    """
    from pricing_pipeline.cli import recipient

    recipient.add(
        name,
        channel,
        severity=severity.value if severity else None,
        quiet=quiet,
        quiet_zone=quiet_zone,
        allow_private=allow_private,
        address_file=address_file,
        user=user,
        any_user=any_user,
        as_json=as_json,
    )


@noun.command("list")
@listing
def list_(as_json: Json = False) -> None:
    """List who is told, by which channel, and when.

    \b
    Example: pricing-pipeline recipient list
    """
    from pricing_pipeline.cli import recipient

    recipient.list_(as_json=as_json)


@noun.command()
@zoned
def show(name: Name, as_json: Json = False) -> None:
    """Show one recipient; of its address only the host.

    \b
    Example: pricing-pipeline recipient show ops
    """
    from pricing_pipeline.cli import recipient

    recipient.show(name, as_json=as_json)


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
        typer.Option(
            "--allow-private/--refuse-private", help="Whether the address may be in a private network."
        ),
    ] = None,
    is_active: Annotated[
        bool | None, typer.Option("--active/--inactive", help="Whether anything is sent at all.")
    ] = None,
    address: Annotated[
        bool, typer.Option("--address", help="Ask for another address, or read it from standard input.")
    ] = False,
    address_file: AddressFile = None,
    as_json: Json = False,
) -> None:
    """Change when a recipient is told, or where.

    \b
    Example: pricing-pipeline recipient change ops --quiet none
    """
    from pricing_pipeline.cli import recipient

    recipient.change(
        name,
        severity=severity.value if severity else None,
        quiet=quiet,
        quiet_zone=quiet_zone,
        allow_private=allow_private,
        is_active=is_active,
        new_address=address or address_file is not None,
        address_file=address_file,
        as_json=as_json,
    )


@noun.command()
def remove(name: Name, as_json: Json = False) -> None:
    """Delete a recipient. Messages that wait for it are cancelled.

    \b
    Example: pricing-pipeline recipient remove ops
    """
    from pricing_pipeline.cli import recipient

    recipient.remove(name, as_json=as_json)
