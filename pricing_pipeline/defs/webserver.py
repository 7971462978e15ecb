"""`python -m pricing_pipeline.defs.webserver WORKSPACE`: the Dagster UI behind our guard.

It does the same as `dagster-webserver -w WORKSPACE`, for the instance in DAGSTER_HOME; address, port, names and token
are settings. It works without `up`, too.
"""

import signal
import sys
from contextlib import suppress

import dagster as dg
import uvicorn
from dagster_webserver.app import create_app_from_workspace_process_context
from dagster_webserver.version import __version__

from pricing_pipeline.defs.internals import WorkspaceFileTarget, WorkspaceProcessContext
from pricing_pipeline.errors import PricingError
from pricing_pipeline.processes import process_log
from pricing_pipeline.processes.connections import server_config
from pricing_pipeline.processes.ports import listen_for_browsers, require_free_port
from pricing_pipeline.processes.web_guard import Guard, own_hosts, ui_token
from pricing_pipeline.settings import Settings, load_settings

_STATEMENT_TIMEOUT_MS = 15_000
_RECYCLE_SECONDS = 3600
_MAX_OVERFLOW = 20
"""The defaults of `dagster-webserver`, like the next one."""
_POLL_MS = 2000


def main() -> None:
    """Serve until a signal; exit with a message if a setting is wrong."""
    process_log.start()
    (workspace,) = sys.argv[1:]
    try:
        settings = load_settings()
        serve(settings, workspace, ui_token(settings))
    except PricingError as error:
        sys.exit(f"error: {error}")


def serve(settings: Settings, workspace: str, token: str | None) -> None:
    """Serve the UI for the code locations of a workspace.yaml."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    port = require_free_port(settings.web_port, "the Dagster UI", "PRICING_WEB_PORT")
    with dg.DagsterInstance.get() as instance:
        instance.optimize_for_webserver(_STATEMENT_TIMEOUT_MS, _RECYCLE_SECONDS, _MAX_OVERFLOW)
        target = WorkspaceFileTarget([workspace])
        with WorkspaceProcessContext(instance, target, version=__version__) as context:
            app = create_app_from_workspace_process_context(context, live_data_poll_rate=_POLL_MS)
            hosts = own_hosts(settings.ui_address, port, settings.ui_hosts)
            guard = Guard(app, hosts=hosts, token=token)
            sockets = listen_for_browsers(settings.ui_address.compressed, port, need_all=token is not None)
            with suppress(KeyboardInterrupt):
                uvicorn.Server(server_config(guard, lifespan="off")).run(sockets=sockets)


if __name__ == "__main__":
    main()
