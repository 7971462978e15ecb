"""`/v1/holdings/import`: what a broker's file says that a user holds."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Body, Query

from pricing_pipeline.api.access import Database, Watcher
from pricing_pipeline.api.bodies import Shape
from pricing_pipeline.api.numbers import Exact
from pricing_pipeline.api.parameters import LONGEST_NAME
from pricing_pipeline.api.problems import invalid
from pricing_pipeline.demand import holding_imports
from pricing_pipeline.demand.holding_imports import Outcome
from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.holdings_files.formats import FORMATS, read_file
from pricing_pipeline.holdings_files.numbers import Mark

router = APIRouter(tags=["watching"])

_LONGEST_PAIR = 300
_MOST_PAIRS = 1_000
_MOST_VAGUE = 100
_Texts = list[Annotated[str, Query(max_length=_LONGEST_PAIR)]]


class Imported(Shape):
    """The outcome for an instrument of the file, or for a line that names none."""

    lines: list[int]
    """The lines that speak of it; the first one of the file is 1."""
    name: str
    """How the file names it."""
    outcome: Literal["new", "held", "refused", "left_out"]
    data_type: str | None
    symbol: str | None
    quantity: Exact | None
    """The total in the file; null if the file has no quantities."""
    held_quantity: Exact | None
    """The stored quantity, which `quantity` replaces; null if there is no holding, or its quantity is unknown."""
    reason: str | None
    """Why it is refused or left out; if it is new or held, what is doubtful about it."""
    identifier: str | None
    """Its name in the file. The parameter `as` takes it, as in `as=IE00B4L5Y983=EUNL:XETR`, to say which symbol it is;
    null if that would not help."""
    candidates: list[str]
    """What it may be, the likeliest first, as `as` takes it: a symbol, or `data_type:symbol`."""
    lacks_type_of: str | None
    """Its asset class, if it is refused because no data type has prices of that class."""
    advice: str | None
    """How to correct a line that cannot be read."""


class VagueNumber(Shape):
    """A number such as 1.000, which may be 1 or 1000: the file does not show which decimal mark it uses."""

    line: int
    text: str
    counted: Exact
    """The number that the import uses; the parameter `decimal` decides."""
    otherwise: Exact


class Import(Shape):
    """What becomes of each line of a file. With `dry_run` nothing has changed."""

    format: str
    dry_run: bool
    new: int
    held: int
    refused: int
    left_out: int
    decisions: list[Imported]
    vague_numbers: list[VagueNumber]
    """The first hundred."""


@router.post("/holdings/import")
def import_holdings(
    database: Database,
    caller: Watcher,
    content: Annotated[
        bytes, Body(media_type="application/octet-stream", description="The file as it is: CSV, XML or JSON.")
    ],
    dry_run: Annotated[bool, Query(description="Only show what would be held.")] = True,
    format_: Annotated[
        str | None,
        Query(
            alias="format",
            max_length=LONGEST_NAME,
            description=f"One of {', '.join(FORMATS)}; default: by its header.",
        ),
    ] = None,
    column: Annotated[
        _Texts | None,
        Query(
            max_length=_MOST_PAIRS,
            description="A column of any other table, such as symbol=Ticker; may be repeated.",
        ),
    ] = None,
    own_name: Annotated[
        _Texts | None,
        Query(
            alias="as",
            max_length=_MOST_PAIRS,
            description="What an ISIN, ticker or title of the file is here, such as IE00B4L5Y983=EUNL:XETR; "
            "may be repeated.",
        ),
    ] = None,
    data_type: Annotated[
        _Texts | None,
        Query(
            max_length=_MOST_PAIRS,
            description="The data type for instruments of its class; default: the one with the freshest prices. "
            "May be repeated.",
        ),
    ] = None,
    decimal: Annotated[Mark | None, Query(description="The decimal mark; default: as the numbers show.")] = None,
    list_: Annotated[
        str | None,
        Query(
            alias="list",
            max_length=LONGEST_NAME,
            description="With `dry_run=false`, also put all that is held or new on this list of the user.",
        ),
    ] = None,
) -> Import:
    """Say what each line of a broker's file would become, and with `dry_run=false` hold what is new.

    The body is the file itself. The header shows which broker or tracker wrote it. The quantities in the file replace
    the stored ones. A token that may operate also teaches the instruments the ISINs and FIGIs of the file,
    except where something is doubtful.
    """
    user = caller.user
    if any("\0" in name for name in (*(data_type or ()), list_ or "")):
        raise invalid("the parameters data_type and list: a name cannot contain NUL")
    file = read_file(content, format_, _pairs("column", column), decimal)
    with database.begin() as connection:
        plan = holding_imports.plan(
            connection,
            user,
            file,
            data_types=data_type or [],
            own_names=_pairs("as", own_name),
        )
        if not dry_run:
            learns = caller.token.allows(Scope.OPERATE)
            holding_imports.carry_out(connection, user, plan, learns=learns, list_name=list_)
    return Import(
        format=plan.format,
        dry_run=dry_run,
        new=len(plan.of(Outcome.NEW)),
        held=len(plan.of(Outcome.HELD)),
        refused=len(plan.of(Outcome.REFUSED)),
        left_out=len(plan.of(Outcome.LEFT_OUT)),
        decisions=[Imported.model_validate(one, from_attributes=True) for one in plan.decisions],
        vague_numbers=[VagueNumber.model_validate(one, from_attributes=True) for one in file.vague[:_MOST_VAGUE]],
    )


def _pairs(parameter: str, texts: list[str] | None) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not (equals and name.strip() and value.strip()) or "\0" in text:
            raise invalid(f"the parameter {parameter}: {text[:60]!r} has no NAME=VALUE")
        pairs[name.strip()] = value.strip()
    return pairs
