"""Links from an asset's page in Dagster to the files that make it."""

import warnings
from pathlib import Path

import dagster as dg

from pricing_pipeline.defs.tables import Metadata

_PACKAGE = Path(__file__).parents[1]


def code_links(*files: str) -> Metadata:
    """Links to files of this package, by their paths in it. Those that do not exist are left out: a declared provider
    has no file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)  # whose exact version is pinned
        links = [
            dg.LocalFileCodeReference(file_path=str(path), label=path.name)
            for path in map(_PACKAGE.joinpath, files)
            if path.is_file()
        ]
        return {"dagster/code_references": dg.CodeReferencesMetadataValue(code_references=links)} if links else {}
