"""Hand a text on from the process that loads a code location to the workers of its runs.

Dagster puts it into each run's plan. Its own loaders (`StateBackedDefinitionsLoader`) use this; each
needs it at one place; what it offers to others, components with state, is no help to a project that calls a function.
"""

from __future__ import annotations

from collections.abc import Callable

from pricing_pipeline.defs.internals import DefinitionsLoadContext, DefinitionsLoadType


def handed_on(key: str, make: Callable[[], str]) -> str:
    """The text that the code location has handed on; in the code location itself, or a script, a new one.

    Call it while definitions are loaded. The key is to be unique in a code location.
    """
    load = DefinitionsLoadContext.get()
    # A starting code server also counts as reconstructing, but has nothing yet.
    known = load.reconstruction_metadata.get(key) if load.load_type is DefinitionsLoadType.RECONSTRUCTION else None
    text = known or make()
    # From here it goes into every run's plan. (`Definitions.with_reconstruction_metadata` alone reaches nobody.)
    load.add_to_pending_reconstruction_metadata(key, text)
    return text
