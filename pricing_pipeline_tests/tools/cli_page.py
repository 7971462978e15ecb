"""`docs/cli.md`: every command, as `--help` says it. `make pages` writes it, and a test holds it to the commands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer
from typer.cli import get_docs_for_click
from typer.core import TyperGroup
from typer.main import get_command

from pricing_pipeline.cli import app

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"

_HEAD = """\
# Commands

What `pricing-pipeline COMMAND --help` says, on one page. Written by `make pages`; a test compares it with the commands.

A command is a verb to a noun. `up`, `status`, `page` and `sandbox` have no noun: they are about everything, or run
until Ctrl-C. `--type` is the data type and `--user` the person everywhere, and symbols follow the verb. Every command
that prints something takes `--json`; those that show times take `--zone`, and those with tables, which fit the terminal
or 80 columns, `--wide`. The tab key [completes](running.md#completion-in-the-shell) what is typed.

Settings are variables of the environment, each with its default in [.env.example](../.env.example); a file `.env` in
the current folder adds to them. `--home DIR`, anywhere in a command, names the home that it is about; a `.env` that
names another one is then left out.
"""


def leaves(group: TyperGroup, *path: str) -> dict[str, Any]:
    """Each command by its words, such as `task list`."""
    found: dict[str, Any] = {}
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            found |= leaves(command, *path, name)
        else:
            found[" ".join((*path, name))] = command
    return found


def written() -> str:
    """The page: a table of all commands, and each with its arguments and options."""
    program = get_command(app)
    assert isinstance(program, TyperGroup)
    rows = [
        f"| [`{words}`](#pricing-pipeline-{words.replace(' ', '-')}) | {_first_sentence(command.help or '')} |"
        for words, command in leaves(program).items()
    ]
    context = typer.Context(program, info_name="pricing-pipeline")
    with context:
        text = get_docs_for_click(obj=program, ctx=context, name="pricing-pipeline")
    _, *sections = re.split(r"(?m)^###? (?=`)", text)
    # A group's own section only lists its commands again.
    body = "\n".join(f"## {_plain(section)}" for section in sections if "**Commands**" not in section)
    return "\n".join([_HEAD, "| command | what it does |", "|---|---|", *rows, "", body.rstrip(), ""])


def _plain(section: str) -> str:
    """Without what every command has, and without the empty lines that Typer leaves."""
    plain = section.replace("* `--help`: Show this message and exit.\n", "").replace("\b", "")
    plain = re.sub(r"(?m)^Example: (.+)$", r"Example: `\1`", plain)
    return re.sub(r"\n\s*\n", "\n\n", plain).rstrip() + "\n"


def _first_sentence(text: str) -> str:
    first = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=[.])\s", first)[0].replace("|", "\\|")


def main() -> None:
    """Write the page."""
    PAGE.write_text(written())


if __name__ == "__main__":
    main()
