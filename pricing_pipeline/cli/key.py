"""`key set|list|change|remove|rotate`: API keys of providers. A key is read from a prompt or standard input, and never
printed."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pricing_pipeline.cli.database import load_settings, open_connection, open_owner
from pricing_pipeline.cli.options import AnyProvider, Json, KeyName, Provider
from pricing_pipeline.cli.output import (
    moment,
    print_change,
    print_json,
    print_table,
    printable,
)
from pricing_pipeline.cli.program import hint, warn
from pricing_pipeline.cli.style import listing, zoned
from pricing_pipeline.errors import PricingError, SettingsError, UnknownCredential
from pricing_pipeline.keys import credentials, master_keys
from pricing_pipeline.keys.sealing import LONGEST_SECRET, Keyring
from pricing_pipeline.operations import recipients
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.base import key_setting
from pricing_pipeline.providers.configured import configured_keys
from pricing_pipeline.providers.sent import DEFAULT_KEY_NAME
from pricing_pipeline.queue import limits
from pricing_pipeline.registry.declarations import provider_named

if TYPE_CHECKING:
    from pydantic import SecretStr
    from sqlalchemy import Connection

    from pricing_pipeline.settings import Settings

noun = typer.Typer()


@dataclass(frozen=True, slots=True)
class _Listed:
    provider: str
    key_name: str
    source: str
    hint: str | None
    is_active: bool
    is_used: bool
    created_at: datetime | None = None
    replaced_at: datetime | None = None
    sealed_at: datetime | None = None
    master_key_id: str | None = None
    error: str | None = None


@noun.command("set")
def set_(
    provider: Provider,
    name: KeyName = "default",
    limits: Annotated[
        list[str] | None,
        typer.Option("--limit", metavar="LIMIT=UNITS", help="What its own plan allows, such as minute=55; repeatable."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Store an API key, encrypted, or replace one. The command asks for it, or reads it from standard input.

    Running drains use it within ten seconds. It takes precedence over a key of the same name in the environment.

    \b
    Example: pricing-pipeline key set twelvedata --name second --limit minute=55
    """
    limit_words = limits or []
    units = _units(limit_words)
    settings = load_settings()
    with open_owner(settings) as engine:
        with engine.connect() as connection:
            if _needs_no_key(connection, provider):
                raise PricingError(f"{provider} needs no key. Nothing has changed.")
            credentials.stored(connection, provider)  # before asking for a key that is not needed
        secret = credentials.checked_secret(read(provider, name))
        with engine.begin() as connection:
            keyring, key_file = keyring_to_seal(connection, settings)
            replaced = credentials.store(connection, keyring, provider, name, secret, units)
    if as_json:
        print_json(
            {
                "provider": provider,
                "key_name": name,
                "replaced": replaced,
                "limits": units,
                "master_key_id": keyring.newest,
                "master_key_made_in": None if key_file is None else str(key_file),
            }
        )
    else:
        done = "replaced" if replaced else "stored"
        typer.echo(
            f"Key {name} of {provider} ({credentials.hint(secret)}) is {done}, under master key {keyring.newest}."
        )
    if key_file is not None:
        hint_of_master_key(key_file)
    if name in configured_keys(settings, provider):
        warn(f"{key_setting(provider)} or {key_setting(provider)}S holds a key {name} too; the stored one is used.")
    _hint_of_sandbox(settings)


@noun.command("list")
@listing
def list_(provider: AnyProvider = None, as_json: Json = False) -> None:
    """List API keys, stored or set in the environment, with the last two characters of each.

    \b
    Example: pricing-pipeline key list
    """
    settings = load_settings()
    with open_connection(settings) as connection:
        listed, ids, fault = _known(connection, settings, provider)
    path = master_keys.master_key_file(settings)
    if as_json:
        where = {"file": None if path is None else str(path), "ids": ids, "error": fault}
        print_json({"keys": [asdict(row) for row in listed], "master_key": where})
        return
    print_table(
        ["provider", "key", "ends", "from", "used", "created", "replaced", "encrypted", "master key"],
        [
            (
                row.provider,
                row.key_name,
                row.hint,
                row.source,
                "yes" if row.is_used else "no",
                moment(row.created_at),
                moment(row.replaced_at),
                moment(row.sealed_at),
                row.master_key_id,
            )
            for row in listed
        ],
        spare=["replaced", "encrypted", "created", "master key"],
    )
    for row in listed:
        if row.error is not None:
            typer.echo(f"Key {row.key_name} of {row.provider}: {row.error}")
    if not listed:
        typer.echo("no key is stored or set; `pricing-pipeline key set --help` shows how to store one.")
    typer.echo(f"master keys: {path or 'in PRICING_MASTER_KEY'} ({fault or ', '.join(ids)})")
    _hint_of_sandbox(settings)


@noun.command()
@zoned
def change(
    provider: Provider,
    name: KeyName = "default",
    is_active: Annotated[
        bool | None, typer.Option("--active/--inactive", help="Whether calls are made with it at all.")
    ] = None,
    unblock: Annotated[
        bool,
        typer.Option("--unblock", help="End its pause after a refusal."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Stop using a key, use it again, or end its pause. It may be a stored key or one that is set in the environment.

    It applies from a drain's next claim. It needs the owner's URL.

    \b
    Example: pricing-pipeline key change twelvedata --name second --inactive
    """
    if is_active is None and not unblock:
        raise typer.BadParameter("say what changes: --active, --inactive or --unblock")
    settings = load_settings()
    with open_owner(settings) as engine, engine.begin() as connection:
        if _needs_no_key(connection, provider):
            raise PricingError(
                f"{provider} needs no key. `pricing-pipeline provider change {provider} --inactive` stops calling it."
            )
        credentials.require_provider(connection, provider)
        registered = limits.key_states(connection, provider)
        # A provider without any row has one key, the default.
        known = registered.keys() | configured_keys(settings, provider) or {DEFAULT_KEY_NAME}
        if name not in known:
            raise _no_such_key(provider, name)
        limits.add_keys(connection, provider, known)
        before = limits.key_states(connection, provider)[name]
        limits.change_key(connection, provider, name, is_active=is_active, unblock=unblock)
        after = limits.key_states(connection, provider)[name]
    names = {"provider": provider, "key_name": name}
    print_change(names, asdict(before), asdict(after), as_json=as_json)


@noun.command()
def remove(provider: Provider, name: KeyName = "default", as_json: Json = False) -> None:
    """Delete a stored API key. No call uses this name until a key is stored again.

    \b
    Example: pricing-pipeline key remove twelvedata --name second
    """
    settings = load_settings()
    # The sandbox always accepts a key of its own by this name, and never was sent the stored one.
    keep_name = settings.sandbox and name == DEFAULT_KEY_NAME
    with open_owner(settings) as engine, engine.begin() as connection:
        credentials.remove(connection, provider, name, keep_name=keep_name)
    if as_json:
        print_json({"provider": provider, "key_name": name, "removed": True})
    else:
        typer.echo(f"Key {name} of {provider} is deleted. Revoke it at the provider, too, if others know it.")
    if settings.sandbox:
        hint("with PRICING_SANDBOX on, only the sandbox is asked, which needs no key.")
    elif name in configured_keys(settings, provider):
        warn(
            f"{key_setting(provider)} or {key_setting(provider)}S holds a key {name} too. It is not used either, "
            "until one of that name is stored again."
        )


@noun.command()
def rotate(
    new_master_key: Annotated[
        bool, typer.Option("--new-master-key", help="Make a new master key first, in the file of the others.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Encrypt all stored API keys again, with the newest master key. It may run at any time, and be repeated.

    The exit code is 1 when some could not be opened.

    \b
    Example: pricing-pipeline key rotate --new-master-key
    """
    settings = load_settings()
    with open_owner(settings) as engine:
        with engine.connect() as connection:
            credentials.stored(connection)  # nothing is made while the database is away
        keyring = master_keys.add(settings) if new_master_key else master_keys.load(settings)
        results = [credentials.reseal(engine, keyring), recipients.reseal(engine, keyring)]
    done = sum(result.done for result in results)
    faults = [fault for result in results for fault in result.faults]
    in_use = frozenset().union(*(result.in_use for result in results))
    unused = [name for name in keyring.ids[1:] if name not in in_use]
    if as_json:
        print_json(
            {
                "resealed": done,
                "newest": keyring.newest,
                "in_use": sorted(in_use),
                "unused": unused,
                "faults": [str(fault) for fault in faults],
            }
        )
    else:
        typer.echo(f"{done} stored keys and addresses were encrypted again; the newest master key is {keyring.newest}.")
        if unused:
            typer.echo(
                f"No stored key needs {', '.join(unused)} any more. Earlier backups still do: keep these master "
                "keys as long as those backups."
            )
    for fault in faults:
        warn(str(fault))
    if faults:
        raise typer.Exit(1)


def _hint_of_sandbox(settings: Settings) -> None:
    if settings.sandbox:
        hint("with PRICING_SANDBOX on, only the sandbox is asked, and no real key is used.")


def _known(
    connection: Connection, settings: Settings, provider: str | None
) -> tuple[list[_Listed], list[str], str | None]:
    """Keys that are stored or set, the ids of the master keys, and what is wrong with those."""
    rows = credentials.stored(connection, provider)
    known = [key for standing in limits.standings(connection) for key in standing.keys]
    listed, ids, fault = _stored(settings, rows)
    for name in PROVIDERS if provider is None else [provider]:
        used = [row.key_name for row in listed if row.provider == name and row.is_used]
        inactive = [key.key_name for key in known if key.provider == name and not key.is_active]
        listed += _set(settings, name, used, inactive)
    listed.sort(key=lambda row: (row.provider, row.key_name, row.source))
    return listed, ids, fault


def _needs_no_key(connection: Connection, provider: str) -> bool:
    service = provider_named(connection, provider)
    return service is not None and not service.needs_key


def _no_such_key(provider: str, name: str) -> UnknownCredential:
    return UnknownCredential(
        f"no key {name!r} of {provider!r} is stored or set. "
        f"`pricing-pipeline key list {provider}` lists those that are."
    )


def read(provider: str, name: str, host: str | None = None) -> str:
    """The key as it was typed, unseen, or the one line of standard input. `host` is told, if it is sent there now."""
    if sys.stdin.isatty():
        where = "" if host is None else f", which is sent to {printable(host)}"
        return getpass.getpass(f"Key {name} of {provider}{where}: ", stream=sys.stderr).strip()
    first, *more = sys.stdin.read(2 * LONGEST_SECRET).splitlines() or [""]
    if any(line.strip() for line in more):
        raise PricingError("standard input holds more than the one line of a key. Nothing has changed.")
    return first.strip()


def store_new(connection: Connection, settings: Settings, provider: str, secret: SecretStr) -> tuple[str, Path | None]:
    """Store the first key of a provider. Returns the master key's id, and its file if it was made for this."""
    keyring, key_file = keyring_to_seal(connection, settings)
    credentials.store(connection, keyring, provider, DEFAULT_KEY_NAME, secret)
    return keyring.newest, key_file


def hint_of_stored(provider: str, secret: SecretStr, master_key_id: str, key_file: Path | None) -> None:
    """Say that the first key of a provider is stored."""
    shown = credentials.hint(secret)
    hint(f"key {DEFAULT_KEY_NAME} of {provider} ({shown}) is stored, under master key {master_key_id}.")
    if key_file is not None:
        hint_of_master_key(key_file)


def hint_of_master_key(path: Path) -> None:
    """Say that a master key was made, and what to do with it."""
    hint(
        f"a master key was made in {path}. Keep a copy of that file, apart from those of the database: "
        "without it the stored API keys and addresses are lost."
    )


def _units(words: Sequence[str]) -> dict[str, int]:
    units_of = {}
    for limit in words:
        name, _, units = limit.partition("=")
        if not name or not units.isascii() or not units.isdigit() or int(units) > 2**31 - 1:
            raise typer.BadParameter(f"--limit {limit!r} is not a limit. Write it like minute=55")
        units_of[name] = int(units)
    return units_of


def keyring_to_seal(connection: Connection, settings: Settings) -> tuple[Keyring, Path | None]:
    """The master keys, and the file of the first one if it was made now.

    It is made only where it can be the first: nobody could open what others sealed.
    """
    if credentials.stored(connection) or any(r.sealed for r in recipients.stored(connection)):
        return master_keys.load(settings), None
    return master_keys.load_or_make(settings)


def _stored(settings: Settings, rows: Sequence[credentials.Stored]) -> tuple[list[_Listed], list[str], str | None]:
    """What is stored, the ids of the master keys, and what is wrong with those."""
    opened: Mapping[tuple[str, str], SecretStr] = {}
    faults: Mapping[tuple[str, str], PricingError] = {}
    ids: list[str] = []
    fault: str | None = None
    try:
        keyring = master_keys.load(settings)
    except SettingsError as error:
        fault = str(error)
        faults = {(row.provider, row.key_name): error for row in rows}
    else:
        ids = list(keyring.ids)
        opened, faults = credentials.open_all(keyring, rows)
    listed = []
    for row in rows:
        place = (row.provider, row.key_name)
        listed.append(
            _Listed(
                *place,
                "database",
                credentials.hint(opened[place]) if place in opened else None,
                is_active=row.is_active,
                is_used=row.is_active and place in opened and not settings.sandbox,
                created_at=row.created_at,
                replaced_at=row.replaced_at,
                sealed_at=row.sealed_at,
                master_key_id=row.sealed.master_key_id,
                error=str(faults[place]) if place in faults else None,
            )
        )
    return listed, ids, fault


def _set(settings: Settings, provider: str, stored: Collection[str], inactive: Collection[str]) -> list[_Listed]:
    """Keys of the environment; `stored` are the names of stored keys that go before them."""
    return [
        _Listed(
            provider,
            name,
            "setting",
            credentials.hint(secret),
            is_active=name not in inactive,
            is_used=name not in inactive and name not in stored and not settings.sandbox,
        )
        for name, secret in configured_keys(settings, provider).items()
    ]
