"""What programs compute of Parquet files: `compute_turnover.py FILES...`, JSON to stdout, of each program and file.

The greatest ratio of close to open of a day, the greatest turnover of a day, and the turnover of all days.
"""

from __future__ import annotations

import json
import sys
from decimal import Decimal

import chdb
import datafusion

ASKED = "SELECT max(ratio), max(turnover), sum(turnover) FROM ({})"
ROWS = "SELECT close / open AS ratio, close * volume AS turnover FROM {}"


def with_clickhouse(path: str) -> list[Decimal]:
    answer = chdb.query(ASKED.format(ROWS.format(f"file('{path}', Parquet)")), "CSV")
    return [Decimal(cell) for cell in str(answer).strip().split(",")]


def with_datafusion(path: str) -> list[Decimal]:
    session = datafusion.SessionContext()
    session.register_parquet("bars", path)
    (batch,) = session.sql(ASKED.format(ROWS.format("bars"))).collect()
    return [column[0].as_py() for column in batch.columns]


programs = {"clickhouse": with_clickhouse, "datafusion": with_datafusion}
print(json.dumps({name: {path: list(map(str, of(path))) for path in sys.argv[1:]} for name, of in programs.items()}))
