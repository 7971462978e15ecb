"""`page`: a link to the operations page, with a token that expires."""

from __future__ import annotations

import re
import secrets
from typing import Annotated

import typer

from pricing_pipeline.cli.options import Json
from pricing_pipeline.cli.output import login, moment, print_json
from pricing_pipeline.cli.program import hint
from pricing_pipeline.cli.style import zone, zoned


@zoned
def page(
    hours: Annotated[
        float, typer.Option("--hours", min=0.1, max=720, help="For how long the link opens the page.")
    ] = 12,
    look_only: Annotated[bool, typer.Option("--look-only", help="Show no buttons.")] = False,
    as_json: Json = False,
) -> None:
    """Print a link that opens the operations page in a browser: what works, what does not, and buttons to repair it.

    \b
    Example: pricing-pipeline page --hours 2
    """
    from pricing_pipeline.cli.database import open_owner
    from pricing_pipeline.domain.scopes import Scope
    from pricing_pipeline.errors import SupervisorError
    from pricing_pipeline.keys import api_tokens
    from pricing_pipeline.processes import home
    from pricing_pipeline.settings import load_settings

    settings = load_settings()
    address = settings.page_url or home.urls(settings.home).get("api")
    if address is None:
        raise SupervisorError(
            f"no `up` serves the page for {settings.home.absolute()}. Start it with `pricing-pipeline up`. Where the "
            "HTTP API runs without `up`, set PRICING_PAGE_URL to its address, such as http://127.0.0.1:8000."
        )
    # Decisions are signed with the name of the token.
    who = re.sub("[^a-z0-9]+", "-", login().lower()).strip("-")[:30]
    name = f"page-{who}-{secrets.token_hex(3)}"
    scopes = {Scope.READ} if look_only else {Scope.READ, Scope.OPERATE}
    with open_owner(settings) as engine, engine.begin() as connection:
        token = api_tokens.add(connection, name, scopes, None, hours).get_secret_value()
        expires_at = next(row.expires_at for row in api_tokens.stored(connection) if row.name == name)
    link = f"{address.rstrip('/')}/#token={token}"
    if as_json:
        print_json({"link": link, "token": name, "expires_at": expires_at})
        return
    typer.echo(link)
    what = "sees the page" if look_only else "sees the page and may press its buttons"
    hint(
        f"Anyone with this link {what} until {moment(expires_at)} {zone()}. `pricing-pipeline token remove {name}` "
        "ends that at once."
    )
