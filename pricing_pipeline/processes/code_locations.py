"""Code locations of others beside ours, from the files `*.yaml` of the folder `workspace.d` in the home.

The files have the form of Dagster's workspace.yaml. A location that is named by its code is started here,
not by Dagster: its webserver and daemon would each start a code server for it, which would then know their secrets.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from pricing_pipeline.local_files.own_files import who_else_may_change

FOLDER = "workspace.d"
OURS = "pricing_pipeline"
"""The name of our own code location."""

_TARGETS: Mapping[str, tuple[str, str]] = {
    "python_file": ("relative_path", "--python-file"),
    "python_module": ("module_name", "--module-name"),
    "python_package": ("package_name", "--package-name"),
    "autoload_defs_module": ("module_name", "--autoload-defs-module-name"),
}
"""Kind of a location -> what names its code, and the option of `dagster code-server start` for that."""
_SERVER = "grpc_server"
_OPTIONS = ("attribute", "working_directory", "location_name", "executable_path")
_OF_SERVERS: Mapping[str, tuple[type, str]] = {
    "host": (str, "text"),
    "socket": (str, "text"),
    "port": (int, "a number"),
    "location_name": (str, "text"),
    "ssl": (bool, "true or false"),
    "additional_metadata": (dict, "a mapping"),
}


class _Fault(Exception):
    """Why a file cannot be used, without its name."""


@dataclass(frozen=True)
class CodeLocation:
    """A code location of others, by a code server that we start, or by one that runs already."""

    name: str
    path: Path
    """The file that names it."""
    command: tuple[str, ...] = ()
    """Starts its code server, apart from the socket; empty if that runs already."""
    folder: Path = Path()
    """The working folder of the code server. Dagster reads a `.env` there."""
    server: Mapping[str, Any] | None = None
    """Where its code server is, if that runs already."""

    def socket(self, folder: Path) -> Path:
        """Where the code server that we start listens: the same at each start."""
        return folder / f"code-{hashlib.sha256(self.name.encode()).hexdigest()[:8]}.sock"

    def entry(self, folder: Path) -> Mapping[str, Any]:
        """Its entry in the workspace.yaml of Dagster's processes."""
        server = self.server or {"socket": str(self.socket(folder))}
        return {_SERVER: {**server, "location_name": self.name}}


def read(home: Path) -> tuple[list[CodeLocation], list[str]]:
    """The code locations of a home, and what is wrong with files that cannot be used, each with its way out."""
    locations: dict[str, CodeLocation] = {}
    faults = []
    folder = home.absolute() / FOLDER
    for path in sorted(p for p in folder.glob("*") if p.suffix in (".yaml", ".yml")):
        try:
            found = list(_locations_of(path))
            for location in found:
                _require_new(location, {**locations, **{each.name: each for each in found if each is not location}})
        except _Fault as fault:
            faults.append(f"{path} {fault}. None of its code locations is served until that is corrected; then restart")
        else:
            locations |= {location.name: location for location in found}
    return list(locations.values()), faults


def _require_new(location: CodeLocation, known: Mapping[str, CodeLocation]) -> None:
    if location.name == OURS:
        raise _Fault(f"names a location {OURS}, which is the name of ours: give it another location_name")
    if location.name in known:
        raise _Fault(
            f"names the location {location.name}, and so does {known[location.name].path}: give one another "
            "location_name"
        )


def _locations_of(path: Path) -> Iterator[CodeLocation]:
    for place in (path.parent, path):
        if (fault := who_else_may_change(place)) is not None:
            raise _Fault(f"is not safe: {place} {fault}")
    try:
        content = yaml.safe_load(path.read_text())
    except OSError as error:
        raise _Fault(f"cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise _Fault("is not text in UTF-8") from None
    except yaml.MarkedYAMLError as error:
        line = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise _Fault(f"is not YAML: {error.problem or error.context}{line}") from None
    except (yaml.YAMLError, ValueError) as error:  # ValueError: no date, no number
        raise _Fault(f"is not YAML: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise _Fault("is nested too deeply") from None
    entries = content.get("load_from") if isinstance(content, dict) else None
    if not isinstance(entries, list) or not entries or content.keys() != {"load_from"}:
        raise _Fault("must have a list load_from and nothing else, like Dagster's workspace.yaml")
    for entry in entries:
        if not isinstance(entry, dict) or len(entry) != 1 or not entry.keys() <= {*_TARGETS, _SERVER}:
            raise _Fault(f"must name, in each item of load_from, one of {', '.join([*_TARGETS, _SERVER])}")
        ((kind, given),) = entry.items()
        yield _running(path, given) if kind == _SERVER else _started(path, kind, given)


def _running(path: Path, given: Any) -> CodeLocation:
    server = _options(given, _SERVER, [*_OF_SERVERS])
    # Dagster refuses the whole workspace for one wrong entry: ours would not be served either.
    for name, value in server.items():
        kind, words = _OF_SERVERS[name]
        if not (_is_text(value) if kind is str else type(value) is kind):
            raise _Fault(f"must say {name} of a {_SERVER} as {words}")
    if ("socket" in server) == ("port" in server):
        raise _Fault(f"must name either a socket or a port of a {_SERVER}")
    at = server.get("socket") or f"{server.get('host', 'localhost')}:{server['port']}"
    return CodeLocation(_name(server.get("location_name") or f"grpc:{at}"), path, server=server)


def _started(path: Path, kind: str, given: Any) -> CodeLocation:
    code, option = _TARGETS[kind]
    options = {code: given} if isinstance(given, str) else _options(given, kind, (code, *_OPTIONS))
    if wrong := [name for name, value in options.items() if not _is_text(value)]:
        raise _Fault(f"must say {', '.join(wrong)} of a {kind} as text")
    if code not in options:
        raise _Fault(f"must say {code} of a {kind}")
    target = options[code]
    if kind == "python_file":
        target = str(_place(path, target))
        if not os.access(target, os.R_OK):
            raise _Fault(f"names the file {target}, which does not exist or cannot be read")
    folder = _place(path, options.get("working_directory", "."))
    if not folder.is_dir():
        raise _Fault(f"names the working_directory {folder}, which does not exist")
    program = str(_place(path, os.path.expanduser(options.get("executable_path", sys.executable))))
    if not os.access(program, os.X_OK):
        raise _Fault(f"names the executable_path {program}, which does not exist or cannot be run")
    attribute = options.get("attribute")
    words = [option, target, "--working-directory", str(folder)]
    words += ["--attribute", attribute] if attribute else []
    given_name = Path(target).name if kind == "python_file" else target
    name = _name(options.get("location_name") or ":".join(filter(None, [given_name, attribute])))
    # A `.env` of the working folder is the location's own.
    words += ["--location-name", name, "--inject-env-vars-from-instance", "--log-level", "warning"]
    return CodeLocation(name, path, (program, "-m", "dagster", "code-server", "start", *words), folder)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != "" and value.isprintable()


def _options(given: Any, kind: str, known: Sequence[str]) -> dict[str, Any]:
    if not isinstance(given, dict) or not given.keys() <= {*known}:
        raise _Fault(f"may say of a {kind} only {', '.join(known)}")
    return given


def _name(name: Any) -> str:
    """A name of a location, which is that of a log file, too."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_:.-]{1,100}", name):
        raise _Fault("must give each location a location_name of letters, digits, and _ : . -")
    return name


def _place(path: Path, given: str) -> Path:
    """A path as the file means it: from its own folder. Links stay, since a virtual environment is known by its own."""
    return Path(os.path.normpath(path.parent / given))
