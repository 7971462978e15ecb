"""deploy/postgres/10-roles.sql tells nobody the passwords that it sets."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from pricing_pipeline.db import embedded_home as places
from pricing_pipeline.db.embedded import RELOCATION, EmbeddedServer
from pricing_pipeline_tests.support.pages import ROOT

SCRIPT = ROOT / "deploy/postgres/10-roles.sql"


def test_a4_passwords_of_roles_are_not_in_the_servers_log(open_folder: Path) -> None:
    """Also when a statement fails, as at the second run: PostgreSQL logs statements that fail."""
    with EmbeddedServer(open_folder, for_tests=True) as server:
        programs = places.binaries(places.server_user(server.data_dir), RELOCATION)
        secrets = {"PRICING_OWNER_PASSWORD": "canary-owner", "PRICING_WORKER_PASSWORD": "canary-worker"}
        ran = subprocess.run(
            [programs / "psql", "--no-psqlrc", "--file", SCRIPT, server.url("postgres", "superuser")],
            env={**os.environ, **secrets},
            capture_output=True,
            text=True,
        )
        assert 'role "pricing_owner" already exists' in ran.stderr
        log = "".join(path.read_text(errors="replace") for path in open_folder.rglob("*.log"))
        assert 'role "pricing_owner" already exists' in log
        assert "canary" not in log + ran.stdout + ran.stderr
