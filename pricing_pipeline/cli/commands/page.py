"""`page` as it is typed. There is one page, so it has no verb."""

from __future__ import annotations

from typing import Annotated

import typer

from pricing_pipeline.cli.options import Json
from pricing_pipeline.cli.style import zoned


@zoned
def page(
    hours: Annotated[
        float, typer.Option("--hours", min=0.1, max=720, help="For how long the link opens the page.")
    ] = 12,
    look_only: Annotated[bool, typer.Option("--look-only", help="Show no buttons.")] = False,
    as_json: Json = False,
) -> None:
    """Print a link that opens the operations page in a browser: what is well, what is not, and buttons that mend it.

    \b
    Example: pricing-pipeline page --hours 2
    """
    from pricing_pipeline.cli import page as implementation

    implementation.page(hours, look_only=look_only, as_json=as_json)
