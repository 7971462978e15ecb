"""The command `up`. It starts everything, so it has no noun."""

from __future__ import annotations

from typing import Annotated

import typer

from pricing_pipeline.cli.options import Json


def up(
    demo: Annotated[
        bool | None,
        typer.Option(
            "--demo/--no-demo",
            help="Load the sample registry and watch a few symbols; default: only with the sandbox.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Start everything and keep it running until Ctrl-C; what `make run` calls.

    With --json, one line per step.

    \b
    Example: pricing-pipeline up --no-demo
    """
    from pricing_pipeline import stack
    from pricing_pipeline.cli.output import print_event, printable
    from pricing_pipeline.settings import load_settings

    def say(line: str) -> None:
        if as_json:
            print_event({"event": "step", "message": line})
        else:
            typer.echo(printable(line))  # it may repeat an error, with words of others

    settings = load_settings()
    stack.up(settings, demo=settings.sandbox if demo is None else demo, say=say)
