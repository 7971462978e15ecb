"""The code server of `up` forks its processes, which are the same as if a new Python had started them."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks only on Linux")

PROGRAM = """
    import os, signal, sys, time
    import colorsys
    from multiprocessing import forkserver
    from pricing_pipeline.defs import code_server
    from pricing_pipeline.defs.code_server import ForkingContext
    from pricing_pipeline.processes.os_processes import is_alive

    def told(queue):
        queue.put(("colorsys" in sys.modules, os.environ["SECRET"]))

    def nested(queue, key):
        code_server.join_fork_server(key)
        inner = ForkingContext().Process(target=told, args=(queue,))
        inner.start()
        inner.join()
        sys.exit(inner.exitcode)

    if __name__ == "__main__":
        code_server.start_fork_server()
        context = ForkingContext()
        queue = context.Queue()
        process = context.Process(target=nested, args=(queue, code_server.key_of_fork_server()))
        process.start()
        process.wait(30)
        print(*queue.get(timeout=30), process.poll(), process.returncode)
        sleeper = context.Process(target=time.sleep, args=(600,))
        sleeper.start()
        os.kill(forkserver._forkserver._forkserver_pid, signal.SIGKILL)
        sleeper.join(30)
        while is_alive(sleeper.pid):
            time.sleep(0.1)
"""


def test_processes_are_forked_also_by_forked_ones_and_end_with_the_fork_server(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    environment = os.environ | {"SECRET": "s3cret", "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-m", "program"], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert (done.stdout, done.stderr, done.returncode) == ("True s3cret 0 0\n", "", 0)
