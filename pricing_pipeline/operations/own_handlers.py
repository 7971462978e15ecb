"""Handlers of users' own: a package declares them as entry points of the group `pricing_pipeline.operations`.

The name of an entry point is an operation type, and its value a callable that takes an Operation and returns what is
worth keeping, or raises OperationFailed. One that cannot be used is passed over, with the reason.
"""

from __future__ import annotations

import inspect
import logging
import re
import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib import metadata

from pricing_pipeline.operations.runner import Handler

_LOG = logging.getLogger(__name__)
GROUP = "pricing_pipeline.operations"
_NAME = re.compile("[a-z][a-z0-9_]{0,47}")
_PATIENCE = 30.0
"""In seconds, for importing one handler."""


@dataclass(frozen=True, slots=True)
class OwnHandler:
    """A handler that a package declares. `source` says where it is; `fault` why it cannot be used."""

    operation_type: str
    source: str
    handler: Handler | None = None
    fault: str | None = None


def load(built_in: Collection[str], only: str | None = None) -> list[OwnHandler]:
    """Import the handlers of all installed packages, or that for one type. No exception of theirs gets through."""
    declared: dict[str, list[metadata.EntryPoint]] = {}
    for point in _declared():
        declared.setdefault(point.name, []).append(point)
    return [_load(points, built_in) for name, points in declared.items() if only in (None, name)]


def sources() -> dict[str, str]:
    """Where the handler of each type is, without importing it."""
    return {point.name: _source(point) for point in _declared()}


def _declared() -> list[metadata.EntryPoint]:
    """Entry points of all packages by name. A package whose record is broken is passed over."""
    found: dict[str, list[metadata.EntryPoint]] = {}
    for package in metadata.distributions():
        try:
            points = list(package.entry_points.select(group=GROUP))
            if points:  # if a package is installed twice, Python imports the first
                found.setdefault(package.name, points)
        except Exception as error:
            _LOG.warning("the entry points of a package cannot be read: %s: %s", type(error).__name__, error)
    declared = [point for points in found.values() for point in points]
    return sorted(declared, key=lambda point: (point.name, point.value))


def _load(points: Sequence[metadata.EntryPoint], built_in: Collection[str]) -> OwnHandler:
    point = points[0]
    name, source = point.name, " and ".join(dict.fromkeys(_source(each) for each in points))
    if name in built_in:
        return OwnHandler(name, source, fault=f"{name} is built in. Declare the handler by another name")
    if _NAME.fullmatch(name) is None:
        return OwnHandler(name, source, fault=f"no operation type can be called {name!r}")
    if len({each.value for each in points}) > 1:
        return OwnHandler(name, source, fault="there are two handlers for it. Uninstall one of the packages")
    return _import(point, source)


def _import(point: metadata.EntryPoint, source: str) -> OwnHandler:
    """Import in a thread, which is given up when it takes too long; it may exit, too."""
    loaded: list[object] = []
    faults: list[str] = []

    def work() -> None:
        try:
            loaded.append(point.load())
        except BaseException as error:
            faults.append(f"it cannot be imported: {type(error).__name__}: {error}")

    thread = threading.Thread(target=work, name=f"import of {point.name}", daemon=True)
    thread.start()
    thread.join(_PATIENCE)
    if faults:
        return OwnHandler(point.name, source, fault=faults[0])
    if not loaded:
        return OwnHandler(point.name, source, fault=f"importing it takes longer than {_PATIENCE:g} s")
    handler = loaded[0]
    if not callable(handler):
        return OwnHandler(
            point.name, source, fault=f"it is of the type {type(handler).__name__}, which cannot be called"
        )
    if inspect.iscoroutinefunction(handler):
        return OwnHandler(point.name, source, fault="it is asynchronous. Let it call asyncio.run itself")
    return OwnHandler(point.name, source, handler=handler)


def _source(point: metadata.EntryPoint) -> str:
    package = point.dist
    return f"{point.value} of {package.name} {package.version}" if package is not None else point.value
