"""Providers by declaration in the database: written by the owner, read by every worker with the registry.

The providers of the code and the declared ones are one family from here on: code with a connection asks
`known_providers` and not `PROVIDERS`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from pricing_pipeline.db.errors import reason, statement_error
from pricing_pipeline.db.query_loader import query
from pricing_pipeline.domain.data_types import Fetcher
from pricing_pipeline.errors import DeclarationRefused, UnknownProvider
from pricing_pipeline.providers import PROVIDERS
from pricing_pipeline.providers.base import Provider
from pricing_pipeline.providers.declaration import AskingForDays, Declaration, texts_of
from pricing_pipeline.providers.declaration_file import Declared, read_text
from pricing_pipeline.providers.declaration_texts import host_of
from pricing_pipeline.providers.declared import DeclaredProvider
from pricing_pipeline.registry import provider_rules
from pricing_pipeline.registry.provider_rules import Limit

if TYPE_CHECKING:
    from sqlalchemy import Connection

_LOG = logging.getLogger(__name__)


class SettingsChange(NamedTuple):
    """The settings of a provider before and after a declaration; none before the first."""

    before: Mapping[str, object]
    after: Mapping[str, object]

    @property
    def is_new(self) -> bool:
        return not self.before


def known_providers(connection: Connection) -> dict[str, Provider]:
    """Every provider that can be asked, by name: those of the code, and those that are declared.

    A declaration that this version cannot read is left out, with an error in the log: its tasks wait for a worker that
    can. The same declaration gives the same object.
    """
    providers: dict[str, Provider] = dict(PROVIDERS)
    for row in connection.execute(query("declarations.all")):
        provider = _provider(row.provider, row.host, row.content)
        if provider is not None and row.provider not in PROVIDERS:
            providers[row.provider] = provider
    return providers


def provider_named(connection: Connection, name: str) -> Provider | None:
    """The provider of this name, coded or declared; None for one that this version cannot ask."""
    return PROVIDERS.get(name) or known_providers(connection).get(name)


@lru_cache(maxsize=256)
def _provider(name: str, host: str, content: str) -> DeclaredProvider | None:
    try:
        declared = read_text(content, f"declaration of {name}")
    except DeclarationRefused as error:
        _LOG.error("%s is not asked, because its declaration cannot be read in this version: %s", name, error)
        return None
    if (declared.declaration.name, host_of(declared.declaration.base_url)) != (name, host):
        _LOG.error("%s is not asked: its declaration is not what `provider declare` has written.", name)
        return None
    return DeclaredProvider(declared)


def declare(connection: Connection, declared: Declared) -> SettingsChange:
    """Write a declaration, and all rows that a provider of the code has, as the owner.

    The file overrides settings made by hand, limits too; an inactive provider stays inactive. Raises DeclarationRefused
    for the name or host of another provider, for a new host while a key is stored, and for a fetcher that was taken out
    while data types are served by it.
    """
    about = declared.declaration
    connection.execute(query("declarations.begin"))
    row = connection.execute(query("declarations.lock"), {"provider": about.name}).one_or_none()
    require_free_name(about.name)
    if row is not None and not row.is_declared:
        raise _taken(about.name)
    _require_own_host(connection, about)
    if row is not None:
        _require_unused(connection, about.name, about.fetchers.named.keys())
    before = _settings(connection, about.name)
    _write(connection, declared)
    return SettingsChange(before, _settings(connection, about.name))


def require_free_name(name: str) -> None:
    """Raise DeclarationRefused for the name of a provider of the code: its key is for its own host alone."""
    if name in PROVIDERS:
        raise _taken(name)


def _taken(name: str) -> DeclarationRefused:
    return DeclarationRefused(
        f"{name} is a provider already that is not declared. Choose another `name`. Nothing has changed."
    )


def _require_own_host(connection: Connection, about: Declaration) -> None:
    urls = {name: provider.base_url for name, provider in PROVIDERS.items()}
    for row in connection.execute(query("declarations.addresses"), {"provider": about.name}):
        urls.setdefault(row.provider, row.base_url)
    host = host_of(about.base_url)
    for name, url in urls.items():
        if host_of(url) == host:
            raise DeclarationRefused(
                f"{host} is asked by the provider {name} already. Two providers of one host would each count its "
                f"limits alone. Route data types to {name}, or undeclare it. Nothing has changed."
            )


def _require_unused(connection: Connection, name: str, fetchers: Iterable[Fetcher] = ()) -> None:
    """Raise DeclarationRefused if data types use the provider for other fetchers than these."""
    parameters = {"provider": name, "fetchers": [fetcher.value for fetcher in fetchers]}
    uses = connection.execute(query("declarations.uses"), parameters).one()
    if uses.routed:
        raise DeclarationRefused(
            f"{name} serves {', '.join(uses.routed)}. Take its routes away first: pricing-pipeline route remove {name} "
            f"{uses.route}. Nothing has changed."
        )
    if uses.queued:
        raise DeclarationRefused(
            f"tasks of {', '.join(uses.queued)} still wait for {name}. Wait until they are done, or cancel them: "
            "pricing-pipeline task list. Nothing has changed."
        )


def _write(connection: Connection, declared: Declared) -> None:
    about = declared.declaration
    connection.execute(
        query("declarations.put_provider"),
        {
            "provider": about.name,
            "description": about.description,
            "base_url": about.base_url,
            "max_in_flight": about.in_flight,
            "request_delay_ms": about.delay_ms,
            "throttle_pause_seconds": about.pause_seconds,
            "quota_bytes": about.quota_bytes,
        },
    )
    parameters = {"provider": about.name, "host": host_of(about.base_url), "content": declared.text}
    try:
        connection.execute(query("declarations.put_declaration"), parameters)
    except statement_error() as error:
        raise DeclarationRefused(f"{reason(error)}. Nothing has changed.") from error
    _write_capabilities(connection, DeclaredProvider(declared))
    if not _keep_plan(connection, about):
        _write_limits(connection, about)


def _write_capabilities(connection: Connection, provider: DeclaredProvider) -> None:
    named = provider.declared.declaration.fetchers.named
    for fetcher, asked in named.items():
        sizes = provider.sizes(fetcher)
        connection.execute(
            query("declarations.put_capability"),
            {
                "provider": provider.name,
                "fetcher": fetcher.value,
                "units_per_call": asked.units_per_call,
                "units_per_symbol": asked.units_per_symbol,
                **sizes._asdict(),
            },
        )
    fetchers = [fetcher.value for fetcher in named]
    connection.execute(query("declarations.keep_capabilities"), {"provider": provider.name, "fetchers": fetchers})


def _keep_plan(connection: Connection, about: Declaration) -> bool:
    """Whether a plan is in use; its limits and batches stay. Raises DeclarationRefused if the file no longer has it."""
    name = connection.execute(query("declarations.plan"), {"provider": about.name}).scalar_one_or_none()
    if name is None:
        return False
    if name not in about.plans:
        raise DeclarationRefused(
            f"the plan {name} of {about.name} is in use, and the file no longer has it. Undo it first: "
            f"pricing-pipeline provider undo {about.name}. Nothing has changed."
        )
    for fetcher, size in about.plans[name].batch.items():
        provider_rules.change_batch(connection, about.name, fetcher, {"batch_size": size})
    return True


def _write_limits(connection: Connection, about: Declaration) -> None:
    known = {limit.name: limit for limit in provider_rules.limits(connection, about.name) if limit.key_name is None}
    for name in known.keys() - about.limits.keys():
        provider_rules.remove_limit(connection, about.name, name, None)
    for name, wanted in about.limits.items():
        limit = Limit(about.name, name, None, wanted.units, wanted.seconds, wanted.day)
        if known.get(name) != limit:
            provider_rules.set_limit(connection, limit)


def undeclare(connection: Connection, name: str) -> None:
    """Forget a declared provider, with its limits and keys, as the owner. Its calls stay logged, its prices stored.

    Raises UnknownProvider for one that is not declared, and DeclarationRefused while data types use it.
    """
    connection.execute(query("declarations.begin"))
    row = connection.execute(query("declarations.lock"), {"provider": name}).one_or_none()
    if row is None or not row.is_declared:
        declared = [row.provider for row in connection.execute(query("declarations.all"))]
        raise UnknownProvider(
            f"no provider {name!r} is declared; " + (f"declared are {', '.join(declared)}." if declared else "none is.")
        )
    _require_unused(connection, name)
    connection.execute(query("declarations.remove"), {"provider": name})


def _dialect(about: Declaration) -> dict[str, object]:
    """How a provider is asked and read, by places in its file: the parts that have no column in the tables of
    providers."""
    parts = about.model_dump(
        mode="json",
        by_alias=True,
        exclude_none=True,
        include={"key", "login", "plans", "sandbox", "symbols", "errors", "fetchers"},
    )
    return {
        ".".join(map(str, place)): value
        for place, value in texts_of(parts)
        if place[-1] not in AskingForDays.model_fields
    }


def _settings(connection: Connection, name: str) -> dict[str, object]:
    """The settings that a declaration decides, by names for people; empty for an unknown provider."""
    row = connection.execute(query("declarations.settings"), {"provider": name}).mappings().one_or_none()
    if row is None:
        return {}
    settings = dict(row)
    host, content = settings.pop("host"), settings.pop("content")
    if content is not None and (provider := _provider(name, host, content)) is not None:
        settings |= _dialect(provider.declared.declaration)
    for fetcher, facts in sorted(settings.pop("capabilities").items()):
        settings |= {f"{fact}_{fetcher}": value for fact, value in sorted(facts.items())}
    for limit in provider_rules.limits(connection, name):
        if limit.key_name is None:
            window = f"{limit.window_seconds} s" if limit.window_seconds else f"a day of {limit.day_timezone}"
            settings[f"limit_{limit.name}"] = f"{limit.units} units in {window}"
    return settings
