#!/bin/sh
# beanprice 2.1.0: after a rate from its ECB source, the thread calculates with as few digits as that rate has.
#
# The source `ecbrates` rounds its rate by setting the precision of Python's decimal context, and does not set it
# back. Sources run in worker threads, so the next job of that thread calculates with the same few digits; a price
# that beanprice inverts (`^`) is then wrong, without a word. Seen with beancount 3.2.3 and Python 3.11, one worker,
# for an inverted bitcoin price of 91234.56 dollars:
#
#   asked for alone, or before EUR-USD     USD 0.00001096075873002511329040223354 BTC
#   asked for after EUR-USD                USD 0.000010961 BTC
#
# So the order of the arguments decides about the price. A program that calls the source itself is hit as well: after
# it, Decimal("91234.56") * 3 is 2.7370E+5. No report was found. The answers are those of the ECB in
# its format, given here without a network.
# Run it with `sh findings/beanprice_ecb_source_cuts_digits.sh`. It ends with status 0 as long as that is so, with 1
# when it has changed, and with 2 when the packages cannot be installed.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT INT TERM

cat >"$folder/bitcoin.py" <<'PYTHON'
from datetime import datetime, timezone
from decimal import Decimal

from beanprice.source import SourcePrice


class Source:
    def get_latest_price(self, ticker):
        return SourcePrice(Decimal("91234.56"), datetime(2026, 1, 2, 12, tzinfo=timezone.utc), "USD")
PYTHON

cat >"$folder/ask.py" <<'PYTHON'
import contextlib
import io
import sys
from decimal import Decimal, getcontext
from types import SimpleNamespace

import requests

ANSWER = (
    "KEY,FREQ,CURRENCY,CURRENCY_DENOM,EXR_TYPE,EXR_SUFFIX,TIME_PERIOD,OBS_VALUE,OBS_STATUS,DECIMALS\n"
    "EXR.D.USD.EUR.SP00.A,D,USD,EUR,SP00,A,2026-01-02,1.0837,A,4\n"
)
requests.get = lambda url, params: SimpleNamespace(status_code=200, text=ANSWER)

from beanprice import price
from beanprice.sources import ecbrates

ECB, BITCOIN = "USD:ecbrates/EUR-USD", "BTC:bitcoin/^BTCUSD"


def asked(*sources):
    sys.argv = ["bean-price", "--no-cache", "--workers", "1", "--expressions", *sources]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        price.main()
    (line,) = [line for line in printed.getvalue().splitlines() if "BTC" in line]
    return line.split()[3]


print("alone:", asked(BITCOIN))
print("before EUR-USD:", asked(BITCOIN, ECB))
print("after EUR-USD:", asked(ECB, BITCOIN))

print("before the call:", Decimal("91234.56") * 3, getcontext().prec)
ecbrates.Source().get_latest_price("EUR-USD")
print("after the call:", Decimal("91234.56") * 3, getcontext().prec)
PYTHON

python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check "beanprice==2.1.0" "beancount==3.2.3" \
    2>"$folder/pip" || { cat "$folder/pip" >&2; exit 2; }
TZ=UTC PYTHONPATH=$folder "$folder/venv/bin/python" "$folder/ask.py" | tee "$folder/seen"

cat >"$folder/described" <<'TEXT'
alone: 0.00001096075873002511329040223354
before EUR-USD: 0.00001096075873002511329040223354
after EUR-USD: 0.000010961
before the call: 273703.68 28
after the call: 2.7370E+5 5
TEXT
cmp "$folder/seen" "$folder/described"
echo "As described: after a rate of the ECB an inverted price has five digits."
