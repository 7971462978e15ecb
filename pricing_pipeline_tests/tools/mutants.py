"""Cuts the heart out of the pipeline, piece by piece, and sees whether a test notices (`make mutants`).

Each mutant is one change to one file, made in a copy of the tree in a temporary folder; the few tests that should
notice it run there. It is killed when one of them fails, and only then: a test that cannot begin proves nothing. The
table says which survived; the exit code is 1 if any did.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from pricing_pipeline_tests.fixtures.database import SHARED, TestServer, running_server
from pricing_pipeline_tests.tools.mutant_list import MUTANTS

ROOT = Path(__file__).parents[2]
SECONDS = 300
"""How long the tests of one mutant may take."""
SECONDS_UNCHANGED = 3600
"""How long all the tests may take before anything is changed."""


def copied(folder: Path) -> Path:
    """A copy of the tree in `folder`, without what tools and runs have left in it."""
    leftovers = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "htmlcov", "*.egg-info")
    return Path(shutil.copytree(ROOT, folder / "tree", ignore=leftovers))


def tested(tree: Path, server: TestServer, tests: Sequence[str], seconds: int) -> tuple[int, str]:
    """Run tests in a tree, one after the other, up to the first failure: exit code and last lines."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PRICING_")}
    urls = (server.admin_url, server.owner_url, server.worker_url)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-n",
        "0",
        "--tb=no",
        "-p",
        "no:cacheprovider",
        "--hypothesis-profile=no_shrinking",
        *tests,
    ]
    try:
        run = subprocess.run(
            command,
            cwd=tree,
            env=environment | {"PYTHONPATH": str(tree), "PRICING_TEST_EXAMPLES": "all", SHARED: " ".join(urls)},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 124, f"no end within {seconds} s"
    return run.returncode, run.stdout[-2000:] + run.stderr[-2000:]


def verdict(code: int, output: str) -> tuple[bool, str]:
    """Whether tests have noticed, and which one, or why that is not so."""
    failed = re.search(r"^FAILED \S+::(\S+)", output, re.MULTILINE)
    if code == 1 and failed:
        return True, failed[1]
    return False, "no test failed" if code == 0 else f"the tests could not run: {output.strip()[-300:]}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Try all mutants, or those whose names contain one of the words given; 0 when every one is killed."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("words", nargs="*", help="parts of the names of mutants; none = all")
    words = parser.parse_args(arguments).words
    chosen = [mutant for mutant in MUTANTS if not words or any(word in mutant.name for word in words)]
    if not chosen:
        parser.error(f"no mutant is named like {' or '.join(words)}")
    survived = 0
    # To start a server takes longer than the tests of most mutants.
    with tempfile.TemporaryDirectory(prefix="pricing-mutants-") as name, running_server() as server:
        tree = copied(Path(name))
        # A test that fails without a mutant would seem to kill every one.
        asked = {test for mutant in chosen for test in mutant.tests}
        code, output = tested(
            tree,
            server,
            sorted(test for test in asked if test.split("::")[0] not in asked - {test}),
            SECONDS_UNCHANGED,
        )
        if code:
            print(f"The tests fail before anything is changed, so they can prove nothing:\n{output}")
            return 1
        honest_databases = server.databases()
        print(f"{'mutant':<52} {'verdict':<9} {'seconds':>7}  test that noticed")
        for mutant in chosen:
            path = tree / mutant.file
            honest = path.read_text()
            path.write_text(mutant.applied(honest))
            began = time.monotonic()
            try:
                killed, why = verdict(*tested(tree, server, mutant.tests, SECONDS))
            finally:
                path.write_text(honest)
                for database in server.databases() - honest_databases:
                    server.drop(database)
            survived += not killed
            print(
                f"{mutant.name:<52} {'killed' if killed else 'SURVIVED':<9} {time.monotonic() - began:>7.0f}  {why}",
                flush=True,
            )
            if not killed:
                print(f"    {mutant.contract}: {mutant.consequence}", flush=True)
    print(f"{len(chosen) - survived} of {len(chosen)} killed.")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
