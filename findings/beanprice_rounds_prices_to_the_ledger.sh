#!/bin/sh
# beanprice 2.1.0 prints a fetched price with no more decimals than the ledger has amounts of: 0.00001234 becomes 0.00.
#
# bean-price formats prices by the amounts of the ledger that it was given. A ledger that has dollars and cents
# only gets each new price in dollars rounded to cents, whatever the source said. Seen with beancount 3.2.3 and Python
# 3.11, in a ledger with amounts such as 1230.00 USD:
#
#   the source says        bean-price prints
#   SHIB 0.00001234 USD    SHIB 0.00 USD
#   EUR 1.0837 USD         EUR 1.08 USD
#
# The usual `bean-price main.beancount >> prices.beancount` stores that: a holding is worth nothing, and 10,000 EUR are
# 37 USD less. No warning, status 0. Once the ledger has one price with more decimals, all have that many; so it is
# found with the first prices of a ledger, or not at all. `option "display_precision" "USD:0.00000001"` in the ledger
# helps. Reported as https://github.com/beancount/beanprice/issues/65, open when this was written. The source below
# stands for any source, so nothing is fetched.
# Run it with `sh findings/beanprice_rounds_prices_to_the_ledger.sh`. It ends with status 0 as long as that is so, with
# 1 when it has changed, and with 2 when the packages cannot be installed.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT INT TERM

cat >"$folder/fixed_prices.py" <<'PYTHON'
from datetime import datetime, timezone
from decimal import Decimal

from beanprice.source import SourcePrice

PRICES = {"SHIB": "0.00001234", "EUR": "1.0837"}


class Source:
    def get_latest_price(self, ticker):
        return SourcePrice(Decimal(PRICES[ticker]), datetime(2026, 1, 2, 12, tzinfo=timezone.utc), "USD")
PYTHON

cat >"$folder/main.beancount" <<'TEXT'
2025-01-01 open Assets:Wallet
2025-01-01 open Equity:Opening
2025-01-01 commodity SHIB
  price: "USD:fixed_prices/SHIB"
2025-01-01 commodity EUR
  price: "USD:fixed_prices/EUR"
2025-01-01 * "Opening balance"
  Assets:Wallet   100000000 SHIB @@ 1230.00 USD
  Assets:Wallet   10000.00 EUR @@ 10800.00 USD
  Equity:Opening
TEXT
{ echo 'option "display_precision" "USD:0.00000001"'; cat "$folder/main.beancount"; } >"$folder/precise.beancount"

python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check "beanprice==2.1.0" "beancount==3.2.3" \
    2>"$folder/pip" || { cat "$folder/pip" >&2; exit 2; }

for ledger in main precise; do
    echo "$ledger:"
    TZ=UTC PYTHONPATH=$folder "$folder/venv/bin/bean-price" --no-cache "$folder/$ledger.beancount" | tr -s ' ' | sort
done | tee "$folder/seen"

cat >"$folder/described" <<'TEXT'
main:
2026-01-02 price EUR 1.08 USD
2026-01-02 price SHIB 0.00 USD
precise:
2026-01-02 price EUR 1.08370000 USD
2026-01-02 price SHIB 0.00001234 USD
TEXT
cmp "$folder/seen" "$folder/described"
echo "As described: the prices are rounded to cents."
