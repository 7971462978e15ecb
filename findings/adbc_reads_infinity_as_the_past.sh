#!/bin/sh
# The ADBC driver for PostgreSQL 1.13.0 reads "infinity" as a time 292,000 years ago, just before "-infinity".
#
# In PostgreSQL, `until = 'infinity'` is a usual end of a price, a rate or a membership that still holds. The driver
# moves values from the epoch of PostgreSQL (2000) to that of Arrow (1970) by an addition without a check, which wraps
# around. Seen with pyarrow 26.0.1 and Python 3.11:
#
#   until         SQL: until > now()   read as timestamp[us]    Arrow: until > now   read as date32
#   2999-12-31    true                   32503593600000000      true                      376199
#   infinity      true                -9222425352054775809      false                -2147472692
#   -infinity     false               -9222425352054775808      false                -2147472691
#
# No error, no warning. Whoever loads a table and keeps what is valid now loses each row without an end, and sorted by
# time these rows come first. The driver refuses times that overflow when it writes; here it reads. DuckDB's reader of
# PostgreSQL had the same fault and mended it (https://github.com/duckdb/duckdb-postgres/issues/102); for ADBC no
# report was found. Select NULLIF(until, 'infinity') instead.
# Run it with `sh findings/adbc_reads_infinity_as_the_past.sh`. It needs node, because PGlite is the PostgreSQL here.
# It ends with status 0 as long as that is so, with 1 when it has changed, and with 2 when the packages cannot be
# installed.
set -eu

folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$folder"' EXIT INT TERM

cat >"$folder/read.py" <<'PYTHON'
import sys
from datetime import datetime, timezone

import adbc_driver_postgresql.dbapi
import pyarrow
import pyarrow.compute

QUERY = """
SELECT until::text AS named, until, until::date AS day, until > now() AS holds
FROM (VALUES (1, '2999-12-31 00:00:00+00'::timestamptz), (2, 'infinity'), (3, '-infinity')) AS rates (number, until)
ORDER BY number
"""

with adbc_driver_postgresql.dbapi.connect(sys.argv[1]) as connection, connection.cursor() as cursor:
    cursor.execute(QUERY)
    read = cursor.fetch_arrow_table()

now = pyarrow.scalar(datetime.now(timezone.utc), read["until"].type)
print("types:", read["until"].type, read["day"].type)
columns = (
    read["holds"],
    read["until"].cast(pyarrow.int64()),
    pyarrow.compute.greater(read["until"], now),
    read["day"].cast(pyarrow.int32()),
)
for name, *values in zip(read["named"].to_pylist(), *(column.to_pylist() for column in columns)):
    print(name.split()[0], *values)
PYTHON

{
    npm install --silent --no-fund --no-audit --prefix "$folder/npm" \
        "@electric-sql/pglite@0.5.14" "@electric-sql/pglite-socket@0.2.17" >"$folder/said" 2>&1 &&
        python3 -m venv "$folder/venv" &&
        "$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check "pyarrow==26.0.1" \
            "adbc-driver-postgresql==1.13.0" "adbc-driver-manager==1.13.0" >>"$folder/said" 2>&1
} || { cat "$folder/said" >&2; exit 2; }

port=$(python3 -c "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); print(s.getsockname()[1])")
"$folder/npm/node_modules/.bin/pglite-server" --host=127.0.0.1 --port="$port" --max-connections=5 >"$folder/log" 2>&1 &
server=$!
waited=0
until grep -q "listening" "$folder/log"; do
    waited=$((waited + 1))
    [ "$waited" -le 60 ] || { cat "$folder/log" >&2; exit 2; }
    sleep 1
done
url="postgresql://postgres@127.0.0.1:$port/postgres?sslmode=disable"
TZ=UTC timeout 120 "$folder/venv/bin/python" "$folder/read.py" "$url" | tee "$folder/seen"

cat >"$folder/described" <<'TEXT'
types: timestamp[us, tz=UTC] date32[day]
2999-12-31 True 32503593600000000 True 376199
infinity True -9222425352054775809 False -2147472692
-infinity False -9222425352054775808 False -2147472691
TEXT
cmp "$folder/seen" "$folder/described"
echo "As described: what holds for ever has ended long ago."
