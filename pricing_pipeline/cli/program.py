"""How every command begins and ends: errors as one sentence, exit codes, log lines.

Nothing here imports anything slow, so that `--help` is quick.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import MutableMapping, Sequence
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup
from typer.main import get_group

from pricing_pipeline.domain.words import printable
from pricing_pipeline.errors import PricingError
from pricing_pipeline.local_files.env_file import read_env_file

_NOISE = re.compile("Value error, |, unable to parse string as an? [a-z]+")
"""Words of the argument checks that describe the check and not the typed text."""


_ENDED_BY_CTRL_C = frozenset({"up", "sandbox"})
"""That is how they end when all is well, so they have nothing to say about it."""


class Program(TyperGroup):
    """The command line as a whole. Exit codes: 1 for what went wrong, 2 for wrong usage, 130 for Ctrl-C."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command; every error that we or the database raise on purpose becomes `error: <sentence>`."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        args = sys.argv[1:] if args is None else args
        for word in args:
            if not _is_text(word):
                _end(f"{word!r} is not UTF-8 text. Check the terminal's encoding.", 2)
        args, home = without_home(args)
        if home is not None:
            os.environ["PRICING_HOME"] = home
        try:
            read_env_file()  # before options are read, some of which the environment sets
            code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        except typer.TyperException as error:
            _end(_usage(error), error.exit_code)
        except PricingError as error:
            _end(str(error), 1)
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            _end(f"{where}{error.strerror or error}.", 1)
        except Exception as error:
            sentence = _database_sentence(error)
            if sentence is None:
                raise
            _end(sentence, 1)
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was typed. After Ctrl-C, print that it stopped, or what it leaves behind."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            if ctx.invoked_subcommand not in _ENDED_BY_CTRL_C:
                typer.echo(str(stop) or "stopped.", err=True)
            raise


class Noun(TyperGroup):
    """A noun whose commands are in the module of its name, imported when one of them runs."""

    @property
    def commands(self) -> MutableMapping[str, Any]:
        """Its commands by their verbs."""
        return _commands_of("data_type" if self.name == "type" else str(self.name).replace("-", "_"))

    @commands.setter
    def commands(self, none: object) -> None:
        """Typer gives it none."""


@cache
def _commands_of(module: str) -> MutableMapping[str, Any]:
    sys.meta_path.insert(0, _Deferring)
    try:
        noun: typer.Typer = import_module(f"pricing_pipeline.cli.{module}").noun
    finally:
        sys.meta_path.remove(_Deferring)
    noun.rich_markup_mode = None  # as of the whole program, so that help is plain text
    return get_group(noun).commands


class _Deferring(PathFinder):
    """Finds the modules that commands work with; each is run when something of it is first used.

    So a command pays for what it uses, and its `--help` for nothing, although all imports stand at the top.
    """

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith("pricing_pipeline."):
            return None
        spec = super().find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


class PlainLines(logging.Handler):
    """Log records as `warning: <message>` on whatever is standard error at the moment: progress bars swap it."""

    def emit(self, record: logging.LogRecord) -> None:
        typer.echo(f"{record.levelname.lower()}: {record.getMessage()}", err=True)


def warn(message: str) -> None:
    """Tell a person something besides the result, where scripts do not read it."""
    typer.echo(f"warning: {message}", err=True)


def hint(message: str) -> None:
    """Tell a person, beside the result, what to do next."""
    typer.echo(f"hint: {message}", err=True)


def without_home(args: Sequence[str]) -> tuple[list[str], str | None]:
    """The words of a command without `--home DIR`, which may stand anywhere, and the folder that it names."""
    words, rest, home = iter(args), [], None
    for word in words:
        if word == "--":
            rest += [word, *words]
        elif word == "--home" or word.startswith("--home="):
            home = word.removeprefix("--home=") if "=" in word else next(words, "")
            if not home:
                _end("--home needs a folder, such as --home .pricing.", 2)
        else:
            rest.append(word)
    return rest, home


def _is_text(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:  # bytes that were no UTF-8
        return False
    return True


def _usage(error: typer.TyperException) -> str:
    message = _NOISE.sub("", error.format_message())
    message = message if message.endswith((".", "?", "!")) else f"{message}."
    context = getattr(error, "ctx", None)
    return f"{message} See `{context.command_path} --help`." if context is not None else message


def _database_sentence(error: Exception) -> str | None:
    # Commands that use no database should not pay for importing its driver to have their errors told.
    if "sqlalchemy" not in sys.modules:
        return None
    from sqlalchemy.exc import DBAPIError

    from pricing_pipeline.db.errors import sentence

    return sentence(error) if isinstance(error, DBAPIError) else None


def _end(sentence: str, code: int) -> NoReturn:
    # It may repeat a path or a word that steers a terminal.
    typer.echo(f"error: {printable(sentence)}", err=True)
    sys.exit(code)
