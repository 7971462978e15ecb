"""`python -m pricing_pipeline_tests.tools.downstream [MINUTES]`: do assets of others run when a price changes?

And only then? It starts `up` with docs/examples/dagster_location beside it, and a second Dagster on the same pricing
database, with the example and the pipeline in one project. The demo's viewer watches for so many minutes (60 unless
said; 6 is a short look). In the second half it kills and reloads what there is to kill and reload. Then prices stand
still until everything is told. It prints what each instance was told, what ran, how long that took, and how much `up`
has stored of ticks and events.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import dagster as dg
import psutil
import psycopg
from sqlalchemy import make_url

from pricing_pipeline.defs.news import DATA_VERSION, EVER
from pricing_pipeline.defs.ours import DRAIN_TAG
from pricing_pipeline_tests.fixtures.stack import Stack, new_stack
from pricing_pipeline_tests.support.plain_processes import PlainProcesses

ROOT = Path(__file__).parents[2]
EXAMPLE = (ROOT / "docs/examples/dagster_location/definitions.py").read_text()
QUOTES, QUOTE = dg.AssetKey(["latest_price", "equity_quote"]), "equity_quote"
EVERY_CHANGE, NEWEST, JOB = "every_change", "portfolio_value", "tell"
LOCATION = f"""
{EXAMPLE}

@dg.asset(deps=[QUOTES], automation_condition=EACH_CHANGE)
def {EVERY_CHANGE}() -> None: ...

defs = dg.Definitions.merge(defs, dg.Definitions(assets=[{EVERY_CHANGE}]))
"""
WORKSPACE = "load_from: [{python_file: {relative_path: definitions.py, location_name: example}}]"
MERGED = "from pricing_pipeline.dagster import build_defs\n\ndefs = dg.Definitions.merge(defs, build_defs())\n"
INSTANCE = """
freshness: {enabled: true}
sensors: {use_threads: true, num_workers: 4}
run_monitoring: {enabled: true, start_timeout_seconds: 600}
telemetry: {enabled: false}
"""
RELOAD = "mutation R($name: String!) { reloadRepositoryLocation(repositoryLocationName: $name) { __typename } }"
FOLLOWED = (QUOTES.to_user_string(), f"price_history/{QUOTE}")
STARTED_WITHIN = 1200.0
SETTLED_WITHIN = 400.0
"""Seconds after the last price until all is told and run: a current month is told every five minutes."""
TOGETHER = 60.0
"""Seconds by which the evaluation that requests a run may begin before it: it has not seen what was told since."""

Action = Callable[[], None]


class Told:
    """What a Dagster instance was told, and what it ran."""

    def __init__(self, name: str, instance: dg.DagsterInstance) -> None:
        self.name, self.instance = name, instance

    def events(self, key: dg.AssetKey) -> list[tuple[float, dg.AssetMaterialization]]:
        """All materializations of an asset with their times, oldest first."""
        found, cursor = [], None
        while True:
            page = self.instance.fetch_materializations(key, limit=1000, cursor=cursor, ascending=True)
            found += [(r.timestamp, r.asset_materialization) for r in page.records if r.asset_materialization]
            if not page.has_more:
                return found
            cursor = page.cursor

    def requests(self, name: str) -> tuple[list[float], Counter[str]]:
        """When runs of an asset or a job were requested, and how they and their repetitions ended."""
        records = [
            record
            for record in self.instance.get_run_records()
            if record.dagster_run.job_name == name or dg.AssetKey(name) in (record.dagster_run.asset_selection or ())
        ]
        ends = Counter(record.dagster_run.status.value for record in records)
        first = [record for record in records if record.dagster_run.parent_run_id is None]
        return sorted(record.create_timestamp.timestamp() for record in first), ends


def accounted(told: Sequence[float], requested: Sequence[float]) -> tuple[int, int, list[float]]:
    """How many changes no run followed, how many runs followed no change, and how long the others took."""
    open_, delays, spurious = list(told), [], 0
    for at in requested:
        before = [change for change in open_ if change <= at]
        if not before:
            spurious += 1
            continue
        seen = [change for change in before if change <= at - TOGETHER] or before[:1]
        delays.append(at - seen[0])
        open_ = open_[len(seen) :]
    last = max(requested, default=0.0)
    return sum(change > last for change in told), spurious, delays


@contextmanager
def second_dagster(folder: Path, stack: Stack) -> Iterator[tuple[dg.DagsterInstance, Action]]:
    """A Dagster of a user who has put the pipeline into a project of theirs, and what kills and starts its daemon."""
    folder.mkdir()
    project = LOCATION.replace("assets=[bars_by_month, ", "assets=[") + MERGED
    for name, text in {
        "definitions.py": project,
        "workspace.yaml": WORKSPACE,
        "dagster.yaml": INSTANCE,
    }.items():
        (folder / name).write_text(text)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PRICING_", "DAGSTER_"))} | {
        "PYTHONPATH": str(ROOT),
        "DAGSTER_HOME": str(folder),
        "PRICING_HOME": str(folder / "state"),
        "PRICING_DATABASE_URL": stack.worker_url,
        "PRICING_READER_URL": stack.worker_url,
        "PRICING_SANDBOX_URL": stack.state()["urls"]["sandbox"],
    }
    command = [str(Path(sys.executable).with_name("dagster-daemon")), "run", "-w", "workspace.yaml"]
    with PlainProcesses(folder) as processes:

        def begin() -> None:
            processes.start("daemon", command, environment, folder)

        def again() -> None:
            processes.kill("daemon")
            begin()

        begin()
        with dg.DagsterInstance.from_config(str(folder)) as instance:
            yield instance, again


def faults(stack: Stack, instance: dg.DagsterInstance, kill_second: Action) -> dict[str, Action]:
    """What is done to both instances, one after the other."""

    def kill(name: str) -> Action:
        return lambda: os.kill(stack.pid_of(name), signal.SIGKILL)

    def kill_drain() -> None:
        wanted = dg.RunsFilter(tags={DRAIN_TAG: "true"}, statuses=[dg.DagsterRunStatus.STARTED])
        for run in instance.get_runs(wanted, limit=1):
            said = instance.get_records_for_run(run.run_id, of_type=dg.DagsterEventType.ENGINE_EVENT).records
            for pid in re.findall(r"Started process for run \(pid: (\d+)\)", str(said)):
                os.kill(int(pid), signal.SIGKILL)

    def load_again() -> None:
        for name in ("pricing_pipeline", "example"):
            stack.graphql(RELOAD, name=name)

    return {
        "kill -9 of a drain": kill_drain,
        "kill -9 of the daemon": kill("dagster-daemon"),
        "reload of both locations": load_again,
        "kill -9 of the code server": kill("code-server"),
        "kill -9 of the second Dagster": kill_second,
        "kill -9 of the example's code server": kill("location-example"),
    }


def changes_of(stack: Stack) -> int:
    """How often a price was another one than before, as the history has it."""
    found: int = stack.core.one(
        "SELECT count(*) FROM (SELECT h.amount, h.scale, lag(h.amount) OVER w AS old, lag(h.scale) OVER w AS old_scale"
        " FROM pricing.price_history h WHERE h.data_type = :name WINDOW w AS (PARTITION BY symbol ORDER BY observed_at)"
        ") x WHERE (amount, scale) IS DISTINCT FROM (old, old_scale)",
        name=QUOTE,
    )
    return found


def spread(seconds: Sequence[float]) -> str:
    if len(seconds) < 2:
        return str(seconds)
    most = quantiles(seconds, n=20)[-1]
    return f"median {median(seconds):.1f} s, 95 of 100 within {most:.1f} s, longest {max(seconds):.1f} s"


def judge(stack: Stack, told: Told) -> bool:
    """Print what an instance was told and ran; True if nothing was missed and nothing spurious."""
    versions = {
        (
            f"latest_price/{r.data_type}" if r.month is None else f"price_history/{r.data_type}",
            str(r.month),
        ): r.version
        for r in stack.core.rows(
            "SELECT data_type, nullif(month, '-infinity') AS month, version FROM pricing.data_versions"
        )
    }
    seen: dict[tuple[str, str], list[int]] = {}
    for key in told.instance.all_asset_keys():
        if key.path[0] in ("latest_price", "price_history"):
            for _, event in told.events(key):
                version = int((event.tags or {}).get(DATA_VERSION, "0"))
                seen.setdefault((key.to_user_string(), str(event.partition)), []).append(version)
    twice = sum(len(each) - len({*each}) for each in seen.values())
    disordered = sum(each != sorted(each) for each in seen.values())
    behind = [name for name, version in versions.items() if name[0] in FOLLOWED and seen.get(name, [0])[-1] != version]
    quotes = told.events(QUOTES)
    ever = quotes[-1][1].metadata[EVER].value
    sums = sum(int(str(event.metadata["changes"].value)) for _, event in quotes)
    print(f"\n{told.name}: told {sum(map(len, seen.values()))} versions of {len(seen)} assets and months")
    print(f"  told twice {twice}, out of order {disordered}, behind {behind}")
    real = changes_of(stack)
    print(f"  {QUOTE}: {len(quotes)} events about {sums} changed values; counted ever {ever}; really changed {real}")
    waits = [at - int((event.tags or {})[DATA_VERSION]) / 1000 for at, event in quotes]
    print(f"  from a version's number to its event: {spread(waits)}")
    is_right = not (twice or disordered or behind) and sums == ever == real
    times = [at for at, _ in quotes]
    for name in (EVERY_CHANGE, JOB, NEWEST):
        requested, ends = told.requests(name)
        # Conditions and sensors of others begin with what comes after them.
        since = min(requested, default=0.0) - TOGETHER
        missed, spurious, delays = accounted([at for at in times if at >= since], requested)
        print(f"  {name}: {len(requested)} runs {dict(ends)}; missed {missed}, spurious {spurious}; {spread(delays)}")
        is_right = is_right and not spurious and (not missed or name == NEWEST)
    return is_right


def stored(url: str) -> dict[str, dict[str, Any]]:
    """Bytes of rows and numbers of ticks and events that `up` has stored of its own, by what they are."""
    with psycopg.connect(make_url(url).set(drivername="postgresql").render_as_string(False)) as connection:
        ticks = connection.execute(
            "SELECT tick_body::json->>'job_name', count(*), sum(pg_column_size(t.*)) FROM job_ticks t GROUP BY 1"
        ).fetchall()
        events = connection.execute(
            "SELECT concat_ws(' ', e.dagster_event_type, e.asset_key), count(*), sum(pg_column_size(e.*))"
            " FROM event_logs e LEFT JOIN runs r USING (run_id)"
            " WHERE r.pipeline_name IS NULL OR r.pipeline_name IN ('refresh', 'check_prices') GROUP BY 1"
        ).fetchall()
    return {
        "ticks": {
            name: [int(n), int(size)] for name, n, size in ticks if name not in ("on_new_quotes", "follow_prices")
        },
        "events": {name: [int(n), int(size)] for name, n, size in events},
    }


def of_a_day(before: Mapping[str, Any], after: Mapping[str, Any], seconds: float) -> None:
    """Print what is stored in a day, if it goes on like that."""
    for kind, rows in after.items():
        grown = {
            name: [now - then for now, then in zip(values, before[kind].get(name, [0, 0]), strict=True)]
            for name, values in rows.items()
        }
        number, size = (sum(each[i] for each in grown.values()) * 86400 / seconds for i in (0, 1))
        print(f"\n{kind} of a day: {number:,.0f}, {size / 1e6:.1f} MB")
        for name, (n, b) in sorted(grown.items(), key=lambda item: -item[1][1])[:12]:
            print(f"  {name}: {n * 86400 / seconds:,.0f}, {b * 86400 / seconds / 1e6:.2f} MB")


def cpu(stack: Stack) -> dict[str, float]:
    """Seconds of CPU that Dagster's processes have used."""
    used = {}
    for name in ("dagster-daemon", "code-server"):
        leader = psutil.Process(stack.pid_of(name))
        times = [each.cpu_times() for each in [leader, *leader.children(recursive=True)]]
        used[name] = sum(each.user + each.system for each in times)
    return used


def main() -> None:
    seconds = 60 * float(sys.argv[1] if sys.argv[1:] else 60)
    with new_stack() as stack:
        folder = stack.home / "workspace.d"
        folder.mkdir(parents=True)
        for path in (stack.home, folder):
            path.chmod(0o711)
        for name, text in {"definitions.py": LOCATION, "example.yaml": WORKSPACE}.items():
            (folder / name).write_text(text)
            (folder / name).chmod(0o600)
        stack.start()
        stack.wait_until("a first price", lambda: stack.core.rows("SELECT FROM pricing.latest_prices"), STARTED_WITHIN)
        stack.wait_until("the webserver", stack.location, STARTED_WITHIN)
        daemon = psutil.Process(stack.pid_of("dagster-daemon")).environ()
        os.environ["PRICING_DAGSTER_URL"] = url = daemon["PRICING_DAGSTER_URL"]
        with (
            dg.DagsterInstance.from_config(daemon["DAGSTER_HOME"]) as ours,
            second_dagster(stack.home.parent / "second", stack) as (theirs, kill_second),
        ):
            run(stack, url, [Told("up", ours), Told("the second Dagster", theirs)], kill_second, seconds)


def run(stack: Stack, url: str, told: Sequence[Told], kill_second: Action, seconds: float) -> None:
    """Let it work, with faults in the second half of the time, and print what came of it."""
    time.sleep(seconds / 10)  # what comes once, at the start, is not what comes every day
    quiet, before, used = time.monotonic(), stored(url), cpu(stack)
    time.sleep(seconds * 4 / 10)
    passed = time.monotonic() - quiet
    of_a_day(before, stored(url), passed)
    with suppress(KeyError):  # a process was started anew
        print(
            *(f"{name}: {100 * (now - used[name]) / passed:.1f} % CPU" for name, now in cpu(stack).items()),
            sep="\n",
        )
    actions = faults(stack, told[0].instance, kill_second)
    for name, act in actions.items():
        print(f"{time.strftime('%H:%M:%S')} {name}", flush=True)
        with suppress(LookupError, ProcessLookupError):  # it was down anyway
            act()
        time.sleep(seconds / 2 / len(actions))
    symbols = stack.core.rows("SELECT symbol FROM pricing.latest_prices WHERE data_type = :name", name=QUOTE)
    stack.core.pause(*(row.symbol for row in symbols))
    time.sleep(SETTLED_WITHIN)
    is_right = [judge(stack, each) for each in told]
    print("\n" + ("all right" if all(is_right) else "NOT RIGHT"))
    sys.exit(0 if all(is_right) else 1)


if __name__ == "__main__":
    main()
