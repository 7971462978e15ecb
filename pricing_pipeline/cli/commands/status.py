"""`status` as it is typed. It is about everything, so it has no noun."""

from __future__ import annotations

import typer

from pricing_pipeline.cli.options import Json
from pricing_pipeline.cli.style import listing


@listing
def status(as_json: Json = False) -> None:
    """Show what runs, what is watched, how fresh it is, and what limits and quota still allow.

    \b
    Example: pricing-pipeline status --json
    """
    from pricing_pipeline.cli import status as implementation

    if not implementation.status(as_json=as_json):
        raise typer.Exit(1)
