"""`status`: one look at everything, which is in overview.py."""

from __future__ import annotations

from typing import Annotated

import typer

from pricing_pipeline.cli.options import Json
from pricing_pipeline.cli.style import listing


@listing
def status(
    as_json: Json = False,
    is_check: Annotated[
        bool, typer.Option("--check", help="Only say which parts are late; exit with 1 if any is. For cron.")
    ] = False,
) -> None:
    """Show what runs, what is watched, how fresh it is, and what limits and quota still allow.

    \b
    Example: pricing-pipeline status --check
    """
    from pricing_pipeline.cli import overview

    if is_check:
        raise typer.Exit(0 if overview.check() else 1)
    if not overview.show(as_json=as_json):
        raise typer.Exit(1)
