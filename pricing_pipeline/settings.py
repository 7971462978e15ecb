"""Settings from the environment, read once and checked at start-up. `.env.example` lists each one.

The first start decides whether a home uses the sandbox or real providers, and the home keeps that choice.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, lru_cache
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError

from pricing_pipeline.errors import PricingError, SettingsError
from pricing_pipeline.local_files.env_file import env_file, read_env_file, refuse

_LOG = logging.getLogger(__name__)
_PREFIX = "PRICING_"
_OF_TESTS = "PRICING_TEST_"
_KIND_FILE = "prices-from"
_MOST_OF_AN_AGENT = 200
_BARE_NAMES = frozenset({"uex_request_delay_ms"})
"""Settings that may also be named without the prefix."""
PREFIX_PART = "[A-Za-z][A-Za-z0-9_]*"
"""The form of a part of `asset_prefix`."""
_LEAST_SECRET = 6
"""A shorter secret may be a part of a program's name by chance."""


def _named_secrets(value: object) -> object:
    """Read `name=secret,name=secret`. Messages never show a secret."""
    if not isinstance(value, str):
        return value
    keys: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in value.split(","))):
        name, equals, secret = (word.strip() for word in part.partition("="))
        if not (equals and secret and re.fullmatch("[a-z0-9][a-z0-9_-]{0,47}", name)) or name in keys:
            raise ValueError(f"part {len(keys) + 1} must be name=secret, with a name of its own in a-z, 0-9, _ and -")
        keys[name] = secret
    return keys


def _hosts(value: object) -> object:
    """Read `name,name:port`, as browsers send them in Host."""
    if not isinstance(value, str):
        return value
    hosts = tuple(filter(None, (part.strip() for part in value.split(","))))
    for host in hosts:
        if not re.fullmatch(r"([A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?", host):
            raise ValueError("write names as in a URL after http://, like prices.example.com:3000")
    return hosts


def _web_address(value: object) -> object:
    """Check an address for links. Messages never show it: somebody may have written a password into it."""
    if isinstance(value, str) and not re.fullmatch(r"https?://[^\s/?#@]+(/[^\s?#@]*)?", value):
        raise ValueError(
            "write an address that begins with http:// or https://, without a user, a query or a fragment, like "
            "https://prices.example.com"
        )
    return value


def _agent(value: object) -> object:
    """Check a User-Agent. Messages never show it: it may contain a secret."""
    if isinstance(value, str) and not (
        value.isascii() and value.isprintable() and value == value.strip() and len(value) <= _MOST_OF_AN_AGENT
    ):
        raise ValueError(
            f"write one line of at most {_MOST_OF_AN_AGENT} printable ASCII characters, without spaces at its ends"
        )
    return value


def _folder(value: object) -> object:
    """Expand `~` and `$HOME`, if no shell has done so."""
    if not isinstance(value, str):
        return value
    path = os.path.expanduser(os.path.expandvars(value))
    if path.startswith("~") or "$" in path:
        raise ValueError("no such user or variable is known here. Write the whole path")
    return path


def _export_url(value: object) -> object:
    """Check a place for files: an absolute folder, or a bucket. Messages never show it: it may contain a secret."""
    if not isinstance(value, str):
        return value
    if "://" not in value:
        return os.path.abspath(str(_folder(value)))
    if not re.fullmatch(r"s3://[^\s/?#@]+(/[^\s?#]*)?(\?[^\s#]*)?", value):
        raise ValueError(
            "write a folder, or s3://bucket/prefix?region=eu-central-1, without a user: the store's key belongs in "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    named = {part.partition("=")[0] for part in value.partition("?")[2].split("&") if part}
    if unknown := named - {"region", "endpoint_override", "scheme"}:
        raise ValueError(
            f"{len(unknown)} of its options are unknown. After the question mark may be region, endpoint_override and "
            "scheme; the store's key belongs in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    return value


def _asset_prefix(value: object) -> object:
    """Check a prefix of assets, `part/part`: names of jobs begin with it, so that Dagster limits its letters."""
    if isinstance(value, str) and not re.fullmatch(f"{PREFIX_PART}(/{PREFIX_PART})*", value):
        raise ValueError(
            "write parts of letters, digits and underscores that begin with a letter, such as prices or eu/prices"
        )
    return value


class Settings(BaseModel):
    """Everything that can be set. Each field is the variable `PRICING_<NAME>`."""

    model_config = ConfigDict(frozen=True)

    home: Annotated[Path, BeforeValidator(_folder)] = Path(".pricing")
    """Folder for all state: database cluster, logs, Dagster's files."""
    database_url: SecretStr | None = None
    """libpq URL of the pricing database for workers; the embedded server when unset."""
    owner_url: SecretStr | None = None
    """libpq URL with the right to change tables and the registry; `database_url` when unset."""
    listen_url: SecretStr | None = None
    """libpq URL of the pricing database past a pooler, for wake-ups; `database_url` when unset."""
    replica_url: SecretStr | None = None
    """libpq URL of a streaming replica for reads of the HTTP API; all reads go to the primary when unset."""
    replica_max_lag_seconds: float = Field(10, ge=1, le=3600)
    """A replica that lags more is not read."""
    dagster_url: SecretStr | None = None
    """libpq URL of Dagster's own database; database `dagster` on the same server when unset."""
    reader_url: SecretStr | None = None
    """libpq URL by which other code reads prices, with a login in `pricing_reader`; `database_url` when unset. For the
    embedded server, `up` sets it for code locations in `workspace.d`."""
    web_port: int = Field(3000, ge=0, le=65535)
    """Port of the Dagster UI."""
    ui_address: IPv4Address | IPv6Address = IPv4Address("127.0.0.1")
    """Address on which the Dagster UI listens; any but loopback needs a token."""
    ui_token: SecretStr | None = None
    """Opens the Dagster UI; unset, the file `ui-token` in the home does. With neither, nobody logs in."""
    ui_hosts: Annotated[tuple[str, ...], BeforeValidator(_hosts)] = ()
    """Further names by which the Dagster UI is called, `name,name:port`."""
    ui_url: Annotated[str | None, BeforeValidator(_web_address)] = None
    """Where people open the Dagster UI, for links in messages; they have none when unset."""
    webserver_url: Annotated[str | None, BeforeValidator(_web_address)] = None
    """Where the API and commands reach Dagster's webserver; when unset, where `up` serves the UI."""
    page_url: Annotated[str | None, BeforeValidator(_web_address)] = None
    """Where people open the operations page, for links in Dagster; when unset, where `up` serves it."""
    api_port: int = Field(8000, ge=0, le=65535)
    """Port of the HTTP API."""
    api_address: IPv4Address | IPv6Address = IPv4Address("127.0.0.1")
    """Address on which the HTTP API listens. Tokens are not encrypted on the way: a proxy with TLS does that."""
    api_hosts: Annotated[tuple[str, ...], BeforeValidator(_hosts)] = ()
    """Further names by which the HTTP API is called, `name,name:port`."""
    api_requests_per_second: int = Field(1000, ge=1, le=1_000_000)
    """Requests a second that the HTTP API takes from one token."""
    sandbox: bool = True
    """Ask the sandbox instead of the real providers. A home that has been started keeps to its first choice."""
    sandbox_port: int = Field(8100, ge=0, le=65535)
    """Port of the sandbox, on loopback."""
    sandbox_credits_per_minute: int = Field(2000, ge=0)
    """The sandbox's Twelve Data plan; 8 is the free one, 0 no cap. What we may use is in `provider_limits`."""
    sandbox_credits_per_day: int = Field(0, ge=0)
    """The same per day; 800 is the free plan, 0 no cap."""
    sandbox_url: str | None = None
    """Where the sandbox answers; set by `up` for its children."""
    twelvedata_api_key: SecretStr | None = None
    """API key of Twelve Data, named `default`; one of that name that is stored in the database goes before it."""
    twelvedata_api_keys: Annotated[Mapping[str, SecretStr], BeforeValidator(_named_secrets)] = {}
    """Further keys of Twelve Data, `name=secret,name=secret`; each has rate limits of its own."""
    fmp_api_key: SecretStr | None = None
    """API key of Financial Modeling Prep, named `default`; needed without the sandbox once anything is routed to it."""
    fmp_api_keys: Annotated[Mapping[str, SecretStr], BeforeValidator(_named_secrets)] = {}
    """Further keys of Financial Modeling Prep, `name=secret,name=secret`; each has rate limits of its own."""
    octo_api_key: SecretStr | None = None
    """API key of the partner that follows OCTO, named `default`; needed without the sandbox once it is routed to."""
    octo_api_keys: Annotated[Mapping[str, SecretStr], BeforeValidator(_named_secrets)] = {}
    """Further keys of this partner, `name=secret,name=secret`; each has rate limits of its own."""
    headout_api_key: SecretStr | None = None
    """API key of Headout, named `default`; needed without the sandbox once anything is routed to it."""
    headout_api_keys: Annotated[Mapping[str, SecretStr], BeforeValidator(_named_secrets)] = {}
    """Further keys of Headout, `name=secret,name=secret`; each has rate limits of its own."""
    uex_api_key: SecretStr | None = None
    """API key of UEX, named `default`; needed without the sandbox once anything is routed to it."""
    uex_api_keys: Annotated[Mapping[str, SecretStr], BeforeValidator(_named_secrets)] = {}
    """Further keys of UEX, `name=secret,name=secret`; each has rate limits of its own."""
    uex_request_delay_ms: int | None = Field(None, ge=0, le=3_600_000)
    """Milliseconds between two calls to UEX, also as UEX_REQUEST_DELAY_MS. `up` and `db upgrade` write it into
    `data_collectors`; unset, that row counts, which begins with 500."""
    user_agent: Annotated[str | None, BeforeValidator(_agent)] = None
    """User-Agent of the calls to providers; `pricing-pipeline/VERSION` when unset."""
    master_key: SecretStr | None = None
    """Master keys that seal the providers' keys in the database: `id:base64,id:base64`, newest first, or `file:/PATH`
    of a file with one in a line. Unset: `master.key` in the home, made with the first key that is stored."""
    last_resort_url: SecretStr | None = None
    """Address that the notifier tells when the pricing database is away: a webhook, or one of e-mail, chat or SMS."""
    last_resort_secret: SecretStr | None = None
    """Signs what the last resort gets, if it is a webhook."""
    last_resort_allow_private: bool = False
    """Whether the last resort may be in a private network; a webhook may then use http."""
    export_url: Annotated[str | None, BeforeValidator(_export_url)] = None
    """Where months of history are written as files: a folder, or `s3://bucket/prefix?region=...`, without a key."""
    code_socket: Path | None = None
    """Unix socket of the Dagster code server; set by `up` for its children."""
    asset_prefix: Annotated[str | None, BeforeValidator(_asset_prefix)] = None
    """The prefix, `part/part`, of our assets' keys in Dagster, and of the names of jobs and sensors."""
    max_drain_seconds: int = Field(600, ge=5, le=3600)
    """How long one drain works before it hands over to a successor."""
    max_drains: int = Field(1, ge=1, le=100)
    """How many drains may work at once; more than one pays where runs start on several machines."""


def load_settings(complain: Callable[[str], object] = refuse, variables: str = _PREFIX) -> Settings:
    """Read the settings from the environment, and from a file `.env` of the current folder.

    `variables` is what their names begin with.

    Raises SettingsError that names each wrong variable, its fault and where the right values are listed. Also raises it
    if the home was made for the sandbox and real providers are set, or the reverse. `complain` gets messages about
    things that may belong to other programs: a variable with our prefix that is not a setting, a meaningless line of
    `.env`.
    """
    read_env_file(complain)
    _look_for_unknown(os.environ, complain, variables)
    try:
        settings = _settings_of(frozenset(os.environ.items()), variables)
    except ValidationError as error:
        faults = "; ".join(
            f"{_variable(e, variables)}={e.get('input')!r}: {e['msg']}"
            if not re.search("url|key|agent|token|secret", str(e["loc"][0]))
            else f"{_variable(e, variables)}: {e['msg']}"
            for e in error.errors()
        )
        raise SettingsError(f"{faults}. {_where_to_look()}") from None
    _look_for_secrets(settings)
    kept = _kind_of(settings.home)
    if kept is None:
        return settings
    if "sandbox" in settings.model_fields_set:
        _require_kind(settings, kept)
    return settings.model_copy(update={"sandbox": kept == "sandbox"})


@lru_cache(maxsize=8)
def _settings_of(environment: frozenset[tuple[str, str]], variables: str) -> Settings:
    """The settings of an environment; an empty variable is one that is not set. Each tick of a sensor asks."""
    values = {name.removeprefix(variables).lower(): value for name, value in environment if name.startswith(variables)}
    given = dict(environment)
    for name in _BARE_NAMES:
        values[name] = values.get(name) or given.get(name.upper(), "")
    return Settings.model_validate({name: value for name, value in values.items() if value})


def _variable(fault: Mapping[str, Any], variables: str) -> str:
    """The variable of a fault, whose place is a field."""
    return f"{variables}{str(fault['loc'][0]).upper()}"


@dataclass(frozen=True, slots=True)
class SettingsSource:
    """Where the settings of a pipeline come from, in a process that may hold several.

    `variables` is what the names of its variables begin with.
    """

    variables: str = _PREFIX

    def __post_init__(self) -> None:
        is_name = re.fullmatch("[A-Z][A-Z0-9_]*_", str(self.variables))
        if self.variables != _PREFIX and (not is_name or self.variables.startswith(_PREFIX)):
            raise SettingsError(
                f"Names of variables cannot begin with {self.variables!r}. Write capital letters with an underscore at "
                f"the end, such as EU_{_PREFIX}, and another beginning than {_PREFIX}: its variables are known."
            )

    def settings(self) -> Settings:
        """The settings as they are now. A possible mistake is only warned of: it may be of another program."""
        return load_settings(_warn_once, self.variables)

    def called(self, text: str) -> str:
        """A text with the names of our variables as they are called here."""
        return re.sub(rf"\b{_PREFIX}", self.variables, text)

    @contextmanager
    def names_in_errors(self) -> Iterator[None]:
        """Have errors name the variables as they are called here: those that say PRICING_... are another pipeline's."""
        try:
            yield
        except PricingError as error:
            error.args = tuple(self.called(part) if isinstance(part, str) else part for part in error.args)
            raise


OWN = SettingsSource()
"""The settings of a process that serves one pipeline."""


def load_settings_as_guest() -> Settings:
    """The same when Dagster loads us, in any folder and environment: it only warns, once, of a possible mistake."""
    return OWN.settings()


@cache
def _warn_once(fault: str) -> None:
    _LOG.warning("%s It is ignored, because it may belong to another program.", fault)


def keep_kind(settings: Settings) -> None:
    """Write into the home, once for all, whether its prices come from the sandbox or from real providers.

    The caller has locked the home. Raises SettingsError if it was made for the other.
    """
    kept = _kind_of(settings.home)
    if kept is not None:
        _require_kind(settings, kept)
        return
    unfinished = settings.home / f"{_KIND_FILE}.new"
    unfinished.write_text(f"{kind_asked_for(settings)}\n")
    os.replace(unfinished, settings.home / _KIND_FILE)


Kind = Literal["sandbox", "real providers"]


def kind_asked_for(settings: Settings) -> Kind:
    """Whether the sandbox is asked for prices, or the real providers."""
    return "sandbox" if settings.sandbox else "real providers"


def _kind_of(home: Path) -> Kind | None:
    """The kind of prices that a home is for; None if it was never started, or cannot be read."""
    try:
        text = (home / _KIND_FILE).read_text().strip()
    except OSError:
        return None
    for kind in get_args(Kind):
        if text == kind:
            return cast("Kind", kind)
    raise SettingsError(
        f"{home.absolute() / _KIND_FILE} is damaged: it must say 'sandbox' or 'real providers', from where the prices "
        "of this home come. Write the one that is true."
    )


def _require_kind(settings: Settings, kept: Kind) -> None:
    if kind_asked_for(settings) != kept:
        raise SettingsError(
            f"the home {settings.home.absolute()} was made for the {kept}, and PRICING_SANDBOX="
            f"{str(settings.sandbox).lower()} asks for the {kind_asked_for(settings)}; their prices must not mix. "
            "Set PRICING_HOME to another folder, or leave PRICING_SANDBOX out."
        )


def _look_for_unknown(environment: Mapping[str, str], complain: Callable[[str], object], variables: str) -> None:
    """Report mistyped names: otherwise the default would be used silently."""
    known = {f"{variables}{name.upper()}" for name in Settings.model_fields}
    for name in environment:
        if not name.upper().startswith(variables) or name in known or name.startswith(_OF_TESTS):
            continue
        (near, *_) = [*get_close_matches(name.upper(), known, 1), None]
        meant = f". Did you mean {near}?" if near else "."
        # A setting in another case is ours, and would not be read.
        report = refuse if name.upper() in known else complain
        report(f"there is no setting {name}{meant} {_where_to_look()}")


def _look_for_secrets(settings: Settings) -> None:
    """Refuse a User-Agent with one of our secrets in it. Stored keys are compared by the client that sends them."""
    agent = (settings.user_agent or "").lower()
    for name in Settings.model_fields if agent else ():
        value = getattr(settings, name)
        secrets = value.values() if isinstance(value, Mapping) else [value]
        for secret in (value.get_secret_value() for value in secrets if isinstance(value, SecretStr)):
            parts = {secret, *re.split("[,:]", secret)} if name == "master_key" else {secret}
            if name.endswith("_url"):
                found = re.findall("://[^:@/]*:([^@]*)@|[?&]password=([^&]*)", secret)
                parts = {_unquoted(part) for passwords in found for part in passwords}
            if any(len(part) >= _LEAST_SECRET and part.lower() in agent for part in parts):
                raise SettingsError(
                    f"PRICING_USER_AGENT contains a secret of {_PREFIX}{name.upper()}. Take it out: it is sent to "
                    "every provider."
                )


def _unquoted(part: str) -> str:
    """A part of a URL without its percent signs; all that matters here is ASCII."""
    return re.sub("%([0-9A-Fa-f]{2})", lambda sign: chr(int(sign[1], 16)), part)


def _where_to_look() -> str:
    path = env_file()
    read = f" The file {path} was read, too." if path is not None else ""
    return f"See .env.example for what each setting accepts.{read}"
