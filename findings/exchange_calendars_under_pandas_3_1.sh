#!/bin/sh
# exchange_calendars 4.13.2 under pandas 3.1 loses trading days without a word. Under pandas 3.0.6 it is right.
#
# exchange_calendars 4.13.2 allows any pandas from 1.5. This script asks it about five exchanges in two fresh
# environments that differ only in pandas, and prints what each answers. Seen on 2026-11-28 with Python 3.11:
#
#   pandas 3.0.6
#     Bombay, 2023-01-01 to 2026-06-30:   858 sessions, 2 of them at weekends (2024-01-20, 2025-02-01)
#     Tel Aviv, 2025-06-01 to 2025-12-31: 142 sessions, 29 of them at weekends (Tel Aviv traded on Sundays then)
#     Athens, Bucharest, Nicosia, 2026:   248, 252 and 245 sessions
#   pandas 3.1.1
#     Bombay:                             856 sessions, none at a weekend; no error, no warning
#     Tel Aviv:                           ValueError about special dates that are no sessions
#     Athens, Bucharest, Nicosia:         NotImplementedError: implemented by subclasses
#
# Bombay did trade on both Saturdays: on 2024-01-20 in place of the Monday after, and on 2025-02-01 for the budget.
# Run it with `sh findings/exchange_calendars_under_pandas_3_1.sh`. It ends with status 0 as long as that is so, and with 1 when one of the two answers otherwise.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT INT TERM

cat >"$folder/ask.py" <<'PYTHON'
import warnings

warnings.simplefilter("ignore")
import exchange_calendars
import pandas


def asked(name, first, last):
    try:
        days = exchange_calendars.get_calendar(name, start=first, end=last).sessions
    except Exception as error:
        return type(error).__name__
    return f"{len(days)} sessions, {sum(day.dayofweek > 4 for day in days)} at weekends"


for name, first, last in (
    ("XBOM", "2023-01-01", "2026-06-30"),
    ("XTAE", "2025-06-01", "2025-12-31"),
    ("ASEX", "2026-01-01", "2026-12-31"),
    ("XBSE", "2026-01-01", "2026-12-31"),
    ("XCYS", "2026-01-01", "2026-12-31"),
):
    print(f"{name}: {asked(name, first, last)}")
PYTHON

ask() {
    python3 -m venv "$folder/$1"
    "$folder/$1/bin/python" -m pip install --quiet --disable-pip-version-check "exchange_calendars==4.13.2" "pandas==$1" \
        2>"$folder/pip" || { cat "$folder/pip" >&2; exit 2; }
    "$folder/$1/bin/python" "$folder/ask.py" >"$folder/$1.txt"
    echo "exchange_calendars 4.13.2 with pandas $1"
    sed 's/^/  /' "$folder/$1.txt"
}

ask 3.0.6
ask 3.1.1

cat >"$folder/right" <<'TEXT'
XBOM: 858 sessions, 2 at weekends
XTAE: 142 sessions, 29 at weekends
ASEX: 248 sessions, 0 at weekends
XBSE: 252 sessions, 0 at weekends
XCYS: 245 sessions, 0 at weekends
TEXT
cat >"$folder/wrong" <<'TEXT'
XBOM: 856 sessions, 0 at weekends
XTAE: ValueError
ASEX: NotImplementedError
XBSE: NotImplementedError
XCYS: NotImplementedError
TEXT
cmp "$folder/3.0.6.txt" "$folder/right"
cmp "$folder/3.1.1.txt" "$folder/wrong"
echo "As described: with pandas 3.1.1 sessions are missing or a calendar cannot be built."
