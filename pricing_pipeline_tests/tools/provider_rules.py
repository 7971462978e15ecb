"""What a provider's module may not do, so that no answer gets past the transport or the schema (B18).

`make check` runs this beside the import contracts, which keep providers off the network and the database. It reads
the modules' source, against mistakes and not against malice. The shared modules below them are exempt: they are the
transport and the schema.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

PROVIDERS = Path(__file__).parents[2] / "pricing_pipeline" / "providers"
SHARED = frozenset(
    {
        "__init__",
        "base",
        "bodies",
        "canonical",
        "client",
        "configured",
        "currencies",
        "dialogue",
        "declaration",
        "declaration_draft",
        "drafted_readings",
        "drafted_request",
        "drafted_rows",
        "declaration_faults",
        "declaration_file",
        "declaration_texts",
        "fetched",
        "flat",
        "json_paths",
        "noise",
        "splits",
        "inventory",
        "key_echoes",
        "sent",
        "transport",
        "unpacking",
        "values",
        "wire",
    }
)

_IMPORTS = frozenset(
    {
        *(
            "__future__",
            "base64",
            "collections",
            "collections.abc",
            "dataclasses",
            "datetime",
            "decimal",
            "enum",
            "functools",
        ),
        *("itertools", "operator", "pydantic", "re", "string", "typing", "urllib.parse", "zoneinfo"),
        *(
            f"pricing_pipeline.domain.{module}"
            for module in (
                *("answers", "bars", "calls", "commodities", "data_types", "inventory", "observations"),
                "windows",
            )
        ),
        "pricing_pipeline.errors",
        *("pricing_pipeline.providers.base", "pricing_pipeline.providers.noise"),
        *(
            "pricing_pipeline.providers.bodies",
            "pricing_pipeline.providers.canonical",
            "pricing_pipeline.providers.declaration",
            "pricing_pipeline.providers.declaration_file",
            "pricing_pipeline.providers.declaration_texts",
            "pricing_pipeline.providers.exchange_days",
            "pricing_pipeline.providers.currencies",
            "pricing_pipeline.providers.flat",
            "pricing_pipeline.providers.inventory",
            "pricing_pipeline.providers.json_paths",
            "pricing_pipeline.providers.splits",
            "pricing_pipeline.providers.values",
        ),
    }
)
_VALUES = frozenset({"Observation", "Document", "Product", "Slot", "CommodityPrice", "bar_of", "plain_bars"})
_REACHES = "reaches what these rules cannot see"
_NAMES = {
    **dict.fromkeys(("Any", "cast"), "turns off the type check that makes a parser validate what it reads"),
    **dict.fromkeys(
        ("BaseModel", "RootModel", "TypeAdapter", "ConfigDict", "create_model"),
        "makes a model that need not be strict; derive response models from base.Schema",
    ),
    "model_config": "loosens a response model; base.Schema says how strict it is",
    **dict.fromkeys(("eval", "exec", "compile", "open", "getattr", "globals", "vars", "__import__"), _REACHES),
}
_ATTRIBUTES = {
    **dict.fromkeys(("model_construct", "model_copy"), "gives a model values that its schema never saw"),
    **dict.fromkeys(("__dict__", "__builtins__", "__globals__"), _REACHES),
    "body": "reads bytes that base.decode_json has not decoded; hand the response on as it is",
}


def faults(folder: Path = PROVIDERS) -> list[str]:
    """What is wrong with the providers in a folder, as `file:line: what and why`; none if all is well."""
    return [
        f"{path.name}:{line}: {what}"
        for path in sorted(folder.glob("**/*.py"))
        if path.stem not in SHARED or path.parent != folder
        for line, what in _faults(ast.parse(path.read_text()), path.stem)
    ]


def _faults(tree: ast.Module, name: str) -> Iterator[tuple[int, str]]:
    # A provider with much to read may have further modules, fmp_documents.py beside fmp.py, under these same rules.
    # They may import each other.
    own = f"pricing_pipeline.providers.{name.partition('_')[0]}_"
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, _import(one.name)) for one in names if one.name not in _IMPORTS)
            case ast.ImportFrom(module=module, level=level, names=names):
                if level or (module not in _IMPORTS and not (module or "").startswith(own)):
                    yield node.lineno, _import(module or ".")
                yield from ((node.lineno, f"{one.name} {_NAMES[one.name]}") for one in names if one.name in _NAMES)
                yield from (
                    (node.lineno, f"{one.name} goes by another name, under which it is not recognised")
                    for one in names
                    if one.name in _VALUES and one.asname
                )
            case ast.Name(id=name, ctx=use) if name in _NAMES and (isinstance(use, ast.Load) or name == "model_config"):
                yield node.lineno, f"{name} {_NAMES[name]}"
            case ast.Attribute(attr=name) if name in _ATTRIBUTES:
                yield node.lineno, f".{name} {_ATTRIBUTES[name]}"
    # A value is made from a validated answer only: anyone who makes one is given a response model.
    schemas = _schemas(tree)
    checked = {
        id(inner)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef) and _parameters(function) & schemas
        for inner in ast.walk(function)
    }
    for node in ast.walk(tree):
        made = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and made in _VALUES and id(node) not in checked:
            yield node.lineno, f"{made} is made where no response model is at hand; pass it one"


def _schemas(tree: ast.Module) -> set[str]:
    """Names of classes of the module that derive from Schema, directly or not."""
    found = {"Schema"}
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and found & {ast.unparse(base) for base in node.bases}:
            found.add(node.name)
    return found - {"Schema"}


def _parameters(function: ast.FunctionDef) -> set[str]:
    given = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    return {ast.unparse(one.annotation) for one in given if one.annotation is not None}


def _import(name: str) -> str:
    return f"imports {name}, which no provider needs: network, clock and files belong to the client"


if __name__ == "__main__":
    wrong = faults()
    print("\n".join(wrong) or f"No provider goes around the transport or the schema ({PROVIDERS.name}/ is clean).")
    sys.exit(bool(wrong))
