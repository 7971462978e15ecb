#!/bin/sh
# ClickHouse divides and multiplies decimals of 38 digits wrongly, without an error; DuckDB rounds to its first file.
#
# A Parquet file has 411.23 and 409.4 as decimal(38, 18). chdb 4.4.0 (ClickHouse 26.9) divides them to 0.17 and
# multiplies 411.23 by 86300000 to 140.36. With decimal(18, 6) by decimal(18, 0) it is right. Of two files whose decimals differ, DuckDB
# 2.0.1 reads both with those of the first: 1.12345678 becomes 1.123457, unless it is told union_by_name. Seen on
# 2026-11-30 with Python 3.11 and pyarrow 26.0.1.
#
# Run it with `sh findings/clickhouse_divides_wide_decimals.sh`. It installs both into an environment of its own, and
# ends with status 0 as long as that is so.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT INT TERM
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check chdb==4.4.0 duckdb==2.0.1 pyarrow==26.0.1 \
    2>"$folder/pip" || { cat "$folder/pip" >&2; exit 2; }

cat >"$folder/ask.py" <<'PYTHON'
import sys
from decimal import Decimal

import chdb
import duckdb
import pyarrow as pa
from pyarrow import parquet

folder = sys.argv[1]


def written(name, digits, decimals, *prices, volume="0", volume_decimals=0):
    columns = {f"n{place}": pa.array([Decimal(n)], pa.decimal128(digits, decimals)) for place, n in enumerate(prices)}
    columns["volume"] = pa.array([Decimal(volume)], pa.decimal128(digits, volume_decimals))
    parquet.write_table(pa.table(columns), f"{folder}/{name}.parquet")
    return f"{folder}/{name}.parquet"


for digits, decimals, volume_decimals in ((38, 18, 18), (18, 6, 0)):
    file = written(
        f"of_{digits}", digits, decimals, "411.23", "409.4", volume="86300000", volume_decimals=volume_decimals
    )
    answer = chdb.query(f"SELECT n0 / n1, n0 * volume FROM file('{file}', Parquet)", "CSV")
    ratio, product = map(Decimal, str(answer).strip().split(","))
    print(f"decimal({digits}, {decimals}): {ratio:.4f} {product:.4f}")
written("a", 18, 6, "1.25")
written("b", 18, 8, "1.12345678")
for by_name in ("false", "true"):
    asked = f"SELECT min(n0) FROM read_parquet(['{folder}/a.parquet', '{folder}/b.parquet'], union_by_name = {by_name})"
    print(f"union_by_name = {by_name}: {duckdb.sql(asked).fetchall()[0][0]}")
PYTHON
"$folder/venv/bin/python" "$folder/ask.py" "$folder" | tee "$folder/seen"
cat >"$folder/expected" <<'TEXT'
decimal(38, 18): 0.1733 140.3583
decimal(18, 6): 1.0045 35489149000.0000
union_by_name = false: 1.123457
union_by_name = true: 1.12345678
TEXT
cmp "$folder/seen" "$folder/expected"
echo "As described: ClickHouse computes wrongly with 38 digits, and DuckDB rounds to the decimals of its first file."
