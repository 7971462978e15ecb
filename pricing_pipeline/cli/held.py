"""`quarantine list|body`: values that are not believed, for people to look at."""

from __future__ import annotations

import sys
from dataclasses import asdict

import typer

from pricing_pipeline import quarantine
from pricing_pipeline.cli.database import open_connection
from pricing_pipeline.cli.output import iso, moment, print_json, print_table
from pricing_pipeline.errors import UnknownValue
from pricing_pipeline.settings import load_settings


def show(data_type: str | None, symbol: str | None, at_most: int, *, as_json: bool) -> None:
    """Tell which values are held, and why; those that came last first."""
    with open_connection(load_settings()) as connection:
        values = quarantine.held(connection, data_type, symbol, at_most)
    if as_json:
        print_json(
            {
                "values": [
                    asdict(one) | {"observed_at": one.observed_at and iso(one.observed_at)} for one in values
                ]
            }
        )
    elif values:
        rows = [
            (
                one.value_id,
                one.data_type,
                one.symbol,
                one.provider,
                moment(one.observed_at),
                one.value,
                one.kind,
                one.reason,
                one.times,
                moment(one.last_seen_at),
            )
            for one in values
        ]
        headings = [
            "id",
            "data type",
            "symbol",
            "provider",
            "of (UTC)",
            "value",
            "kind",
            "why",
            "times",
            "last",
        ]
        print_table(headings, rows, right=["id", "value", "times"])
    else:
        typer.echo("no value is held.")


def body(value_id: int, *, as_json: bool) -> None:
    """Write the body that brought a held value, byte for byte, or as text within JSON.

    Raises UnknownValue when it is not kept.
    """
    with open_connection(load_settings()) as connection:
        found = quarantine.body(connection, value_id)
    if found is None:
        raise UnknownValue(
            f"no answer is kept for a held value {value_id}. Bodies are kept 90 days; "
            "`pricing-pipeline quarantine list` shows which values are held."
        )
    if as_json:
        print_json({"value_id": value_id, "body": found.decode("utf-8", "replace")})
        return
    sys.stdout.buffer.write(found)
    sys.stdout.buffer.flush()
