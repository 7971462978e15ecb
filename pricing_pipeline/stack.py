"""The processes of `pricing-pipeline up`, with their order and environment.

The supervisor keeps them alive and stops them.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from importlib.util import find_spec
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from threading import Thread

from pydantic import SecretStr

from pricing_pipeline import sample
from pricing_pipeline.db import dagster_storage
from pricing_pipeline.db.databases import ensure_database, require_usable
from pricing_pipeline.db.embedded import EmbeddedServer
from pricing_pipeline.db.embedded_home import warn_of_account
from pricing_pipeline.db.engine import checked_url, libpq_url, make_engine, parsed_url
from pricing_pipeline.db.migrate import upgrade
from pricing_pipeline.errors import NoMasterKey, SettingsError, SupervisorError
from pricing_pipeline.keys import credentials, master_keys
from pricing_pipeline.keys.environments import environment_of_children, given_to
from pricing_pipeline.local_files.env_file import env_file
from pricing_pipeline.operations import health, last_resort, life
from pricing_pipeline.operations.console import Console
from pricing_pipeline.processes import code_locations, dagster_home
from pricing_pipeline.processes.children import Child
from pricing_pipeline.processes.code_locations import CodeLocation
from pricing_pipeline.processes.home import code_socket, folder_of_sockets
from pricing_pipeline.processes.ports import LOOPBACK, listen_for_browsers, require_free_port
from pricing_pipeline.processes.probes import PING, answers_grpc, answers_http, listens, still_change
from pricing_pipeline.processes.supervisor import Supervisor
from pricing_pipeline.processes.web_guard import in_url, ui_token
from pricing_pipeline.providers.configured import configured_keys
from pricing_pipeline.registry import data_type_registry, declarations, plans, provider_rules
from pricing_pipeline.registry.prices_from import require_prices_from
from pricing_pipeline.sample import viewer
from pricing_pipeline.settings import Settings, keep_kind

ROOT = Path(__file__).parents[1]
"""The clone: dagster.yaml and migrations are there."""
_SITECUSTOMIZE = Path(__file__).parent / "processes" / "site"
"""The folder of the code that Python runs first in each process."""

_IMPORTED_ONCE = (
    "pricing_pipeline.defs.daemon",
    "pricing_pipeline.dagster",
    # Dagster imports them when it starts a code server and loads definitions.
    "dagster._grpc.proxy_server",
    "psycopg2.extras",
    "upath.core",
    "pricing_pipeline.defs.code_server",
    "pricing_pipeline.cli.program",
    "pricing_pipeline.sandbox.server",
    # So that the sandbox is forked after both.
    "pricing_pipeline.cli",
)
"""Modules that the fork server imports ahead for the processes of `up`: those that the first price needs.

The others are imported when they are asked for. While the server imports one, nothing can be forked.
"""

_FRUGAL = {"MALLOC_ARENA_MAX": "1"}
"""Environment of the fork server: without it, each thread has memory of its own, most of which stays empty."""

_PING_SECONDS = 3.0
_SLOWEST_STEP = 20.0
"""Seconds after which a thread of the notifier no longer answers. Looks for trouble are 15 s apart."""
Say = Callable[[str], None]


_STORAGE_OF_OTHERS = (
    "Dagster's storage was made by somebody else, so only our own runs in it are served; its owner upgrades it and "
    "tidies it up"
)


def up(settings: Settings, *, demo: bool, say: Say) -> None:
    """Start everything and keep it running until a signal asks for the end.

    `say` receives one line for each step. Raises a PricingError when something cannot start; nothing
    is left running then.
    """
    _require_dagster()
    _require_master_key(settings)
    _require_addresses(settings)
    last_resort.from_settings(settings)
    token = ui_token(settings)
    with Supervisor(settings.home) as supervisor, contextlib.ExitStack() as demo_viewer:
        began = time.time()
        web_port, api_port, sandbox_port = _free_ports(settings, with_token=token is not None)
        if (path := env_file()) is not None:
            say(f"Settings that the environment lacks come from {path}")
        environment = _environment(settings)
        supervisor.import_once(_IMPORTED_ONCE, _FRUGAL | given_to("sandbox", environment), _folder(environment))
        worker, owner, dagster = _databases(settings, supervisor, say)
        supervisor.check()
        environment |= _addresses(worker, dagster, sandbox_port)
        has_tables = _settle(settings, environment)
        is_storage_ours = _is_storage_ours(settings, environment)
        if not is_storage_ours:
            say(_STORAGE_OF_OTHERS)
        known = _known_to_locations(settings, environment)
        beside = _beside(settings, environment, known, say, is_storage_ours=is_storage_ours)
        if not has_tables:
            # It prepares Dagster's storage meanwhile. One that has tables may have runs of a database that is refused
            # below, and the daemon would end them.
            supervisor.start(_daemon(environment))
        _prepare_database(settings, owner, worker, supervisor, demo=demo, say=say)
        urls = _urls(settings, web_port, api_port)
        if sandbox_port is not None:
            urls["sandbox"] = environment["PRICING_SANDBOX_URL"]
        supervisor.record(urls=urls, began=began, sandbox=settings.sandbox, demo=demo)

        if sandbox_port is not None:
            say(f"Prices come from the sandbox at {urls['sandbox']}, not from real providers")
        if demo:
            demo_viewer.enter_context(viewer.watching(worker))
        say("Starting Dagster; this takes some seconds")
        _start_dagster(settings, supervisor, environment, has_tables=has_tables)
        if sandbox_port is not None:
            supervisor.start(_sandbox(settings, environment, sandbox_port))
        supervisor.start(_webserver(environment, urls["dagster"], web_port, token))
        supervisor.wait_until_ready("dagster-webserver")
        say(f"Dagster UI: {urls['dagster']}" + (", with a login by token" if token else ""))
        # These start last: the first price does not need them, and they would take its processors.
        _start_beside(supervisor, environment | known, beside, say)
        supervisor.start(_api(environment, urls["api"], api_port))
        console = Console(_notes(settings), say)
        supervisor.start(_notifier(_notes(settings), environment))
        supervisor.wait_until_ready("api")
        say(f"Operations page and HTTP API: {urls['api']}; `pricing-pipeline page` prints a link")
        say(f"Stop with Ctrl-C. In another terminal: pricing-pipeline status, {_next_step(worker)}")
        supervisor.run_until_stopped(console.look)
        with contextlib.suppress(OSError):  # the terminal may be gone
            say("Stopping; this takes some seconds, in which runs return their tasks to the queue")


def _prepare_database(
    settings: Settings, owner: str, worker: str, supervisor: Supervisor, *, demo: bool, say: Say
) -> None:
    """Upgrade the pricing database, refuse one that has the other kind of prices, and fill a new one."""
    _migrate(owner, supervisor)
    _note_start(settings, worker)
    keep_kind(settings)
    if sample.load(owner, demo=demo, in_use=settings.sandbox):
        say("Loaded the sample registry, providers and instruments" if demo else "Loaded the providers")
    provider_rules.apply_settings(owner, settings)
    if not settings.sandbox:
        _say_who_is_asked(settings, worker, say)


def _migrate(owner: str, supervisor: Supervisor) -> None:
    """Migrate the pricing database. A signal ends this, too, although an upgrade may wait for a lock for hours.

    The server ends the session of an upgrade that is left behind soon after our process has ended. The thread ends with
    the upgrade: while it works, the supervisor starts no process unless one has died.
    """
    migrated: Future[None] = Future()

    def migrate() -> None:
        try:
            upgrade(owner)
        except BaseException as error:
            migrated.set_exception(error)
        else:
            migrated.set_result(None)

    Thread(target=migrate, name="migrate", daemon=True).start()
    supervisor.wait_until(migrated.done)
    migrated.result()


def _urls(settings: Settings, web_port: int, api_port: int) -> dict[str, str]:
    """How this machine itself reaches the UI and the API."""
    return {
        "dagster": f"http://{_own_address(settings.ui_address)}:{web_port}",
        "api": f"http://{_own_address(settings.api_address)}:{api_port}",
    }


def _free_ports(settings: Settings, *, with_token: bool) -> tuple[int, int, int | None]:
    """The ports of the UI, of the API and, if there is one, of the sandbox. Raises SupervisorError for one in use."""
    web_port = require_free_port(settings.web_port, "the Dagster UI", "PRICING_WEB_PORT")
    address = settings.ui_address.compressed
    for looked_at in listen_for_browsers(address, web_port, need_all=with_token):
        looked_at.close()
    promised = {web_port}
    api_port = require_free_port(settings.api_port, "the HTTP API", "PRICING_API_PORT", promised)
    if not settings.sandbox:
        return web_port, api_port, None
    promised.add(api_port)
    sandbox_port = require_free_port(settings.sandbox_port, "the sandbox", "PRICING_SANDBOX_PORT", promised)
    return web_port, api_port, sandbox_port


def _require_dagster() -> None:
    """An installation that only reads and sends heartbeats has none, and would start processes that die at once."""
    if find_spec("dagster_webserver") is None:
        raise SettingsError(
            "Dagster is not installed here, which `up` needs. The extra dagster brings it, and `make run` installs "
            "everything."
        )


def _require_master_key(settings: Settings) -> None:
    """Check that the master keys are usable, if there are any."""
    with contextlib.suppress(NoMasterKey):
        master_keys.load(settings)


def _note_start(settings: Settings, worker: str) -> None:
    engine = make_engine(worker, pool_size=1)
    try:
        require_prices_from(engine, settings)
        with engine.begin() as connection:
            health.note_start(connection)
    finally:
        engine.dispose()


def missing_keys(settings: Settings, worker: str) -> list[str]:
    """Active providers without the key that they need; their tasks wait for it."""
    engine = make_engine(worker, pool_size=1)
    try:
        with engine.connect() as connection:
            routed = {name for providers in data_type_registry.routes(connection).values() for name in providers}
            stored = {row.provider for row in credentials.stored(connection) if row.is_active}
            known = declarations.known_providers(connection)
    finally:
        engine.dispose()
    return [
        name
        for name in sorted(known.keys() & routed - stored)
        if known[name].needs_key and not configured_keys(settings, name)
    ]


def _say_who_is_asked(settings: Settings, worker: str, say: Say) -> None:
    """Say which real providers are in use, and what is missing before others are asked."""
    engine = make_engine(worker, pool_size=1)
    try:
        with engine.connect() as connection:
            active = data_type_registry.provider_urls(connection)
            unplanned = sorted(active.keys() - plans.in_use(connection).keys())
    finally:
        engine.dispose()
    if active:
        say(f"Prices come from the real providers: {', '.join(active)}")
    else:
        say(
            "Nobody is asked for prices yet. Choose a provider in another terminal: "
            "pricing-pipeline provider use twelvedata --plan free"
        )
    for name in unplanned:
        say(f"{name} is asked without a plan: `limit list {name}` shows its limits, `provider use` writes a plan's")
    for name in missing_keys(settings, worker):
        say(f"{name} has no API key yet, so it is not asked: pricing-pipeline key set {name}")


def _next_step(worker: str) -> str:
    """The next command to type: for a price, or first for a provider."""
    engine = make_engine(worker, pool_size=1)
    try:
        with engine.connect() as connection:
            is_nobody_asked = provider_rules.no_provider(connection) is not None
    finally:
        engine.dispose()
    return "pricing-pipeline provider use NAME" if is_nobody_asked else "pricing-pipeline price show AAPL"


def _require_addresses(settings: Settings) -> None:
    for name in ("database_url", "owner_url", "listen_url", "reader_url", "replica_url", "dagster_url"):
        url: SecretStr | None = getattr(settings, name)
        if url is not None:
            checked_url(url.get_secret_value(), f"PRICING_{name.upper()}")


def _databases(settings: Settings, supervisor: Supervisor, say: Say) -> tuple[str, str, str]:
    """URLs of the pricing database for workers and for its owner, and of Dagster's database."""
    if settings.database_url is None:
        server = EmbeddedServer(settings.home)
        server.start(supervisor.check)
        supervisor.watch("postgresql", server)
        say(f"PostgreSQL runs in {server.data_dir}")
        if (warning := warn_of_account(server.data_dir)) is not None:
            say(warning)
        worker, owner = server.url("pricing", "worker"), server.url("pricing", "owner")
        dagster = server.url("dagster", "worker")
    else:
        worker = settings.database_url.get_secret_value()
        owner = settings.owner_url.get_secret_value() if settings.owner_url else worker
        dagster = libpq_url(parsed_url(worker).set(database="dagster"))
    if settings.dagster_url is not None:
        dagster = settings.dagster_url.get_secret_value()
    elif settings.database_url is not None:
        ensure_database(worker, "dagster")
    require_usable(dagster)
    return worker, owner, dagster


def _environment(settings: Settings) -> dict[str, str]:
    """The environment for all children but for addresses; each gets the part that it needs."""
    home = settings.home.absolute()
    folder = home / "dagster"
    dagster_home.write(folder, ROOT)
    environment = environment_of_children(os.environ, settings)
    return environment | {
        "PRICING_HOME": str(home),
        "PRICING_SANDBOX": str(settings.sandbox).lower(),
        "PRICING_CODE_SOCKET": str(code_socket(home)),
        "DAGSTER_HOME": str(folder),
        "PYTHONUNBUFFERED": "1",
        # Children work in another folder and run this code nevertheless. No PYTHONSAFEPATH: while Dagster loads the
        # definitions, it takes out the first entry of sys.path, which would then be this code's. Ours comes last: of
        # several files `sitecustomize.py` Python runs the first one, and a tool may have brought one.
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), environment.get("PYTHONPATH"), str(_SITECUSTOMIZE)])),
    }


def _addresses(worker: str, dagster: str, sandbox_port: int | None) -> dict[str, str]:
    """Where the databases and the sandbox are, as settings."""
    addresses = {
        "PRICING_DATABASE_URL": worker,
        # SQLAlchemy's own default driver is psycopg 3, with which Dagster's LISTEN fails.
        "PRICING_DAGSTER_URL": libpq_url(parsed_url(dagster).set(drivername="postgresql+psycopg2")),
    }
    if sandbox_port is not None:
        addresses["PRICING_SANDBOX_URL"] = f"http://{LOOPBACK}:{sandbox_port}"
    return addresses


def _start_dagster(
    settings: Settings, supervisor: Supervisor, environment: dict[str, str], *, has_tables: bool
) -> None:
    """Start the code server, and the daemon where it does not run yet; wait until Dagster's storage is prepared.

    A code server that finds no tables fails to load, and does not try again, so in a new storage it starts after them.
    """
    if has_tables:
        supervisor.start(_code_server(environment))
        supervisor.start(_daemon(environment))
    supervisor.wait_until_ready("dagster-daemon")
    if not has_tables:
        _settle(settings, environment)
        supervisor.start(_code_server(environment))


def _settle(settings: Settings, environment: dict[str, str]) -> bool:
    """Refuse a Dagster storage that belongs to another home, and note that it belongs to this one.

    Returns whether it has tables: before, nothing can be noted.
    """
    name = dagster_storage.name_of_home(
        settings.home, environment["PRICING_DATABASE_URL"], is_embedded=settings.database_url is None
    )
    url = environment["PRICING_DAGSTER_URL"]
    return dagster_storage.settle(url, name, is_owner=_has_embedded_storage(settings))


def _is_storage_ours(settings: Settings, environment: dict[str, str]) -> bool:
    """Whether Dagster's storage belongs to this home; a new one does from now on."""
    folder, url = Path(environment["DAGSTER_HOME"]), environment["PRICING_DAGSTER_URL"]
    return dagster_storage.claim_if_new(folder, url, is_embedded=_has_embedded_storage(settings))


def _has_embedded_storage(settings: Settings) -> bool:
    return settings.database_url is None and settings.dagster_url is None


def _sandbox(settings: Settings, environment: dict[str, str], port: int) -> Child:
    options = [
        *("--port", str(port)),
        *("--credits-per-minute", str(settings.sandbox_credits_per_minute)),
        *("--credits-per-day", str(settings.sandbox_credits_per_day)),
    ]
    url = environment["PRICING_SANDBOX_URL"]
    return _module(
        "sandbox",
        "pricing_pipeline.cli",
        environment,
        ["sandbox", *options],
        ready=lambda: answers_http(f"{url}/_sandbox/health"),
    )


def _api(environment: dict[str, str], url: str, port: int) -> Child:
    """The HTTP API. It answers as long as the process does, also while the database is away."""

    def answers() -> bool:
        return answers_http(f"{url}/livez")

    environment = environment | {"PRICING_API_PORT": str(port)}
    return _module("api", "pricing_pipeline.api.server", environment, ready=answers, answers=answers)


def _code_server(environment: dict[str, str]) -> Child:
    """One code server for webserver and daemon; left to them, each would start its own."""
    path = environment["PRICING_CODE_SOCKET"]
    return _module(
        "code-server",
        "pricing_pipeline.defs.code_server",
        environment,
        [
            *("-m", "pricing_pipeline.definitions", "-a", "definitions"),
            *("-s", path, "--location-name", "pricing_pipeline", "--log-level", "warning"),
        ],
        ready=lambda: listens(path),
        # A proxy listens, and its child answers. The proxy does not start the child again after it has ended.
        answers=lambda: answers_grpc(path, PING, _PING_SECONDS),
    )


def _known_to_locations(settings: Settings, environment: dict[str, str]) -> dict[str, str]:
    """The URLs that code locations of others may know, as settings; none where they would have another's login."""
    if settings.database_url is None:
        server = EmbeddedServer(settings.home)
        known = {"PRICING_READER_URL": server.url("pricing", "location")}
        if settings.dagster_url is None:
            storage = parsed_url(server.url("dagster", "location")).set(drivername="postgresql+psycopg2")
            return known | {"PRICING_DAGSTER_URL": libpq_url(storage)}
    else:
        known = {"PRICING_READER_URL": settings.reader_url.get_secret_value()} if settings.reader_url else {}
    withheld = {_login(url.get_secret_value()) for url in (settings.database_url, settings.owner_url) if url}
    if _login(environment["PRICING_DAGSTER_URL"]) not in withheld:
        known["PRICING_DAGSTER_URL"] = environment["PRICING_DAGSTER_URL"]
    return known


def _login(url: str) -> tuple[str | None, str | None]:
    parsed = parsed_url(url)
    return parsed.username, str(parsed.password) if parsed.password is not None else None


def _beside(
    settings: Settings, environment: dict[str, str], known: dict[str, str], say: Say, *, is_storage_ours: bool
) -> list[CodeLocation]:
    """The code locations of others that are served, written into the workspace; says why some are not."""
    locations, faults = code_locations.read(settings.home)
    for fault in faults:
        say(fault)
    why_not = None
    if locations and not is_storage_ours:
        why_not = "Dagster's storage was made by somebody else: add them to the workspace of its owner"
    elif locations and "PRICING_DAGSTER_URL" not in known:
        why_not = (
            "they would know the password with which the pipeline writes prices. Set PRICING_DAGSTER_URL to a login "
            "that may use Dagster's database alone"
        )
    if why_not is not None:
        names = ", ".join(location.name for location in locations)
        say(f"The code locations of {code_locations.FOLDER} ({names}) are not served: {why_not}")
        return []
    if locations:
        folder = Path(environment["DAGSTER_HOME"])
        dagster_home.write(folder, ROOT, locations, folder_of_sockets(Path(environment["PRICING_HOME"])))
    return locations


def _start_beside(supervisor: Supervisor, environment: dict[str, str], locations: list[CodeLocation], say: Say) -> None:
    for location in locations:
        say(f"Beside ours, Dagster serves the code location {location.name} of {location.path}")
        if location.command:
            try:
                supervisor.start(_location(environment, location))
            except SupervisorError as error:
                say(f"The code location {location.name} of {location.path} is not served: {error}")


def _location(environment: dict[str, str], location: CodeLocation) -> Child:
    """The code server of others. Our folders come before its own only in our interpreter."""
    path = str(location.socket(folder_of_sockets(Path(environment["PRICING_HOME"]))))
    given = given_to("location-NAME", environment)
    if location.command[0] != sys.executable:
        del given["PYTHONPATH"]
    return Child(
        f"location-{location.name}",
        [*location.command, "--socket", path],
        given,
        location.folder,
        ready=lambda: listens(path),
        answers=lambda: answers_grpc(path, PING, _PING_SECONDS),
    )


def _daemon(environment: dict[str, str]) -> Child:
    """The daemon, which first prepares Dagster's storage; it counts as ready after that."""
    fresh_start = Path(environment["DAGSTER_HOME"]) / "fresh-start"
    fresh_start.touch()
    options = [str(fresh_start), str(_workspace(environment))]
    return _module(
        "dagster-daemon",
        "pricing_pipeline.defs.daemon",
        environment,
        options,
        ready=lambda: not fresh_start.exists(),
    )


def _webserver(environment: dict[str, str], url: str, port: int, token: str | None) -> Child:
    """Dagster's webserver behind our guard. A token of the home's file is read by the webserver itself."""
    return _module(
        "dagster-webserver",
        "pricing_pipeline.defs.webserver",
        environment | {"PRICING_WEB_PORT": str(port)},
        [str(_workspace(environment))],
        ready=lambda: answers_http(f"{url}/server_info", token),
    )


def _notes(settings: Settings) -> Path:
    """The folder in which the notifier leaves signs of life, and what the console is to say."""
    return settings.home.absolute() / "notifier"


def _notifier(folder: Path, environment: dict[str, str]) -> Child:
    """The notifier. It counts as frozen when one of its threads no longer changes its file."""
    return _module(
        "notifier",
        "pricing_pipeline.operations.notifier",
        environment,
        [str(folder)],
        answers=still_change(life.paths(folder), _SLOWEST_STEP),
    )


def _own_address(address: IPv4Address | IPv6Address) -> str:
    """How this machine itself reaches a server that listens on an address, in the form of URLs."""
    if not address.is_unspecified:
        return in_url(address.compressed)
    return LOOPBACK if address.version == 4 else "[::1]"


def _workspace(environment: dict[str, str]) -> Path:
    return dagster_home.workspace(Path(environment["DAGSTER_HOME"]))


def _module(
    name: str,
    module: str,
    environment: dict[str, str],
    options: list[str] | None = None,
    *,
    ready: Callable[[], bool] | None = None,
    answers: Callable[[], bool] | None = None,
) -> Child:
    argv = [sys.executable, "-m", module, *(options or [])]
    return Child(name, argv, given_to(name, environment), _folder(environment), ready, answers)


def _folder(environment: dict[str, str]) -> Path:
    """The working folder of children: Dagster's processes prefer a `.env` of their working folder to our settings."""
    return Path(environment["DAGSTER_HOME"])
