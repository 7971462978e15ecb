#!/bin/sh
# asyncpg 0.32.0 stores 9999-12-31 as "infinity", which is another value.
#
# 9999-12-31 is a usual "until further notice" in feeds of rates and instruments, and in Python it is date.max.
# asyncpg sends date.max and date.min, datetime.max and datetime.min as PostgreSQL's infinite values. Seen with Python
# 3.11:
#
#   sent                               stored
#   date(9999, 12, 30)                 9999-12-30
#   date(9999, 12, 31)                 infinity: `until = '9999-12-31'` finds no row, and isfinite(until) is false
#   date(1, 1, 1)                      -infinity
#   datetime.max in UTC                infinity
#
# What comes back to Python looks the same again, so only SQL and other programs see the difference: joins with rows
# that others wrote miss, and `until - current_date` is an error. Rows written as text or by psycopg keep the day. And
# 'infinity' as timestamptz comes back as a datetime without a zone, which cannot be compared with the other values of
# the same column. It is not in asyncpg's documentation; https://github.com/psycopg/psycopg/issues/1368 mentions it.
# Send the text and cast it in SQL: $1::text::date.
# Run it with `sh findings/asyncpg_stores_the_last_day_as_infinity.sh`. It needs node, because PGlite is the
# PostgreSQL here. It ends with status 0 as long as that is so, with 1 when it has changed, and with 2 when the
# packages cannot be installed.
set -eu

folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$folder"' EXIT INT TERM

cat >"$folder/store.py" <<'PYTHON'
import asyncio
import sys
from datetime import date, datetime, timezone

import asyncpg


async def main():
    connection = await asyncpg.connect(sys.argv[1])
    await connection.execute("CREATE TEMPORARY TABLE rates (until date, ends timestamptz)")

    async def stored(until, ends):
        await connection.execute("DELETE FROM rates")
        await connection.execute("INSERT INTO rates VALUES ($1, $2)", until, ends)
        return await connection.fetchrow("SELECT until::text, ends::text, isfinite(until) AS finite FROM rates")

    for until, ends in (
        (date(9999, 12, 30), datetime(9999, 12, 30, tzinfo=timezone.utc)),
        (date(1, 1, 1), datetime.min.replace(tzinfo=timezone.utc)),
        (date(9999, 12, 31), datetime.max.replace(tzinfo=timezone.utc)),
    ):
        print(until, "is stored as", *await stored(until, ends))
    found = await connection.fetchval("SELECT count(*) FROM rates WHERE until = '9999-12-31'")
    print("rows until '9999-12-31':", found)
    back = await connection.fetchrow("SELECT until, ends, now() AS now FROM rates")
    print("read back:", back["until"], back["ends"], "zones:", back["ends"].tzinfo, back["now"].tzinfo)
    connection.terminate()  # PGlite does not answer close()


asyncio.run(main())
PYTHON

{
    npm install --silent --no-fund --no-audit --prefix "$folder/npm" \
        "@electric-sql/pglite@0.5.14" "@electric-sql/pglite-socket@0.2.17" >"$folder/said" 2>&1 &&
        python3 -m venv "$folder/venv" &&
        "$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check "asyncpg==0.32.0" \
            >>"$folder/said" 2>&1
} || { cat "$folder/said" >&2; exit 2; }

port=$(python3 -c "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); print(s.getsockname()[1])")
"$folder/npm/node_modules/.bin/pglite-server" --host=127.0.0.1 --port="$port" >"$folder/log" 2>&1 &
server=$!
waited=0
until grep -q "listening" "$folder/log"; do
    waited=$((waited + 1))
    [ "$waited" -le 60 ] || { cat "$folder/log" >&2; exit 2; }
    sleep 1
done
url="postgresql://postgres@127.0.0.1:$port/postgres?sslmode=disable"
timeout 120 "$folder/venv/bin/python" "$folder/store.py" "$url" | tee "$folder/seen"

cat >"$folder/described" <<'TEXT'
9999-12-30 is stored as 9999-12-30 9999-12-30 00:00:00+00 True
0001-01-01 is stored as -infinity -infinity False
9999-12-31 is stored as infinity infinity False
rows until '9999-12-31': 0
read back: 9999-12-31 9999-12-31 23:59:59.999999 zones: None UTC
TEXT
cmp "$folder/seen" "$folder/described"
echo "As described: the last day of Python is stored as infinity."
