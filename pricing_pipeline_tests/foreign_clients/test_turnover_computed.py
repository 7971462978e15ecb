"""E9: ClickHouse and DataFusion compute a year of turnover from files of history, and get it right."""

from __future__ import annotations

import json
import subprocess
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from pricing_pipeline.domain.scopes import Scope
from pricing_pipeline.prices.files import open_store
from pricing_pipeline.settings import load_settings
from pricing_pipeline_tests.fixtures.core import DAILY, Core
from pricing_pipeline_tests.support.api_server import RunningApi
from pricing_pipeline_tests.support.filing import export_all
from pricing_pipeline_tests.support.patience import PATIENCE

pytestmark = pytest.mark.usefixtures("still")

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-clients" / "bin" / "python"
MILLIONTH = Decimal("0.000001")

if not PYTHON.exists():
    pytest.skip("the foreign clients are not installed: make clients-install", allow_module_level=True)


def test_e9_clickhouse_and_datafusion_compute_a_year_of_turnover(
    api: RunningApi, core: Core, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the exported files, and of the answer of the API."""
    monkeypatch.setenv("PRICING_EXPORT_URL", str(tmp_path))
    store = open_store(load_settings())
    rows = core.rows(
        "INSERT INTO pricing.price_history (data_type, symbol, observed_at, amount, open_amount, scale, currency,"
        " volume, provider, call_id, fetched_at, adjustment)"
        " SELECT 'equity_daily', 'AAPL', day, 41123 + 7 * n, 40940 + 3 * n, 2, 'USD', 86300000 + 1001 * n,"
        " 'twelvedata', 7, '2026-01-05Z', 'raw'"
        " FROM generate_series('2025-01-01Z'::timestamptz, '2025-12-31Z', '1 day') WITH ORDINALITY AS of_year (day, n)"
        " WHERE extract(isodow FROM day) < 6"
        " RETURNING (observed_at AT TIME ZONE 'UTC')::date, amount / 100.0, open_amount / 100.0, volume"
    )
    core.rows("SELECT pricing.note_changes('equity_daily', (SELECT array_agg(observed_at) FROM pricing.price_history))")
    export_all(core, store)
    asked = {"from": "2025-01-01", "to": "2025-12-31", "format": "parquet"}
    answer = api.caller(Scope.READ).ask("GET", f"history/{DAILY}/AAPL", params=asked)
    (whole := tmp_path / "answer.parquet").write_bytes(answer.content)
    months = {str(store.path(DAILY, date(2025, month, 1))): month for month in range(1, 13)}
    done = subprocess.run(
        [PYTHON, ROOT / "foreign_clients" / "compute_turnover.py", *months, whole],
        capture_output=True,
        text=True,
        timeout=3 * PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    of_program = json.loads(done.stdout)
    assert set(of_program) == {"clickhouse", "datafusion"}
    for program, of_file in of_program.items():
        for path, figures in of_file.items():
            values = [row for row in rows if row[0].month == months.get(path, row[0].month)]
            ratio, greatest, total = map(Decimal, figures)
            turnovers = [close * volume for _, close, _, volume in values]
            assert abs(ratio - max(close / opened for _, close, opened, _ in values)) < MILLIONTH, (
                program,
                path,
            )
            assert (greatest, total) == (max(turnovers), sum(turnovers)), (program, path)
