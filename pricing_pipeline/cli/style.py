"""How a command writes for people: the time zone of its times, and whether tables may be wider than the terminal.

Both are options of every command that shows times or tables; decorators add them, so that they are spelled once.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, tzinfo
from typing import Annotated, Any, TypeVar, get_type_hints
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

Command = TypeVar("Command", bound=Callable[..., None])

Zone = Annotated[
    str, typer.Option("--zone", metavar="ZONE", help="Time zone of the printed times, such as Europe/Berlin.")
]
Wide = Annotated[bool, typer.Option("--wide", help="Show all columns, however wide that is.")]

_zone: ContextVar[tzinfo] = ContextVar("zone", default=UTC)
_wide: ContextVar[bool] = ContextVar("wide", default=False)


def zone() -> tzinfo:
    """The time zone in which times are written for people."""
    return _zone.get()


def in_zone(name: str) -> str:
    """A heading of times: what they are, and in which zone."""
    return f"{name} ({zone()})"


def is_wide() -> bool:
    """Whether no column may be left out or cut."""
    return _wide.get()


def zoned(command: Command) -> Command:
    """A command with --zone."""
    return _with(command, zone=(Zone, "UTC"))


def listing(command: Command) -> Command:
    """A command with --zone and --wide."""
    return _with(command, zone=(Zone, "UTC"), wide=(Wide, False))


def _with(command: Command, **options: tuple[Any, Any]) -> Command:
    """The command with more options: typer reads them from its signature."""

    @functools.wraps(command)
    def dressed(*args: Any, **given: Any) -> None:
        mine = {name: given.pop(name, default) for name, (_, default) in options.items()}
        with _chosen(mine["zone"], mine.get("wide", False)):
            command(*args, **given)

    hints = get_type_hints(command, include_extras=True)
    hints |= {name: annotation for name, (annotation, _) in options.items()}
    own = [p.replace(annotation=hints[name]) for name, p in inspect.signature(command).parameters.items()]
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in options.items()
    ]
    del dressed.__wrapped__
    dressed.__signature__ = inspect.Signature([*own, *more])  # type: ignore[attr-defined]
    dressed.__annotations__ = hints
    return dressed  # type: ignore[return-value]


@contextmanager
def _chosen(name: str, wide: bool) -> Iterator[None]:
    try:
        chosen = UTC if name.upper() == "UTC" else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise typer.BadParameter(f"--zone {name!r} is not a time zone. Write it like Europe/Berlin") from None
    before = _zone.set(chosen), _wide.set(wide)
    try:
        yield
    finally:
        _zone.reset(before[0])
        _wide.reset(before[1])
