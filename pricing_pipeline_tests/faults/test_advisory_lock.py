"""C2: a named lock whose holder is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from sqlalchemy import Engine

from pricing_pipeline_tests.integration.test_advisory_lock import is_free
from pricing_pipeline_tests.support.patience import wait_until

HOLDER = """
import sys, time
from pricing_pipeline.db.advisory_lock import advisory_lock
from pricing_pipeline.db.engine import make_engine
with advisory_lock(make_engine(sys.argv[1]), "sync"):
    print("held", flush=True)
    time.sleep(600)
"""


def test_c2_a_killed_process_releases_it(engine: Engine, database_url: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, database_url], stdout=subprocess.PIPE, env={**os.environ}
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert not is_free(engine, "sync")
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    wait_until(lambda: is_free(engine, "sync"))
