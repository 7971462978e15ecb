"""The benchmarks run and answer in the form that docs/maintainers/benchmarks.md promises. No figure decides a test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

METRICS = {
    "queue": {"tasks_per_second": {"bare_sql"}},
    "staleness": {"tick_seconds": {"seed_function", "set_based"}, "idle_tick_ms": set()},
    "heartbeats": {"pairs_per_second": {"bare_upsert"}},
    "refresh": {
        "symbols_per_second": {"one_call_per_symbol", "unchecked_ceiling"},
        "all_watched_seconds": set(),
        "memory_megabytes": set(),
    },
    "history_write": {
        "rows_per_second": {"copy", "pandas_to_sql"},
        "rows_per_second_again": {"first_load"},
        "read_ms": {"bare_query"},
        "as_of_ms": {"current"},
    },
    "backfill": {"rows_per_second": {"unchecked_ceiling"}, "memory_megabytes": set()},
    "operations": {
        "operations_per_second": set(),
        "enqueue_ms": set(),
        "transaction_ms": {"heartbeat_alone"},
    },
    "api": {
        **{
            f"{metric}{which}": {"bare_sql", "constant"}
            for metric in ("p50_ms", "p99_ms", "late_ms", "cpu_ms", "database_cpu_ms")
            for which in ("", "_all_types")
        },
        "arrow_ms": {"bare_query"},
        "arrow_cpu_ms": {"bare_query"},
        **{
            f"{format_}_by_{rates}_cpu_ms": {"plain"}
            for format_ in ("json", "csv", "arrow")
            for rates in ("one", "two")
        },
        "csv_bars_per_second": {"copy"},
        "csv_cpu_us": {"copy"},
        "csv_megabytes": set(),
        "feed_csv_ms": {"json"},
        "feed_csv_cpu_ms": {"json"},
    },
    "stream": {
        "prices_per_second": set(),
        "delivered_per_second": set(),
        "lost": set(),
        "doubled": set(),
        "reconnects": set(),
        "delay_ms": set(),
        "late_delay_ms": set(),
        "drained_per_second": {"without_streams"},
    },
    "slots": {
        "availability_ms": {"bare_query"},
        "changed_day_ms": {"upsert_everything"},
        "unchanged_day_ms": set(),
    },
    "scaling": {
        **{f"{name}@subscriptions=200": set() for name in ("heartbeat", "check", "claim")},
        **{f"{name}@data_types=3": set() for name in ("definitions", "check")},
        **{f"{name}@events=100": set() for name in ("check", "claim", "prune")},
        **{f"{name}@rows=10000": set() for name in ("year", "as_of", "month", "marks", "day_of_1000")},
        **{f"{name}@rows=10000": {"by_month"} for name in ("year_in_one", "past_in_one", "month_leaves")},
    },
    "workers": {"calls_per_second_of_2_workers": {"one_worker"}},
    "latency": {
        **{f"cold_{what}_seconds": set() for what in ("p50", "p95")},
        **{
            f"cold_until_{step}_seconds": set()
            for step in ("requested", "launched", "executing", "drained", "claimed", "stored")
        },
        **{f"warm_{what}_seconds@pairs=20": set() for what in ("p50", "p95", "p99")},
        **{f"warm_until_{step}_p95_seconds@pairs=20": set() for step in ("queued", "claimed")},
        **{f"warm_until_{step}_seconds@pairs=20": set() for step in ("queued", "claimed", "stored")},
        "fresh_share@pairs=20": set(),
    },
    "first_start": {f"{what}_seconds": set() for what in ("pages", "first_price", "slowest_first_price")},
    "declared": {"json_rows_per_second": {"coded"}, "csv_rows_per_second": {"coded"}},
    "limiter": {"calls_over_limit": {"look_then_call"}, "utilisation": set()},
}


def test_every_benchmark_answers_in_json(tmp_path: Path) -> None:
    """All in one process and on one server: starting those costs more than all the tiny questions."""
    environment = os.environ | {"BENCHMARK_PEERS_PYTHON": str(tmp_path / "none")}
    command = [sys.executable, "-m", "benchmarks", "all", "--tiny", "--json"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    answers = {answer["name"]: answer for answer in map(json.loads, run.stdout.splitlines())}
    assert set(answers) == set(METRICS)
    page = (ROOT / "docs/maintainers/benchmarks.md").read_text()
    for name, answer in answers.items():
        assert answer["machine"]
        rows = {row["metric"]: row for row in answer["rows"]}
        for metric, peers in METRICS[name].items():
            assert peers == set(rows[metric]["peers"]) == set(rows[metric]["ratios"]), (name, metric)
            assert rows[metric]["unit"]
        assert f"\n- `{name}`: " in page
